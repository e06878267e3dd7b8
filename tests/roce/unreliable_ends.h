// Two ends with queue pairs of UC or UD, and a clean wire between them on which the test may lose
// frames.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "roce/side_end.h"

namespace urnic::roce::test {

inline constexpr std::uint32_t kQkey = 0x1234567;

inline bool carries_udp(const Bytes& frame) {
  return frame[12] == 8 ? frame[13] == 0 && frame[23] == 17 : frame[20] == 17;
}

// The move to `state` with the attributes it needs for that service.
inline QpChange moved(verbs::Service service, verbs::QpState state, const Pairing& p, int which,
                      std::uint32_t dest) {
  using verbs::QpState;
  if (service == verbs::Service::Uc) {
    QpChange c = state == QpState::Init  ? to_init(p)
                 : state == QpState::Rtr ? to_rtr(p, which, dest)
                                         : to_rts(p, which);
    if (state == QpState::Rtr) {
      c.mask &= ~(verbs::kQpAttrMaxDestRdAtomic | verbs::kQpAttrMinRnrTimer);
    }
    if (state == QpState::Rts) c.mask = verbs::kQpAttrSqPsn;
    return c;
  }
  QpChange c;
  c.to = state;
  if (state == QpState::Init) {
    c.mask |= verbs::kQpAttrPkeyIndex | verbs::kQpAttrPort | verbs::kQpAttrQkey;
    c.qkey = kQkey;
  }
  if (state == QpState::Rts) {
    c.mask |= verbs::kQpAttrSqPsn;
    c.sq_psn = p.psn[which];
  }
  return c;
}

struct UnreliableEnds : ::testing::Test {
  static constexpr std::uint32_t kSlot = 8000, kSlots = 8;

  UnreliableEnds() {
    for (int i = 0; i < 2; ++i) {
      memory[i].resize(kSlot * kSlots);
      for (std::size_t k = 0; k < memory[i].size(); ++k) {
        memory[i][k] = static_cast<std::uint8_t>(k * 7 + k / 256 + i);
      }
      key[i] = ends[i].memory.register_memory(
          kPd, memory[i].data(), memory[i].size(),
          verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead);
    }
  }
  ~UnreliableEnds() override {
    for (int i = 0; i < 2; ++i) {
      if (qp[i]) ends[i].side.destroy(std::move(qp[i]));
    }
  }
  void make(verbs::Service s) {
    service = s;
    for (int i = 0; i < 2; ++i) qp[i] = ends[i].queue_pair({}, s);
  }
  Modified move(int i, verbs::QpState to) {
    return ends[i].side.modify(*qp[i], moved(service, to, pairing, i, qp[1 - i]->number()), now);
  }
  void ready(int i) {
    for (const verbs::QpState to :
         {verbs::QpState::Init, verbs::QpState::Rtr, verbs::QpState::Rts}) {
      ASSERT_EQ(move(i, to), Modified::Ok);
    }
  }
  void up(verbs::Service s) {
    make(s);
    for (int i = 0; i < 2; ++i) ready(i);
  }
  // An address handle of one end for another one.
  std::uint32_t handle(int i, int to, bool v6 = false) {
    ib::AddressVector av;
    av.local = address_of(i, v6);
    av.remote = address_of(to, v6);
    const Paths::Opened made = ends[i].side.paths().open(av, now);
    EXPECT_EQ(made.verdict, Modified::Ok);
    EXPECT_NE(made.handle, 0u);
    return made.handle;
  }
  verbs::Sge sge(int i, std::uint32_t slot, std::uint32_t length) const {
    return {reinterpret_cast<std::uintptr_t>(&memory[i][slot * kSlot]), length, key[i]};
  }
  struct Request {
    verbs::WrOp op = verbs::WrOp::Send;
    std::uint32_t slot = 0, length = 0;
    ib::DatagramTo to;
    std::uint32_t lkey_error = 0;
    std::uint64_t immediate = 0;
  };
  void post(int i, std::uint64_t id, const Request& r) {
    verbs::Sge piece = sge(i, r.slot, r.length);
    piece.lkey ^= r.lkey_error;
    verbs::SendWr wr;
    wr.wr_id = id;
    wr.op = r.op;
    wr.flags = verbs::kSignaled;
    wr.sges = {&piece, r.length != 0 ? 1u : 0u};
    wr.immediate = r.immediate;
    if (service == verbs::Service::Ud) {
      ib::set_destination(&wr, r.to);
    } else {
      wr.remote_address = sge(1 - i, r.slot, 0).addr;
      wr.rkey = key[1 - i];
    }
    ASSERT_EQ(qp[i]->sq.post(wr), verbs::Post::Ok);
    ends[i].side.sends_posted(*qp[i], now);
  }
  void receive(int i, std::uint64_t id, std::uint32_t slot, std::uint32_t length = kSlot,
               std::uint32_t lkey_error = 0) {
    verbs::Sge piece = sge(i, slot, length);
    piece.lkey ^= lkey_error;
    ASSERT_EQ(qp[i]->rq.post({id, {&piece, 1}}), verbs::ReceiveQueue::Post::Ok);
  }
  // Runs until no more frames are exchanged; `lost` selects UDP frames to lose, counted from 0.
  void run(const std::function<bool(unsigned)>& lost = {}) {
    unsigned seen = 0;
    for (int idle = 0; idle < 3;) {
      bool any = false;
      for (int i = 0; i < 2; ++i) {
        ends[i].poll(now);
        for (Bytes& frame : ends[i].sent()) {
          any = true;
          if (carries_udp(frame)) {
            udp.push_back(frame);
            if (lost && lost(seen++)) continue;
          }
          ends[1 - i].arrive(frame);
        }
      }
      now = now + Duration::us(10);
      idle = any ? 0 : idle + 1;
    }
  }
  // A Send to a queue pair in Init, and the same packet again once that is in Rtr.
  void in_init_and_in_rtr(verbs::Service s, std::uint32_t way) {
    make(s);
    ready(0);
    ASSERT_EQ(move(1, verbs::QpState::Init), Modified::Ok);
    receive(1, 7, 4);
    post(0, 1, {.slot = 1, .length = 10, .to = {way, qp[1]->number(), kQkey}});
    run();
    ASSERT_EQ(udp.size(), 1u);
    EXPECT_EQ(ends[1].side.statistics().drops.of(ib::Drop::WrongState), 1u);
    EXPECT_EQ(ends[1].side.statistics().sent, 0u) << "silently";
    EXPECT_TRUE(ends[1].completions().empty());
    EXPECT_EQ(qp[1]->rq.posted(), 1u);
    ASSERT_EQ(move(1, verbs::QpState::Rtr), Modified::Ok);
    ends[1].arrive(udp[0]);
    run();
    const auto came = ends[1].completions();
    ASSERT_EQ(came.size(), 1u);
    EXPECT_EQ(came[0].completion.wr_id, 7u);
    EXPECT_TRUE(holds(1, 4, s == verbs::Service::Ud ? 40 : 0, 0, 1, 10));
  }
  bool holds(int i, std::uint32_t slot, std::size_t offset, int from, std::uint32_t of,
             std::size_t n) const {
    const auto at = memory[from].begin() + of * kSlot;
    return std::equal(at, at + static_cast<std::ptrdiff_t>(n),
                      memory[i].begin() + slot * kSlot + static_cast<std::ptrdiff_t>(offset));
  }

  Instant now = Instant::from_ns(1000);
  Pairing pairing;
  SideEnd ends[2] = {SideEnd(0, SideEnd::keyed(1)), SideEnd(1, SideEnd::keyed(2))};
  std::array<Bytes, 2> memory;
  std::uint32_t key[2] = {};
  verbs::Service service = verbs::Service::Uc;
  std::unique_ptr<verbs::QueuePair> qp[2];
  std::vector<Bytes> udp;  // packets on the wire
};

}  // namespace urnic::roce::test
