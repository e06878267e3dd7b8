// A connection in virtual time, and two pieces of memory that can be registered in any way.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "sim/pair.h"

namespace urnic::sim {

using verbs::Sge;
using verbs::Status;
using verbs::WrOp;
using Bytes = std::vector<std::uint8_t>;

class MemoryEnds : public ::testing::Test {
 protected:
  static constexpr std::uint8_t kAll =
      verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead;

  void up() {
    PairOptions o;  // as in a device: the shortest path for Writes requires it
    o.left.tcp.ack_policy = o.right.tcp.ack_policy = tcp::AckPolicy::PerBurst;
    pair = std::make_unique<Pair>(o);
    left = pair->left().make_qp();
    right = pair->right().make_qp();
    ASSERT_TRUE(pair->connect(*left, *right));
  }
  static std::uint64_t address(const Bytes& o) {
    return reinterpret_cast<std::uintptr_t>(o.data());
  }
  static verbs::Extent whole(Bytes& o) { return {o.data(), address(o), o.size()}; }
  static std::uint32_t add(Node& node, const verbs::Extent& memory, std::uint8_t access) {
    return node.engine().memory().register_memory(node.pd, memory, access);
  }
  void fill(std::uint8_t seed) {
    for (std::size_t i = 0; i < ours.size(); ++i) ours[i] = static_cast<std::uint8_t>(i * 7 + seed);
    for (std::uint8_t& b : theirs) b = 0xee;
  }

  // Posts a request at the left end.
  void post(WrOp op, const Sge& sge, std::uint64_t to = 0, std::uint32_t rkey = 0) {
    verbs::SendWr wr;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge, 1};
    wr.remote_address = to;
    wr.rkey = rkey;
    ASSERT_EQ(pair->left().post_send(*left, wr, pair->now()), verbs::Post::Ok);
    ++posted_;
  }
  void receive(const Sge& sge) {
    ASSERT_TRUE(pair->right().post_receive(*right, {1, {&sge, 1}}, pair->now()));
    ++receives_;
  }
  // The status of the request posted last.
  Status ended() {
    std::vector<verbs::Cqe>& done = pair->left().send_done;
    pair->run_until([&] { return pair->left().drain_completions(), done.size() >= posted_; },
                    Duration::s(20));
    EXPECT_EQ(done.size(), posted_);
    return done.empty() ? Status::Success : done.back().completion.status;
  }
  verbs::Completion received() {
    std::vector<verbs::Cqe>& done = pair->right().receive_done;
    pair->run_until([&] { return pair->right().drain_completions(), done.size() >= receives_; },
                    Duration::s(20));
    EXPECT_EQ(done.size(), receives_);
    return done.empty() ? verbs::Completion{} : done.back().completion;
  }

  std::unique_ptr<Pair> pair;
  verbs::QueuePair *left = nullptr, *right = nullptr;
  Bytes ours = Bytes(4000), theirs = Bytes(4000, 0xee);

  // The numbers of posted requests.
  std::size_t posted_ = 0, receives_ = 0;
};

}  // namespace urnic::sim
