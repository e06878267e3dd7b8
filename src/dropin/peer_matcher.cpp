#include "dropin/peer_matcher.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "dropin/errors.h"
#include "dropin/process.h"
#include "dropin/queue_pair.h"
#include "dropin/undo.h"

namespace urnic::dropin {
namespace {

// bound: peers' requests that wait until a queue pair of the drop-in moves to RTR; beyond: the
// oldest is refused; test: MeetingTest.EarlyRequestsAreBoundedAndTheOldestIsRefused
constexpr std::size_t kMostEarly = 4;
// A program without rdma_cm ends when it has its result, while its peer may still poll the last
// completions. A receive that was flushed together with them would look like an error to the peer.
constexpr int kCloseWaitMs = 1000;
constexpr int kBacklog = 256 * static_cast<int>(kMostEarly);

// The private data of the active end: its own queue pair number, and that of the peer.
struct Greeting {
  static constexpr std::array<std::uint8_t, 4> kMagic{'u', 'Q', 'P', 1};
  static constexpr std::size_t kSize = 12;
  std::uint32_t from = 0, to = 0;

  std::array<std::uint8_t, kSize> bytes() const {
    std::array<std::uint8_t, kSize> out{};
    std::copy(kMagic.begin(), kMagic.end(), out.begin());
    for (unsigned i = 0; i < 4; ++i) {
      out[4 + i] = static_cast<std::uint8_t>(from >> (24 - 8 * i));
      out[8 + i] = static_cast<std::uint8_t>(to >> (24 - 8 * i));
    }
    return out;
  }
  bool read(std::span<const std::uint8_t> data) {
    if (data.size() != kSize || !std::equal(kMagic.begin(), kMagic.end(), data.begin())) {
      return false;
    }
    for (unsigned i = 0; i < 4; ++i) {
      from = from << 8 | data[4 + i];
      to = to << 8 | data[8 + i];
    }
    return true;
  }
};

std::uint16_t port_of_number(std::uint32_t number) {
  return static_cast<std::uint16_t>(number & 0xffff);
}

// The address without the port.
std::string ip_of(Address a) {
  set_port(&a, 0);
  return text_of(a);
}

// The peer's address without the port; empty if there is none.
std::string host_of(const ConnectRequest& request) {
  Address from, plain;
  const bool known = from_text(request.peer(), &from) && copy_address(&from.any, &plain);
  return known ? ip_of(plain) : std::string();
}

// Orders the two ends: by number, then by address.
bool is_before(const Peer& p, std::uint32_t own_number) {
  if (own_number != p.number) return own_number < p.number;
  return ip_of(p.own) < ip_of(p.address);
}

ConnectionOptions options_of(const Peer& p) {
  ConnectionOptions o;
  o.ird = p.ird;
  o.timeout_ms = std::numeric_limits<int>::max();  // the program's own time-out applies
  o.iwarp.close_wait_ms = kCloseWaitMs;
  return o;
}

class PortSubject : public Subject {
 public:
  explicit PortSubject(PeerMatcher& of) : of_(of) {}
  void on_event(Event& event) override {
    if (event.kind != EventKind::connect_request) return;
    const std::lock_guard guard(Process::get().cm);
    of_.on_request(event.request);
  }

 private:
  PeerMatcher& of_;
};

}  // namespace

// ---- numbers

PeerMatcher::Port* PeerMatcher::open_port() {
  Process& process = Process::get();
  Device& device = adapter_.device();
  auto bound = device.bind("[::]:0");
  if (!bound) bound = device.bind("0.0.0.0:0");
  if (!bound) return nullptr;
  auto port = std::make_unique<Port>();
  const std::uint64_t subject = process.add(std::make_shared<PortSubject>(*this));
  port->subject = subject;
  Undo name([&] { process.remove(subject); });
  auto listener =
      device.listen(*bound, kBacklog, adapter_.events(), Process::as_context(port->subject));
  if (!listener) return nullptr;
  port->listener = std::move(*listener);
  const std::uint16_t at = port->listener.port();
  Port* const added = (ports_[at] = std::move(port)).get();
  name.keep();
  return added;
}

std::uint32_t PeerMatcher::take_number() {
  const auto free = std::find_if(ports_.begin(), ports_.end(),
                                 [](const auto& p) { return !p.second->used.all(); });
  Port* port = free != ports_.end() ? free->second.get() : open_port();
  if (port == nullptr) return 0;
  while (port->used.test(port->next)) port->next = (port->next + 1) % 256;
  const unsigned slot = port->next;
  port->used.set(slot);
  port->next = (slot + 1) % 256;
  return slot << 16 | port->listener.port();
}

void PeerMatcher::give_back(std::uint32_t number) {
  const auto at = ports_.find(port_of_number(number));
  if (at == ports_.end()) return;
  Port& port = *at->second;
  port.used.reset(number >> 16);
  if (port.used.any()) return;
  Process::get().remove(port.subject);
  ports_.erase(at);
}

void PeerMatcher::add(std::shared_ptr<Endpoint> end) {
  const std::uint32_t number = end->handle.number();
  meetings_.emplace(number, std::make_unique<PeerMatch>(std::move(end)));
}

void PeerMatcher::remove(std::uint32_t number) {
  PeerMatch* m = find(number);
  if (m == nullptr) return;
  stop_clock(*m);
  if (m->end->manager == m) m->end->manager = nullptr;
  meetings_.erase(number);
}

PeerMatch* PeerMatcher::find(std::uint32_t number) {
  const auto at = meetings_.find(number);
  return at == meetings_.end() ? nullptr : at->second.get();
}

bool PeerMatcher::has_connection(std::uint32_t number) const {
  const auto at = meetings_.find(number);
  if (at == meetings_.end()) return false;
  const PeerMatch::Phase phase = at->second->phase;
  return phase == PeerMatch::Phase::Connecting || phase == PeerMatch::Phase::Connected;
}

// ---- matching

int PeerMatcher::meet(std::uint32_t number, const Peer& peer) {
  PeerMatch* m = find(number);
  if (m == nullptr) return EOPNOTSUPP;  // created by rdma_cm, or no port was available
  if (m->phase != PeerMatch::Phase::Apart || m->end->manager != nullptr) return EINVAL;
  m->peer = peer;
  if (m->peer.own.any.sa_family == AF_UNSPEC &&
      choose_source(adapter_, peer.address, &m->peer.own) != 0) {
    return ENETUNREACH;
  }
  if (number == peer.number && ip_of(m->peer.own) == ip_of(peer.address)) return EOPNOTSUPP;
  m->end->manager = m;
  m->end->retry_exceeded_reported = false;
  m->end->met = m->end->apart = true;
  if (is_before(m->peer, number)) {
    m->phase = PeerMatch::Phase::Connecting;
    const int error = connect(*m);
    if (error == 0) return 0;
    leave(number);
    return error;
  }
  m->phase = PeerMatch::Phase::Expecting;
  auto early = std::move(m->early);
  m->early.clear();
  for (auto& [from, request] : early) {
    if (from == peer.number && accept(*m, request)) break;
  }
  return 0;
}

// Network errors are not returned to the program, which learns of them by its sends.
int PeerMatcher::connect(PeerMatch& m) {
  const std::uint32_t number = m.end->handle.number();
  const auto said = Greeting{number, m.peer.number}.bytes();
  ConnectionOptions o = options_of(m.peer);
  o.private_data = said;
  Address routed{};
  if (choose_source(adapter_, m.peer.address, &routed) == 0 && ip_of(routed) != ip_of(m.peer.own)) {
    auto bound = adapter_.device().bind(ip_of(m.peer.own));
    if (!bound) return to_errno(bound.error().code);
    m.source = std::move(*bound);
    o.source = &m.source;
  }
  Address to = m.peer.address;
  set_port(&to, port_of_number(m.peer.number));
  const auto started = m.end->handle.connect_start(text_of(to), o);
  m.connection = m.end->handle.connections();
  if (started) return 0;
  const Errc code = started.error().code;
  if (code == Errc::wrong_state || code == Errc::invalid_argument || code == Errc::no_memory) {
    return to_errno(code);
  }
  m.phase = PeerMatch::Phase::Lost;
  return 0;
}

// False if it is not from the expected peer, or the peer has gone; another request may arrive.
bool PeerMatcher::accept(PeerMatch& m, ConnectRequest& request) {
  if (host_of(request) != ip_of(m.peer.address)) return false;
  if (!request.accept(m.end->handle, options_of(m.peer))) return false;
  m.connection = m.end->handle.connections();
  m.phase = PeerMatch::Phase::Connecting;
  return true;
}

void PeerMatcher::on_request(ConnectRequest& request) {
  Greeting said;
  if (!said.read(request.private_data())) return;  // destroying it refuses it
  PeerMatch* m = find(said.to);
  if (m == nullptr) return;
  if (m->phase == PeerMatch::Phase::Expecting) {
    if (said.from == m->peer.number) accept(*m, request);
    return;
  }
  // The queue pair has not named its peer yet, or is still connected to an earlier one. The request
  // waits until the program names the peer, as a first packet would be retransmitted until then. A
  // repeated request replaces the earlier one; two hosts may use the same number.
  std::erase_if(m->early, [&, host = host_of(request)](const auto& e) {
    return e.first == said.from && host_of(e.second) == host;
  });
  if (m->early.size() == kMostEarly) m->early.erase(m->early.begin());
  m->early.emplace_back(said.from, std::move(request));
}

void PeerMatch::on_connection(Event& event) {
  if (event.connection != connection) return;
  switch (event.kind) {
    case EventKind::established:
      if (phase != Phase::Connecting) return;
      phase = Phase::Connected;
      end->apart = false;
      end->adapter.peer_matcher().stop_clock(*this);
      return;
    case EventKind::connect_failed:
    case EventKind::disconnected:
    case EventKind::failed:
      if (phase != Phase::Apart) phase = Phase::Lost;
      end->adapter.peer_matcher().stop_clock(*this);
      return;
    default:
      return;
  }
}

void PeerMatcher::leave(std::uint32_t number) {
  PeerMatch* m = find(number);
  if (m == nullptr) return;
  stop_clock(*m);
  m->phase = PeerMatch::Phase::Apart;
  m->patience = {};
  m->source = Binding();
  m->connection = 0;
  m->end->met = m->end->apart = false;
  if (m->end->manager == m) m->end->manager = nullptr;
}

// ---- time-out of a peer that does not connect

void PeerMatcher::set_patience(std::uint32_t number, std::chrono::milliseconds patience) {
  if (PeerMatch* m = find(number); m != nullptr) m->patience = patience;
}

void PeerMatcher::posted(std::uint32_t number) {
  PeerMatch* m = find(number);
  if (m == nullptr || !m->end->apart) return;
  if (m->phase == PeerMatch::Phase::Lost) {
    give_up(*m);
    return;
  }
  if (m->patience.count() == 0 || m->until != PeerMatch::Clock::time_point::max()) return;
  m->until = PeerMatch::Clock::now() + m->patience;
  const bool sooner = clocks_.empty() || m->until < clocks_.begin()->first;
  clocks_.emplace(m->until, number);
  if (sooner) adapter_.events().wake();
}

void PeerMatcher::stop_clock(PeerMatch& m) {
  if (m.until == PeerMatch::Clock::time_point::max()) return;
  clocks_.erase({m.until, m.end->handle.number()});
  m.until = PeerMatch::Clock::time_point::max();
}

int PeerMatcher::next_ms() const {
  if (clocks_.empty()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(clocks_.begin()->first -
                                                                 PeerMatch::Clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1'000'000));
}

void PeerMatcher::expire() {
  const auto now = PeerMatch::Clock::now();
  while (!clocks_.empty() && clocks_.begin()->first <= now) {
    PeerMatch* m = find(clocks_.begin()->second);
    stop_clock(*m);
    // The peer may have connected without its event having been handled yet, if the thread for
    // events got no processor time.
    if (m->end->handle.state() != QpState::rts) give_up(*m);
  }
}

// Completes its sends, the first with "retries exceeded" (Endpoint::apart).
void PeerMatcher::give_up(PeerMatch& m) {
  m.phase = PeerMatch::Phase::Lost;
  (void)m.end->handle.modify(QpState::error);
  m.end->refresh();
}

}  // namespace urnic::dropin
