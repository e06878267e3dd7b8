// A requester with memory and a queue; the test plays its peer.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "ib/requester.h"

namespace urnic::ib {

// A packet that was sent, with its payload.
struct SentPacket {
  PacketHeader h;
  std::vector<std::uint8_t> payload;

  Operation operation() const { return h.bth.opcode.operation(); }
  std::uint32_t psn() const { return h.bth.psn.value(); }
  bool ask() const { return h.bth.ack_request; }
};

class RequesterBench : public ::testing::Test {
 protected:
  static constexpr verbs::PdId kPd = 3;
  static constexpr std::uint32_t kQpn = 0x11, kPeerQpn = 0x2233;
  static constexpr std::uint32_t kPmtu = 256;
  static constexpr std::uint32_t kRkey = 0xabcd01;

  RequesterBench() {
    for (std::size_t i = 0; i < memory.size(); ++i) {
      memory[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    }
    lkey = table.register_memory(kPd, memory.data(), memory.size(), verbs::kLocalWrite);
    qp.number = kQpn;
    qp.pd = kPd;
    qp.dest_qp = kPeerQpn;
    qp.path_mtu = PathMtu::k256;
    qp.sq_psn = Psn(100);
    qp.initiator_depth = 4;
    qp.ack_timeout = 10;  // 4.19 ms
    qp.retry_count = 7;   // equal: the maximum of both
    qp.rnr_retry = 7;
    rules.obey_credits = false;
  }

  // The requester is made at the first use, with the attributes that the test has set until then.
  Requester& r() {
    if (used_ != nullptr) return *used_;
    if (!made_) made_ = std::make_unique<Requester>(qp, rules, &sq, &table, &held_pool);
    return *made_;
  }

  // Replaces it by another one; nullptr: back to its own.
  void use(Requester* other) { used_ = other; }

  // ---- posting
  // `length` bytes of the memory from `offset` on. Requests are numbered from 1 (wr_id).
  verbs::SendWr request(verbs::WrOp op, std::uint32_t length, std::uint32_t offset = 0) {
    sge_ = {reinterpret_cast<std::uintptr_t>(memory.data()) + offset, length, lkey};
    verbs::SendWr wr;
    wr.wr_id = ++posted_;
    wr.op = op;
    wr.flags = verbs::kSignaled;
    wr.sges = {&sge_, 1};
    wr.remote_address = 0x10000;
    wr.rkey = kRkey;
    return wr;
  }
  void post(const verbs::SendWr& wr) { ASSERT_EQ(sq.post(wr), verbs::Post::Ok); }
  void post(verbs::WrOp op, std::uint32_t length, std::uint32_t offset = 0) {
    post(request(op, length, offset));
  }
  void post_atomic(verbs::WrOp op, const verbs::AtomicOperands& operands, std::uint32_t offset) {
    verbs::SendWr wr = request(op, 8, offset);
    wr.atomic = operands;
    post(wr);
  }

  // ---- packets sent
  std::vector<SentPacket> leave(std::size_t most = 100'000, bool may_begin = true) {
    std::vector<SentPacket> out;
    RequestPacket p;
    while (out.size() < most && r().next_packet(now, may_begin, &p)) {
      out.push_back({p.header, std::vector<std::uint8_t>(p.length)});
      EXPECT_EQ(p.copy_payload(out.back().payload.data()),
                out.back().payload.data() + out.back().payload.size());
    }
    return out;
  }

  // ---- responses
  static ParsedPacket response(Operation o, std::uint32_t psn) {
    ParsedPacket p;
    p.header.bth.opcode = Opcode(ServiceType::Rc, o);
    p.header.bth.dest_qp = kQpn;
    p.header.bth.psn = Psn(psn);
    return p;
  }
  static ParsedPacket acknowledge(std::uint32_t psn, Syndrome syndrome, std::uint32_t msn) {
    ParsedPacket p = response(Operation::Acknowledge, psn);
    p.header.aeth = {syndrome, Msn(msn)};
    return p;
  }
  Response take(const ParsedPacket& p) { return r().take(p, now).what; }
  // MSN 0 is always old: nothing completes by it.
  Response ack(std::uint32_t psn, std::uint32_t msn = 0, std::uint8_t credits = kNoCredits) {
    return take(acknowledge(psn, Syndrome::ack(credits), msn));
  }
  Response nak(std::uint32_t psn, NakCode code) {
    return take(acknowledge(psn, Syndrome::nak(code), 0));
  }
  Response rnr(std::uint32_t psn, std::uint8_t timer) {
    return take(acknowledge(psn, Syndrome::rnr_nak(timer), 0));
  }
  Response data(Operation o, std::uint32_t psn, ByteView payload, std::uint32_t msn = 0) {
    ParsedPacket p = response(o, psn);
    p.header.aeth = {Syndrome::ack(kNoCredits), Msn(msn)};
    p.payload = payload;
    return take(p);
  }
  Response result(std::uint32_t psn, std::uint64_t original) {
    ParsedPacket p = response(Operation::AtomicAcknowledge, psn);
    p.header.aeth = {Syndrome::ack(kNoCredits), Msn(0)};
    p.header.original = original;
    return take(p);
  }
  // Payload of a READ response.
  static std::vector<std::uint8_t> bytes_of(std::size_t n, std::uint8_t value) {
    return std::vector<std::uint8_t>(n, value);
  }

  // ---- completions
  std::vector<verbs::Completion> completions() {
    std::vector<verbs::Completion> out;
    const auto sink = [&out](const verbs::Completion& c) { out.push_back(c); };
    if (r().failed()) {
      r().flush(sink);
    } else {
      r().report(sink);
    }
    return out;
  }
  // Their wr_ids, if all succeeded.
  std::vector<std::uint64_t> done() {
    std::vector<std::uint64_t> out;
    for (const verbs::Completion& c : completions()) {
      EXPECT_EQ(c.status, verbs::Status::Success) << c.wr_id;
      out.push_back(c.wr_id);
    }
    return out;
  }
  std::vector<verbs::Status> statuses() {
    std::vector<verbs::Status> out;
    for (const verbs::Completion& c : completions()) out.push_back(c.status);
    return out;
  }

  void pass(Duration d) {
    now = now + d;
    r().on_time(now);
  }
  // Advances the time to the requester's deadline.
  void pass_until_due() {
    ASSERT_FALSE(r().due().is_never());
    now = r().due();
    r().on_time(now);
  }

  verbs::MemoryTable table;
  HeldPool held_pool;  // used if the peer repeats selectively, or the queue pair is FAST
  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(64 * 1024);
  std::uint32_t lkey = 0;
  QpAttributes qp;
  SendRules rules;
  verbs::SendQueue sq{512, 32, 256, sizeof(SendPart)};
  Instant now = Instant::from_ns(1'000'000);

 private:
  std::unique_ptr<Requester> made_;
  Requester* used_ = nullptr;
  verbs::Sge sge_;
  std::uint64_t posted_ = 0;
};

inline std::vector<Operation> operations(const std::vector<SentPacket>& packets) {
  std::vector<Operation> out;
  for (const SentPacket& p : packets) out.push_back(p.operation());
  return out;
}
inline std::vector<std::uint32_t> psns(const std::vector<SentPacket>& packets) {
  std::vector<std::uint32_t> out;
  for (const SentPacket& p : packets) out.push_back(p.psn());
  return out;
}

}  // namespace urnic::ib
