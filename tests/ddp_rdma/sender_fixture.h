// A sender with memory to send from, and a parser for what it sends.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "ddp_rdma/segments.h"
#include "ddp_rdma/stream_pair.h"

namespace urnic::ddp::test {

class SenderFixture : public ::testing::Test {
 protected:
  static constexpr PdId kPd = 4;
  static constexpr std::uint32_t kEmss = 1460;

  SenderFixture() : SenderFixture(config()) {}
  explicit SenderFixture(const StreamConfig& c) : end(c), s(end.stream.sender) {
    Rng rng(5);
    source = random_bytes(rng, 1 << 17);
    key = end.add(source, kLocalWrite | kRemoteRead);
    end.stream.set_limits(8, 2);
    s.start(true);
  }
  static StreamConfig config() {
    StreamConfig c;
    c.id = 2;
    c.pd = kPd;
    c.max_send_wr = 64;
    return c;
  }

  std::uint64_t at(std::uint64_t offset) const { return End::address(source.data() + offset); }
  verbs::Post post(WrOp op, std::uint32_t len, std::uint64_t id = 0, std::uint8_t flags = kSignaled,
                   std::uint64_t offset = 0, std::uint32_t lkey = 0) {
    const Sge sge{at(offset), len, lkey != 0 ? lkey : key};
    SendWr wr;
    wr.wr_id = id;
    wr.op = op;
    wr.flags = flags;
    wr.sges = {&sge, 1};
    wr.remote_address = 0x1000;
    wr.rkey = 0x4321;
    wr.inv_key = 0x9876;
    return end.stream.sq.post(wr);
  }
  // Sends the next segment of new data; its bytes are at the end of wire.log.
  std::uint32_t go(std::uint32_t limit = kEmss, bool must_cut = false) {
    return send_new(end, wire, limit, kEmss, must_cut, &push);
  }
  std::uint32_t again(std::uint64_t begin, std::uint32_t len) {
    return send_segment(end, wire, begin, len, kEmss);
  }
  void ack(std::uint64_t una) { s.acked(StreamOffset(una), end.sink()); }
  void ack() { ack(wire.log.size()); }
  void report() { ack(wire.una); }

  // Returns the FPDUs of the wire from `from` on.
  std::vector<ParsedSegment> fpdus(std::uint64_t from = 0) {
    std::vector<ParsedSegment> out;
    ByteView u;
    for (std::uint32_t size = 0; from < wire.log.size(); from += size) {
      EXPECT_TRUE(fpdu_at(wire, from, &u, &size)) << "at " << from;
      if (u.empty()) break;
      const auto p = parse_segment(u);
      EXPECT_TRUE(p.ok());
      if (p.ok()) out.push_back(*p);
    }
    return out;
  }
  // Delivers an inbound Read Request.
  void request_read(std::uint32_t size, std::uint64_t offset = 0) {
    const Bytes u = read_request(end.stream.next_read_msn(), size, key, at(offset));
    const Admission a = Admitter(end.stream, true).next(u);
    ASSERT_EQ(a.what, Admit::Place);
    ASSERT_EQ(deliver(end.stream, place(end.stream, a), end.sink()), Violation::None);
  }
  // Delivers the whole response to the oldest Read.
  void answer_read() {
    auto c = s.outstanding_reads();
    std::uint32_t sink = 0, size = 0;
    ASSERT_TRUE(s.next_read(&c, &sink, &size));
    const Bytes u = response_segment(sink, 0, Bytes(size, 0xAB));
    const Admission a = Admitter(end.stream, true).next(u);
    ASSERT_EQ(a.what, Admit::Place);
    ASSERT_EQ(deliver(end.stream, place(end.stream, a), end.sink()), Violation::None);
  }
  std::vector<std::uint64_t> ids() const {
    std::vector<std::uint64_t> out;
    for (const auto& c : end.completions) out.push_back(c.wr_id);
    return out;
  }

  using Ids = std::vector<std::uint64_t>;

  End end;
  Sender& s;
  Wire wire;
  std::vector<std::uint8_t> source;
  std::uint32_t key = 0;
  bool push = false;
};

}  // namespace urnic::ddp::test
