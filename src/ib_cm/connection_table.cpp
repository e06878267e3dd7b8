#include "ib_cm/connection_table.h"

#include <algorithm>
#include <new>

namespace urnic::ib_cm {
namespace {

// This many entries stay unused before one is reused.
constexpr std::uint32_t kRest = 64;
constexpr std::uint32_t kMostEntries = (1u << 24) - 2;

}  // namespace

std::uint64_t ConnectionTable::Hash::operator()(const Key& k) const {
  const IpAddress a = k.remote;
  const ByteView bytes = a.bytes();
  const std::uint64_t low = a.is_v4() ? a.v4_value() : load_be64(bytes.data());
  const std::uint64_t high = a.is_v4() ? 0 : load_be64(bytes.data() + 8);
  return siphash13(key,
                   {low, high, std::uint64_t{static_cast<std::uint32_t>(k.kind)} << 32 | k.number});
}

ConnectionTable::ConnectionTable(const SipKey& key, std::uint32_t most)
    : form_(key), most_(std::min(most, kMostEntries)), names_(Hash{key}) {}

Connection* ConnectionTable::open() {
  if (size_ >= most_) return nullptr;
  try {
    auto made = std::make_unique<Connection>();
    std::uint32_t index = first_free_;
    if (index == kNone || (free_ < kRest && entries_.size() < kMostEntries)) {
      index = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      first_free_ = entries_[index].next_free;
      if (first_free_ == kNone) last_free_ = kNone;
      --free_;
    }
    ++size_;
    made->id = id_of(index);
    entries_[index].connection = std::move(made);
    return entries_[index].connection.get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void ConnectionTable::close(Connection* c) noexcept {
  unname({c->addresses.remote, kind_of(*c), c->remote_id}, c);
  unname({c->addresses.remote, Kind::Qpn, c->remote_qpn}, c);
  const std::uint32_t index = form_.inside(c->id) - 1;
  Entry& e = entries_[index];
  e.connection.reset();
  ++e.use;
  e.next_free = kNone;
  (last_free_ == kNone ? first_free_ : entries_[last_free_].next_free) = index;
  last_free_ = index;
  ++free_;
  --size_;
}

Connection* ConnectionTable::find(Handle id) {
  const std::uint32_t index = form_.inside(id) - 1;
  if (index >= entries_.size()) return nullptr;
  Connection* const c = entries_[index].connection.get();
  return c != nullptr && c->id == id ? c : nullptr;
}

ConnectionTable::Kind ConnectionTable::kind_of(const Connection& c) {
  return c.state >= State::SidrSent ? Kind::Request : Kind::Id;
}

Connection* ConnectionTable::named(const Key& k) {
  Connection** const c = names_.find(k);
  return c == nullptr ? nullptr : *c;
}
Connection* ConnectionTable::by_remote_id(const IpAddress& remote, std::uint32_t id) {
  return named({remote, Kind::Id, id});
}
Connection* ConnectionTable::by_remote_qpn(const IpAddress& remote, std::uint32_t qpn) {
  return named({remote, Kind::Qpn, qpn});
}
Connection* ConnectionTable::by_request_id(const IpAddress& remote, std::uint32_t id) {
  return named({remote, Kind::Request, id});
}

bool ConnectionTable::name(Connection* c) {
  const Key id{c->addresses.remote, kind_of(*c), c->remote_id};
  const Key qpn{c->addresses.remote, Kind::Qpn, c->remote_qpn};
  if (names_.contains(id) || (c->remote_qpn != 0 && names_.contains(qpn))) return false;
  try {
    names_.reserve(names_.size() + 2);
    names_.insert(id, c);
    if (c->remote_qpn != 0) names_.insert(qpn, c);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void ConnectionTable::unname(const Key& k, const Connection* c) noexcept {
  if (named(k) == c) names_.erase(k);
}

}  // namespace urnic::ib_cm
