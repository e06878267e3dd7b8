// One end of RoCE without an engine: a side, its interface, its memory and completion queues, and a
// port whose other end is the test. Driven in virtual time as the engine does it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "port/memory_port.h"
#include "roce/side.h"

namespace urnic::roce::test {

using Bytes = std::vector<std::uint8_t>;

inline constexpr verbs::PdId kPd = 5;

struct EventLog final : verbs::Hooks, QpWatcher {
  void on_cm_event(verbs::CmEvent e) override {
    last_receives += e.kind == verbs::CmEvent::Kind::LastReceive;
  }
  void on_completion(verbs::CompletionQueue*) override { ++notified; }
  void on_cq_overrun(verbs::CompletionQueue*) override { ++overruns; }
  void on_qp_event(verbs::QueuePair& qp, QpEvent e) override {
    events.emplace_back(qp.number(), e);
    if (e == QpEvent::Drained) drained_at = qp.sq.head();
  }
  std::size_t count(QpEvent e) const {
    std::size_t n = 0;
    for (const auto& event : events) n += event.second == e;
    return n;
  }
  int notified = 0, overruns = 0, last_receives = 0;
  std::uint32_t drained_at = 0;  // number of requests completed by then
  std::vector<std::pair<std::uint32_t, QpEvent>> events;
};

inline net::InterfaceConfig interface_of(int which, std::uint32_t mtu) {
  net::InterfaceConfig c;
  const std::string host = std::to_string(which + 1);
  c.addresses = {*IpPrefix::parse("10.9.0." + host + "/24"),
                 *IpPrefix::parse("fd09::" + host + "/64")};
  c.mtu = mtu;
  return c;
}
inline IpAddress address_of(int which, bool v6) {
  const std::string host = std::to_string(which + 1);
  return *IpAddress::parse((v6 ? "fd09::" : "10.9.0.") + host);
}

class SideEnd {
 public:
  explicit SideEnd(int which, Options options = keyed(1), std::uint32_t mtu = 1500)
      : ports_(port::make_memory_pair({.max_frame = mtu + 14, .ring = 256})),
        wire(&ports_.first, 0, mtu, 14, interface_of(which, mtu)),
        side(options, &log, &reports, &wire, &memory) {
    wire.interface().link_up(Instant());
  }
  static Options keyed(std::uint64_t key) {
    Options o;
    o.key = {key, 7};
    return o;
  }

  std::unique_ptr<verbs::QueuePair> queue_pair(verbs::WorkQueueSizes sizes = {},
                                               verbs::Service service = verbs::Service::Rc) {
    return side.create(service, kPd, sizes, &cq, &cq);
  }

  // A frame arrives; poll() processes it.
  void arrive(ByteView frame) {
    port::Frame f;
    ASSERT_EQ(ports_.second.tx_reserve(0, static_cast<std::uint32_t>(frame.size()), &f, 1), 1u);
    std::copy(frame.begin(), frame.end(), f.data[0]);
    f.len[0] = static_cast<std::uint32_t>(frame.size());
    f.len[1] = 0;
    ports_.second.tx_commit(0, &f, 1);
  }
  void poll(Instant now) {
    wire.begin_sending();
    port::Frame frames[port::kBurst];
    const unsigned n = ports_.first.rx_burst(0, frames, port::kBurst);
    Staged staged[port::kBurst];
    for (unsigned i = 0; i < n; ++i) stage(frames[i], &staged[i]);
    for (unsigned i = 0; i < n; ++i) take(&staged[i], now);
    if (n != 0) ports_.first.rx_release(0, frames, n);
    for (std::size_t left = wire.looped(); left != 0; --left) {
      Bytes bytes = wire.next_looped();
      port::Frame frame{};
      frame.data[0] = bytes.data();
      frame.len[0] = static_cast<std::uint32_t>(bytes.size());
      Staged s;
      stage(frame, &s);
      take(&s, now);
    }
    wire.interface().run_timers(now);
    side.run_timers(now);
    std::vector<net::Event> events;
    wire.interface().take_events(events);
    for (const net::Event& e : events) {
      using Kind = net::Event::Kind;
      if (e.kind == Kind::NeighbourUsable || e.kind == Kind::NeighbourForgotten) {
        side.reroute(&e.address, false);
      }
      if (e.kind == Kind::NeighbourFailed) side.reroute(&e.address, true);
      if (e.kind == Kind::Recheck) side.reroute(nullptr, false);
    }
    side.transmit_round(now);
  }
  Instant next() const {
    if (side.wants_to_send() || wire.looped() != 0) return Instant();
    return earlier(side.next_deadline(), wire.interface().next_deadline());
  }
  // Frames sent since the last call.
  std::vector<Bytes> sent() {
    std::vector<Bytes> all;
    port::Frame frames[port::kBurst];
    while (const unsigned n = ports_.second.rx_burst(0, frames, port::kBurst)) {
      for (unsigned i = 0; i < n; ++i) {
        Bytes& b = all.emplace_back(frames[i].data[0], frames[i].data[0] + frames[i].len[0]);
        if (frames[i].len[1] != 0) {
          b.insert(b.end(), frames[i].data[1], frames[i].data[1] + frames[i].len[1]);
        }
      }
      ports_.second.rx_release(0, frames, n);
    }
    return all;
  }
  std::vector<verbs::Cqe> completions() {
    std::vector<verbs::Cqe> all(4096);
    all.resize(static_cast<std::size_t>(std::max(0, cq.poll(all))));
    return all;
  }

 private:
  // A frame of a burst; all are staged before the first is processed.
  struct Staged {
    const port::Frame* frame = nullptr;
    net::FrameHead head;
    Arrived a;
    bool plain = false;
  };
  void stage(const port::Frame& frame, Staged* s) {
    s->frame = &frame;
    s->head.copy(frame);
    s->plain = like_last && side.plain().stage(frame, s->head, &s->a);
  }
  void take(Staged* s, Instant now) {
    if (s->plain) {
      if (side.plain().take(s->head, s->a)) {
        ++short_ways;
        return;
      }
      return side.process(s->head, s->a, now);
    }
    s->head.copy_whole(*s->frame);
    s->head.classify();
    const net::Classified& net = s->head.net;
    if (net.kind == net::FrameKind::Drop || net.kind == net::FrameKind::Tcp) return;
    if (side.stage(*s->frame, s->head, &s->a)) {
      if (wire.interface().accepts(net)) side.process(s->head, s->a, now);
    } else {
      wire.interface().input(net, {s->frame->data[0], s->frame->len[0]}, now);
    }
  }

  std::pair<port::Port, port::Port> ports_;

 public:
  bool like_last = false;  // like an engine: frames of the last flow are not classified
  int short_ways = 0;      // frames taken by the fast path
  EventLog log;
  verbs::Completions reports{&log};
  verbs::MemoryTable memory;
  verbs::CompletionQueue cq{4096};
  net::Wire wire;
  Side side;
};

// How two queue pairs are connected by the test.
struct Pairing {
  bool v6 = false;
  ib::PathMtu mtu = ib::PathMtu::k1024;
  std::uint32_t psn[2] = {0xfffff0, 100};
  std::uint32_t depth = 4;
  std::uint32_t ack_timeout = 8, retry_count = 7, rnr_retry = 7, min_rnr_timer = 1;
  std::uint8_t access = verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
};

inline QpChange to_init(const Pairing& p) {
  QpChange c;
  c.to = verbs::QpState::Init;
  c.mask |= verbs::kQpAttrPkeyIndex | verbs::kQpAttrPort | verbs::kQpAttrAccess;
  c.access = p.access;
  return c;
}
inline QpChange to_rtr(const Pairing& p, int which, std::uint32_t dest) {
  QpChange c;
  c.to = verbs::QpState::Rtr;
  c.mask |= verbs::kQpAttrAv | verbs::kQpAttrPathMtu | verbs::kQpAttrDestQpn | verbs::kQpAttrRqPsn |
            verbs::kQpAttrMaxDestRdAtomic | verbs::kQpAttrMinRnrTimer;
  c.av.local = address_of(which, p.v6);
  c.av.remote = address_of(1 - which, p.v6);
  c.path_mtu = p.mtu;
  c.dest_qp = dest;
  c.rq_psn = p.psn[1 - which];
  c.responder_depth = p.depth;
  c.min_rnr_timer = p.min_rnr_timer;
  return c;
}
inline QpChange to_rts(const Pairing& p, int which) {
  QpChange c;
  c.to = verbs::QpState::Rts;
  c.mask |= verbs::kQpAttrTimeout | verbs::kQpAttrRetryCount | verbs::kQpAttrRnrRetry |
            verbs::kQpAttrSqPsn | verbs::kQpAttrMaxRdAtomic;
  c.sq_psn = p.psn[which];
  c.ack_timeout = p.ack_timeout;
  c.retry_count = p.retry_count;
  c.rnr_retry = p.rnr_retry;
  c.initiator_depth = p.depth;
  return c;
}
inline void connect(SideEnd& end, verbs::QueuePair& qp, const Pairing& p, int which,
                    std::uint32_t dest, Instant now) {
  ASSERT_EQ(end.side.modify(qp, to_init(p), now), Modified::Ok);
  ASSERT_EQ(end.side.modify(qp, to_rtr(p, which, dest), now), Modified::Ok);
  ASSERT_EQ(end.side.modify(qp, to_rts(p, which), now), Modified::Ok);
}

}  // namespace urnic::roce::test
