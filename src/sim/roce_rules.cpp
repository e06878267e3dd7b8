#include "sim/roce_rules.h"

namespace urnic::sim {
namespace {

struct Seen {
  const Setup& setup;
  const RunResult& run;

  const RoceStats& asks() const { return run.sender.roce; }
  const RoceStats& serves() const { return run.receiver.roce; }
  bool right() const { return run.complete && run.wrong_bytes == 0 && run.failed == 0; }
  bool rc() const { return setup.roce.service == verbs::Service::Rc && !setup.roce.rd; }
  bool xrc() const { return verbs::is_xrc(setup.roce.service); }
  // An RD run that completed without wrong bytes.
  bool rd() const { return run.rd.on && run.complete && run.wrong_bytes == 0; }
  bool is(Op op) const { return setup.work.op == op; }
  std::uint64_t wire(fault::FaultKind k) const { return run.to_right.of(k) + run.to_left.of(k); }
  bool starts_slow() const { return setup.right.roce.loss.type == ib::ConnectionType::Slow; }
  std::uint64_t behind_gaps() const { return serves().requests_out_of_sequence; }
};

struct Rule {
  const char* name;
  bool (*seen)(const Seen&);
};

using fault::FaultKind;

constexpr Rule kRules[] = {
    {"S-1",
     [](const Seen& s) {
       return s.right() && s.behind_gaps() != 0 &&
              s.starts_slow() == (s.serves().requests_held == 0);
     }},
    {"S-3", [](const Seen& s) { return s.right() && s.serves().requests_held != 0; }},
    {"S-4",
     [](const Seen& s) {
       return s.right() && s.serves().requests_held != 0 && s.serves().requests_duplicate != 0 &&
              s.run.roce.from_right.naks_told_twice == 0;
     }},
    {"S-5", [](const Seen& s) { return s.right() && s.asks().probes_sent != 0; }},
    {"S-2",
     [](const Seen& s) {
       return s.right() && s.asks().responses_held != 0 && s.asks().response_parts_requested != 0;
     }},
    {"S-6", [](const Seen& s) { return s.right() && s.asks().requests_repeated_selectively != 0; }},
    {"S-8",
     [](const Seen& s) {
       return s.right() && s.serves().roce_downgrades != 0 && s.serves().roce_upgrades != 0;
     }},
    {"S-9", [](const Seen& s) { return s.right() && s.serves().requests_parked != 0; }},
    {"S-10",
     [](const Seen& s) {
       return s.right() && s.asks().window_reductions != 0 &&
              (s.serves().ce_marks_received == 0) == (s.asks().cnps_received == 0);
     }},
    {"S-11",
     [](const Seen& s) {
       return s.right() && s.is(Op::Write) && s.serves().acks_sent != 0 &&
              s.serves().acks_sent * 2 < s.serves().requests_executed;
     }},
    {"S-12",
     [](const Seen& s) {
       return s.right() && s.rc() && s.wire(FaultKind::Loss) != 0 &&
              s.wire(FaultKind::Duplicate) != 0 && s.wire(FaultKind::Reorder) != 0;
     }},
    {"IB-42",
     [](const Seen& s) {
       return s.right() && (s.is(Op::Write) || s.is(Op::Send)) &&
              s.serves().requests_duplicate != 0;
     }},
    {"IB-43",
     [](const Seen& s) {
       return s.right() && s.is(Op::Read) && s.serves().requests_duplicate != 0;
     }},
    {"IB-45",
     [](const Seen& s) {
       return s.right() && s.is(Op::Atomic) && s.serves().requests_duplicate != 0;
     }},
    {"IB-51",
     [](const Seen& s) {
       const PacketCounts& c = s.run.roce.from_right;
       return c.sequence_naks != 0 && c.naks_told_twice == 0;
     }},
    {"IB-54",
     [](const Seen& s) {
       return s.right() && s.run.roce.from_right.rnr_naks != 0 && s.serves().requests_refused == 0;
     }},
    {"IB-56",
     [](const Seen& s) {
       return s.right() && s.run.roce.rnr_waits != 0 && s.run.roce.sent_in_waits == 0;
     }},
    {"IB-64",
     [](const Seen& s) {
       return s.right() && s.is(Op::Read) && s.run.to_left.of(FaultKind::Loss) != 0;
     }},
    {"IB-69", [](const Seen& s) { return s.right() && s.asks().response_timeouts != 0; }},
    {"IB-71",
     [](const Seen& s) {
       return s.run.end == "left: no response to any retransmission" && s.run.failed != 0;
     }},
    {"IB-76",
     [](const Seen& s) {
       return s.right() && s.rc() && s.run.to_right.of(FaultKind::Loss) != 0 &&
              s.run.to_left.of(FaultKind::Loss) != 0;
     }},
    {"IB-80",
     [](const Seen& s) { return s.right() && s.run.roce.from_right.acks_with_credits != 0; }},
    {"IB-93",
     [](const Seen& s) {
       return s.run.wrong_bytes == 0 && s.serves().messages_lost != 0 && s.run.messages != 0;
     }},
    {"IB-98",
     [](const Seen& s) {
       return !s.rc() && !s.xrc() && !s.run.rd.on && s.run.complete && s.run.failed == 0 &&
              s.run.messages < s.setup.work.count;
     }},
    {"IB-112", [](const Seen& s) { return s.right() && s.run.roce.drained == 1; }},
    {"IB-113", [](const Seen& s) { return s.right() && s.run.roce.drained == 1; }},
    {"IB-171", [](const Seen& s) { return s.run.rd.invalid_rd != 0 && s.run.complete; }},
    {"IB-173", [](const Seen& s) { return s.rd() && s.setup.work.flows > 1; }},
    {"IB-174", [](const Seen& s) { return s.rd() && s.run.rd.resyncs != 0; }},
    {"IB-175",
     [](const Seen& s) {
       return s.rd() && s.run.rd.resyncs != 0 && s.run.rd.resyncs == s.run.rd.resyncs_taken;
     }},
    {"IB-176",
     [](const Seen& s) {
       return s.rd() && s.run.rd.stops != 0 && s.run.rd.given_up == s.run.rd.stops &&
              s.run.messages + s.run.rd.given_up == s.setup.work.flows * s.setup.work.count;
     }},
    {"IB-177", [](const Seen& s) { return s.rd() && s.serves().rnr_naks_sent != 0; }},
    {"IB-179",
     [](const Seen& s) {
       return s.rd() && s.setup.work.flows > 1 && s.wire(FaultKind::Loss) != 0 &&
              s.wire(FaultKind::Duplicate) != 0 && s.wire(FaultKind::Reorder) != 0;
     }},
    {"IB-114",
     [](const Seen& s) {
       return s.run.complete && s.run.wrong_bytes == 0 && s.run.roce.sqe != 0 &&
              s.run.failed != 0 && s.run.roce.came_in_sqe != 0 &&
              s.run.messages == s.setup.work.count;
     }},
    {"IB-139",
     [](const Seen& s) { return s.right() && s.setup.roce.by_cm && s.setup.faults_at_setup; }},
    {"IB-162",
     [](const Seen& s) {
       return s.right() && s.xrc() && s.is(Op::Send) && s.run.messages == s.setup.work.count;
     }},
    {"IB-165",
     [](const Seen& s) {
       return s.right() && s.xrc() && s.wire(FaultKind::Loss) != 0 &&
              s.run.roce.from_right.acks_with_credits == 0;
     }},
    {"IB-166", [](const Seen& s) { return s.right() && s.xrc() && s.setup.roce.by_cm; }},
};

}  // namespace

std::vector<std::string> rules_seen(const Setup& setup, const RunResult& run) {
  const Seen seen{setup, run};
  std::vector<std::string> out;
  for (const Rule& r : kRules) {
    if (r.seen(seen)) out.emplace_back(r.name);
  }
  return out;
}

std::vector<std::string> known_rules() {
  std::vector<std::string> out;
  for (const Rule& r : kRules) out.emplace_back(r.name);
  return out;
}

}  // namespace urnic::sim
