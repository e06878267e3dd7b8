// An engine that receives Sends from a simulated peer.
#pragma once

#include <gtest/gtest.h>

#include "mpa/builder.h"
#include "mpa/fpdu.h"
#include "tests/support/scripted_peer.h"

namespace urnic::test {

using engine::CmEvent;
using fastpath::ConnectionType;
using Bytes = std::vector<std::uint8_t>;

inline void append_fpdu(Bytes& out, const ddp::SegmentHeader& h, ByteView payload) {
  std::uint8_t head[ddp::kMaxHeader];
  const std::uint32_t n = ddp::emit_header(h, head);
  const std::size_t at = out.size();
  out.resize(at + mpa::fpdu_size(n + static_cast<std::uint32_t>(payload.size())));
  const ByteView pieces[] = {payload};
  mpa::build_fpdu(out.data() + at, {head, n}, pieces, true);
}
inline Bytes send_fpdu(std::uint32_t msn, std::size_t bytes, std::uint32_t mo = 0,
                       bool last = true) {
  ddp::SegmentHeader h;
  h.op = ddp::Opcode::Send;
  h.last = last;
  h.qn = ddp::kQnSend;
  h.msn = msn;
  h.mo = mo;
  Bytes out;
  append_fpdu(out, h, Bytes(bytes, static_cast<std::uint8_t>(msn)));
  return out;
}

inline sim::PairOptions receiver(ConnectionType type) {
  sim::PairOptions o;
  o.right.context.initiated_as = type;
  o.right.out_of_order = engine::Options::OutOfOrder::Place;
  return o;
}

struct Receiver : ScriptedPeer {
  explicit Receiver(const sim::PairOptions& o, std::uint32_t receives = 64,
                    verbs::SharedReceiveQueue* (*shared)(sim::Node&) = nullptr)
      : ScriptedPeer(o, receives, shared), memory(64 << 10) {
    key = node().register_memory(memory.data(), memory.size(), verbs::kLocalWrite);
    first = ddp::stream_of(qp()).next_send_msn();
    on_sent = [this](const tcp::Segment&, std::uint64_t) { ++frames_out; };
  }
  bool post(std::uint64_t id, std::uint32_t bytes = 64) {
    const verbs::Sge sge{reinterpret_cast<std::uintptr_t>(memory.data()) + id % 512 * 64, bytes,
                         key};
    if (verbs::SharedReceiveQueue* q = qp().rq.shared()) {
      if (q->post({id, {&sge, 1}}) != verbs::SharedReceiveQueue::Post::Ok) return false;
      engine().iwarp().shared_posted(*q, now());
      return true;
    }
    return node().post_receive(qp(), {id, {&sge, 1}}, now());
  }
  void arrive(std::uint64_t at, const Bytes& bytes, bool fin = false) {
    segment(at, bytes, fin);
    run();
  }
  std::vector<verbs::Cqe>& done() {
    node().drain_completions();
    return node().receive_done;
  }
  bool failed(const std::string& why) {
    for (const CmEvent& e : node().events) {
      if (e.kind == CmEvent::Kind::Failed) return e.message.find(why) != std::string::npos;
    }
    return false;
  }
  Bytes memory;
  std::uint32_t key = 0, first = 1;
  std::uint64_t frames_out = 0;
};

}  // namespace urnic::test
