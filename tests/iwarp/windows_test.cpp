// Memory windows used by connections: bound in the order of the send queue, used by peers,
// invalidated by either end.
#include "iwarp/memory_ends.h"

namespace urnic::sim {
namespace {

using verbs::WindowBind;
using verbs::WindowType;

// The right end provides memory, the left end uses it. There is a second connection between the
// same nodes.
class Windows : public MemoryEnds {
 protected:
  void SetUp() override {
    up();
    other_left = pair->left().make_qp();
    other_right = pair->right().make_qp();
    ASSERT_TRUE(pair->connect(*other_left, *other_right, {}, {}, "10.0.0.2:7001"));
    source = add(pair->left(), whole(ours), verbs::kLocalWrite);
    region = add(pair->right(), whole(theirs), verbs::kLocalWrite | verbs::kBindWindow);
  }
  verbs::MemoryTable& table() { return pair->right().engine().memory(); }
  std::uint32_t window(WindowType type) { return table().allocate_window(pair->right().pd, type); }
  // Binds a window to [from, from + length) of the memory, at the right end.
  Status bind(std::uint32_t rkey, std::uint64_t from, std::uint64_t length, std::uint8_t access,
              std::uint8_t flags = verbs::kSignaled) {
    const WindowBind b{address(theirs) + from, length, region, rkey, access};
    verbs::SendWr wr;
    wr.op = WrOp::Bind;
    wr.flags = flags;
    wr.bind = &b;
    return by_right(wr);
  }
  Status local_invalidate(std::uint32_t rkey) {
    verbs::SendWr wr;
    wr.op = WrOp::LocalInv;
    wr.flags = verbs::kSignaled;
    wr.inv_key = rkey;
    return by_right(wr);
  }
  Status by_right(const verbs::SendWr& wr) {
    Node& node = pair->right();
    EXPECT_EQ(node.post_send(*right, wr, pair->now()), verbs::Post::Ok);
    const std::size_t before = node.send_done.size();
    pair->run_until([&] { return node.drain_completions(), node.send_done.size() > before; },
                    Duration::s(20));
    if (node.send_done.size() == before) {
      ADD_FAILURE() << "no completion";
      return Status::Success;
    }
    EXPECT_EQ(node.send_done.back().completion.op, wr.op);
    return node.send_done.back().completion.status;
  }
  Status write(std::uint64_t to, std::uint32_t length, std::uint32_t rkey) {
    post(WrOp::Write, {address(ours), length, source}, to, rkey);
    post(WrOp::Read, {address(ours), 0, source}, to, rkey);  // answered after the Write
    return ended();
  }
  Status read(std::uint64_t from, std::uint32_t length, std::uint32_t rkey) {
    post(WrOp::Read, {address(ours), length, source}, from, rkey);
    return ended();
  }
  // Reads through the second connection.
  Status read_by_other(std::uint64_t from, std::uint32_t rkey) {
    return by_other(WrOp::Read, from, rkey);
  }
  Status by_other(WrOp op, std::uint64_t from, std::uint32_t rkey, std::uint32_t length = 10) {
    const Sge sge{address(ours), length, source};
    verbs::SendWr wr;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.remote_address = from;
    wr.rkey = rkey;
    Node& node = pair->left();
    const std::size_t before = node.send_done.size();
    EXPECT_EQ(node.post_send(*other_left, wr, pair->now()), verbs::Post::Ok);
    pair->run_until([&] { return node.drain_completions(), node.send_done.size() > before; },
                    Duration::s(20));
    EXPECT_GT(node.send_done.size(), before);
    return node.send_done.back().completion.status;
  }
  std::uint64_t at(std::uint64_t offset) const { return address(theirs) + offset; }

  verbs::QueuePair *other_left = nullptr, *other_right = nullptr;
  std::uint32_t source = 0, region = 0;
};

// proves: E-54
TEST_F(Windows, GrantTheirRightsToTheirPartOnly) {
  const std::uint32_t w = window(WindowType::One) + 1;
  ASSERT_EQ(bind(w, 100, 1000, verbs::kRemoteWrite), Status::Success);
  fill(1);
  EXPECT_EQ(write(at(100), 1000, w), Status::Success);
  EXPECT_TRUE(std::equal(ours.begin(), ours.begin() + 1000, theirs.begin() + 100));
  EXPECT_EQ(theirs[99], 0xee);
  EXPECT_EQ(theirs[1100], 0xee);
  EXPECT_EQ(read(at(100), 1, w), Status::RemoteAccess) << "it is for writing";
}

// proves: E-54
TEST_F(Windows, DoNotReachBeyondTheirPart) {
  const std::uint32_t w = window(WindowType::One) + 1;
  ASSERT_EQ(bind(w, 100, 1000, verbs::kRemoteRead), Status::Success);
  EXPECT_EQ(read(at(100), 1000, w), Status::Success);
  EXPECT_EQ(read(at(101), 1000, w), Status::RemoteAccess);
}

// proves: E-54
TEST_F(Windows, ARegionForWindowsOnlyIsClosedToPeers) {
  ASSERT_EQ(bind(window(WindowType::One) + 1, 0, 4000, verbs::kRemoteRead), Status::Success);
  EXPECT_EQ(read(at(0), 1, region), Status::RemoteAccess);
}

// proves: E-54
TEST_F(Windows, ZeroBasedOnesBeginAtZero) {
  const std::uint32_t w = window(WindowType::Two) + 1;
  ASSERT_EQ(bind(w, 100, 1000, verbs::kRemoteRead | verbs::kZeroBased), Status::Success);
  theirs[100] = 0x5a;
  EXPECT_EQ(read(0, 1000, w), Status::Success);
  EXPECT_EQ(ours[0], 0x5a);
  EXPECT_EQ(read(at(100), 1, w), Status::RemoteAccess);
}

// The Send posted after the bind reports the window to the peer, which uses it at once.
// proves: E-54
TEST_F(Windows, ABindIsDoneBeforeLaterRequests) {
  const std::uint32_t w = window(WindowType::Two) + 1;
  const Sge sink{address(ours), 8, source};
  ASSERT_TRUE(pair->left().post_receive(*left, {1, {&sink, 1}}, pair->now()));
  std::memcpy(theirs.data(), &w, sizeof w);
  const WindowBind b{at(0), 4000, region, w, verbs::kRemoteRead};
  verbs::SendWr wr;
  wr.op = WrOp::Bind;
  wr.bind = &b;
  ASSERT_EQ(right->sq.post(wr), verbs::Post::Ok);  // without a doorbell
  const Sge note{at(0), 4, region};
  wr = {};
  wr.op = WrOp::Send;
  wr.sges = {&note, 1};
  ASSERT_EQ(pair->right().post_send(*right, wr, pair->now()), verbs::Post::Ok);
  pair->run_until(
      [&] { return pair->left().drain_completions(), !pair->left().receive_done.empty(); },
      Duration::s(20));
  std::uint32_t told = 0;
  std::memcpy(&told, ours.data(), sizeof told);
  ASSERT_EQ(told, w);
  EXPECT_EQ(read(at(0), 4000, told), Status::Success);
}

// proves: E-54
TEST_F(Windows, AType2WindowBelongsToItsQueuePairOnly) {
  const std::uint32_t w = window(WindowType::Two) + 1;
  ASSERT_EQ(bind(w, 0, 4000, verbs::kRemoteRead), Status::Success);
  EXPECT_EQ(read(at(0), 10, w), Status::Success);
  EXPECT_EQ(read_by_other(at(0), w), Status::RemoteAccess);
}

// proves: E-54
TEST_F(Windows, AType2WindowIsWritableByItsQueuePairsPeerOnly) {
  const std::uint32_t w = window(WindowType::Two) + 1;
  ASSERT_EQ(bind(w, 0, 4000, verbs::kRemoteWrite), Status::Success);
  fill(1);
  post(WrOp::Write, {address(ours), 10, source}, at(100), w);
  EXPECT_EQ(ended(), Status::Success);
  pair->run_for(Duration::ms(10));
  EXPECT_TRUE(std::equal(ours.begin(), ours.begin() + 10, theirs.begin() + 100));
  EXPECT_EQ(left->state, verbs::QpState::Rts);
  by_other(WrOp::Write, at(200), w, 0);  // after its first FPDU the shortest path is used
  pair->run_for(Duration::ms(10));
  EXPECT_EQ(other_right->state, verbs::QpState::Rts);
  by_other(WrOp::Write, at(200), w);  // complete once it was sent
  pair->run_for(Duration::ms(10));
  EXPECT_EQ(theirs[200], 0xee);
  EXPECT_NE(other_right->state, verbs::QpState::Rts) << "refused";
}

// proves: E-54
TEST_F(Windows, AType1WindowBelongsToTheWholeDomain) {
  const std::uint32_t w = window(WindowType::One) + 1;
  ASSERT_EQ(bind(w, 0, 4000, verbs::kRemoteRead), Status::Success);
  EXPECT_EQ(read_by_other(at(0), w), Status::Success);
}

// proves: E-54
TEST_F(Windows, ANewBindOfType1InvalidatesTheOldKey) {
  const std::uint32_t w = window(WindowType::One) + 1;
  ASSERT_EQ(bind(w, 0, 4000, verbs::kRemoteRead), Status::Success);
  ASSERT_EQ(bind(w + 1, 0, 100, verbs::kRemoteRead), Status::Success);
  EXPECT_EQ(read(at(0), 100, w + 1), Status::Success);
  EXPECT_EQ(read(at(0), 100, w), Status::RemoteAccess);
}

// proves: E-54
TEST_F(Windows, ABindOfLengthZeroUnbinds) {
  const std::uint32_t w = window(WindowType::One) + 1;
  ASSERT_EQ(bind(w, 0, 4000, verbs::kRemoteRead), Status::Success);
  ASSERT_EQ(bind(w + 1, 0, 0, 0), Status::Success);
  EXPECT_TRUE(pair->right().engine().deregister(region)) << "nothing is bound to it any more";
  EXPECT_EQ(read(at(0), 1, w + 1), Status::RemoteAccess);
}

// proves: E-54
TEST_F(Windows, AType2WindowIsBoundAgainOnlyAfterAnInvalidation) {
  const std::uint32_t w = window(WindowType::Two) + 1;
  ASSERT_EQ(bind(w, 0, 4000, verbs::kRemoteRead), Status::Success);
  ASSERT_EQ(local_invalidate(w), Status::Success);
  ASSERT_EQ(bind(w + 1, 0, 4000, verbs::kRemoteRead), Status::Success);
  EXPECT_EQ(read(at(0), 1, w + 1), Status::Success);
  EXPECT_EQ(bind(w + 2, 0, 4000, verbs::kRemoteRead), Status::WindowBind);
}

// proves: E-54
TEST_F(Windows, ThePeerCanInvalidateAType2Window) {
  const std::uint32_t w = window(WindowType::Two) + 1;
  ASSERT_EQ(bind(w, 0, 4000, verbs::kRemoteRead), Status::Success);
  receive({at(0), 10, region});
  const Sge none{address(ours), 4, source};
  verbs::SendWr wr;
  wr.op = WrOp::SendInv;
  wr.flags = verbs::kSignaled;
  wr.sges = {&none, 1};
  wr.inv_key = w;
  ASSERT_EQ(pair->left().post_send(*left, wr, pair->now()), verbs::Post::Ok);
  ++posted_;
  EXPECT_EQ(ended(), Status::Success);
  const verbs::Completion c = received();
  EXPECT_TRUE(c.with_invalidate);
  EXPECT_EQ(c.inv_key, w);
  EXPECT_EQ(table().find(w), nullptr);
  EXPECT_EQ(table().find(region)->windows, 0u);
  EXPECT_EQ(read(at(0), 1, w), Status::RemoteAccess);
}

// proves: E-54
TEST_F(Windows, OtherPeersCannotInvalidateAWindow) {
  const std::uint32_t w = window(WindowType::Two) + 1;
  ASSERT_EQ(bind(w, 0, 4000, verbs::kRemoteRead), Status::Success);
  const Sge sge{at(0), 10, region};
  ASSERT_TRUE(pair->right().post_receive(*other_right, {1, {&sge, 1}}, pair->now()));
  verbs::SendWr wr;
  wr.op = WrOp::SendInv;
  wr.flags = verbs::kSignaled;
  wr.inv_key = w;
  ASSERT_EQ(pair->left().post_send(*other_left, wr, pair->now()), verbs::Post::Ok);
  ++posted_;
  pair->run_for(Duration::s(1));
  EXPECT_NE(other_right->state, verbs::QpState::Rts) << "refused";
  EXPECT_EQ(read(at(0), 10, w), Status::Success) << "it is as it was";
}

// proves: E-54
TEST_F(Windows, AType1WindowCannotBeInvalidated) {
  const std::uint32_t w = window(WindowType::One) + 1;
  ASSERT_EQ(bind(w, 0, 4000, verbs::kRemoteRead), Status::Success);
  EXPECT_EQ(local_invalidate(w), Status::LocalProtection);
}

// proves: E-54
TEST_F(Windows, AnImpossibleBindEndsTheQueuePairWithItsOwnStatus) {
  ASSERT_EQ(bind(window(WindowType::One) + 1, 1, 4000, verbs::kRemoteRead), Status::WindowBind);
  EXPECT_EQ(right->state, verbs::QpState::Error);
}

// proves: E-54
TEST_F(Windows, Type2WindowsAreUnboundWithTheirQueuePair) {
  const std::uint32_t mine = window(WindowType::Two) + 1, shared = window(WindowType::One) + 1;
  ASSERT_EQ(bind(mine, 0, 4000, verbs::kRemoteRead), Status::Success);
  ASSERT_EQ(bind(shared, 0, 4000, verbs::kRemoteRead), Status::Success);
  EXPECT_EQ(table().find(region)->windows, 2u);
  EXPECT_EQ(pair->right().engine().iwarp_control().move(*right, verbs::QpState::Reset,
                                                        verbs::kQpAttrState, pair->now()),
            verbs::QpVerdict::Ok);
  EXPECT_EQ(table().find(mine), nullptr);
  EXPECT_EQ(table().find(region)->windows, 1u);
  EXPECT_EQ(read_by_other(at(0), shared), Status::Success);
  EXPECT_FALSE(pair->right().engine().deregister(region)) << "one is bound to it";
  EXPECT_EQ(pair->right().engine().reregister(region, pair->right().pd, whole(theirs), kAll), 0u);
  ASSERT_TRUE(table().free_window(shared));
  EXPECT_TRUE(pair->right().engine().deregister(region));
}

// proves: E-54
TEST_F(Windows, Type2WindowsAreUnboundWithADestroyedQueuePair) {
  ASSERT_EQ(bind(window(WindowType::Two) + 1, 0, 4000, verbs::kRemoteRead), Status::Success);
  pair->right().engine().iwarp_control().destroy(right, pair->now());
  EXPECT_EQ(table().find(region)->windows, 0u);
}

// It waits after a Read that is given up with the queue pair, so the window would have no owner.
// proves: E-54
TEST_F(Windows, APendingBindIsDroppedWithItsQueuePair) {
  const std::uint32_t from = add(pair->left(), whole(ours), kAll), w = window(WindowType::Two) + 1;
  pair->set_faults_left("loss=1");
  const Sge sge{at(0), 100, region};
  verbs::SendWr wr;
  wr.op = WrOp::Read;
  wr.sges = {&sge, 1};
  wr.remote_address = address(ours);
  wr.rkey = from;
  ASSERT_EQ(pair->right().post_send(*right, wr, pair->now()), verbs::Post::Ok);
  const WindowBind b{at(0), 4000, region, w, verbs::kRemoteRead};
  wr = {};
  wr.op = WrOp::Bind;
  wr.flags = verbs::kFence;
  wr.bind = &b;
  ASSERT_EQ(pair->right().post_send(*right, wr, pair->now()), verbs::Post::Ok);
  pair->right().engine().iwarp().disconnect(*right, pair->now());
  pair->right().engine().iwarp_control().destroy(right, pair->now());
  EXPECT_EQ(pair->right().engine().iwarp().events().leaving(), 1u);
  pair->set_faults_left("");
  pair->run_for(Duration::s(5));
  EXPECT_EQ(pair->right().engine().iwarp().events().leaving(), 0u);
  EXPECT_EQ(table().find(w), nullptr);
  EXPECT_TRUE(pair->right().engine().deregister(region)) << "nothing is bound to it";
}

}  // namespace
}  // namespace urnic::sim
