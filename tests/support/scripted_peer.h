// A receiving engine whose wire is a script. The connection is established between two real
// engines. Then the test replaces the sender and determines which bytes of a stream arrive when,
// and in which segments. The engine's output is passed to the test, frame by frame.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/inet_checksum.h"
#include "net/header_template.h"
#include "sim/pair.h"
#include "tcp/segment.h"

namespace urnic::test {

class ScriptedPeer {
 public:
  using Bytes = std::vector<std::uint8_t>;

  // `right` of `options` is the engine under test. Timestamps are disabled in all segments.
  explicit ScriptedPeer(sim::PairOptions options, std::uint32_t receives = 64,
                        verbs::SharedReceiveQueue* (*shared)(sim::Node&) = nullptr) {
    options.left.tcp.timestamps = options.right.tcp.timestamps = false;
    pair_ = std::make_unique<sim::Pair>(options);
    auto* sender = pair_->left().make_qp();
    qp_ = pair_->right().make_qp(64, receives, 4,
                                 shared != nullptr ? shared(pair_->right()) : nullptr);
    up_ = pair_->connect(*sender, *qp_);
    if (!up_) return;
    pair_->run_for(Duration::ms(500));
    const engine::Connection* c = engine().iwarp().find(qp_->connection);
    start_ = c->tcb.rcv.holes.rcv_nxt();
    start_seq_ = tcp::rcv_nxt_seq(c->tcb);
    peer_acks_ = tcp::snd_nxt_seq(c->tcb);
    own_start_ = c->tcb.snd.nxt;
    net::HeaderTemplateConfig h;
    h.src_mac = pair_->left().engine().interface().mac();
    h.dst_mac = engine().interface().mac();
    h.src = c->key.remote;
    h.dst = c->key.local;
    ip_ = net::HeaderTemplate(h);
    src_port_ = c->key.remote_port;
    dst_port_ = c->key.local_port;
    real_port_ = std::move(node().port());
    node().port() = port::Port(ops(), reinterpret_cast<urnic_port*>(this));
  }
  ~ScriptedPeer() {
    if (up_) node().port() = std::move(real_port_);
  }
  ScriptedPeer(const ScriptedPeer&) = delete;
  ScriptedPeer& operator=(const ScriptedPeer&) = delete;

  bool up() const { return up_; }
  sim::Node& node() { return pair_->right(); }
  engine::Engine& engine() { return node().engine(); }
  verbs::QueuePair& qp() { return *qp_; }
  ConnectionStats stats() { return engine().iwarp().qp_stats(*qp_); }
  Instant now() const { return now_; }
  // Sequence number of the first byte of the stream.
  tcp::Seq start_seq() const { return start_seq_; }
  // The offset of that byte after the SYN; and the offset for the engine's own stream.
  StreamOffset start() const { return start_; }
  StreamOffset own_start() const { return own_start_; }
  // Bytes of the stream that the engine's TCP has received in order.
  std::uint64_t taken() {
    const engine::Connection* c = engine().iwarp().find(qp_->connection);
    return c == nullptr ? 0 : c->tcb.rcv.holes.rcv_nxt() - start_;
  }
  const engine::Connection* connection() { return engine().iwarp().find(qp_->connection); }

  // Queues the bytes at `offset` of the stream as one segment. `bad_sum`: with a wrong TCP
  // checksum.
  void segment(std::uint64_t offset, ByteView payload, bool fin = false, bool bad_sum = false) {
    tcp::Segment s;
    s.src_port = src_port_;
    s.dst_port = dst_port_;
    s.seq = start_seq_ + static_cast<std::uint32_t>(offset);
    s.ack = peer_acks_;
    s.flags = static_cast<std::uint8_t>(tcp::kAck | (fin ? tcp::kFin : 0));
    s.window = 0xffff;
    put(s, payload, bad_sum);
  }
  // Queues any segment from the sender's host, for any connection.
  void put(const tcp::Segment& s, ByteView payload, bool bad_sum = false) {
    const std::size_t head = ip_.size();
    const auto length = static_cast<std::uint32_t>(20 + payload.size());
    Bytes frame(std::max<std::size_t>(head + length, 60));
    std::uint8_t* tcp_at = frame.data() + head;
    tcp::emit_header(s, tcp_at);
    if (!payload.empty()) std::memcpy(tcp_at + 20, payload.data(), payload.size());
    const std::uint64_t sum = std::uint64_t{ip_.pseudo_sum(length)} + inet_sum({tcp_at, length});
    store_be16(tcp_at + 16, static_cast<std::uint16_t>(inet_checksum(sum) ^ (bad_sum ? 0x55 : 0)));
    ip_.emit(frame.data(), length, 0, 0);
    frame.resize(head + length);
    arriving_.push_back(std::move(frame));
  }
  // Runs the engine until nothing is queued; one burst per poll.
  void run() {
    do {
      poll();
    } while (!arriving_.empty());
  }
  void poll() {
    engine().poll(now_);
    in_flight_.clear();
    now_ = now_ + Duration::us(10);
  }
  // Advances time and runs timers.
  void pass(Duration d) {
    const Instant until = now_ + d;
    while (now_ < until) {
      now_ = std::min(until, std::max(now_ + Duration::us(10), engine().next_deadline()));
      engine().poll(now_);
      in_flight_.clear();
    }
  }

  // Called with the engine's TCP segments; `offset` is the position of the payload in its stream
  // since the script took over. The next arriving segment acknowledges everything, unless
  // `acknowledge` is false.
  std::function<void(const tcp::Segment&, std::uint64_t offset)> on_sent;
  bool acknowledge = true;
  bool full = false;  // the port accepts no frames

 private:
  static ScriptedPeer* of(urnic_port* p) { return reinterpret_cast<ScriptedPeer*>(p); }

  static const urnic_port_ops* ops() {
    static const urnic_port_ops table = [] {
      urnic_port_ops o{};
      o.abi_version = URNIC_PORT_ABI_VERSION;
      o.size = sizeof o;
      o.kind = "mem";
      o.close = [](urnic_port*) {};
      o.info = [](urnic_port*, urnic_port_info* i) {
        *i = {};
        i->link_up = 1;
        i->queues = 1;
        i->max_frame = 65535;
        i->link_epoch = 1;
      };
      o.stats = [](urnic_port*, urnic_port_stats* s) { *s = {}; };
      o.rx_burst = [](urnic_port* p, unsigned, urnic_frame* f, unsigned n) {
        return of(p)->receive(f, n);
      };
      o.rx_release = [](urnic_port*, unsigned, const urnic_frame*, unsigned) {};
      o.tx_reserve = [](urnic_port* p, unsigned, std::uint32_t, urnic_frame* f, unsigned n) {
        if (of(p)->full) return 0u;
        for (unsigned i = 0; i < n; ++i) {
          f[i] = {};
          f[i].data[0] = of(p)->room_.data() + std::size_t{i} * kRoom;
        }
        return n;
      };
      o.tx_commit = [](urnic_port* p, unsigned, urnic_frame* f, unsigned n) {
        for (unsigned i = 0; i < n; ++i) {
          if (f[i].len[0] != 0) of(p)->sent(static_cast<std::uint8_t*>(f[i].data[0]), f[i].len[0]);
        }
      };
      o.wait_fds = [](urnic_port*, unsigned, int*, unsigned) { return 0u; };
      o.arm = [](urnic_port*, unsigned) { return 1; };
      o.disarm = [](urnic_port*, unsigned) {};
      return o;
    }();
    return &table;
  }

  unsigned receive(urnic_frame* f, unsigned n) {
    unsigned i = 0;
    for (; i < n && !arriving_.empty(); ++i) {
      in_flight_.push_back(std::move(arriving_.front()));
      arriving_.pop_front();
      f[i] = {};
      f[i].data[0] = in_flight_.back().data();
      f[i].len[0] = static_cast<std::uint32_t>(in_flight_.back().size());
    }
    return i;
  }

  void sent(const std::uint8_t* frame, std::size_t size) {
    const std::size_t head = ip_.size();
    std::size_t tcp_header = 0;
    if (size < head + 20) return;
    auto s = tcp::parse_segment({frame + head, size - head}, &tcp_header);
    if (!s || s->dst_port != src_port_) return;
    s->payload = {frame + head + tcp_header, size - head - tcp_header};
    const std::uint64_t offset = sent_ + static_cast<std::uint32_t>(s->seq - peer_acks_);
    if (on_sent) on_sent(*s, offset);
    if (!acknowledge || offset != sent_) return;  // only in order
    sent_ += s->payload.size();
    peer_acks_ =
        peer_acks_ + static_cast<std::uint32_t>(s->payload.size()) + (s->has(tcp::kFin) ? 1 : 0);
  }

  static constexpr std::size_t kRoom = 16384;
  std::unique_ptr<sim::Pair> pair_;
  verbs::QueuePair* qp_ = nullptr;
  bool up_ = false;
  port::Port real_port_;
  net::HeaderTemplate ip_;
  std::uint16_t src_port_ = 0, dst_port_ = 0;
  tcp::Seq start_seq_, peer_acks_;
  StreamOffset start_, own_start_;
  std::uint64_t sent_ = 0;
  Instant now_ = Instant::from_ns(2000000000000);
  std::deque<Bytes> arriving_;
  std::deque<Bytes> in_flight_;
  Bytes room_ = Bytes(kRoom * port::kBurst);
};

}  // namespace urnic::test
