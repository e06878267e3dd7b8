// A responder with memory and receives, and a peer that sends it packets.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "ib/responder.h"
#include "support/golden.h"

namespace urnic::ib::test {

using urnic::test::Bytes;

// A response as seen by its receiver.
struct Response {
  Operation operation{};
  Psn psn;
  Syndrome syndrome;
  Msn msn;
  std::uint64_t original = 0;
  Bytes payload;

  bool operator==(const Response&) const = default;
  bool is_ack() const {
    return operation == Operation::Acknowledge && syndrome.kind() == AckKind::Ack;
  }
  bool is_nak(NakCode code) const {
    return operation == Operation::Acknowledge && syndrome == Syndrome::nak(code);
  }
};

inline Bytes counting(std::size_t n, unsigned from = 1) {
  Bytes b(n);
  for (std::size_t i = 0; i < n; ++i) b[i] = static_cast<std::uint8_t>(from + i * 7);
  return b;
}

struct ResponderFixture : testing::Test {
  static constexpr std::uint32_t kPmtu = 256;
  static constexpr verbs::PdId kPd = 7;
  static constexpr std::uint64_t kTarget = 0x10000;  // of the region that peers write and read
  static constexpr std::uint32_t kBytes = 8192;
  static constexpr std::uint8_t kAll =
      verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;

  ResponderFixture() {
    qp.number = 0x11;
    qp.pd = kPd;
    qp.access = verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
    qp.dest_qp = 0x22;
    qp.path_mtu = PathMtu::k256;
    qp.rq_psn = Psn(0xfffffd);  // wraps soon
    qp.responder_depth = 4;
    qp.min_rnr_timer = 12;
    const Bytes fill = counting(kBytes, 3);
    std::copy(fill.begin(), fill.end(), target());
    rkey = table.register_memory(kPd, {target(), kTarget, kBytes}, kAll);
    lkey = table.register_memory(kPd, {inbox(), 0, kBytes}, verbs::kLocalWrite);
    psn = qp.rq_psn;
  }

  std::uint8_t* target() { return reinterpret_cast<std::uint8_t*>(memory); }
  std::uint8_t* inbox() { return target() + kBytes; }
  ByteView written(std::uint64_t offset, std::size_t n) { return {target() + offset, n}; }

  Responder& responder() {
    if (!responder_) responder_ = std::make_unique<Responder>(qp, queue, &table, &held_pool);
    return *responder_;
  }
  // Posts a receive of `bytes`, in two pieces, at byte 1000 * wr_id of the inbox.
  void post(std::uint64_t wr_id, std::uint32_t bytes = 1000) {
    const std::uint32_t first = bytes / 3;
    const verbs::Sge sges[] = {{1000 * wr_id, first, lkey},
                               {1000 * wr_id + first, bytes - first, lkey}};
    ASSERT_EQ(rq.post({wr_id, sges}), verbs::ReceiveQueue::Post::Ok);
  }

  // ---- packets of the peer
  ParsedPacket packet(Operation o, Psn at, Bytes payload = {}) {
    payloads.push_back(std::move(payload));
    ParsedPacket p;
    p.header.bth.opcode = Opcode(qp.service, o);
    p.header.bth.dest_qp = qp.number;
    p.header.bth.psn = at;
    p.header.bth.ack_request = p.header.row().ends();
    p.header.bth.pad = pad_of(payloads.back().size());
    p.payload = payloads.back();
    return p;
  }
  ParsedPacket write(Operation o, Psn at, std::uint64_t offset, std::uint32_t length,
                     Bytes payload) {
    ParsedPacket p = packet(o, at, std::move(payload));
    p.header.reth = {kTarget + offset, rkey, length};
    return p;
  }
  ParsedPacket write_only(Psn at, std::uint64_t offset, Bytes payload) {
    const auto n = static_cast<std::uint32_t>(payload.size());
    return write(Operation::WriteOnly, at, offset, n, std::move(payload));
  }
  ParsedPacket read(Psn at, std::uint64_t offset, std::uint32_t length) {
    ParsedPacket p = packet(Operation::ReadRequest, at);
    p.header.reth = {kTarget + offset, rkey, length};
    return p;
  }
  ParsedPacket fetch_add(Psn at, std::uint64_t offset, std::uint64_t add) {
    ParsedPacket p = packet(Operation::FetchAdd, at);
    p.header.atomic = {kTarget + offset, rkey, add, 0};
    return p;
  }

  // Includes the packets kept past a gap that it releases; `turns` has their verdicts.
  Received take(const ParsedPacket& p) {
    verbs::Completion c;
    const Received r = responder().take(p, &c);
    if (r.completed) completions.push_back(c);
    for (Received next = r; next.more;) {
      next = responder().take_held(&c);
      if (next.completed) completions.push_back(c);
      turns.push_back(next.verdict);
    }
    return r;
  }
  Verdict verdict(const ParsedPacket& p) { return take(p).verdict; }
  // The next expected packet of the peer; advances the PSN.
  Verdict next(ParsedPacket p) {
    p.header.bth.psn = psn;
    psn += p.header.row().family == Family::Read ? packets_of(p.header.reth.length, kPmtu) : 1;
    return verdict(p);
  }

  // ---- responses
  bool response(Response* out) {
    ResponsePacket p;
    if (!responder().next_response(&p)) return false;
    // As on the wire.
    Bytes bytes(packet_bytes(p.header.bth.opcode, p.payload.size()));
    emit_packet(p.header, p.payload, bytes.data());
    const auto seen = parse_packet(bytes);
    EXPECT_TRUE(seen.ok());
    const PacketHeader& h = seen->header;
    EXPECT_EQ(h.bth.opcode.service(), qp.service);
    EXPECT_EQ(h.bth.dest_qp, qp.dest_qp);
    EXPECT_TRUE(h.row().response());
    const auto n = static_cast<std::uint32_t>(seen->payload.size());
    EXPECT_TRUE(payload_fits(h.row().payload, n, kPmtu));
    *out = {h.bth.opcode.operation(),
            h.bth.psn,
            h.aeth.syndrome,
            h.aeth.msn,
            h.original,
            Bytes(seen->payload.begin(), seen->payload.end())};
    return true;
  }
  std::vector<Response> responses() {
    std::vector<Response> all;
    for (Response r; all.size() < 100 && response(&r);) all.push_back(r);
    return all;
  }
  // The only response.
  Response only_response() {
    const auto all = responses();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Response{} : all[0];
  }
  // This packet, at the expected PSN, is refused for good, and the state does not change.
  void expect_refused(const ParsedPacket& p, NakCode code) {
    const Psn expected = responder().state().expected;
    const Msn msn = responder().state().msn;
    EXPECT_TRUE(is_fatal(verdict(p)));
    EXPECT_EQ(responder().state().expected, expected);
    const Response nak = only_response();
    EXPECT_TRUE(nak.is_nak(code)) << int{nak.syndrome.byte};
    EXPECT_EQ(nak.psn, expected);
    EXPECT_EQ(nak.psn, p.header.bth.psn);
    EXPECT_EQ(nak.msn, msn);
    EXPECT_TRUE(responder().failed());
    // From now on nothing is accepted and nothing is sent.
    EXPECT_EQ(verdict(p), Verdict::Ignored);
    EXPECT_TRUE(responses().empty());
  }
  // Another connection with the same memory and receives.
  void again() {
    responder_.reset();
    psn = qp.rq_psn;
  }

  alignas(64) std::uint64_t memory[2 * kBytes / 8]{};
  verbs::MemoryTable table;
  HeldPool held_pool;  // only used by a FAST queue pair
  QpAttributes qp;
  verbs::ReceiveQueue rq{16, 2, 0};
  verbs::ReceiveQueue* queue = &rq;
  std::uint32_t rkey = 0, lkey = 0;
  Psn psn;  // of the peer's next packet
  std::vector<verbs::Completion> completions;
  std::vector<Verdict> turns;
  std::deque<Bytes> payloads;

 private:
  std::unique_ptr<Responder> responder_;
};

}  // namespace urnic::ib::test
