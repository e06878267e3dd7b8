// Completion (E-23), deregistration (E-25), the end of a sender, and memory use.
#include <gtest/gtest.h>

#include <memory>

#include "ddp_rdma/allocations.h"
#include "ddp_rdma/sender_fixture.h"

namespace urnic::ddp::test {
namespace {

class Ending : public SenderFixture {
 protected:
  std::uint32_t uses(std::uint32_t stag) { return end.memory.at_index(stag)->uses; }
};

// proves: E-23
TEST_F(Ending, KeptRequestsCompleteWhenHandedToTcp) {
  ASSERT_EQ(post(WrOp::Write, 100, 1), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Send, 10, 2, kSignaled | kInline), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Send, 0, 3), verbs::Post::Ok);
  report();
  EXPECT_TRUE(end.completions.empty());
  go();
  report();
  EXPECT_EQ(ids(), (Ids{1, 2, 3}));
}

// proves: E-23
TEST_F(Ending, KeptRequestOfSeveralFpdusCompletesWhenAllAreHandedToTcp) {
  StreamConfig c = config();
  c.keep_below = 10000;
  End other(c);
  other.stream.sender.start(true);
  const std::uint32_t mine = other.add(source, 0);
  const Sge sge{at(0), 4000, mine};
  SendWr wr;
  wr.flags = kSignaled;
  wr.sges = {&sge, 1};
  ASSERT_EQ(other.stream.sq.post(wr), verbs::Post::Ok);
  std::uint64_t end_of_cuts = 0;
  std::vector<std::uint32_t> cuts;
  while (const auto cut =
             other.stream.sender.cut(StreamOffset(end_of_cuts), kEmss, kEmss, false).len) {
    cuts.push_back(cut);
    end_of_cuts += cut;
  }
  ASSERT_EQ(cuts.size(), 3u);
  std::uint64_t from = 0;
  Bytes out(kEmss);
  for (const std::uint32_t n : cuts) {
    other.stream.sender.acked(StreamOffset(0), other.sink());
    EXPECT_TRUE(other.completions.empty());
    bool ok = false;
    other.stream.sender.fill(StreamOffset(from), n, out.data(), &ok);
    EXPECT_TRUE(ok);
    from += n;
  }
  other.stream.sender.acked(StreamOffset(0), other.sink());
  EXPECT_EQ(other.completions.size(), 1u);
}

// proves: E-23
TEST_F(Ending, OtherRequestsCompleteWhenAcknowledgedInPostingOrder) {
  ASSERT_EQ(post(WrOp::Write, 3000, 1), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 10, 2), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 257, 3), verbs::Post::Ok);
  while (go() != 0) {
  }
  ack(wire.log.size() - 290);
  EXPECT_EQ(ids(), (Ids{1, 2}));
  ack(wire.log.size() - 1);
  EXPECT_EQ(ids(), (Ids{1, 2})) << "not before its last byte";
  ack();
  EXPECT_EQ(ids(), (Ids{1, 2, 3}));
  EXPECT_EQ(end.completions[0].byte_len, 3000u);
}

TEST_F(Ending, UnsignaledRequestsCompleteSilentlyAndFreeTheirSlots) {
  for (int round = 0; round < 10; ++round) {
    for (std::uint64_t i = 0; i < 64; ++i) {
      ASSERT_EQ(post(WrOp::Write, 64, i, i == 63 ? kSignaled : 0), verbs::Post::Ok);
    }
    EXPECT_EQ(post(WrOp::Write, 64), verbs::Post::Full);
    while (go() != 0) {
    }
    report();
  }
  EXPECT_EQ(end.completions.size(), 10u);
}

// proves: E-25
TEST_F(Ending, UsesAreCountedWhileUnacknowledged) {
  ASSERT_EQ(post(WrOp::Write, 3000), verbs::Post::Ok);
  EXPECT_EQ(uses(key), 0u) << "queued requests fail when reached; they need no count";
  go();
  EXPECT_EQ(uses(key), 1u);
  ASSERT_EQ(post(WrOp::Read, 10), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 10), verbs::Post::Ok);
  while (go() != 0) {
  }
  EXPECT_EQ(uses(key), 2u) << "kept ones do not count";
  ack();
  EXPECT_EQ(uses(key), 1u);
  answer_read();
  EXPECT_EQ(uses(key), 0u);
}

class Detaching : public Ending {
 protected:
  Detaching() {
    own.assign(8192, 0x42);
    stag = end.add(own, kLocalWrite | kRemoteRead);
  }
  verbs::Post post_own(WrOp op, std::uint32_t len, std::uint64_t id) {
    const Sge sge{End::address(own.data()), len, stag};
    SendWr wr;
    wr.wr_id = id;
    wr.op = op;
    wr.flags = kSignaled;
    wr.sges = {&sge, 1};
    return end.stream.sq.post(wr);
  }
  // Deregisters like the verbs. The memory is freed afterwards.
  void deregister() {
    s.detach_region(stag);
    EXPECT_EQ(uses(stag), 0u);
    ASSERT_TRUE(end.memory.deregister(stag));
    std::vector<std::uint8_t>().swap(own);
  }
  std::vector<std::uint8_t> own;
  std::uint32_t stag = 0;
};

// proves: E-25
TEST_F(Detaching, UnacknowledgedFpdusAreCopiedFirst) {
  ASSERT_EQ(post_own(WrOp::Write, 4000, 1), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 4000, 2), verbs::Post::Ok);
  while (go() != 0) {
  }
  ack(1460);
  deregister();
  for (std::uint64_t at = 1460; at < wire.log.size();) at += again(at, 1460);  // compares
  ack();
  EXPECT_EQ(ids(), (Ids{1, 2}));
  EXPECT_EQ(s.kept_chunks(), 0u);
}

TEST_F(Detaching, MessageNotWhollyCutFails) {
  ASSERT_EQ(post_own(WrOp::Write, 4000, 1), verbs::Post::Ok);
  go();
  deregister();
  EXPECT_EQ(again(0, 1460), 1460u);
  EXPECT_EQ(go(), 0u);
  EXPECT_TRUE(s.failed());
  s.flush(Status::Flushed, end.sink());
  ASSERT_EQ(end.completions.size(), 1u);
  EXPECT_EQ(end.completions[0].status, Status::LocalProtection);
}

TEST_F(Detaching, WithoutUsesDeregistrationNeedsNoDetaching) {
  StreamConfig c = config();
  c.keep_below = 10000;  // kept messages are not counted
  End other(c);
  other.stream.sender.start(true);
  const std::uint32_t mine = other.add(own, 0);
  const Sge sge{End::address(own.data()), 4000, mine};
  SendWr wr;
  wr.sges = {&sge, 1};
  ASSERT_EQ(other.stream.sq.post(wr), verbs::Post::Ok);
  Wire w;
  EXPECT_EQ(send_new(other, w, kEmss, kEmss), kEmss);
  EXPECT_EQ(other.memory.at_index(mine)->uses, 0u);
  ASSERT_TRUE(other.memory.deregister(mine));
  std::vector<std::uint8_t>().swap(own);
  EXPECT_EQ(send_segment(other, w, 0, kEmss, kEmss), kEmss);
  EXPECT_EQ(send_new(other, w, kEmss, kEmss), 0u);
  EXPECT_TRUE(other.stream.sender.failed());
}

TEST_F(Detaching, QueuedRequestFailsWhenReached) {
  ASSERT_EQ(post(WrOp::Write, 100, 1), verbs::Post::Ok);
  ASSERT_EQ(post_own(WrOp::Write, 100, 2), verbs::Post::Ok);
  deregister();
  EXPECT_EQ(go(), 120u);
  EXPECT_TRUE(s.failed());
  s.flush(Status::Flushed, end.sink());
  ASSERT_EQ(end.completions.size(), 2u);
  EXPECT_EQ(end.completions[0].status, Status::Success);
  EXPECT_EQ(end.completions[1].status, Status::LocalProtection);
}

TEST_F(Detaching, ResponseIntoGoneMemoryIsRefused) {
  ASSERT_EQ(post_own(WrOp::Read, 100, 1), verbs::Post::Ok);
  go();
  auto c = s.outstanding_reads();
  std::uint32_t sink = 0, size = 0;
  ASSERT_TRUE(s.next_read(&c, &sink, &size));
  deregister();
  const Bytes u = response_segment(sink, 0, Bytes(100));
  const Admission a = Admitter(end.stream, true).next(u);
  EXPECT_EQ(a.what, Admit::Violate);
  EXPECT_EQ(a.violation, Violation::TaggedInvalidStag);
  flush(end.stream, Status::Flushed, end.sink());
  EXPECT_EQ(end.memory.in_use(), 1u) << "its sink is released";
}

TEST_F(Detaching, ResponseFromGoneMemoryIsStillRetransmitted) {
  const Bytes u = read_request(1, 1000, stag, End::address(own.data()));
  const Admission a = Admitter(end.stream, true).next(u);
  ASSERT_EQ(deliver(end.stream, place(end.stream, a), end.sink()), Violation::None);
  const std::uint32_t n = go();
  deregister();
  EXPECT_EQ(again(0, n), n);
}

TEST_F(Ending, FlushAfterStopCopiesUnacknowledgedFpdus) {
  ASSERT_EQ(post(WrOp::Write, 4000, 1), verbs::Post::Ok);
  request_read(2000);
  go();
  go();
  s.stop();
  s.queue_ulpdu(terminate_segment(Violation::MpaCrc));
  s.flush(Status::Flushed, end.sink());
  EXPECT_EQ(ids(), Ids{1});
  EXPECT_EQ(uses(key), 0u);
  std::fill(source.begin(), source.end(), 0);  // the memory is the consumer's again
  while (go() != 0) {
  }
  EXPECT_EQ(fpdus().back().header.op, Opcode::Terminate);
  // A request posted now is flushed as well and disturbs nothing.
  ASSERT_EQ(post(WrOp::Write, 4000, 2), verbs::Post::Ok);
  s.flush(Status::Flushed, end.sink());
  for (std::uint64_t at = 0; at < wire.log.size();) at += again(at, 1460);
  ack();
  EXPECT_EQ(ids(), (Ids{1, 2}));
  EXPECT_EQ(s.ledger_size(), 0u);
  EXPECT_EQ(s.kept_chunks(), 0u);
}

TEST_F(Ending, FlushOfALostConnectionForgetsEverything) {
  ASSERT_EQ(post(WrOp::Write, 4000, 1), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 10, 2), verbs::Post::Ok);
  request_read(2000);
  go();
  s.queue_raw(Bytes(10));
  s.flush(Status::FatalTransport, end.sink());
  ASSERT_EQ(end.completions.size(), 2u);
  EXPECT_EQ(end.completions[0].status, Status::FatalTransport);
  EXPECT_EQ(end.completions[1].status, Status::Flushed);
  EXPECT_EQ(end.shared.pool.in_use(), 0u);
  EXPECT_EQ(uses(key), 0u);
  EXPECT_EQ(s.cut(StreamOffset(0), 1460, kEmss, false).len, 0u);
}

TEST_F(Ending, CompletedRequestsAreReportedBeforeTheFlushedOnes) {
  ASSERT_EQ(post(WrOp::Write, 10, 1), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 3000, 2), verbs::Post::Ok);
  ASSERT_EQ(post(WrOp::Write, 10, 3), verbs::Post::Ok);
  while (go() != 0) {
  }
  s.flush(Status::Flushed, end.sink());
  ASSERT_EQ(ids(), (Ids{1, 2, 3}));
  EXPECT_EQ(end.completions[0].status, Status::Success);
  EXPECT_EQ(end.completions[1].status, Status::Flushed);
  EXPECT_EQ(end.completions[2].status, Status::Flushed) << "nothing completes behind an error";
}

TEST_F(Ending, ADestroyedStreamLeaksNothing) {
  MemoryTable memory;
  SharedState shared{&memory};
  std::vector<std::uint8_t> bytes(5000);
  const std::uint32_t stag =
      memory.register_memory(kPd, bytes.data(), bytes.size(), kLocalWrite | kZeroBased);
  {
    Stream stream(config(), &shared);
    stream.set_limits(2, 2);
    stream.sender.queue_raw(Bytes(10));
    stream.sender.start(true);
    for (const WrOp op : {WrOp::Read, WrOp::Write, WrOp::Send}) {
      const Sge sge{0, 3000, stag};
      SendWr wr;
      wr.op = op;
      wr.sges = {&sge, 1};
      ASSERT_EQ(stream.sq.post(wr), verbs::Post::Ok);
    }
    Bytes out(1460);
    std::uint64_t at = 0;
    for (int i = 0; i < 4; ++i) {
      const auto cut = stream.sender.cut(StreamOffset(at), 1460, 1460, false);
      bool ok;
      stream.sender.fill(StreamOffset(at), cut.len, out.data(), &ok);
      at += cut.len;
    }
    stream.sender.queue_ulpdu(Bytes(20));
    EXPECT_GT(memory.at_index(stag)->uses, 0u);
  }
  EXPECT_EQ(memory.in_use(), 1u);
  EXPECT_EQ(memory.at_index(stag)->uses, 0u);
  EXPECT_EQ(shared.pool.in_use(), 0u);
}

// D3: a busy stream that has its buffers allocates nothing.
TEST_F(Ending, SteadyStateAllocatesNothing_D3) {
  Bytes out(9000);
  std::uint64_t at = 0, una = 0, completions = 0;
  const auto sink = [&](const Completion&) { ++completions; };
  const Bytes request = read_request(1, 3000, key, this->at(0));
  std::array<Bytes, 3> inbound;
  const auto round = [&](int i) {
    for (int k = 0; k < 12; ++k) {
      post(WrOp::Write, 8u << (k % 6), 0, k % 4 == 0 ? kSignaled : 0);
      post(WrOp::Send, 5000, 0, 0);
    }
    post(WrOp::Read, 100, 1);
    // An inbound Read Request, and later the response to ours, without allocating helpers.
    SegmentHeader h;
    h.op = Opcode::ReadRequest;
    h.last = true;
    h.qn = kQnReadRequest;
    h.msn = end.stream.next_read_msn();
    h.read = {1, 0, 3000, key, this->at(0)};
    std::uint8_t u[200] = {};
    std::uint32_t n = emit_header(h, u);
    Admission a = Admitter(end.stream, true).next({u, n});
    EXPECT_EQ(a.what, Admit::Place);
    EXPECT_EQ(deliver(end.stream, place(end.stream, a), sink), Violation::None);
    const std::uint32_t emss = i % 2 == 0 ? 1460 : 8960;
    for (;;) {
      s.execute_due();
      const std::uint64_t to = s.available().value();
      if (to == at) break;
      const auto cut =
          s.cut(StreamOffset(at),
                static_cast<std::uint32_t>(std::min<std::uint64_t>(emss, to - at)), emss, false);
      if (cut.len == 0) break;
      bool ok = false;
      s.fill(StreamOffset(at), cut.len, out.data(), &ok);
      EXPECT_TRUE(ok);
      at += cut.len;
    }
    auto cursor = s.outstanding_reads();
    std::uint32_t stag = 0, size = 0;
    if (s.next_read(&cursor, &stag, &size)) {
      h = {};
      h.op = Opcode::ReadResponse;
      h.last = true;
      h.stag = stag;
      n = emit_header(h, u);
      a = Admitter(end.stream, true).next({u, n + 100});
      EXPECT_EQ(a.what, Admit::Place);
      EXPECT_EQ(deliver(end.stream, place(end.stream, a), sink), Violation::None);
    }
    una = i % 8 == 7 ? at : una + (at - una) / 2;
    s.acked(StreamOffset(una), sink);
  };
  for (int i = 0; i < 64; ++i) round(i);
  const std::uint64_t before = allocations();
  for (int i = 0; i < 256; ++i) round(i);
  EXPECT_EQ(allocations(), before);
  EXPECT_GT(completions, 1000u);
}

// P7: an idle connection, without the consumer's queues.
TEST_F(Ending, IdleStreamIsSmall_P7) {
  EXPECT_LE(sizeof(Stream) + sizeof(verbs::QueuePair), 880u);
  const std::uint64_t before = allocations();
  std::vector<std::unique_ptr<verbs::QueuePair>> pairs(100);
  const std::uint64_t with_vector = allocations();
  MemoryTable memory;
  SharedState shared{&memory};
  for (auto& p : pairs) {
    p = std::make_unique<verbs::QueuePair>(1, verbs::kIwarpRules, verbs::Service::Rc, config(),
                                           queue_layout(&shared), nullptr, nullptr);
    p->transport = std::make_unique<Stream>(config(), &shared, p.get());
  }
  EXPECT_EQ(allocations() - with_vector, 200u) << "nothing but the two halves themselves";
  EXPECT_GT(with_vector, before);
}

}  // namespace
}  // namespace urnic::ddp::test
