// Two engines with a wire that the test controls: it can look at every frame, drop it, or add
// forged ones. Virtual time.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/inet_checksum.h"
#include "net/classify.h"
#include "net/header_template.h"
#include "port/memory_port.h"
#include "sim/node.h"
#include "tcp/segment.h"

namespace urnic::test {

using Bytes = std::vector<std::uint8_t>;

// A TCP frame on the wire.
struct WireSegment {
  net::Classified net;
  tcp::Segment seg;  // its payload lies in the frame
  static std::optional<WireSegment> of(ByteView frame) {
    WireSegment w;
    w.net = net::classify(frame, static_cast<std::uint32_t>(frame.size()));
    if (w.net.kind != net::FrameKind::Tcp) return std::nullopt;
    std::size_t header = 0;
    const ByteView l4 = frame.subspan(w.net.l4_offset, w.net.l4_len);
    const auto seg = tcp::parse_segment(l4, &header);
    if (!seg) return std::nullopt;
    w.seg = *seg;
    w.seg.payload = l4.subspan(header);
    return w;
  }
  bool of_port(std::uint16_t port) const { return seg.src_port == port || seg.dst_port == port; }
  // The sequence space of the segment.
  std::uint32_t length() const {
    return static_cast<std::uint32_t>(seg.payload.size()) + (seg.has(tcp::kSyn) ? 1 : 0) +
           (seg.has(tcp::kFin) ? 1 : 0);
  }
};

// A forged frame from the source of `w`, or with `back` from its destination.
inline Bytes forge(const WireSegment& w, bool back, const MacAddress& to_mac,
                   const tcp::Segment& seg, ByteView payload) {
  net::HeaderTemplateConfig h;
  h.src_mac = back ? MacAddress{{2, 0, 0, 0, 0, 9}} : w.net.src_mac;
  h.dst_mac = to_mac;
  h.src = back ? w.net.dst : w.net.src;
  h.dst = back ? w.net.src : w.net.dst;
  const net::HeaderTemplate ip(h);
  Bytes f(ip.size() + tcp::kHeaderMax + payload.size());
  std::uint8_t* t = f.data() + ip.size();
  const std::size_t header = tcp::emit_header(seg, t);
  if (!payload.empty()) std::memcpy(t + header, payload.data(), payload.size());
  const auto len = static_cast<std::uint32_t>(header + payload.size());
  f.resize(ip.size() + len);
  ip.emit(f.data(), len, 1, 0);
  store_be16(t + 16, inet_checksum(std::uint64_t{ip.pseudo_sum(len)} + inet_sum({t, len})));
  return f;
}

class HandWire {
 public:
  struct Host {
    Host(std::vector<std::string> addresses, std::uint64_t seed, engine::Options o) {
      auto [own, other] = port::make_memory_pair();
      o.addresses = std::move(addresses);
      o.seed = seed;
      o.mtu = 1500;
      node = std::make_unique<sim::Node>(o, std::move(own));
      wire = std::move(other);
    }
    engine::Engine& engine() { return node->engine(); }
    port::Port wire;  // the other end of its port
    std::unique_ptr<sim::Node> node;
  };
  // Called with every frame; returns the frames to carry instead, in this order. `to_right`: the
  // direction. Frames for the other direction are passed to send().
  using Watch = std::function<std::vector<Bytes>(Bytes frame, bool to_right)>;

  explicit HandWire(const engine::Options& options = {},
                    std::vector<std::string> of_left = {"10.0.0.1/24"})
      : left(std::move(of_left), 1, options), right({"10.0.0.2/24"}, 2, options) {}

  Host left, right;
  Instant now = Instant::from_ns(1000000000);
  Watch watch;

  void send(const Bytes& bytes, bool to_right) { put(to_right ? right : left, bytes); }

  // Runs until `done` or for `limit`. Returns true if done.
  bool run_until(const std::function<bool()>& done, Duration limit) {
    for (const Instant until = now + limit;;) {
      if (done()) return true;
      bool any = carry(left, right, true);
      any = carry(right, left, false) || any;
      any = left.engine().poll(now) || any;
      any = right.engine().poll(now) || any;
      const Instant next = earlier(left.engine().next_deadline(), right.engine().next_deadline());
      if (!any && next > until) {
        now = until;
        return done();
      }
      now = any ? now + Duration::us(1) : std::max(next, now + Duration::us(1));
      if (now > until) return done();
    }
  }
  void run_for(Duration d) {
    run_until([] { return false; }, d);
  }
  // `qp` of the left host asks for a connection to port 7000 of the right one, which listens there.
  // True when the request has come.
  bool ask(verbs::QueuePair& qp, std::optional<Duration> timeout = {}) {
    engine::ConnectParams params = left.engine().iwarp().default_params();
    params.timeout = timeout.value_or(params.timeout);
    const SocketAddress to = *SocketAddress::parse("10.0.0.2:7000");
    return left.engine().iwarp().connect(qp, to, params, now).ok() &&
           run_until([&] { return !right.node->events.empty(); }, Duration::s(1));
  }
  // The oldest event of the right host is that request, and `qp` takes it.
  bool accept(verbs::QueuePair& qp) {
    iwarp::Side& side = right.engine().iwarp();
    const auto id = right.node->events.front().request.id;
    return side.accept(id, qp, side.default_params(), now).ok();
  }

 private:
  static void put(Host& to, const Bytes& bytes) {
    port::Frame out{};
    ASSERT_EQ(to.wire.tx_reserve(0, static_cast<std::uint32_t>(bytes.size()), &out, 1), 1u);
    std::memcpy(out.data[0], bytes.data(), bytes.size());
    out.len[0] = static_cast<std::uint32_t>(bytes.size());
    out.len[1] = 0;
    to.wire.tx_commit(0, &out, 1);
  }
  bool carry(Host& from, Host& to, bool to_right) {
    port::Frame frames[port::kBurst];
    const unsigned n = from.wire.rx_burst(0, frames, port::kBurst);
    std::vector<Bytes> copies;
    for (unsigned i = 0; i < n; ++i) {
      Bytes f(frames[i].data[0], frames[i].data[0] + frames[i].len[0]);
      f.insert(f.end(), frames[i].data[1], frames[i].data[1] + frames[i].len[1]);
      copies.push_back(std::move(f));
    }
    from.wire.rx_release(0, frames, n);
    for (Bytes& f : copies) {
      if (!watch) {
        put(to, f);
        continue;
      }
      for (const Bytes& out : watch(std::move(f), to_right)) put(to, out);
    }
    return n != 0;
  }
};

}  // namespace urnic::test
