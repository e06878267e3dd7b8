#include "bench/receive/roce_replay.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/rng.h"
#include "bench/micro/stopwatch.h"
#include "bench/simulated/roce_pairing.h"
#include "ib/icrc.h"
#include "ib/request_operation.h"
#include "roce/context.h"

namespace urnic::bench {
namespace {

constexpr std::uint32_t kIp = 14, kBth = kIp + ib::kIpv4UdpBytes, kPsn = kBth + 9;  // offsets

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "bench: %s\n", what);
  std::exit(1);
}

void store_psn(std::uint8_t* frame, std::uint32_t psn) {
  for (unsigned i = 0; i < 3; ++i) frame[kPsn + i] = static_cast<std::uint8_t>(psn >> (16 - 8 * i));
}

std::uint32_t icrc_of(const std::uint8_t* frame, std::uint32_t length) {
  return ib::icrc({frame + kIp, ib::kIpv4UdpBytes}, {frame + kBth, length - kBth - ib::kIcrcBytes});
}

}  // namespace

void PacketSet::patch(std::size_t i, std::uint32_t at) {
  const Item& item = items[i];
  const Shifts& by = shifts[item.shifts].second;
  std::uint8_t* const f = frame(i);
  store_psn(f, at);
  store_le32(f + item.length - ib::kIcrcBytes,
             item.icrc ^ by[0][at >> 16 & 0xff] ^ by[1][at >> 8 & 0xff] ^ by[2][at & 0xff]);
}

void PacketSet::hand_out(void* set, urnic_frame* f, unsigned n) {
  PacketSet& s = *static_cast<PacketSet*>(set);
  for (unsigned i = 0; i < n; ++i) {
    s.patch(s.next, s.psn++);
    f[i] = {};
    f[i].data[0] = s.frame(s.next);
    f[i].len[0] = s.items[s.next].length;
    if (++s.next == s.items.size()) s.next = 0;
  }
}

RoceReceiver::RoceReceiver(std::uint32_t pmtu, std::uint64_t working_set) : pmtu_(pmtu) {
  sim::PairOptions o;
  o.mtu = pmtu <= 1024 ? 1500 : 9000;
  for (engine::Options* e : {&o.left, &o.right}) {
    e->speaks_roce = true;
    e->roce.selective = e->roce.probe = true;  // the defaults of the settings
  }
  pair_ = std::make_unique<sim::Pair>(o);
  sender_ = pair_->left().make_roce_qp();
  receiver_ = pair_->right().make_roce_qp();
  pair_up(pair_.get(), *sender_, *receiver_, static_cast<ib::PathMtu>(pmtu));
  region_.resize(working_set);
  rkey_ = pair_->right().register_memory(region_.data(), region_.size(),
                                         verbs::kLocalWrite | verbs::kRemoteWrite);
  pair_->run_for(Duration::ms(500));  // resolve the peer's address meanwhile
  prepare(working_set);
  replay_.next = PacketSet::hand_out;
  replay_.set = &packets_;
  pair_->right().port() = replay_.port();
  now_ = pair_->now();
}

void RoceReceiver::prepare(std::uint64_t working_set) {
  const roce::Context& from = roce::context_of(*sender_);
  const roce::FrameHeaders headers({pair_->left().engine().interface().mac(),
                                    pair_->right().engine().interface().mac(), 0,
                                    from.attributes.av});
  const std::uint32_t in_message = kMessage / pmtu_;
  const std::uint32_t most = kBth + ib::kMaxHeaderBytes + pmtu_ + ib::kIcrcBytes;
  const std::uint32_t stride = (most + 63) & ~63u;
  const std::size_t count = working_set / pmtu_;
  packets_.block.resize(count * stride);
  Rng rng(42);
  std::vector<std::uint8_t> payload(pmtu_);
  for (std::size_t i = 0; i < count; ++i) {
    for (auto& b : payload) b = static_cast<std::uint8_t>(rng.next());
    std::uint8_t* const frame = packets_.block.data() + i * stride;
    const auto k = static_cast<std::uint32_t>(i % in_message);
    ib::PacketHeader h;
    h.bth.opcode =
        ib::Opcode(ib::ServiceType::Rc, ib::operation_of(verbs::WrOp::Write, k, in_message));
    h.bth.dest_qp = receiver_->number();
    h.bth.ack_request = k + 1 == in_message;
    h.reth = {reinterpret_cast<std::uint64_t>(region_.data()) + i * pmtu_, rkey_, kMessage};
    const std::size_t bytes = ib::emit_packet(h, payload, frame + headers.size());
    PacketSet::Item item{};
    item.offset = static_cast<std::uint32_t>(i * stride);
    item.length = static_cast<std::uint32_t>(headers.finish(frame, bytes, 0));
    item.icrc = icrc_of(frame, item.length);
    item.payload = item.length - ib::kIcrcBytes - pmtu_;
    item.to = i * pmtu_;
    auto& shifts = packets_.shifts;
    while (item.shifts < shifts.size() && shifts[item.shifts].first != item.length) ++item.shifts;
    if (item.shifts == shifts.size()) {
      PacketSet::Shifts by{};
      for (std::uint32_t byte = 0; byte < 3; ++byte) {
        for (std::uint32_t v = 0; v < 256; ++v) {
          store_psn(frame, v << (16 - 8 * byte));
          by[byte][v] = icrc_of(frame, item.length) ^ item.icrc;
        }
      }
      shifts.emplace_back(item.length, by);
    }
    packets_.items.push_back(item);
  }
  next_ideal_ = count / 2;
}

std::uint64_t RoceReceiver::taken() const {
  // Created with the first request.
  const ib::Responder* const half = roce::context_of(*receiver_).responder.rc();
  return half != nullptr ? half->counters().requests : 0;
}

double RoceReceiver::run_engine(std::uint64_t bytes) {
  engine::Engine& e = pair_->right().engine();
  const std::uint64_t before = taken();
  replay_.left = bytes / pmtu_;
  const double from = seconds_now();
  while (replay_.left != 0) {
    e.poll(now_);
    now_ = now_ + Duration::us(1);
  }
  const double took = seconds_now() - from;
  if (taken() - before != bytes / pmtu_) die("not every packet was taken");
  return took;
}

double RoceReceiver::run_ideal(std::uint64_t bytes) {
  const std::uint64_t all = bytes / pmtu_;
  std::uint64_t left = all, good = 0;
  std::uint32_t psn = 1;
  const double from = seconds_now();
  while (left != 0) {
    // Bursts as the engine gets them: first patch, then process.
    const std::size_t burst = std::min<std::uint64_t>(left, port::kBurst);
    std::size_t i = next_ideal_;
    for (std::size_t k = 0; k < burst; ++k) {
      packets_.patch(i, psn++);
      if (++i == packets_.items.size()) i = 0;
    }
    for (std::size_t k = 0; k < burst; ++k) {
      const PacketSet::Item& item = packets_.items[next_ideal_];
      const std::uint8_t* const frame = packets_.frame(next_ideal_);
      good += ib::icrc_good({frame + kIp, ib::kIpv4UdpBytes}, {frame + kBth, item.length - kBth});
      std::memcpy(region_.data() + item.to, frame + item.payload, pmtu_);
      if (++next_ideal_ == packets_.items.size()) next_ideal_ = 0;
    }
    left -= burst;
  }
  const double took = seconds_now() - from;
  if (good != all) die("the ideal loop saw a packet that is not good");
  return took;
}

}  // namespace urnic::bench
