#include <initializer_list>
#include <string_view>

#include <nlohmann/json.hpp>

#include "iwarp/stats_members.h"
#include "sim/experiment.h"

namespace urnic::sim {
namespace {

using Json = nlohmann::ordered_json;
using fault::FaultKind;

Json wire_json(const fault::FaultCounters& c) {
  Json j;
  j["frames"] = c.frames;
  j["delivered"] = c.delivered;
  for (std::size_t i = 0; i < static_cast<std::size_t>(fault::kFirstStreamKind); ++i) {
    // Omitted if there are none, like the counters that only an iWARP receiver has.
    if (static_cast<FaultKind>(i) == FaultKind::Mark && c.injected[i] == 0) continue;
    j[std::string(fault_kind_name(static_cast<FaultKind>(i)))] = c.injected[i];
  }
  return j;
}

// The counters of one end that `names` lists, in that order. Skips the RoCE groups, because some of
// their names are also iWARP names.
Json counters(const ConnectionStats& s, std::initializer_list<const char*> names) {
  Json all;
  connection_members(s, [&](const char* group, const char* name, const auto& member) {
    if (!std::string_view(group).starts_with("roce")) all[name] = member;
  });
  Json j;
  for (const char* name : names) j[name] = all.at(name);
  return j;
}

Json receiver_json(const ConnectionStats& s) {
  Json j = counters(s, {"fast",
                        "slow_reason",
                        "framing",
                        "downgrades",
                        "upgrades",
                        "recovery_attempts",
                        "immediate_dup_acks",
                        "bytes_fast",
                        "bytes_slow",
                        "bytes_copied",
                        "payload_placed",
                        "holes_opened",
                        "holes_closed",
                        "empty_rq_drops",
                        "sends_received",
                        "completion_wqe_writes",
                        "completion_cqe_writes",
                        "completion_shared_cqes",
                        "terminates_sent",
                        "segments_in",
                        "dup_acks_out"});
  if (s.iwarp.detours != 0) {  // omitted if there are none, like the reasons
    j["detours"] = s.iwarp.detours;
    j["bytes_detour"] = s.iwarp.bytes_detour;
  }
  Json& reasons = j["reasons"] = Json::object();
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    if (s.iwarp.reasons[i] != 0) reasons[reason_label(i)] = s.iwarp.reasons[i];
  }
  return j;
}

Json sender_json(const ConnectionStats& s) {
  return counters(
      s, {"segments_out", "retransmits", "rto_expirations", "dup_acks_in", "srtt_us", "mss"});
}

// The counters of one RoCE end, and its type FAST or SLOW.
Json roce_end(const ConnectionStats& s) {
  Json j;
  j["fast"] = s.roce.fast;
  j["slow_reason"] = s.roce.slow_reason;
  connection_members(s, [&](const char* group, const char* name, const auto& member) {
    if (std::string_view(group) == "roce") j[name] = member;
  });
  return j;
}

Json packets_json(const PacketCounts& c) {
  Json j;
  j["requests"] = c.requests;
  j["responses"] = c.responses;
  j["payload"] = c.payload;
  j["read_requests"] = c.read_requests;
  j["atomics"] = c.atomics;
  j["acks"] = c.acks;
  j["acks_with_credits"] = c.acks_with_credits;
  j["sequence_naks"] = c.sequence_naks;
  j["naks_repeated"] = c.naks_told_twice;
  j["rnr_naks"] = c.rnr_naks;
  j["fatal_naks"] = c.fatal_naks;
  return j;
}

Json rd_json(const RdObserved& o) {
  Json j;
  j["delivered_of_first_qp"] = o.first;
  j["messages_given_up"] = o.given_up;
  j["messages_posted_again"] = o.posted_again;
  j["sqe_entries"] = o.stops;
  j["messages_put_back"] = o.put_back;
  j["resyncs"] = o.resyncs;
  j["resyncs_resent"] = o.resyncs_again;
  j["resyncs_accepted"] = o.resyncs_taken;
  j["aborted"] = o.aborted;
  j["invalid_rd_naks"] = o.invalid_rd;
  j["receives_in_error"] = o.receives_in_error;
  return j;
}

Json roce_run_json(const RunResult& r) {
  Json j;
  j["seed"] = r.seed;
  j["complete"] = r.complete;
  j["end"] = r.end;
  j["setup_ns"] = r.setup.count_ns();
  j["took_ns"] = r.took.count_ns();
  j["messages"] = r.messages;
  j["bytes"] = r.bytes;
  j["goodput_bps"] = r.goodput();
  j["failed"] = r.failed;
  j["wrong_bytes"] = r.wrong_bytes;
  for (const Beside& b : r.beside) {
    j["other_traffic"].push_back(
        {{"transport", b.transport}, {"bytes", b.bytes}, {"wrong_bytes", b.wrong_bytes}});
  }
  j["rules_seen"] = r.rules_seen;
  j["max_held_packets"] = r.roce.most_held;
  j["max_held_bytes"] = r.roce.most_held_bytes;
  j["bad_icrc"] = r.roce.bad_icrc;
  j["rnr_waits"] = r.roce.rnr_waits;
  j["longest_rnr_wait_ns"] = r.roce.longest_rnr_wait.count_ns();
  j["packets_sent_in_rnr_waits"] = r.roce.sent_in_waits;
  j["drained"] = r.roce.drained;
  j["cm_messages"] = r.roce.management;
  j["cm_messages_resent"] = r.roce.management_again;
  if (r.roce.sqe != 0) j["received_in_sqe"] = r.roce.came_in_sqe;
  if (r.rd.on) j["rd"] = rd_json(r.rd);
  j["requester"] = roce_end(r.sender);
  j["responder"] = roce_end(r.receiver);
  j["from_left"] = packets_json(r.roce.from_left);
  j["from_right"] = packets_json(r.roce.from_right);
  j["to_right"] = wire_json(r.to_right);
  j["to_left"] = wire_json(r.to_left);
  Json& repairs = j["repairs_ns"] = Json::array();
  for (const Duration d : r.repairs) repairs.push_back(d.count_ns());
  return j;
}

Json run_json(const RunResult& r, bool roce) {
  if (roce) return roce_run_json(r);
  Json j;
  j["seed"] = r.seed;
  j["complete"] = r.complete;
  j["end"] = r.end;
  j["took_ns"] = r.took.count_ns();
  j["messages"] = r.messages;
  j["bytes"] = r.bytes;
  j["goodput_bps"] = r.goodput();
  j["failed"] = r.failed;
  j["wrong_bytes"] = r.wrong_bytes;
  j["max_holes"] = r.most_holes;
  j["max_pending_messages"] = r.most_pending;
  j["max_hole_state_bytes"] = r.most_hole_state;
  j["max_reassembly_bytes"] = r.most_reassembly;
  j["sender"] = sender_json(r.sender);
  j["receiver"] = receiver_json(r.receiver);
  j["to_right"] = wire_json(r.to_right);
  j["to_left"] = wire_json(r.to_left);
  j["dropped_by_router"] = r.router_dropped;
  Json& repairs = j["repairs_ns"] = Json::array();
  for (const Duration d : r.repairs) repairs.push_back(d.count_ns());
  return j;
}

Json events_json(const RunResult& r) {
  Json list = Json::array();
  for (const Event& e : r.events) {
    list.push_back(Json::array({e.at.count_ns(), std::string(e.what), e.note, e.count}));
  }
  return list;
}

Json series_json(const RunResult& r) {
  Json columns = Json::object();
  for (std::size_t k = 0; k < r.columns.size(); ++k) {
    Json column = Json::array();
    for (const Sample& s : r.samples) column.push_back(s[k]);
    columns[std::string(r.columns[k])] = std::move(column);
  }
  return columns;
}

// Writes each member on a line of its own, so that the document is readable and differences are
// small.
void member(std::string* out, const std::string& indent, std::string_view name, const Json& value,
            bool last) {
  *out += indent + Json(std::string(name)).dump() + ": " + value.dump() + (last ? "\n" : ",\n");
}

void list(std::string* out, const std::string& indent, std::string_view name, const Json& values,
          bool last) {
  *out += indent + Json(std::string(name)).dump() + ": [";
  for (std::size_t i = 0; i < values.size(); ++i) {
    *out += (i == 0 ? "\n" : ",\n") + indent + " " + values[i].dump();
  }
  *out += (values.empty() ? "]" : "\n" + indent + "]") + std::string(last ? "\n" : ",\n");
}

}  // namespace

std::string to_json(const Scenario& scenario, const std::vector<VariantResult>& results) {
  std::string out = "{\n";
  member(&out, " ", "scenario", scenario.name, false);
  member(&out, " ", "title", scenario.title, false);
  member(&out, " ", "about", scenario.about, false);
  member(&out, " ", "rules", scenario.rules, false);
  member(&out, " ", "plot", scenario.plot, false);
  member(&out, " ", "seed", scenario.seed, false);
  member(&out, " ", "work", std::string(op_name(scenario.variants.front().work.op)), false);
  out += " \"variants\": [\n";
  for (std::size_t i = 0; i < results.size(); ++i) {
    const VariantResult& v = results[i];
    const bool roce = scenario.variants[i].roce.on;
    out += "  {\n";
    member(&out, "   ", "name", v.name, false);
    if (roce) member(&out, "   ", "transport", "roce", false);
    Json runs = Json::array();
    for (const RunResult& r : v.runs) runs.push_back(run_json(r, roce));
    list(&out, "   ", "runs", runs, false);
    list(&out, "   ", "events", events_json(v.runs.front()), false);
    member(&out, "   ", "events_omitted", v.runs.front().events_left_out, false);
    out += "   \"series\": {\n";
    const Json series = series_json(v.runs.front());
    std::size_t k = 0;
    for (const auto& [name, column] : series.items()) {
      member(&out, "    ", name, column, ++k == series.size());
    }
    out += "   }\n";
    out += i + 1 == results.size() ? "  }\n" : "  },\n";
  }
  out += " ]\n}\n";
  return out;
}

}  // namespace urnic::sim
