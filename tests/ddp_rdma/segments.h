// Hand-made ULPDUs, and a stream that receives them.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "ddp_rdma/stream.h"

namespace urnic::ddp::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes ulpdu(const SegmentHeader& h, const Bytes& payload = {}) {
  Bytes out(kMaxHeader);
  out.resize(emit_header(h, out.data()));
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}
inline Bytes write_segment(std::uint32_t stag, std::uint64_t to, const Bytes& payload,
                           bool last = true) {
  SegmentHeader h;
  h.op = Opcode::Write;
  h.last = last;
  h.stag = stag;
  h.to = to;
  return ulpdu(h, payload);
}
inline Bytes response_segment(std::uint32_t stag, std::uint64_t to, const Bytes& payload,
                              bool last = true) {
  SegmentHeader h;
  h.op = Opcode::ReadResponse;
  h.last = last;
  h.stag = stag;
  h.to = to;
  return ulpdu(h, payload);
}
inline Bytes send_segment_of(std::uint32_t msn, std::uint32_t mo, const Bytes& payload,
                             bool last = true, Opcode op = Opcode::Send,
                             std::uint32_t inv_stag = 0) {
  SegmentHeader h;
  h.op = op;
  h.last = last;
  h.qn = kQnSend;
  h.msn = msn;
  h.mo = mo;
  h.inv_stag = inv_stag;
  return ulpdu(h, payload);
}
inline Bytes read_request(std::uint32_t msn, std::uint32_t size, std::uint32_t source_stag,
                          std::uint64_t source_to) {
  SegmentHeader h;
  h.op = Opcode::ReadRequest;
  h.last = true;
  h.qn = kQnReadRequest;
  h.msn = msn;
  h.read = {0x5151, 77, size, source_stag, source_to};
  return ulpdu(h);
}
inline Bytes atomic_request(std::uint32_t msn, const AtomicRequest& a) {
  SegmentHeader h;
  h.op = Opcode::AtomicRequest;
  h.last = true;
  h.qn = kQnReadRequest;
  h.msn = msn;
  Bytes payload(kAtomicRequest);
  emit_atomic_request(a, payload.data());
  return ulpdu(h, payload);
}
inline Bytes atomic_response(std::uint32_t msn, std::uint32_t id, std::uint64_t original) {
  SegmentHeader h;
  h.op = Opcode::AtomicResponse;
  h.last = true;
  h.qn = kQnAtomicResponse;
  h.msn = msn;
  h.atomic_reply = {id, original};
  return ulpdu(h);
}
inline Bytes terminate_segment(Violation v) {
  Bytes out(kMaxTerminate);
  out.resize(build_terminate(v, {}, out.data()));
  return out;
}

// A stream with memory, which records all reports.
class StreamFixture : public ::testing::Test {
 protected:
  static constexpr PdId kPd = 4;

  explicit StreamFixture(std::uint32_t first_msn = 1) : s(config(), &shared, first_msn) {
    bytes.resize(4096);
    key = table.register_memory(kPd, bytes.data(), bytes.size(), kLocalWrite | kRemoteWrite);
    source.resize(4096, 0x5A);
    source_key = table.register_memory(kPd, source.data(), source.size(), kRemoteRead);
    s.set_limits(4, 4);
    s.sender.start(true);
  }
  static StreamConfig config() {
    StreamConfig c;
    c.id = 11;
    c.pd = kPd;
    c.max_recv_wr = 8;
    return c;
  }
  static std::uint64_t address(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

  void post_receive(std::uint64_t id, const std::vector<Sge>& sges) {
    ASSERT_EQ(s.rq.post({id, sges}), ReceiveQueue::Post::Ok);
  }
  // Posts a receive with one piece at `offset` of `bytes`.
  void post_receive(std::uint64_t id, std::uint64_t offset, std::uint32_t len) {
    post_receive(id, {{address(bytes.data() + offset), len, key}});
  }
  // Sends a Read into bytes[offset, +len); returns the STag of its sink.
  std::uint32_t start_read(std::uint64_t id, std::uint64_t offset, std::uint32_t len) {
    const Sge sge{address(bytes.data() + offset), len, key};
    SendWr wr;
    wr.wr_id = id;
    wr.op = WrOp::Read;
    wr.flags = kSignaled;
    wr.sges = {&sge, 1};
    EXPECT_EQ(s.sq.post(wr), verbs::Post::Ok);
    EXPECT_GT(transmit().size(), 0u);
    auto cursor = s.sender.outstanding_reads();
    std::uint32_t sink = 0, size = 0;
    while (s.sender.next_read(&cursor, &sink, &size)) {
    }
    EXPECT_EQ(size, len);
    return sink;
  }
  // Returns one segment from the sender.
  Bytes transmit(std::uint32_t limit = 1460) {
    const StreamOffset at(sent);
    const auto cut = s.sender.cut(at, limit, 1460, false);
    Bytes out(cut.len);
    if (cut.len == 0) return out;
    bool ok = false;
    s.sender.fill(at, cut.len, out.data(), &ok);
    EXPECT_TRUE(ok);
    sent += cut.len;
    return out;
  }

  // Admits one ULPDU as a separate segment.
  Admission admit(const Bytes& u, bool in_order = true) {
    held.push_back(u);
    return Admitter(s, in_order).next(held.back());
  }
  Violation refused(const Bytes& u, bool in_order = true) {
    const Admission a = admit(u, in_order);
    EXPECT_EQ(a.what, Admit::Violate);
    return a.violation;
  }
  // Admits and places.
  MessageCounts put(const Bytes& u, bool in_order = true) {
    const Admission a = admit(u, in_order);
    EXPECT_EQ(a.what, Admit::Place) << violation_row(a.violation).name;
    return a.what == Admit::Place ? place(s, a) : MessageCounts{};
  }
  Violation deliver_counts(const MessageCounts& counts) {
    return deliver(
        s, counts, [this](const Completion& c) { done.push_back(c); }, &offending);
  }
  // Admits, places and delivers.
  Violation take(const Bytes& u) { return deliver_counts(put(u)); }

  MemoryTable table;
  SharedState shared{&table};
  Bytes bytes, source;
  std::uint32_t key = 0, source_key = 0;
  Stream s;
  std::vector<Completion> done;
  ByteView offending;
  std::uint64_t sent = 0;
  std::vector<Bytes> held;  // admissions point into these

  StreamFixture(const StreamFixture&) = delete;
};

}  // namespace urnic::ddp::test
