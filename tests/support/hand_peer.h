// One end of a connection, played by the test against a whole engine in virtual time. The test can
// send any bytes at any stream position, in bursts of its choice, and gets the engine's output
// segment by segment. The engine listens; the test's end connects, negotiates MPA revision 1, and
// never retransmits, acknowledges or closes by itself.
//
// Positions are offsets in the stream of FPDUs: 0 is the first byte after the start-up frame.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/inet_checksum.h"
#include "mpa/startup.h"
#include "net/arp.h"
#include "net/classify.h"
#include "net/header_template.h"
#include "port/memory_port.h"
#include "sim/node.h"
#include "tcp/segment.h"
#include "tests/ddp_rdma/segments.h"
#include "tests/fastpath/fpdu_maker.h"

namespace urnic::test {

using testing::Bytes;
using testing::make_fpdu;

// A TCP segment that the engine sent.
struct Answer {
  tcp::Segment seg;  // its payload is `payload`
  Bytes payload;
  std::uint64_t ack = 0;  // the test's bytes below this are acknowledged
  std::vector<std::pair<std::uint64_t, std::uint64_t>> sack;
  bool pure_ack() const { return payload.empty() && seg.flags == tcp::kAck; }
};

// A TCP segment for the engine.
struct Cut {
  std::uint64_t at = 0;
  Bytes bytes;
  bool bad_checksum = false;
  std::uint16_t flags = tcp::kAck;
  std::uint16_t source_port = 0;  // 0: that of the connection
  std::uint32_t behind = 0;       // bytes sent by the engine that this does not acknowledge
};

class HandPeer {
 public:
  engine::Options options;       // change before up()
  engine::ConnectParams params;  // for the program's accept; set by `adjust` of up()
  std::uint32_t iss = 1000;
  bool sack = true;
  bool names_corrupted = false;    // E-42, negotiated if `options` enable it
  port::MemoryPairOptions memory;  // of the wire
  Bytes region;                    // registered with all access rights
  Bytes eager;                     // sent before the program has answered
  std::uint32_t reply_window = 0;  // the window offered by the Reply

  HandPeer() : region(1 << 16, 0) {
    options.addresses = {"10.0.0.2/24"};
    options.mtu = 1500;
    options.out_of_order = engine::Options::OutOfOrder::Place;
    options.tcp.ack_policy = tcp::AckPolicy::PerBurst;
    options.tcp.timestamps = false;
    options.seed = 5;
  }

  // Brings up the connection to full operation. Returns false (with a test failure) if that fails.
  template <class Adjust>
  bool up(Adjust&& adjust) {
    auto [a, b] = port::make_memory_pair(memory);
    port_ = std::move(b);
    node_ = std::make_unique<sim::Node>(options, std::move(a));
    qp = node_->make_qp(64, 64);
    stag = node_->register_memory(region.data(), region.size(),
                                  verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead);
    if (!node_->engine().iwarp().listen(7000, 4)) return fail("listen");
    params = node_->engine().iwarp().default_params();
    adjust(params);
    send_arp(net::kArpRequest, {});
    run();
    if (engine_mac_ == MacAddress{}) return fail("the engine does not answer ARP");
    net::HeaderTemplateConfig c;
    c.src_mac = kMac;
    c.dst_mac = engine_mac_;
    c.src = IpAddress::v4(10, 0, 0, 1);
    c.dst = IpAddress::v4(10, 0, 0, 2);
    ip_ = net::HeaderTemplate(c);
    return handshake();
  }
  bool up() {
    return up([](engine::ConnectParams&) {});
  }

  // ---- sending
  // Sends one burst and returns the engine's output until it is idle again.
  std::vector<Answer> burst(const std::vector<Cut>& cuts) {
    for (const Cut& c : cuts) put(c);
    return run();
  }
  // Sends one burst, polls the engine once, and returns its output.
  std::vector<Answer> one_poll(const std::vector<Cut>& cuts, bool comes_back) {
    for (const Cut& c : cuts) put(c);
    node_->engine().poll(now, comes_back);
    return seen();
  }
  // The output of the engine without polling it again.
  std::vector<Answer> seen() {
    std::vector<Answer> out;
    collect(&out);
    return out;
  }
  std::vector<Answer> send(std::uint64_t at, Bytes bytes) {
    return burst({{at, std::move(bytes)}});
  }
  // Sends an arbitrary frame.
  std::vector<Answer> frame(const Bytes& bytes) {
    transmit(bytes);
    return run();
  }
  // A SYN from the wire to the listener, with any two addresses.
  std::vector<Answer> forged_syn(const SocketAddress& from, const IpAddress& to,
                                 std::uint16_t to_port = 7000) {
    net::HeaderTemplateConfig c;
    c.src_mac = kMac;
    c.dst_mac = engine_mac_;
    c.src = from.ip;
    c.dst = to;
    const net::HeaderTemplate ip(c);
    tcp::Segment syn;
    syn.flags = tcp::kSyn;
    syn.seq = tcp::Seq(99);
    syn.src_port = from.port;
    syn.dst_port = to_port;
    Bytes f(ip.size() + tcp::kHeaderMax);
    std::uint8_t* t = f.data() + ip.size();
    const auto len = static_cast<std::uint32_t>(tcp::emit_header(syn, t));
    f.resize(ip.size() + len);
    ip.emit(f.data(), len, 1, 0);
    store_be16(t + 16, inet_checksum(std::uint64_t{ip.pseudo_sum(len)} + inet_sum({t, len})));
    transmit(f);
    return run();
  }
  // Acknowledges everything that the engine has sent.
  std::vector<Answer> acknowledge(std::uint64_t at) { return burst({{at, {}}}); }
  // Advances time, and runs timers.
  std::vector<Answer> pass(Duration d) {
    const Instant until = now + d;
    std::vector<Answer> all = run();
    while (node_->engine().next_deadline() <= until) {
      now = std::max(now + Duration::ns(1), node_->engine().next_deadline());
      for (Answer& a : run()) all.push_back(std::move(a));
    }
    now = std::max(now, until);
    return all;
  }

  // ---- FPDUs
  std::uint64_t to(std::uint64_t offset) const {
    return reinterpret_cast<std::uintptr_t>(region.data()) + offset;
  }
  Bytes write(std::uint64_t offset, const Bytes& payload, bool last = true) const {
    return make_fpdu(ddp::test::write_segment(stag, to(offset), payload, last));
  }
  static Bytes send_message(std::uint32_t msn, const Bytes& payload, std::uint32_t mo = 0,
                            bool last = true) {
    return make_fpdu(ddp::test::send_segment_of(msn, mo, payload, last));
  }
  Bytes read_request(std::uint32_t msn, std::uint32_t size, std::uint64_t offset) const {
    return make_fpdu(ddp::test::read_request(msn, size, stag, to(offset)));
  }
  // Posts a receive of `length` bytes at `offset` of the region.
  bool post_receive(std::uint64_t id, std::uint64_t offset, std::uint32_t length) {
    const verbs::Sge sge{to(offset), length, stag};
    return node_->post_receive(*qp, {id, {&sge, 1}}, now);
  }
  // Returns bytes of the region.
  Bytes at(std::uint64_t offset, std::size_t length) const {
    const auto from = region.begin() + static_cast<std::ptrdiff_t>(offset);
    return {from, from + static_cast<std::ptrdiff_t>(length)};
  }
  bool untouched() const {
    return std::all_of(region.begin(), region.end(), [](std::uint8_t b) { return b == 0; });
  }

  // ---- state of the engine
  sim::Node& node() { return *node_; }
  ConnectionStats stats() const { return node_->engine().iwarp().qp_stats(*qp); }
  EngineStats engine_stats() const {
    EngineStats s;
    node_->engine().fill_stats(&s);
    return s;
  }
  engine::Connection* connection() { return node_->engine().iwarp().find(qp->connection); }
  bool fast() { return connection()->context.type == fastpath::ConnectionType::Fast; }
  std::size_t holes() { return connection()->tcb.rcv.holes.size(); }
  // Everything before this offset has been received.
  std::uint64_t rcv_nxt() { return connection()->tcb.rcv.holes.rcv_nxt().value() - start_; }
  std::vector<verbs::Cqe>& receives() {
    node_->drain_completions();
    return node_->receive_done;
  }
  std::vector<verbs::Cqe>& sends() {
    node_->drain_completions();
    return node_->send_done;
  }

  Instant now = Instant::from_ns(1000000000);
  bool took_long = false;  // a poll of the last burst
  verbs::QueuePair* qp = nullptr;
  std::uint32_t stag = 0;
  unsigned flood = 0;  // SYNs from others before ours; the listener's backlog is four

 private:
  static constexpr MacAddress kMac{{2, 0, 0, 0, 0, 9}};
  static constexpr std::uint16_t kPort = 40000;

  static bool fail(const char* what) {
    ADD_FAILURE() << "hand peer: " << what;
    return false;
  }

  bool handshake() {
    for (unsigned i = 0; i < flood; ++i) {
      tcp::Segment other;
      other.flags = tcp::kSyn;
      other.seq = tcp::Seq(i * 7919);
      other.src_port = static_cast<std::uint16_t>(10000 + i);
      emit(other, {}, false);
      run();
    }
    tcp::Segment syn;
    syn.flags = tcp::kSyn;
    syn.seq = tcp::Seq(iss);
    syn.opts.has_mss = true;
    syn.opts.mss = 1460;
    syn.opts.sack_permitted = sack;
    syn.opts.corruption_permitted = names_corrupted;
    emit(syn, {}, false);
    auto got = run();
    if (got.size() != 1 || !got[0].seg.has(tcp::kSyn)) return fail("no SYN-ACK");
    mpa::StartupOptions o;
    o.revision = 1;
    o.peer_to_peer = false;
    std::uint8_t frame[mpa::kFrameHeader + mpa::kMaxPrivateData];
    start_ = mpa::emit_frame(mpa::make_request(o, {}), frame);
    first_ = iss + 1 + static_cast<std::uint32_t>(start_);
    tcp::Segment request;
    request.flags = tcp::kAck | tcp::kPsh;
    request.seq = tcp::Seq(iss + 1);
    emit(request, {frame, static_cast<std::size_t>(start_)}, false);
    run();
    if (node_->events.empty()) return fail("no connect request");
    const auto id = node_->events.front().request.id;
    node_->events.pop_front();
    for (std::size_t at = 0; at < eager.size(); at += 1000) {
      const auto from = eager.begin() + static_cast<std::ptrdiff_t>(at);
      const std::size_t n = std::min<std::size_t>(1000, eager.size() - at);
      send(at, Bytes(from, from + static_cast<std::ptrdiff_t>(n)));
    }
    if (!node_->engine().iwarp().accept(id, *qp, params, now)) return fail("accept");
    got = run();
    if (got.empty() || got.back().payload.size() < mpa::kFrameHeader) return fail("no Reply");
    reply_window = got.back().seg.window;
    acknowledge(eager.size());
    return true;
  }

  void put(const Cut& c) {
    tcp::Segment s;
    s.flags = c.flags;
    s.seq = tcp::Seq(first_ + static_cast<std::uint32_t>(c.at));
    s.src_port = c.source_port;
    emit(s, c.bytes, c.bad_checksum, c.behind);
  }

  void emit(tcp::Segment s, ByteView payload, bool bad, std::uint32_t behind = 0) {
    if (s.src_port == 0) s.src_port = kPort;
    s.dst_port = 7000;
    s.ack = tcp::Seq(s.has(tcp::kSyn) ? 0 : engine_next_ - behind);
    s.window = 60000;
    Bytes f(ip_.size() + tcp::kHeaderMax + payload.size());
    std::uint8_t* t = f.data() + ip_.size();
    const std::size_t header = tcp::emit_header(s, t);
    std::copy(payload.begin(), payload.end(), t + header);
    const auto len = static_cast<std::uint32_t>(header + payload.size());
    f.resize(ip_.size() + len);
    ip_.emit(f.data(), len, 1, 0);
    store_be16(t + 16, static_cast<std::uint16_t>(
                           inet_checksum(std::uint64_t{ip_.pseudo_sum(len)} + inet_sum({t, len})) ^
                           (bad ? 0x5555 : 0)));
    transmit(f);
  }

  void send_arp(std::uint16_t operation, const MacAddress& to_mac) {
    Bytes f(net::kEthernetHeader + net::kArpPacket);
    const MacAddress everybody{{255, 255, 255, 255, 255, 255}};
    net::emit_ethernet(
        {operation == net::kArpReply ? to_mac : everybody, kMac, 0, net::kEtherTypeArp}, f.data());
    net::ArpPacket p;
    p.operation = operation;
    p.sender_mac = kMac;
    p.sender_ip = IpAddress::v4(10, 0, 0, 1);
    p.target_mac = to_mac;
    p.target_ip = IpAddress::v4(10, 0, 0, 2);
    net::emit_arp(p, f.data() + net::kEthernetHeader);
    transmit(f);
  }

  void transmit(const Bytes& bytes) {
    port::Frame f{};
    ASSERT_EQ(port_.tx_reserve(0, static_cast<std::uint32_t>(bytes.size()), &f, 1), 1u);
    std::memcpy(f.data[0], bytes.data(), bytes.size());
    f.len[0] = static_cast<std::uint32_t>(bytes.size());
    f.len[1] = 0;
    port_.tx_commit(0, &f, 1);
  }

  std::vector<Answer> run() {
    std::vector<Answer> out;
    const std::uint64_t long_polls = node_->engine().counters().long_polls;
    for (int i = 0; i < 1000; ++i) {
      const bool worked = node_->engine().poll(now);
      now = now + Duration::us(1);
      if (!collect(&out) && !worked) break;
    }
    took_long = node_->engine().counters().long_polls != long_polls;
    return out;
  }

  bool collect(std::vector<Answer>* out) {
    port::Frame frames[port::kBurst];
    const unsigned n = port_.rx_burst(0, frames, port::kBurst);
    std::vector<Bytes> copies;
    for (unsigned i = 0; i < n; ++i) {
      Bytes f(frames[i].data[0], frames[i].data[0] + frames[i].len[0]);
      f.insert(f.end(), frames[i].data[1], frames[i].data[1] + frames[i].len[1]);
      copies.push_back(std::move(f));
    }
    port_.rx_release(0, frames, n);
    for (const Bytes& f : copies) take(f, out);
    return n != 0;
  }

  void take(const Bytes& f, std::vector<Answer>* out) {
    const auto c = net::classify(f, static_cast<std::uint32_t>(f.size()));
    if (c.kind == net::FrameKind::Arp) {
      const auto arp = net::parse_arp(ByteView(f).subspan(c.l3_offset));
      if (!arp) return;
      engine_mac_ = arp->sender_mac;
      if (arp->operation == net::kArpRequest) send_arp(net::kArpReply, arp->sender_mac);
      return;
    }
    if (c.kind != net::FrameKind::Tcp) return;
    const ByteView l4 = ByteView(f).subspan(c.l4_offset, c.l4_len);
    std::size_t header = 0;
    const auto seg = tcp::parse_segment(l4, &header);
    ASSERT_TRUE(seg.ok());
    Answer a;
    a.seg = *seg;
    a.payload.assign(l4.begin() + static_cast<std::ptrdiff_t>(header), l4.end());
    a.seg.payload = a.payload;
    a.ack = offset(a.seg.ack);
    for (unsigned i = 0; i < a.seg.opts.sack_count; ++i) {
      a.sack.emplace_back(offset(a.seg.opts.sack[i].begin), offset(a.seg.opts.sack[i].end));
    }
    const std::uint32_t end = a.seg.seq.value() + a.seg.seq_len();
    if (a.seg.dst_port == kPort && (engine_next_ == 0 || tcp::Seq(end) > tcp::Seq(engine_next_))) {
      engine_next_ = end;
    }
    out->push_back(std::move(a));
  }

  std::uint64_t offset(tcp::Seq s) const { return static_cast<std::uint32_t>(s.value() - first_); }

  port::Port port_;
  std::unique_ptr<sim::Node> node_;
  MacAddress engine_mac_;
  net::HeaderTemplate ip_;
  std::uint64_t start_ = 0;        // length of the start-up frame
  std::uint32_t first_ = 0;        // sequence number of offset 0
  std::uint32_t engine_next_ = 0;  // next expected byte from the engine
};

}  // namespace urnic::test
