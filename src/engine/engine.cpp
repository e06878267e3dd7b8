#include "engine/engine.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "engine/keys.h"
#include "engine/to_send.h"

namespace urnic::engine {
namespace {

// Ethernet header, including a tag if our frames have one.
std::uint32_t link_header(const Options& options) {
  return options.vlan != 0 ? 18 : 14;
}

std::uint32_t usable_mtu(const Options& options, const port::Port& port) {
  const std::uint32_t max_frame = port.info().max_frame, header = link_header(options);
  const std::uint32_t carried = max_frame > header ? max_frame - header : 0;
  // A frame of memif is memory between two processes, so a longer one costs nothing.
  const std::uint32_t most = std::string_view(port.kind()) == "memif" ? carried : 9000;
  const std::uint32_t wanted = options.mtu != 0 ? options.mtu : std::min(carried, most);
  return std::min(wanted, carried);
}

net::InterfaceConfig interface_config(const Options& options, const port::Info& info,
                                      std::uint32_t mtu) {
  net::InterfaceConfig c;
  if (info.max_frame == 0) {  // the kernel's TCP: no addresses and no frames of our own
    c.mac = MacAddress{{2, 0, 0, 0, 0, 1}};
    return c;
  }
  c.mtu = mtu;
  c.vlan = static_cast<std::uint16_t>(options.vlan);
  c.duplicate_detection = options.duplicate_address_detection;
  c.dad = net::DadTiming::quick();
  c.seed = options.seed;
  std::vector<std::string> addresses = options.addresses;
  if (addresses.empty()) {  // the default pair: the listening side of a memif is .1 (E-34)
    const char* last = info.server_side != 0 ? "1" : "2";
    addresses = {std::string("10.77.0.") + last + "/24", std::string("fd77::") + last + "/64"};
  }
  for (const std::string& text : addresses) {
    if (const auto a = IpPrefix::parse(text)) c.addresses.push_back(*a);
  }
  if (const auto mac = MacAddress::parse(options.mac)) {
    c.mac = *mac;
  } else {  // zero if the port has none: then derived from the first address
    c.mac = MacAddress::from_bytes(info.mac);
    if (c.mac.is_zero() && options.own_mac) c.mac = *options.own_mac;
  }
  if (options.socket_port != 0) {
    c.only_neighbour = MacAddress{{2, 0, 0, 0, 0, 2}};
    c.link_local = false;
  }
  if (const auto gw = IpAddress::parse(options.gateway)) {
    c.routes.push_back({{gw->is_v6() ? IpAddress::any_v6() : IpAddress::any_v4(), 0}, *gw});
  }
  return c;
}

Options settled(Options options, const port::Port& port) {
  settle_by_port_kind(&options, port.kind());
  options.roce.key = device_key(options.seed, KeyOf::RoceNumbers);
  options.roce.cm_key = device_key(options.seed, KeyOf::CommunicationIds);
  options.context.place_out_of_order = options.out_of_order == Options::OutOfOrder::Place;
  return options;
}

// Prefetches the payload of the next frame while the current one is checked and placed. For a long
// payload only the beginning: the processor prefetches the rest as a stream.
[[gnu::always_inline]] inline void prefetch_payload(ByteView payload) {
  constexpr std::size_t kLine = 64, kMost = 1024;
  const std::uint8_t* const p = payload.data();
  if (payload.size() >= kMost) [[likely]] {
#pragma GCC unroll 16
    for (std::size_t i = 0; i < kMost; i += kLine) __builtin_prefetch(p + i);
    return;
  }
  for (std::size_t i = 0; i < payload.size(); i += kLine) __builtin_prefetch(p + i);
}

// For either side.
template <class Staged>
[[gnu::always_inline]] inline void prefetch_next(const Staged& s) {
  if (s.tcp.usable) {
    prefetch_payload(s.tcp.seg.payload);
  } else if (s.roce.frame != nullptr) {
    prefetch_payload({s.roce.frame->data[0], s.roce.frame->len[0]});
  }
}

template <class Staged>
[[gnu::always_inline]] inline void process_roce(roce::Side* side, Staged& s, Instant now) {
  if (s.roce.like_last && side->plain().take(s.head, s.roce)) [[likely]]
    return;
  side->process(s.head, s.roce, now);
}

}  // namespace

// Runs work that belongs to no connection and is repeated or optional: on bad_alloc it is skipped,
// and the burst goes on (docs/decisions/out-of-memory.md). Connections that may have waited for it
// resolve their route again.
template <class F>
void Engine::spare(F&& step) {
  try {
    step();
  } catch (const std::bad_alloc&) {
    look_again_ = true;
  }
}

Engine::Engine(const Options& options, port::Port* port, unsigned queue, Hooks* hooks,
               std::shared_ptr<KernelTcp> kernel)
    : options_(settled(options, *port)),
      over_kernel_tcp_(kernel != nullptr),
      port_(port),
      queue_(queue),
      hooks_(hooks),
      wire_(port, queue, usable_mtu(options, *port), link_header(options),
            interface_config(options, port->info(), usable_mtu(options, *port)),
            options.socket_port, options.route_mtu),
      memory_(1u << 20, StagForm(device_key(options.seed, KeyOf::Stags))),
      completions_(hooks),
      iwarp_(options_, hooks, &completions_, &wire_, &memory_, std::move(kernel), queue,
             port->info().queues),
      iwarp_control_(&iwarp_, &completions_, &memory_, &qps_),
      link_(port, &wire_.interface(), hooks, options.link_timeout),
      qps_(device_key(options.seed, KeyOf::IwarpNumbers)),
      roce_(options_.roce, {options_.mpa.ird, options_.mpa.ord, options_.startup_timeout},
            &options_.gate, hooks, &completions_, &wire_, &memory_, &qps_) {
  if (options_.speaks_roce) roce_.start();
  network_events_.reserve(32);  // swapped with that of the interface
}

Engine::~Engine() {
  wire_.tx().flush();
}

bool Engine::poll(Instant now, bool comes_back) {
  const iwarp::Side::Scope scope(iwarp_);
  ++counters_.polls;
  wire_.begin_sending();
  const auto moved = [this] { return counters_.rx_frames + wire_.tx().frames_sent(); };
  const std::uint64_t before = moved();
  const bool arrived = over_kernel_tcp_ ? iwarp_.poll_sockets(now, comes_back) : receive_burst(now);
  bool any = arrived;
  spare([&] { look_at_link(!any, now); });
  bool more = wire_.looped() != 0 && loop_frames(now);
  more |= iwarp_.drain_round(now);
  any |= more;
  roce_.act(now);
  spare([&] { look_at_shared_limits(); });
  const bool all_waits = iwarp_.end_of_burst(!arrived, comes_back, now);
  if (completions_.take_overrun()) fail_overrun(now);
  // The consumer runs first; timers and turns are left to the next poll.
  const bool roce_waits = roce_.side().plain().acks_wait(arrived && comes_back);
  const bool iwarp_sends = iwarp_.wants_to_send() || wire_.interface().output_size() != 0;
  if (acks_alone({all_waits, iwarp_sends}, {roce_waits, roce_.side().wants_to_send()})) {
    wire_.tx().flush();
    iwarp_.leave(now);
    return true;
  }
  if (link_.given_up_at() <= now) {
    spare([&] {
      const std::string why = link_.give_up();
      iwarp_.events().give_up_link(why, now);
      roce_.give_up_link(why, now);
    });
  }
  spare([&] { wire_.interface().run_timers(now); });
  iwarp_.run_timers(now);
  if (roce_.side().next_deadline() <= now) roce_.side().run_timers(now);
  roce_.act(now);
  if (wire_.interface().has_events()) [[unlikely]]
    any |= take_network_events(now);
  if (std::exchange(look_again_, false)) iwarp_.events().reroute(nullptr, false, now);
  if (roce_.side().wants_to_send()) [[unlikely]] {
    any |= transmit_both(now);
  } else if (iwarp_.wants_to_send() || wire_.interface().output_size() != 0) {
    any |= iwarp_.transmit_round(now);
  }
  wire_.tx().flush();
  iwarp_.leave(now);
  counters_.long_polls += more || over_kernel_tcp_ || moved() - before > 4;
  return any;
}

Instant Engine::next_deadline() const {
  if (wire_.looped() != 0 || interface().has_events()) return Instant();
  const Instant side = iwarp_.next_deadline();
  if (over_kernel_tcp_) return side;
  if (completions_.overrun_pending() || roce_.connections().has_news()) return Instant();
  const Instant sides = earlier(side, roce_.next_deadline());
  return earlier(earlier(sides, interface().next_deadline()), link_.given_up_at());
}

// The sides share the room in the port: they begin in turn.
bool Engine::transmit_both(Instant now) {
  roce::Side& roce = roce_.side();
  roce_goes_first_ = !roce_goes_first_;
  bool any = false;
  if (roce_goes_first_) any |= roce.transmit_round(now);
  const bool room = !roce_goes_first_ || !wire_.tx().full();
  if (room && (iwarp_.wants_to_send() || wire_.interface().output_size() != 0)) {
    any |= iwarp_.transmit_round(now);
  }
  if (!roce_goes_first_) any |= roce.transmit_round(now);
  return any;
}

void Engine::work_posted(verbs::QueuePair& qp, std::uint8_t posted, Instant now) {
  const verbs::Completions::Hold hold(completions_);
  if ((posted & verbs::kPostedReceives) != 0) qp.control->receives_posted(qp, now);
  if ((posted & verbs::kPostedSends) != 0) qp.control->sends_posted(qp, now);
  if (completions_.take_overrun()) fail_overrun(now);
}

verbs::ControlPath* Engine::control(Transport t) {
  if (t == Transport::roce) return options_.speaks_roce ? &roce_ : nullptr;
  return options_.speaks_iwarp ? &iwarp_control_ : nullptr;
}

// ---- a burst

bool Engine::receive_burst(Instant now) {
  const unsigned n = port_->rx_burst(queue_, rx_frames_, port::kBurst);
  if (n == 0) return false;
  // Copies every head first, then parses them all and fetches the contexts they need, then
  // processes them (D3): the cache lines of all frames are fetched together, and nothing is read
  // right after it was written.
  for (unsigned i = 0; i < n; ++i) staged_[i].head.copy(rx_frames_[i]);
  for (unsigned i = 0; i < n; ++i) stage(rx_frames_[i], staged_[i], now);
  Staged* const end = staged_ + n;
  if (roce::PlainReceiver& plain = roce_.side().plain(); plain.several()) {
    for (const Staged* s = staged_; s != end; ++s) {
      if (s->roce.frame != nullptr) plain.fetch(s->roce);
    }
  }
  for (Staged* s = staged_; s != end;) {
    try {
      for (; s != end; ++s) {
        if (s + 1 != end) prefetch_next(s[1]);
        if (s->tcp.usable) [[likely]] {
          iwarp_.process(s->head, s->tcp, now);
          roce_.side().plain().interrupt();
        } else if (s->roce.frame != nullptr) {
          process_roce(&roce_.side(), *s, now);
        }
      }
    } catch (const std::bad_alloc&) {  // the frames after it belong to other connections
      iwarp_.events().out_of_memory(s->tcp.connection, now);
      ++s;
    }
  }
  port_->rx_release(queue_, rx_frames_, n);
  counters_.rx_frames += n;
  return true;
}

// `s` contains the head.
[[gnu::always_inline]] inline void Engine::stage(const port::Frame& frame, Staged& s, Instant now) {
  s.tcp.usable = false;
  s.roce.frame = nullptr;
  s.roce.like_last = false;
  counters_.rx_bytes += s.head.frame_bytes;
  if (iwarp_.stage_like_last(frame, s.head, &s.tcp)) [[likely]]
    return;
  if (roce_.side().plain().stage(frame, s.head, &s.roce)) return;
  stage_unknown(frame, s, now);
}

// For a frame that is not like the last one: finds the side it is for.
void Engine::stage_unknown(const port::Frame& frame, Staged& s, Instant now) {
  net::Interface& interface = wire_.interface();
  s.tcp.connection = nullptr;
  s.head.copy_whole(frame);
  s.head.classify();
  switch (s.head.net.kind) {
    case net::FrameKind::Drop:
      interface.counters().drop(s.head.net.reason);
      return;
    case net::FrameKind::Tcp:
      if (options_.speaks_iwarp) [[likely]]
        break;
      interface.counters().drop(net::DropReason::NotForUs);
      return;
    case net::FrameKind::Other:
      if (options_.speaks_roce && roce::is_ours(s.head.net, {s.head.bytes, s.head.size})) break;
      [[fallthrough]];
    default:
      spare([&] { input_control(frame, s.head.net, now); });
      return;
  }
  if (!interface.accepts(s.head.net)) {
    interface.counters().drop(net::DropReason::NotForUs);
    return;
  }
  // E-46: no other host has our address, or one that is invalid as a source.
  if (!s.head.looped && !interface.may_send(s.head.net.src)) {
    interface.counters().drop(net::DropReason::Source);
    return;
  }
  if (s.head.net.kind == net::FrameKind::Tcp) [[likely]] {
    iwarp_.stage(frame, s.head, &s.tcp);
  } else {
    roce_.side().stage(frame, s.head, &s.roce);
  }
}

// ARP, ND, ICMP: rare, so the whole frame is copied, since a peer may write to its memory (E-19).
void Engine::input_control(const port::Frame& frame, const net::Classified& c, Instant now) {
  control_frame_.resize(port::frame_len(frame));
  std::memcpy(control_frame_.data(), frame.data[0], frame.len[0]);
  if (frame.len[1] != 0) {
    std::memcpy(control_frame_.data() + frame.len[0], frame.data[1], frame.len[1]);
  }
  wire_.interface().input(c, control_frame_, now);
}

// Frames to own addresses are looped back (E-30).
bool Engine::loop_frames(Instant now) {
  for (std::size_t n = wire_.looped(); n > 0; --n) {
    std::vector<std::uint8_t> bytes = wire_.next_looped();
    port::Frame frame{};
    frame.data[0] = bytes.data();
    frame.len[0] = static_cast<std::uint32_t>(bytes.size());
    frame.csum = URNIC_CSUM_GOOD;
    Staged s;
    s.head.looped = true;
    s.head.copy(frame);
    try {
      stage(frame, s, now);
      if (s.tcp.usable) {
        iwarp_.process(s.head, s.tcp, now);
      } else if (s.roce.frame != nullptr) {
        roce_.side().process(s.head, s.roce, now);
      }
    } catch (const std::bad_alloc&) {
      iwarp_.events().out_of_memory(s.tcp.usable ? s.tcp.connection : nullptr, now);
    }
  }
  return true;
}

// ---- events of the network and the link

bool Engine::take_network_events(Instant now) {
  wire_.interface().take_events(network_events_);
  for (const net::Event& e : network_events_) spare([&] { on_network_event(e, now); });
  return true;
}

void Engine::on_network_event(const net::Event& e, Instant now) {
  using Kind = net::Event::Kind;
  roce_.side().plain().forget();
  switch (e.kind) {
    case Kind::NeighbourUsable:
    case Kind::NeighbourForgotten:
      roce_.side().reroute(&e.address, false);
      iwarp_.events().reroute(&e.address, false, now);
      return;
    case Kind::NeighbourFailed:
      roce_.side().reroute(&e.address, true);
      iwarp_.events().reroute(&e.address, true, now);
      return;
    case Kind::Recheck:
      roce_.side().reroute(nullptr, false);
      iwarp_.events().reroute(nullptr, false, now);
      return;
    case Kind::Icmp:
      iwarp_.events().on_icmp_error(e.icmp, now);
      return;
    case Kind::AddressUsable:
      return;
    case Kind::AddressDuplicate:
    case Kind::AddressConflict:  // defended by the interface (RFC 5227, 2.4)
      hooks_->on_address_conflict(e.address, e.mac);
      return;
  }
}

void Engine::look_at_link(bool idle, Instant now) {
  const bool due = (idle && link_.wants_look(now)) || (counters_.polls & 63) == 0;
  if (due && link_.look(now)) iwarp_.events().ask_peers(now);
}

// ---- memory, queues

// E-25: no stream reads or writes the region's memory afterwards. Most regions have no user when
// they are deregistered, and then the number of queue pairs does not matter. Users that are not
// counted, such as all of RoCE, look up the region by key each time and find that it is gone.
void Engine::detach(const verbs::Region& region, std::uint32_t stag) {
  if (region.uses != 0) iwarp_control_.detach_region(stag);
}

bool Engine::deregister(std::uint32_t stag) {
  const verbs::Region* const region = memory_.find_registered(stag);
  if (region == nullptr || region->windows != 0) return false;
  detach(*region, stag);
  return memory_.deregister(stag);
}

std::uint32_t Engine::reregister(std::uint32_t stag, verbs::PdId pd, const verbs::Extent& memory,
                                 std::uint8_t access) {
  const verbs::Region* const region = memory_.find_registered(stag);
  if (region == nullptr || region->windows != 0 || !verbs::registrable(memory, access)) return 0;
  const bool writable = (access & verbs::kLocalWrite) != 0;
  const bool was_writable = (region->access & verbs::kLocalWrite) != 0;
  if (region->pd != pd || extent_of(*region) != memory || (was_writable && !writable)) {
    detach(*region, stag);
  }
  return memory_.reregister(stag, pd, memory, access);
}

void Engine::set_shared_limit(verbs::SharedReceiveQueue& queue, std::uint32_t limit) {
  queue.set_limit(limit);
  look_at_shared_limits();
}

void Engine::look_at_shared_limits() {
  qps_.take_limit_events([this](verbs::SharedReceiveQueue* q) { hooks_->on_shared_limit(q); });
}

// E-47: completions on a queue that has overrun are lost, so its queue pairs must fail.
void Engine::fail_overrun(Instant now) {
  constexpr const char* kWhy = "completion queue overrun: create it larger or poll it more often";
  qps_.for_each([&](verbs::QueuePair& qp) {
    if (!qp.control->completes_on_overrun(qp)) return;
    spare([&] { qp.control->fail(qp, Errc::queue_full, kWhy, now); });
  });
}

}  // namespace urnic::engine
