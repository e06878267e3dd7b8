#include "bench/receive/replay.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/crc32c.h"
#include "base/fused.h"
#include "base/inet_checksum.h"
#include "bench/micro/stopwatch.h"
#include "ddp_rdma/header.h"
#include "mpa/builder.h"
#include "mpa/fpdu.h"
#include "net/header_template.h"
#include "tcp/segment.h"

namespace urnic::bench {
namespace {

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "bench: %s\n", what);
  std::exit(1);
}

}  // namespace

void FrameSet::patch(std::size_t i, std::uint32_t at) {
  std::uint8_t* tcp = frame(i) + tcp_offset;
  store_be32(tcp + 4, at);
  store_be16(tcp + 16, inet_checksum(std::uint64_t{items[i].partial} + (at >> 16) + (at & 0xffff)));
}

// Takes the next frames of the set and turns each into the next segment.
void FrameSet::hand_out(void* set, urnic_frame* f, unsigned n) {
  FrameSet& s = *static_cast<FrameSet*>(set);
  for (unsigned i = 0; i < n; ++i) {
    s.patch(s.next, s.seq);
    const Item& item = s.items[s.next];
    f[i] = {};
    f[i].data[0] = s.frame(s.next);
    f[i].len[0] = item.length;
    s.seq += item.payload;
    if (++s.next == s.items.size()) s.next = 0;
  }
}

Receiver::Receiver(std::uint32_t mtu, std::uint64_t working_set, bool fast) : fast_(fast) {
  sim::PairOptions o;
  o.mtu = mtu;
  o.left.tcp.timestamps = o.right.tcp.timestamps = false;
  // The default of a device (E-7).
  o.left.tcp.ack_policy = o.right.tcp.ack_policy = tcp::AckPolicy::PerBurst;
  if (!fast) o.right.context.initiated_as = fastpath::ConnectionType::Slow;
  pair_ = std::make_unique<sim::Pair>(o);
  sender_ = pair_->left().make_qp();
  receiver_ = pair_->right().make_qp();
  if (!pair_->connect(*sender_, *receiver_)) die("the connection did not come up");
  pair_->run_for(Duration::ms(500));
  region_.resize(working_set);
  reassembly_.resize(1u << 18);
  stag_ = pair_->right().register_memory(region_.data(), region_.size(),
                                         verbs::kLocalWrite | verbs::kRemoteWrite);
  prepare(mtu, working_set);
  replay_ = std::make_unique<ReplayPort>();
  replay_->next = FrameSet::hand_out;
  replay_->set = &frames_;
  const engine::Connection* c = pair_->right().engine().iwarp().find(receiver_->connection);
  frames_.seq = tcp::rcv_nxt_seq(c->tcb).value();
  pair_->right().port() = replay_->port();
  now_ = pair_->now();
}

Receiver::~Receiver() = default;

void Receiver::prepare(std::uint32_t mtu, std::uint64_t working_set) {
  const engine::Connection* c = pair_->right().engine().iwarp().find(receiver_->connection);
  net::HeaderTemplateConfig h;
  h.src_mac = pair_->left().engine().interface().mac();
  h.dst_mac = pair_->right().engine().interface().mac();
  h.src = c->key.remote;
  h.dst = c->key.local;
  const net::HeaderTemplate ip(h);
  const std::uint32_t mss = mtu - 40;
  const std::uint32_t ulp = mpa::mulpdu(mss) - ddp::kTaggedHeader;
  const std::uint32_t fpdu = mpa::fpdu_size(ulp + ddp::kTaggedHeader);
  frames_.tcp_offset = static_cast<std::uint32_t>(ip.size());
  frames_.payload_offset = frames_.tcp_offset + 20;
  frames_.ulp_bytes = ulp;
  const std::uint32_t length = frames_.payload_offset + fpdu;
  const std::uint32_t stride = (length + 63) & ~63u;
  const std::size_t count = std::max<std::uint64_t>(working_set / stride, 33);
  frames_.block.resize(count * stride);
  Rng rng(42);
  std::vector<std::uint8_t> payload(ulp);
  std::uint64_t to = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (auto& b : payload) b = static_cast<std::uint8_t>(rng.next());
    std::uint8_t* frame = frames_.block.data() + i * stride;
    if (to + ulp > region_.size()) to = 0;
    ddp::SegmentHeader header;
    header.op = ddp::Opcode::Write;
    header.last = true;
    header.stag = stag_;
    header.to = reinterpret_cast<std::uint64_t>(region_.data()) + to;
    std::uint8_t head[ddp::kMaxHeader];
    const std::uint32_t head_len = ddp::emit_header(header, head);
    const ByteView pieces[] = {payload};
    mpa::build_fpdu(frame + frames_.payload_offset, {head, head_len}, pieces, true);
    tcp::Segment seg;
    seg.src_port = c->key.remote_port;
    seg.dst_port = c->key.local_port;
    seg.seq = tcp::Seq(0);
    seg.ack = tcp::snd_nxt_seq(c->tcb);
    seg.flags = tcp::kAck;
    seg.window = 0x8000;
    tcp::emit_header(seg, frame + frames_.tcp_offset);
    ip.emit(frame, 20 + fpdu, 0, 0);
    FrameSet::Item item;
    item.offset = static_cast<std::uint32_t>(i * stride);
    item.length = length;
    item.payload = fpdu;
    item.to = to;
    item.pseudo = ip.pseudo_sum(20 + fpdu);
    item.partial = inet_fold(std::uint64_t{ip.pseudo_sum(20 + fpdu)} +
                             inet_sum({frame + frames_.tcp_offset, 20 + fpdu}));
    frames_.items.push_back(item);
    to += ulp;
  }
  next_ideal_ = count / 2;
}

double Receiver::run_engine(std::uint64_t bytes, std::uint64_t* placed) {
  engine::Engine& e = pair_->right().engine();
  const std::uint64_t before = e.iwarp().qp_stats(*receiver_).verbs.payload_placed;
  replay_->left = bytes / frames_.ulp_bytes + 1;
  const double from = seconds_now();
  while (replay_->left != 0) {
    e.poll(now_);
    now_ = now_ + Duration::us(1);
  }
  const double took = seconds_now() - from;
  *placed = e.iwarp().qp_stats(*receiver_).verbs.payload_placed - before;
  return took;
}

double Receiver::run_ideal(std::uint64_t bytes, std::uint64_t* placed, Ideal kind) {
  std::uint64_t frames = bytes / frames_.ulp_bytes + 1;
  const std::uint64_t all = frames;
  *placed = frames * frames_.ulp_bytes;
  std::uint32_t seq = 1;
  std::uint64_t good_sums = 0, good_crcs = 0;
  std::size_t slow_at = 0;
  const double from = seconds_now();
  while (frames != 0) {
    // Bursts as the engine gets them: first patch, then process.
    const std::size_t burst = std::min<std::uint64_t>(frames, port::kBurst);
    const std::size_t first = next_ideal_;
    std::size_t i = first;
    for (std::size_t k = 0; k < burst; ++k) {
      frames_.patch(i, seq);
      seq += frames_.items[i].payload;
      if (++i == frames_.items.size()) i = 0;
    }
    i = first;
    for (std::size_t k = 0; k < burst; ++k) {
      const FrameSet::Item& item = frames_.items[i];
      const std::uint8_t* frame = frames_.frame(i);
      const std::uint32_t covered = item.payload - mpa::kCrcField;
      std::uint64_t sum = item.pseudo;
      FusedSums both;
      if (kind == Ideal::OnePass) {
        both = fused_crc_sum({frame + frames_.payload_offset, covered}, kCrc32cInit);
        sum += inet_sum({frame + frames_.tcp_offset, 20});
        sum += both.sum;
        sum += inet_sum({frame + frames_.payload_offset + covered, mpa::kCrcField});
      } else {
        sum += inet_sum({frame + frames_.tcp_offset, 20 + item.payload});
      }
      good_sums += inet_fold(sum) == 0xffff;
      const std::uint8_t* fpdu = frame + frames_.payload_offset;
      if (!fast_) {
        if (slow_at + item.payload > reassembly_.size()) slow_at = 0;
        std::memcpy(reassembly_.data() + slow_at, fpdu, item.payload);
        fpdu = reassembly_.data() + slow_at;
        slow_at += item.payload;
      }
      const std::uint32_t crc =
          kind == Ideal::OnePass ? both.crc : crc32c_update_isal(kCrc32cInit, {fpdu, covered});
      good_crcs += crc32c_finish(crc) == load_le32(fpdu + covered);
      std::memcpy(region_.data() + item.to, fpdu + 2 + ddp::kTaggedHeader, frames_.ulp_bytes);
      if (++i == frames_.items.size()) i = 0;
    }
    next_ideal_ = i;
    frames -= burst;
  }
  const double took = seconds_now() - from;
  if (good_sums != all || good_crcs != all) die("the ideal loop saw a frame that is not good");
  return took;
}

ConnectionStats Receiver::stats() {
  return pair_->right().engine().iwarp().qp_stats(*receiver_);
}

}  // namespace urnic::bench
