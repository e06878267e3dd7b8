// Both halves of UC: a responder with memory and receives, and packets for it.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <utility>

#include "ib/responder_fixture.h"
#include "ib/uc.h"

namespace urnic::ib::test {

struct UcFixture : ResponderFixture {
  UcFixture() {
    qp.service = ServiceType::Uc;
    uc = std::make_unique<UcResponder>(qp, queue, &table);
  }

  static ParsedPacket of_uc(ParsedPacket p) {
    p.header.bth.opcode = Opcode(ServiceType::Uc, p.header.bth.opcode.operation());
    return p;
  }
  ParsedPacket send(Operation o, std::uint32_t at, Bytes payload) {
    return of_uc(packet(o, Psn(at), std::move(payload)));
  }
  ParsedPacket writing(Operation o, std::uint32_t at, std::uint64_t offset, std::uint32_t length,
                       Bytes payload) {
    return of_uc(write(o, Psn(at), offset, length, std::move(payload)));
  }
  Verdict come(const ParsedPacket& p) {
    verbs::Completion c;
    const Received r = uc->take(p, &c);
    if (r.completed) completions.push_back(c);
    return r.verdict;
  }
  ByteView received(std::uint64_t wr_id, std::size_t n) { return {inbox() + 1000 * wr_id, n}; }
  bool holds(std::uint64_t wr_id, const Bytes& b) {
    const ByteView r = received(wr_id, b.size());
    return std::equal(r.begin(), r.end(), b.begin());
  }
  bool wrote(std::uint64_t offset, const Bytes& b) {
    const ByteView w = written(offset, b.size());
    return std::equal(w.begin(), w.end(), b.begin());
  }
  // A Send of one packet arrives in receive `wr_id`, the oldest.
  void expect_delivered_to(std::uint64_t wr_id, std::uint32_t at) {
    const std::size_t before = completions.size();
    const Bytes b = counting(77, at);
    EXPECT_EQ(come(send(Operation::SendOnly, at, b)), Verdict::Accept);
    ASSERT_EQ(completions.size(), before + 1);
    EXPECT_EQ(completions.back().wr_id, wr_id);
    EXPECT_EQ(completions.back().status, verbs::Status::Success);
    EXPECT_EQ(completions.back().byte_len, 77u);
    EXPECT_TRUE(holds(wr_id, b));
  }

  std::unique_ptr<UcResponder> uc;
};

}  // namespace urnic::ib::test
