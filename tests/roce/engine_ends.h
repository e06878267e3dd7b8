// RoCE queue pairs in two simulated engines, connected without connection management, and their
// memory.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/rng.h"
#include "sim/pair.h"

namespace urnic::test {

using Bytes = std::vector<std::uint8_t>;

// How two queue pairs are connected.
struct ByHand {
  bool v6 = false;
  std::uint32_t psn[2] = {0xfffffa, 77};
  std::uint32_t depth = 4;
  std::uint32_t ack_timeout = 10, retry_count = 3, rnr_retry = 7, min_rnr_timer = 1;
};

inline IpAddress address_of(int which, bool v6 = false) {
  return *IpAddress::parse((v6 ? "fd00::" : "10.0.0.") + std::to_string(which + 1));
}

inline roce::QpChange to_init() {
  roce::QpChange c;
  c.to = verbs::QpState::Init;
  c.mask |= verbs::kQpAttrPkeyIndex | verbs::kQpAttrPort | verbs::kQpAttrAccess;
  c.access = verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
  return c;
}
inline roce::QpChange to_rtr(const ByHand& h, int which, std::uint32_t dest, int peer) {
  roce::QpChange c;
  c.to = verbs::QpState::Rtr;
  c.mask |= verbs::kQpAttrAv | verbs::kQpAttrPathMtu | verbs::kQpAttrDestQpn | verbs::kQpAttrRqPsn |
            verbs::kQpAttrMaxDestRdAtomic | verbs::kQpAttrMinRnrTimer;
  c.av.local = address_of(which, h.v6);
  c.av.remote = address_of(peer, h.v6);
  c.dest_qp = dest;
  c.rq_psn = h.psn[1 - which];
  c.responder_depth = h.depth;
  c.min_rnr_timer = h.min_rnr_timer;
  return c;
}
inline roce::QpChange to_rts(const ByHand& h, int which) {
  roce::QpChange c;
  c.to = verbs::QpState::Rts;
  c.mask |= verbs::kQpAttrTimeout | verbs::kQpAttrRetryCount | verbs::kQpAttrRnrRetry |
            verbs::kQpAttrSqPsn | verbs::kQpAttrMaxRdAtomic;
  c.sq_psn = h.psn[which];
  c.ack_timeout = h.ack_timeout;
  c.retry_count = h.retry_count;
  c.rnr_retry = h.rnr_retry;
  c.initiator_depth = h.depth;
  return c;
}
// `which` selects the addresses and PSNs of the left (0) or right (1) end; `peer` those of the
// peer.
inline void connect(sim::Node& node, verbs::QueuePair& qp, const ByHand& h, int which,
                    std::uint32_t dest, int peer, Instant now) {
  roce::ControlPath& roce = node.engine().roce_control();
  ASSERT_EQ(roce.move(qp, to_init(), now), roce::Modified::Ok);
  ASSERT_EQ(roce.move(qp, to_rtr(h, which, dest, peer), now), roce::Modified::Ok);
  ASSERT_EQ(roce.move(qp, to_rts(h, which), now), roce::Modified::Ok);
}

inline constexpr std::uint32_t kQkey = 0x7654321;
// The same for UC, or for UD with kQkey, which has no peer.
inline void move_unreliable(sim::Node& node, verbs::QueuePair& qp, verbs::Service service,
                            const ByHand& h, int which, std::uint32_t dest, Instant now) {
  roce::ControlPath& roce = node.engine().roce_control();
  roce::QpChange init = to_init(), rtr = to_rtr(h, which, dest, 1 - which), rts = to_rts(h, which);
  rtr.mask &= ~(verbs::kQpAttrMaxDestRdAtomic | verbs::kQpAttrMinRnrTimer);
  rts.mask = verbs::kQpAttrSqPsn;
  if (service == verbs::Service::Ud) {
    init.mask ^= verbs::kQpAttrAccess | verbs::kQpAttrQkey;
    init.qkey = kQkey;
    rtr.mask = verbs::kQpAttrState;
  }
  for (const roce::QpChange& c : {init, rtr, rts}) {
    ASSERT_EQ(roce.move(qp, c, now), roce::Modified::Ok);
  }
}
inline std::uint32_t handle_to(sim::Node& node, int which, int peer, Instant now) {
  ib::AddressVector av;
  av.local = address_of(which);
  av.remote = address_of(peer);
  return node.engine().roce_control().open_path(av, now).handle;
}

// Memory of one end, with all access rights.
struct Room {
  Room(sim::Node& node, std::size_t size, std::uint64_t seed) : bytes(size) {
    Rng rng(seed);
    for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(rng.next());
    key = node.register_memory(
        bytes.data(), bytes.size(),
        verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic);
  }
  std::uint64_t at(std::size_t offset = 0) const {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) + offset;
  }
  Bytes bytes;
  std::uint32_t key = 0;
};

class RoceEnds : public ::testing::Test {
 protected:
  static sim::PairOptions both() {
    sim::PairOptions o;
    o.left.speaks_roce = o.right.speaks_roce = true;
    return o;
  }
  // Queue pairs of UC, or of UD with kQkey.
  void up_unreliable(verbs::Service s, const sim::PairOptions& o = both(), const ByHand& h = {}) {
    pair = std::make_unique<sim::Pair>(o);
    left = pair->left().make_roce_qp({}, s);
    right = pair->right().make_roce_qp({}, s);
    move_unreliable(pair->left(), *left, s, h, 0, right->number(), pair->now());
    move_unreliable(pair->right(), *right, s, h, 1, left->number(), pair->now());
  }
  void up(const sim::PairOptions& o = both(), const ByHand& h = {}) {
    pair = std::make_unique<sim::Pair>(o);
    left = pair->left().make_roce_qp();
    right = pair->right().make_roce_qp();
    ASSERT_NE(left, nullptr);
    ASSERT_NE(right, nullptr);
    connect(pair->left(), *left, h, 0, right->number(), 1, pair->now());
    connect(pair->right(), *right, h, 1, left->number(), 0, pair->now());
  }
  static verbs::SendWr request(verbs::WrOp op, std::uint64_t id, const verbs::Sge& sge,
                               std::uint64_t to, std::uint32_t rkey) {
    verbs::SendWr wr;
    wr.wr_id = id;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, sge.length != 0 ? 1u : 0u};
    wr.remote_address = to;
    wr.rkey = rkey;
    return wr;
  }
  // Posts to a queue pair of the left end, from `ours` to the same offset in `theirs`.
  void post(verbs::QueuePair& qp, verbs::WrOp op, std::uint64_t id, std::uint32_t length,
            std::size_t offset, std::uint64_t value = 0) {
    const verbs::Sge sge{ours->at(offset), length, ours->key};
    verbs::SendWr wr = request(op, id, sge, theirs->at(offset), theirs->key);
    wr.immediate = value;
    wr.inv_key = static_cast<std::uint32_t>(value);
    wr.atomic.data = value;
    ASSERT_EQ(pair->left().post_send(qp, wr, pair->now_of(pair->left())), verbs::Post::Ok);
  }
  void receive(verbs::QueuePair& qp, std::uint64_t id, std::size_t offset, std::uint32_t length) {
    const verbs::Sge sge{inbox->at(offset), length, inbox->key};
    ASSERT_TRUE(pair->right().post_receive(qp, {id, {&sge, 1}}, pair->now_of(pair->right())));
  }
  bool run(std::size_t sends, std::size_t receives = 0, Duration limit = Duration::s(60)) {
    return pair->run_until(
        [&] {
          pair->left().drain_completions();
          pair->right().drain_completions();
          return pair->left().send_done.size() >= sends &&
                 pair->right().receive_done.size() >= receives;
        },
        limit);
  }
  void rooms(std::size_t bytes) {
    ours = std::make_unique<Room>(pair->left(), bytes, 1);
    theirs = std::make_unique<Room>(pair->right(), bytes, 2);
    inbox = std::make_unique<Room>(pair->right(), bytes, 3);
  }

  std::unique_ptr<sim::Pair> pair;
  verbs::QueuePair *left = nullptr, *right = nullptr;
  std::unique_ptr<Room> ours, theirs, inbox;
};

}  // namespace urnic::test
