// One run of RD: two hosts (sim/rd/rd_host.h) connected by a wire in virtual time.
#include "sim/rd/rd_experiment.h"

#include <algorithm>

#include "sim/rd/rd_traffic.h"
#include "sim/rd/rd_wire.h"
#include "sim/recorder.h"
#include "sim/roce_rules.h"
#include "sim/run_parts.h"

namespace urnic::sim {
namespace {

// One row of the timeline. PSNs count from the requester's first one, without wrapping around.
enum RdColumn : std::uint8_t {
  kTime,
  kSent,     // next after the highest PSN used
  kInOrder,  // responder: expected
  kDelivered,
  kDeliveredFirst,
  kAgain,    // packets retransmitted
  kStopped,  // queue pairs in Sqe
  kColumns
};
constexpr std::string_view kNames[] = {
    "t_ns", "psn_sent", "psn_in_order", "delivered", "delivered_of_first_qp", "repeated", "in_sqe"};
static_assert(std::size(kNames) == kColumns);

class RdRun {
 public:
  RdRun(const Setup& setup, std::uint64_t seed, bool series)
      : wire_(setup, seed, now_),
        traffic_(setup, seed, now_),
        recorder_(now_, kNames, kAgain, series),
        first_(traffic_.asks().requester.psn()) {}

  bool until_over(Duration limit);
  void fill(RunResult* r);

 private:
  bool step();
  void send(int which);
  void look();
  std::uint64_t run_on(std::uint64_t* from, ib::Psn to) const;

  Instant now_ = Instant::from_ns(1000000000);
  const Instant began_ = now_;
  RdWire wire_;
  RdTraffic traffic_;
  Recorder recorder_;
  ib::Psn first_;
  std::uint64_t sent_ = 0, in_order_ = 0;
  RdRequesterCounters asked_;
  RdResponderCounters served_;
  std::uint64_t stops_ = 0, stopped_ = 0;
};

// Sends everything that is allowed to leave.
void RdRun::send(int which) {
  RdHost& host = which == 0 ? traffic_.left() : traffic_.right();
  ib::ResponsePacket response;
  ib::RequestPacket request;
  const EeContext* whose = nullptr;
  while (host.next_response(&response, &whose)) {
    const auto n = static_cast<std::uint32_t>(response.payload.size());
    wire_.send(which, response.header, {&response.payload, n == 0 ? 0u : 1u}, n);
  }
  while (host.next_request(now_, &request, &whose)) {
    wire_.send(which, request.header, {request.pieces.data(), request.count}, request.length);
  }
}

// Returns true if anything happened.
bool RdRun::step() {
  bool any = false;
  // Poll the left end twice: polling the right one may have released frames from its line.
  for (const int which : {0, 1, 0}) {
    RdHost& host = which == 0 ? traffic_.left() : traffic_.right();
    any |= wire_.receive(which, [&](const ib::ParsedPacket& p) {
      host.take(p, RdWire::address_of(1 - which), now_);
    });
    if (host.due() <= now_) {
      host.on_time(now_);
      any = true;
    }
  }
  traffic_.step(now_);
  for (int which = 0; which < 2; ++which) send(which);
  return any;
}

bool RdRun::until_over(Duration limit) {
  const Instant until = now_ + limit;
  for (;;) {
    const bool any = step();
    look();
    if (traffic_.complete() || !traffic_.failure().empty()) return true;
    // Processing takes time: the answer to a frame follows a microsecond later.
    Instant next = now_ + Duration::us(1);
    if (!any) {
      next = earlier(wire_.next_release(), traffic_.due());
      next = earlier(next, earlier(traffic_.left().due(), traffic_.right().due()));
      next = std::max(next, now_ + Duration::ns(1));
    }
    if (next > until) return false;
    now_ = next;
  }
}

// Continues the count of PSNs since the first one, without wrapping around: `*from` is the last
// count, and `to` the current PSN.
std::uint64_t RdRun::run_on(std::uint64_t* from, ib::Psn to) const {
  return *from += to - (first_ + static_cast<std::uint32_t>(*from & ib::kMask24));
}

void RdRun::look() {
  const RdRequester& asks = traffic_.asks().requester;
  const RdResponder& serves = traffic_.serves().responder;
  const RdRequesterCounters& is = asks.counters();
  const RdResponderCounters& came = serves.counters();
  if (const auto n = is.timeouts - asked_.timeouts) recorder_.note("time-out", "", n);
  if (const auto n = is.repeated - asked_.repeated) recorder_.note("repetition", "", n);
  if (const auto n = is.resyncs - asked_.resyncs) recorder_.note("RESYNC", "", n);
  if (const auto n = came.rnr_naks - served_.rnr_naks) recorder_.note("RNR NAK", "", n);
  if (const auto n = came.sequence_naks - served_.sequence_naks) {
    recorder_.note("sequence NAK", "", n);
  }
  if (const auto n = came.fatal_naks - served_.fatal_naks) recorder_.note("refusal", "", n);
  asked_ = is;
  served_ = came;
  const std::uint64_t stops = traffic_.counts().stops, stopped = traffic_.stopped();
  if (stops != stops_) recorder_.note("state", "SQE");
  if (stopped < stopped_) recorder_.note("state", "RTS");
  stops_ = stops;
  stopped_ = stopped;
  recorder_.put(kSent, run_on(&sent_, asks.furthest()));
  recorder_.put(kInOrder, run_on(&in_order_, serves.expected()));
  recorder_.put(kDelivered, traffic_.counts().delivered);
  recorder_.put(kDeliveredFirst, traffic_.counts().delivered_first);
  recorder_.put(kAgain, is.repeated);
  recorder_.put(kStopped, stopped);
  recorder_.step();
}

RoceStats stats_of(const RdRequesterCounters& c) {
  RoceStats s;
  s.requests_sent = c.packets;
  s.requests_repeated = c.repeated;
  s.response_timeouts = c.timeouts;
  return s;
}

RoceStats stats_of(const RdResponderCounters& c) {
  RoceStats s;
  s.requests_executed = c.requests;
  s.requests_duplicate = c.duplicates;
  s.requests_out_of_sequence = c.out_of_sequence;
  s.requests_refused = c.refused;
  s.acks_sent = c.acks;
  s.sequence_naks_sent = c.sequence_naks;
  s.rnr_naks_sent = c.rnr_naks;
  return s;
}

void RdRun::fill(RunResult* r) {
  r->complete = traffic_.complete();
  if (!r->complete) r->end = traffic_.failure().empty() ? "limit reached" : traffic_.failure();
  if (r->complete) r->end = "complete";
  r->took = now_ - began_;
  recorder_.note("end", r->end);
  recorder_.finish();
  traffic_.check_memory();
  const RdTraffic::Counts& n = traffic_.counts();
  r->messages = n.delivered;
  r->bytes = n.bytes;
  r->failed = n.given_up + n.flushed;
  r->wrong_bytes = n.wrong;
  r->to_right = wire_.counters(0);
  r->to_left = wire_.counters(1);
  r->roce.bad_icrc = wire_.bad_icrc();
  r->sender.roce = stats_of(asked_);
  r->receiver.roce = stats_of(served_);
  r->rd = {true,
           n.delivered_first,
           n.given_up,
           n.flushed,
           n.stops,
           asked_.put_back,
           asked_.resyncs,
           asked_.resyncs_again,
           served_.resyncs,
           served_.aborted,
           served_.invalid_rd,
           n.receives_in_error};
  r->columns = recorder_.columns();
  r->events = std::move(recorder_.events);
  r->events_left_out = recorder_.events_left_out;
  r->samples = std::move(recorder_.samples);
}

}  // namespace

RunResult run_rd(const Setup& setup, Duration limit, std::uint64_t seed, bool series) {
  RunResult r;
  r.seed = seed;
  r.sender.transport = r.receiver.transport = "roce";
  RdRun run(setup, seed, series);
  run.until_over(limit);
  run.fill(&r);
  r.rules_seen = rules_seen(setup, r);
  return r;
}

}  // namespace urnic::sim
