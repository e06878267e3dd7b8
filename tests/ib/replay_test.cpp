// Captured requests of Linux rxe go to our responder, which must answer like Linux rxe.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "ib/icrc.h"
#include "ib/responder.h"
#include "roce_capture.h"

namespace urnic::ib {
namespace {

using urnic::test::Bytes;
using urnic::test::to_hex;

constexpr verbs::PdId kPd = 1;
constexpr std::uint32_t kBytes = 8192;

// One queue pair of the capture that receives requests.
struct Replayed {
  explicit Replayed(const PacketHeader& first_request, std::uint32_t peer) : inbox(kBytes) {
    qp.pd = kPd;
    qp.access = verbs::kRemoteRead | verbs::kRemoteAtomic;
    qp.dest_qp = peer;
    qp.path_mtu = PathMtu::k1024;
    qp.rq_psn = first_request.bth.psn;
    qp.responder_depth = 4;
    qp.tells_credits = false;  // as Linux does
    base = first_request.reth.address | first_request.atomic.address;
    constexpr std::uint8_t kRights = verbs::kLocalWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
    rkey = table.register_memory(kPd, {memory(), base, kBytes}, kRights);
    const std::uint32_t lkey =
        table.register_memory(kPd, {inbox.data(), 0, kBytes}, verbs::kLocalWrite);
    const verbs::Sge sge{0, kBytes, lkey};
    for (int i = 0; i < 8; ++i) rq.post({0, {&sge, 1}});
    responder = std::make_unique<Responder>(qp, &rq, &table);
  }
  std::uint8_t* memory() { return reinterpret_cast<std::uint8_t*>(numbers); }

  std::uint64_t numbers[kBytes / 8]{};
  Bytes inbox;
  std::uint64_t base = 0;
  std::uint32_t rkey = 0;
  QpAttributes qp;
  verbs::MemoryTable table;
  verbs::ReceiveQueue rq{8, 1, 0};
  std::unique_ptr<Responder> responder;
};

// The bytes before any request: from the first response that contains them.
void remember(Replayed* to, const ParsedPacket& response, std::uint32_t* read) {
  if (response.header.row().family == Family::ReadResponse && *read < 5000) {
    std::copy(response.payload.begin(), response.payload.end(), to->memory() + *read);
    *read += static_cast<std::uint32_t>(response.payload.size());
  }
  if (response.header.row().family == Family::AtomicAcknowledge && *read == 0) {
    to->numbers[0] = response.header.original;
    *read = 8;
  }
}

void replay(const char* file, std::size_t answers) {
  SCOPED_TRACE(file);
  std::map<std::uint32_t, std::unique_ptr<Replayed>> pairs;     // by number
  std::map<std::uint32_t, std::vector<test::Captured>> theirs;  // by destination queue pair
  const auto packets = test::roce_capture(file);
  std::uint32_t one = 0, other = 0, read = 0;
  for (const test::Captured& c : packets) {
    const std::uint32_t to = parse_packet(c.datagram)->header.bth.dest_qp;
    if (one == 0) one = to;
    if (to != one) other = to;
  }
  for (const test::Captured& c : packets) {
    const auto p = parse_packet(c.datagram);
    const std::uint32_t to = p->header.bth.dest_qp;
    if (p->header.row().response()) {
      theirs[to].push_back(c);
    } else if (!pairs.contains(to)) {
      pairs[to] = std::make_unique<Replayed>(p->header, to == one ? other : one);
    }
  }
  for (const test::Captured& c : theirs[other])
    remember(pairs[one].get(), *parse_packet(c.datagram), &read);

  std::size_t answered = 0;
  for (const test::Captured& c : packets) {
    auto p = *parse_packet(c.datagram);
    if (p.header.row().response()) continue;
    Replayed& r = *pairs[p.header.bth.dest_qp];
    p.header.reth.rkey = p.header.atomic.rkey = r.rkey;
    verbs::Completion completion;
    ASSERT_EQ(r.responder->take(p, &completion).verdict, Verdict::Accept);
    ResponsePacket out;
    while (r.responder->next_response(&out)) {
      auto& wanted = theirs[r.qp.dest_qp];
      ASSERT_FALSE(wanted.empty());
      out.header.bth.migrated = false;  // Linux does not set it
      Bytes bytes(packet_bytes(out.header.bth.opcode, out.payload.size()));
      emit_packet(out.header, out.payload, bytes.data());
      seal(wanted.front().ip_udp, bytes);
      ASSERT_EQ(to_hex(bytes), to_hex(wanted.front().datagram));
      wanted.erase(wanted.begin());
      ++answered;
    }
  }
  EXPECT_EQ(answered, answers);
}

TEST(RoceReplay, OurResponsesEqualThoseOfLinuxByteForByte) {
  replay("rxe-rxe-rc_pingpong-2500.pcap", 6);
  replay("rxe-rxe-read-5000-n6-o4.pcap", 20);
  replay("rxe-rxe-atomic-cmp_swap-5.pcap", 5);
}

}  // namespace
}  // namespace urnic::ib
