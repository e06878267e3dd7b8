#include "cli/lan/l2_switch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "fault/machine.h"
#include "fault/tcp_frame.h"

namespace urnic::cli {
namespace {

constexpr unsigned kBurst = port::kBurst;
constexpr std::uint32_t kEthernet = 14;
constexpr unsigned kFdsPerMember = 16;
// The interval for retrying a member that has no room.
constexpr std::int64_t kRetryMs = 1;

void copy_frame(const port::Frame& f, std::uint8_t* dst) {
  std::memcpy(dst, f.data[0], f.len[0]);
  if (f.len[1] != 0) std::memcpy(dst + f.len[0], f.data[1], f.len[1]);
}

// Sends frames, oldest first: `write(i, dst)` writes the bytes of frame i and `length(i)` returns
// their number. Returns how many frames the port had room for.
template <class Length, class Write>
std::size_t send(port::Port& port, std::size_t count, Length&& length, Write&& write) {
  std::size_t sent = 0;
  while (sent < count) {
    const auto n = static_cast<unsigned>(std::min<std::size_t>(kBurst, count - sent));
    std::uint32_t longest = 0;
    for (unsigned i = 0; i < n; ++i) longest = std::max(longest, length(sent + i));
    std::array<port::Frame, kBurst> out;
    const unsigned got = port.tx_reserve(0, longest, out.data(), n);
    for (unsigned i = 0; i < got; ++i) {
      write(sent + i, out[i].data[0]);
      out[i].len[0] = length(sent + i);
      out[i].len[1] = 0;
    }
    if (got != 0) port.tx_commit(0, out.data(), got);
    sent += got;
    if (got < n) break;
  }
  return sent;
}

}  // namespace

// ---- addresses

MacTable::MacTable(std::size_t entries, Duration age, std::uint64_t seed)
    : entries_(std::bit_ceil(std::max(entries, kWays))),
      mask_(entries_.size() / kWays - 1),
      age_(age),
      seed_(seed) {}

std::size_t MacTable::set_of(const MacAddress& address) const {
  std::uint64_t v = seed_;
  for (const std::uint8_t byte : address.bytes) v = (v ^ byte) * 0x100000001b3u;
  return ((v ^ v >> 29) & mask_) * kWays;
}

void MacTable::learn(const MacAddress& address, unsigned member, Instant now) {
  Entry* const set = &entries_[set_of(address)];
  Entry* oldest = set;
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set[i].address == address) {
      oldest = &set[i];
      break;
    }
    if (set[i].until < oldest->until) oldest = &set[i];
  }
  *oldest = {address, member, now + age_};
}

std::optional<unsigned> MacTable::find(const MacAddress& address, Instant now) const {
  const Entry* const set = &entries_[set_of(address)];
  for (std::size_t i = 0; i < kWays; ++i) {
    if (set[i].address == address && set[i].until > now) return set[i].member;
  }
  return std::nullopt;
}

void MacTable::forget(unsigned member) {
  for (Entry& e : entries_) {
    if (e.member == member) e = {};
  }
}

std::size_t MacTable::count(Instant now) const {
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(),
                                                [&](const Entry& e) { return e.until > now; }));
}

// ---- the switch

void Switch::add(port::Port port, std::string name) {
  members_.emplace_back();
  members_.back().port = std::move(port);
  members_.back().name = std::move(name);
  look_at_link(static_cast<unsigned>(members_.size() - 1));
}

// When a member leaves, drops the frames that wait for it and forgets its addresses, which may
// reappear at another member.
void Switch::look_at_link(unsigned member) {
  Member& m = members_[member];
  const port::Info info = m.port.info();
  m.max_frame = info.max_frame;
  if (m.up && info.link_up == 0) {
    table_.forget(member);
    while (!m.waiting.empty()) m.waiting.pop_front();
  }
  m.up = info.link_up != 0;
}

bool Switch::run_once(Instant now) {
  bool any = false;
  for (unsigned from = 0; from < members_.size(); ++from) {
    look_at_link(from);
    any = send_waiting(members_[from]) || any;
    std::array<port::Frame, kBurst> frames;
    const unsigned n = members_[from].port.rx_burst(0, frames.data(), kBurst);
    for (unsigned i = 0; i < n; ++i) direct(from, frames[i], now);
    for (Member& m : members_) send_now(m);
    if (n != 0) members_[from].port.rx_release(0, frames.data(), n);
    any = any || n != 0;
  }
  return any;
}

// Copies the addresses out before using them: the frame may lie in memory that its sender can still
// write to.
void Switch::direct(unsigned from, const port::Frame& frame, Instant now) {
  SwitchCounters& counters = members_[from].counters;
  ++counters.received;
  std::array<std::uint8_t, 12> head;
  if (frame.len[0] < kEthernet) {
    ++counters.bad;
    return;
  }
  std::memcpy(head.data(), frame.data[0], head.size());
  const MacAddress to = MacAddress::from_bytes(head.data());
  const MacAddress source = MacAddress::from_bytes(head.data() + 6);
  if (source.is_multicast()) {
    ++counters.bad;
    return;
  }
  if (!source.is_zero()) table_.learn(source, from, now);
  if (!to.is_multicast()) {
    if (const auto member = table_.find(to, now)) {
      if (*member != from) give(*member, frame);
      return;
    }
  }
  ++counters.flooded;
  for (unsigned m = 0; m < members_.size(); ++m) {
    if (m != from) give(m, frame);
  }
}

void Switch::give(unsigned to, const port::Frame& frame) {
  Member& m = members_[to];
  if (!m.up) return;  // the member's link is down
  if (port::frame_len(frame) > m.max_frame) {
    ++m.counters.too_long;
    return;
  }
  m.now.push_back(&frame);
}

int Switch::turns_before_sleep(unsigned cores) const {
  constexpr int kWithRoom = 200, kWithout = 1;
  const auto up =
      std::count_if(members_.begin(), members_.end(), [](const Member& m) { return m.up; });
  return cores > static_cast<std::size_t>(up) ? kWithRoom : kWithout;
}

// Returns true if at least one of them has been sent.
bool Switch::send_waiting(Member& m) {
  if (m.waiting.empty()) return false;
  std::size_t sent = send(
      m.port, m.waiting.size(),
      [&](std::size_t i) { return static_cast<std::uint32_t>(m.waiting[i].size()); },
      [&](std::size_t i, std::uint8_t* dst) {
        std::memcpy(dst, m.waiting[i].data(), m.waiting[i].size());
      });
  m.counters.sent += sent;
  const bool any = sent != 0;
  for (; sent > 0; --sent) m.waiting.pop_front();
  return any;
}

void Switch::send_now(Member& m) {
  if (m.now.empty()) return;
  std::size_t at = 0;
  // A kernel leaves TCP checksums to the hardware (TAP). We act as that hardware, because the next
  // port may be a wire.
  const auto finished = [](const port::Frame& f) { return f.csum != URNIC_CSUM_PARTIAL; };
  if (m.waiting.empty() &&
      std::all_of(m.now.begin(), m.now.end(), [&](const port::Frame* f) { return finished(*f); })) {
    at = send(
        m.port, m.now.size(), [&](std::size_t i) { return port::frame_len(*m.now[i]); },
        [&](std::size_t i, std::uint8_t* dst) { copy_frame(*m.now[i], dst); });
    m.counters.sent += at;
  }
  for (; at < m.now.size(); ++at) {
    if (m.waiting.size() >= options_.queue) {
      ++m.counters.full;
      continue;
    }
    const port::Frame& f = *m.now[at];
    fault::Frame whole;
    whole.bytes.resize(port::frame_len(f));
    copy_frame(f, whole.bytes.data());
    if (!finished(f)) {
      if (const auto v = fault::parse_tcp_frame(whole)) {
        fault::finish_tcp_frame(whole, *v, v->payload_len);
      }
    }
    m.waiting.push_back(std::move(whole.bytes));
  }
  m.now.clear();
  send_waiting(m);
}

void Switch::sleep(int wake_fd, Duration most) {
  std::vector<int> fds;
  std::int64_t ms = std::max<std::int64_t>(most.count_ms(), 1);
  bool work = false;
  for (Member& m : members_) {
    int some[kFdsPerMember];
    const unsigned n = m.port.wait_fds(0, some, kFdsPerMember);
    fds.insert(fds.end(), some, some + n);
    work = m.port.arm(0) || work;
    if (!m.waiting.empty() || n == 0) ms = kRetryMs;
  }
  if (wake_fd >= 0) fds.push_back(wake_fd);
  if (!work) fault::machine::wait_readable(fds, ms);
  for (Member& m : members_) m.port.disarm(0);
}

}  // namespace urnic::cli
