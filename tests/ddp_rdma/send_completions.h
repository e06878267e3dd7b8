// Sends that arrive in and out of order, and their completion queue (specification 9.4).
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "ddp_rdma/segments.h"
#include "verbs/completion_queue.h"

namespace urnic::ddp::test {

// A stream, its CQ, and one hole: Sends placed after it are counted, but not delivered until
// close().
struct SendCompletions {
  explicit SendCompletions(CompletionMethod method, std::uint32_t m = 0,
                           std::uint32_t receives = 64, verbs::CompletionQueue* shared_cq = nullptr,
                           std::uint32_t id = 1) {
    ddp::StreamConfig c;
    c.id = id;
    c.pd = 1;
    c.max_recv_wr = receives;
    c.completion_method = method;
    c.completion_threshold = m;
    bytes.resize(64);
    key = table.register_memory(1, bytes.data(), bytes.size(), verbs::kLocalWrite);
    stream = std::make_unique<ddp::Stream>(c, &shared);
    if (shared_cq == nullptr) own_cq = std::make_unique<verbs::CompletionQueue>(256);
    cq = shared_cq != nullptr ? shared_cq : own_cq.get();
    for (std::uint32_t i = 1; i <= receives; ++i) EXPECT_TRUE(post(i));
  }
  bool post(std::uint64_t id) {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(bytes.data()), 64, key};
    return stream->rq.post({id, {&sge, 1}}) == verbs::ReceiveQueue::Post::Ok;
  }
  // Places one whole Send of `msn` modulo 64 bytes.
  MessageCounts place(std::uint32_t msn, bool in_order, Opcode op = Opcode::Send) {
    const Bytes u = send_segment_of(msn, 0, Bytes(msn % 64), true, op);
    const ddp::Admission a = ddp::Admitter(*stream, in_order).next(u);
    EXPECT_EQ(a.what, ddp::Admit::Place);
    return ddp::place(*stream, a);
  }
  void behind(std::uint32_t msn, Opcode op = Opcode::Send) { hole += place(msn, false, op); }
  void deliver(const MessageCounts& counts) {
    struct Sink {
      SendCompletions* f;
      void operator()(const verbs::Completion& c) const {
        verbs::Cqe cqe;
        cqe.completion = c;
        cqe.qp_number = f->stream->config.id;
        f->cq->push(cqe);
      }
      void operator()(const verbs::StoredSends& s) const { f->cq->push(s, f->stream->config.id); }
    };
    EXPECT_EQ(ddp::deliver(*stream, counts, Sink{this}), ddp::Violation::None);
  }
  void in_order(std::uint32_t msn) { deliver(place(msn, true)); }
  void close() { deliver(std::exchange(hole, {})); }
  std::vector<verbs::Cqe> poll(std::size_t most = 1000) {
    std::vector<verbs::Cqe> out(most);
    const int n = cq->poll(out);
    out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return out;
  }
  const ddp::CompletionWrites& writes() const { return stream->completion_writes; }

  verbs::MemoryTable table;
  ddp::SharedState shared{&table};
  Bytes bytes;
  std::uint32_t key = 0;
  std::unique_ptr<verbs::CompletionQueue> own_cq;
  verbs::CompletionQueue* cq = nullptr;
  std::unique_ptr<ddp::Stream> stream;
  MessageCounts hole;
};

}  // namespace urnic::ddp::test
