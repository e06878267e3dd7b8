#include "cli/transfer/quota.h"

#include <algorithm>

#include "cli/runtime.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

// Scanning the folder takes at most a twentieth of the time and happens at most once per second.
constexpr double kLeastAge = 1, kPartOfTime = 20;

// The additional usage when a file of `size` bytes replaces the existing one, if any.
Usage growth(std::optional<std::uint64_t> there, std::uint64_t size) {
  const std::uint64_t old = there.value_or(0);
  return {size > old ? size - old : 0, there ? 0u : 1u};
}

bool exceeds(std::uint64_t limit, std::uint64_t used, std::uint64_t more) {
  return limit != 0 && more != 0 && (used > limit || more > limit - used);
}

std::string size_text(std::uint64_t bytes) {
  return format_size(static_cast<double>(bytes));
}

// Why a put exceeds a quota; empty if it does not.
std::string why_not(const std::string& whose, const Usage& most, const Usage& used,
                    const Usage& more) {
  if (exceeds(most.bytes, used.bytes, more.bytes)) {
    return "exceeds " + whose + " quota of " + size_text(most.bytes) + ", of which " +
           size_text(used.bytes) + " are used";
  }
  if (exceeds(most.files, used.files, more.files)) {
    return "exceeds " + whose + " quota of " + format_count(most.files) + " files, of which " +
           format_count(used.files) + " are used";
  }
  return {};
}

void take_away(std::uint64_t* from, std::uint64_t n) {
  *from -= std::min(*from, n);
}
void take_away(Usage* from, const Usage& n) {
  take_away(&from->bytes, n.bytes);
  take_away(&from->files, n.files);
}
Usage operator+(const Usage& a, const Usage& b) {
  return {a.bytes + b.bytes, a.files + b.files};
}

}  // namespace

void Quota::look_again(double now) {
  if (now < look_at_) return;
  const double begun = now_seconds();
  used_ = folder_usage(folder_);
  look_at_ = now + std::max(kLeastAge, kPartOfTime * (now_seconds() - begun));
}

// Removes that client's files from its usage if they no longer exist.
void Quota::forget_gone(const std::string& client) {
  std::erase_if(owned_, [&](const auto& entry) {
    if (entry.second.client != client || size_of_file(folder_, entry.first)) return false;
    take_away(&clients_[client].used, {entry.second.size, 1});
    return true;
  });
  forget_idle(client);
}

void Quota::forget(const std::string& name) {
  const auto it = owned_.find(name);
  if (it == owned_.end()) return;
  const std::string client = std::move(it->second.client);
  take_away(&clients_[client].used, {it->second.size, 1});
  owned_.erase(it);
  forget_idle(client);
}

// Deletes the record of a client without files and reservations.
void Quota::forget_idle(const std::string& client) {
  const auto c = clients_.find(client);
  if (c != clients_.end() && c->second.used == Usage{} && c->second.reserved == Usage{}) {
    clients_.erase(c);
  }
}

Outcome<Quota::Share, FileError> Quota::reserve(const std::string& client, const std::string& name,
                                                std::uint64_t size, double now) {
  const std::lock_guard guard(mutex_);
  Share share;
  share.size_ = size;
  const auto refuse = [&](const std::string& why) {
    return fail(FileError{Status::NoSpace, name + ": " + why});
  };
  if (limits_.of_whole()) {
    look_again(now);
    share.of_whole_ = growth(size_of_file(folder_, name), size);
    const std::string why =
        why_not("the target's", {limits_.bytes, limits_.files}, used_ + reserved_, share.of_whole_);
    if (!why.empty()) return refuse(why);
  }
  if (limits_.of_clients()) {
    const Usage most{limits_.client_bytes, limits_.client_files};
    const auto judged = [&] {
      const auto own = owned_.find(name);
      const bool is_own = own != owned_.end() && own->second.client == client;
      share.of_client_ = growth(is_own ? std::optional(own->second.size) : std::nullopt, size);
      const auto known = clients_.find(client);
      const Client c = known != clients_.end() ? known->second : Client{};
      return why_not("this client's", most, c.used + c.reserved, share.of_client_);
    };
    std::string why = judged();
    if (!why.empty()) {
      forget_gone(client);
      why = judged();
    }
    if (!why.empty()) return refuse(why);
    Client& c = clients_[client];
    c.reserved = c.reserved + share.of_client_;
  }
  reserved_ = reserved_ + share.of_whole_;
  share.client_ = client;
  share.name_ = name;
  share.quota_ = this;
  return share;
}

void Quota::Share::keep(std::optional<std::uint64_t> replaced) {
  if (quota_ == nullptr) return;
  Quota& q = *quota_;
  give_back();
  const std::lock_guard guard(q.mutex_);
  if (q.limits_.of_whole()) {
    take_away(&q.used_, {replaced.value_or(0), replaced ? 1u : 0u});
    q.used_ = q.used_ + Usage{size_, 1};
  }
  if (q.limits_.of_clients()) {
    q.forget(name_);
    q.owned_[name_] = {client_, size_};
    Client& c = q.clients_[client_];
    c.used = c.used + Usage{size_, 1};
  }
}

void Quota::Share::give_back() {
  if (quota_ == nullptr) return;
  Quota& q = *std::exchange(quota_, nullptr);
  const std::lock_guard guard(q.mutex_);
  take_away(&q.reserved_, of_whole_);
  if (!q.limits_.of_clients()) return;
  take_away(&q.clients_[client_].reserved, of_client_);
  q.forget_idle(client_);
}

}  // namespace urnic::cli
