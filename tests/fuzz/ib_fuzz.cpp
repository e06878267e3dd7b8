// Packets of the InfiniBand transport, and a responder that receives arbitrary packets. A parsed
// packet can be written and parses to the same values. Whatever a peer sends: only granted memory
// is accessed, the expected PSN moves only for accepted packets, responses are valid packets of
// finite number, and a failed queue pair is silent.
#include <algorithm>

#include "ib/check.h"
#include "ib/icrc.h"
#include "ib/responder.h"
#include "tests/fuzz/input.h"

namespace urnic::fuzz {
namespace {

using namespace ib;
using Bytes = std::vector<std::uint8_t>;

void packet(const Bytes& b) {
  const auto p = parse_packet(b);
  if (!p.ok()) return;
  require(p->payload.size() + kBthBytes + kIcrcBytes <= b.size(), "a payload beyond the packet");
  if (!p->header.row().known()) return;
  Bytes again(packet_bytes(p->header.bth.opcode, p->payload.size()));
  require(emit_packet(p->header, p->payload, again.data()) == again.size(), "another length");
  const auto q = parse_packet(again);
  require(
      q.ok() && std::ranges::equal(q->payload, p->payload) &&
          q->header.bth.psn == p->header.bth.psn && q->header.reth.rkey == p->header.reth.rkey &&
          q->header.atomic.compare == p->header.atomic.compare &&
          q->header.immediate == p->header.immediate && q->header.deth.qkey == p->header.deth.qkey,
      "a packet that was written is not the one that was read");
  DatagramFields f;
  const IpUdpHeaders ip_udp = pseudo_headers(f, again.size());
  seal(ip_udp.view(), again);
  const auto opened = open_packet(ip_udp.view(), again);
  require(opened.ok() || opened.error() == Drop::BadVersion, "a sealed packet is not opened");
}

constexpr std::uint32_t kPmtu = 256, kRegion = 4096, kGuard = 1024;
constexpr std::uint64_t kAddress = 0x10000;

class Peer {
 public:
  explicit Peer(Input& in) : in_(in) {
    qp_.pd = 3;
    qp_.number = 9;
    qp_.path_mtu = PathMtu::k256;
    qp_.access = verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic;
    qp_.responder_depth = static_cast<std::uint8_t>(in.often(16) ? 0 : 1 + in.below(8));
    qp_.rq_psn = Psn(in.often(128) ? 0xfffff0 + in.below(16) : in.u32());
    std::uint8_t* const base = bytes() + kGuard;
    std::fill(bytes(), bytes() + sizeof memory_, std::uint8_t{0xcd});
    rkey_ = table_.register_memory(
        3, {base, kAddress, kRegion},
        verbs::kLocalWrite | verbs::kRemoteWrite | verbs::kRemoteRead | verbs::kRemoteAtomic);
    lkey_ = table_.register_memory(3, {base, kAddress, kRegion}, verbs::kLocalWrite);
  }

  // One connection after another; most end with an error.
  void run() {
    while (!in_.empty()) connection();
    const std::uint8_t* const m = bytes();
    require(std::all_of(m, m + kGuard, [](std::uint8_t b) { return b == 0xcd; }) &&
                std::all_of(m + kGuard + kRegion, m + sizeof memory_,
                            [](std::uint8_t b) { return b == 0xcd; }),
            "memory that nobody gave away was written");
  }

 private:
  void connection() {
    choose_rules();
    Responder r(qp_, &rq_, &table_, &pool_);
    for (int after = 0; !in_.empty() && after < 4; after += is_fatal(r.failure())) {
      switch (in_.below(8)) {
        case 0:
          post();
          break;
        case 1:
          answers(r, 1 + in_.below(4));
          break;
        case 2:
          answers(r, 1u << 20);
          break;
        case 3:
          if (in_.often(8)) table_.invalidate(rkey_, qp_.peer());
          r.queue_unsolicited_ack();
          break;
        case 4:
          if (r.receive_posted()) {
            held(r);
          } else if (in_.often(64)) {
            r.stop_waiting();
          }
          break;
        default:
          request(r);
          break;
      }
    }
    answers(r, 1u << 20);
    require(!r.due(), "something is due that does not leave");
    require(r.state().held.size() <= qp_.loss.store_packets, "more is kept than may be");
    r.forget_held();
    require(pool_.in_use() == 0, "what was kept is not given back");
  }

  // By the specification, or with our extensions.
  void choose_rules() {
    qp_.loss.type = in_.often(64) ? ConnectionType::Slow : ConnectionType::Fast;
    qp_.loss.store_packets = 1 + in_.below(40);
    qp_.loss.max_recovery_attempts = in_.below(40);
    qp_.loss.upgrade_after = 1 + in_.below(8);
    qp_.loss.rnr_park = in_.below(20);
    qp_.selective = qp_.peer_selective = in_.often(128);
    qp_.loss.out_of_order = in_.often(128) ? OutOfOrder::Place : OutOfOrder::Store;
  }

  // Handles all held packets whose turn it is.
  void held(Responder& r) {
    verbs::Completion c;
    std::uint32_t n = 0;
    for (Received got{Verdict::Accept, false, true}; got.more; ++n) {
      require(n <= qp_.loss.store_packets, "what is kept has no end");
      got = r.take_held(&c);
      completed_ += got.completed;
      require(completed_ <= posted_, "more receives complete than were posted");
    }
  }

  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(memory_); }

  void post() {
    const std::uint32_t first = in_.below(700), second = in_.below(700);
    const verbs::Sge sges[] = {
        {kAddress + in_.below(kRegion - 700), first, lkey_},
        {kAddress + in_.below(kRegion - 700), second, in_.often(8) ? lkey_ ^ 1 : lkey_}};
    posted_ += rq_.post({posted_, sges}) == verbs::ReceiveQueue::Post::Ok;
  }

  Operation operation(Family open) {
    using enum Operation;
    static constexpr Operation kFirst[] = {SendFirst,  SendOnly,  SendOnlyImm,  SendOnlyInv,
                                           WriteFirst, WriteOnly, WriteOnlyImm, ReadRequest,
                                           CmpSwap,    FetchAdd,  WriteFirst,   SendFirst};
    static constexpr Operation kSend[] = {SendMiddle, SendLast, SendLastImm, SendLastInv};
    static constexpr Operation kWrite[] = {WriteMiddle, WriteLast, WriteLastImm, WriteMiddle};
    if (in_.often(8)) return static_cast<Operation>(in_.below(32));
    if (open == Family::Send) return kSend[in_.below(4)];
    return open == Family::Write ? kWrite[in_.below(4)] : kFirst[in_.below(12)];
  }

  // Mostly near the expected PSN, and mostly a valid next packet.
  ParsedPacket make(const ResponderState& s) {
    ParsedPacket p;
    PacketHeader& h = p.header;
    h.bth.opcode = ib::Opcode(ServiceType::Rc, operation(s.message.family));
    if (h.row().response()) h.bth.opcode = ib::Opcode(ServiceType::Rc, Operation::WriteOnly);
    h.bth.psn = in_.often(200) ? s.expected : s.expected + in_.u8() - 128;
    if (in_.often(4)) h.bth.psn = Psn(in_.u32());
    h.bth.ack_request = in_.often(128);
    h.reth = {kAddress + in_.below(kRegion / 4) * 4, in_.often(240) ? rkey_ : in_.u32(),
              in_.below(1500)};
    if (in_.often(8)) h.reth.address = (std::uint64_t{in_.u32()} << 32) | in_.u32();
    if (in_.often(4)) h.reth.length = in_.u32();
    if (h.row().family == Family::Read) h.reth.length %= kRegion;
    h.atomic = {kAddress + 8 * in_.below(kRegion / 8), h.reth.rkey, in_.u32(), in_.u8()};
    if (in_.often(8)) h.atomic.address += in_.u8();
    h.inv_rkey = in_.often(16) ? rkey_ : in_.u32();
    std::uint32_t n = in_.below(kPmtu + 8);
    if (h.row().payload == PayloadRule::None) n = 0;
    if (h.row().payload == PayloadRule::Full && in_.often(240)) n = kPmtu;
    h.bth.pad = pad_of(n);
    payload_.assign(n, in_.u8());
    p.payload = payload_;
    if (h.row().family == Family::Write && h.row().ends() && in_.often(200)) fit_write(s, &p);
    return p;
  }

  // Makes the end of a WRITE match the announced length.
  static void fit_write(const ResponderState& s, ParsedPacket* p) {
    if (p->header.row().begins()) {
      p->header.reth.length = static_cast<std::uint32_t>(p->payload.size());
    } else if (const std::uint32_t left = s.message.length - s.message.bytes;
               left <= p->payload.size()) {
      p->payload = p->payload.first(left);
    }
  }

  void request(Responder& r) {
    const ResponderState& s = r.state();
    const Psn expected = s.expected;
    const Msn msn = s.msn;
    const ParsedPacket p = make(s);
    verbs::Completion c;
    const Received got = r.take(p, &c);
    completed_ += got.completed;
    require(completed_ <= posted_, "more receives complete than were posted");
    const bool accepted = got.verdict == Verdict::Accept;
    // If the verdict is KeyStays, the packet has been accepted too.
    const bool taken = accepted || got.verdict == Verdict::KeyStays;
    require(taken || (s.expected == expected && s.msn == msn), "what was not accepted counts");
    if (!accepted) {
      if (got.more) held(r);
      return;
    }
    const bool read = p.header.row().family == Family::Read;
    const std::uint32_t psns = read ? packets_of(p.header.reth.length, kPmtu) : 1;
    require(p.header.bth.psn == expected && s.expected == expected + psns,
            "the expected PSN is another");
    require(s.msn - msn == (p.header.row().ends() ? 1u : 0u), "the MSN is another");
    if (got.more) held(r);
  }

  void answers(Responder& r, std::uint32_t most) {
    ResponsePacket out;
    bool nak = false;
    std::uint32_t n = 0;
    bool failed = r.failed();
    while (n != most && r.next_response(&out)) {
      ++n;
      const OpcodeRow& row = out.header.row();
      // Kept packets may still be reported after a NAK that requests a retry.
      require(!failed && (!nak || row.family == Family::Sack),
              "something follows a NAK, or a failure");
      require(row.response() &&
                  payload_fits(row.payload, static_cast<std::uint32_t>(out.payload.size()), kPmtu),
              "a response that is none");
      require(
          out.header.bth.psn.before(r.state().expected) || out.header.bth.psn == r.state().expected,
          "a response to what has not come");
      require(!row.has(kAeth) || !out.header.aeth.syndrome.reserved(), "a reserved syndrome");
      nak |= row.family == Family::Acknowledge && out.header.aeth.syndrome.kind() != AckKind::Ack;
      failed = r.failed();
      require(out.payload.empty() || row.family == Family::Sack ||
                  (out.payload.data() >= bytes() + kGuard &&
                   out.payload.data() + out.payload.size() <= bytes() + kGuard + kRegion),
              "memory that nobody gave away is read");
    }
    require(n <= 8 * 8192, "answers without end");
  }

  Input& in_;
  alignas(64) std::uint64_t memory_[(2 * kGuard + kRegion) / 8];
  verbs::MemoryTable table_;
  HeldPool pool_;
  QpAttributes qp_;
  verbs::ReceiveQueue rq_{16, 2, 0};
  std::uint32_t rkey_ = 0, lkey_ = 0;
  std::uint64_t posted_ = 0, completed_ = 0;
  Bytes payload_;
};

}  // namespace
}  // namespace urnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace urnic::fuzz;
  Input in(data, size);
  if (in.often(64)) {
    packet(in.rest());
  } else {
    Peer(in).run();
  }
  return 0;
}
