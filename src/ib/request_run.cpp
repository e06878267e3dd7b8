#include "ib/request_run.h"

#include <algorithm>

#include "ib/request_operation.h"
#include "ib/send_progress.h"

namespace urnic::ib {

using verbs::SendWqe;

namespace {

// True if the next packet to send is new, and in the middle of a message that has begun.
bool is_mid_message(SendState& s) {
  if (s.failure.set || s.stuck.set || s.rnr.on() || s.next != s.fresh) return false;
  if (s.probe.wanted() || s.hole.wanted || s.log.any_lost()) return false;
  return s.qp->service == ServiceType::Rc && !s.credits.holds();
}

// The number of packets between the first and the last of the message at fresh that are contiguous
// in memory.
std::uint32_t packets_in_one_piece(const SendState& s, const SendWqe& w, RequestRun* run) {
  const std::uint32_t k = s.fresh.packet, last = s.wqes.packets(w) - 1;
  if (k >= last) return 0;
  const ByteView piece = s.wqes.piece(s.fresh.wqe, k * s.wqes.pmtu());
  run->payload = piece.data();
  const std::size_t fit = piece.size() / s.wqes.pmtu();
  return static_cast<std::uint32_t>(std::min<std::size_t>(fit, last - k));
}

// The number of packets that the window admits, up to the one that requests an ACK (IB-15).
std::uint32_t packets_before_ack_request(const SendState& s, bool* ask) {
  if (s.in_flight >= s.window() || s.outstanding() >= kPsnWindow) return 0;
  const std::uint32_t every = ack_every(s);
  const std::uint32_t to_ask =
      std::min(s.window() - s.in_flight, s.since_ack < every ? every - s.since_ack : 1);
  const std::uint32_t room = std::min(kPsnWindow - s.outstanding(), s.log.room_behind(s.fresh.psn));
  *ask = to_ask <= room;
  return std::min(to_ask, room);
}

}  // namespace

bool begin_run(SendState& s, std::uint32_t most, RequestRun* run) {
  if (s.fresh.packet == 0 || !is_mid_message(s)) return false;
  const SendWqe& w = s.wqes.wqe(s.fresh.wqe);
  const std::uint32_t middle = packets_in_one_piece(s, w, run);
  const std::uint32_t free = packets_before_ack_request(s, &run->ask);
  run->packets = std::min({most, middle, free});
  if (run->packets == 0) return false;
  if (run->packets != free) run->ask = false;
  run->bytes = s.wqes.pmtu();
  PacketHeader& h = run->header;
  h = PacketHeader{};
  h.bth.opcode = Opcode(ServiceType::Rc, operation_of(w.op, s.fresh.packet, s.wqes.packets(w)));
  h.bth.pkey = s.qp->pkey;
  h.bth.dest_qp = s.qp->dest_qp;
  h.bth.psn = s.fresh.psn;
  return true;
}

void run_left(SendState& s, const RequestRun& run, std::uint32_t packets, Instant now) {
  const bool ask = run.ask && packets == run.packets;
  const SendPosition at = s.fresh;
  const Psn end = at.psn + packets, last = at.psn + (packets - 1);
  s.fresh = SendPosition::at(at.wqe, at.packet + packets, end);
  s.next = s.fresh;
  s.in_flight += packets;
  s.since_ack = ask ? 0 : s.since_ack + packets;
  s.counters.packets += packets;
  s.congestion.run_left(packets, last, ask, s.outstanding() >= s.window(), now);
  if (s.qp->peer_selective) s.log.append_run(at.psn, packets, now);
  if (!ask) return;
  s.probe.measure(last, now);
  expect_answer(s, end, now);
}

}  // namespace urnic::ib
