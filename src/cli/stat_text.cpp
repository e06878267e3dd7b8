// The counters of an engine as text: for people and for Prometheus.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>

#include "cli/stat_client.h"
#include "cli/table.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

std::string size_of(std::uint64_t bytes) {
  return format_size(static_cast<double>(bytes));
}

std::string ratio(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return format_fixed(static_cast<double>(part) / static_cast<double>(whole), 2);
}

ConnectionStats total_of(const EngineStats& s) {
  ConnectionStats t = s.ended;
  for (const ConnectionStats& c : s.connections) add_counters(&t, c);
  return t;
}

// Empty for UC and UD.
std::string type_text(const RoceStats& r) {
  if (r.fast) return r.selective ? " FAST, selective" : " FAST";
  return r.slow_reason.empty() ? "" : " SLOW: " + r.slow_reason;
}

std::string connections_text(const EngineStats& s) {
  using Align = Table::Align;
  Table table({{"connection", Align::Left},
               {"state", Align::Left},
               {"now", Align::Left},
               {"FAST", Align::Right},
               {"down", Align::Right},
               {"up", Align::Right},
               {"recov", Align::Right},
               {"retrans", Align::Right},
               {"received", Align::Right},
               {"sent", Align::Right},
               {"srtt", Align::Right},
               {"cwnd", Align::Right}});
  for (const ConnectionStats& c : s.connections) {
    const std::uint64_t sent =
        c.verbs.write_bytes_sent + c.verbs.send_bytes_sent + c.verbs.read_response_bytes_sent;
    if (c.transport == "roce") {
      table.add({c.local + " - " + c.peer, c.state, "RoCE" + type_text(c.roce), "-",
                 std::to_string(c.roce.roce_downgrades), std::to_string(c.roce.roce_upgrades),
                 std::to_string(c.roce.gap_recoveries), std::to_string(c.roce.requests_repeated),
                 "-", "-", "-", "-"});
      continue;
    }
    table.add({c.local + " - " + c.peer, c.state,
               c.iwarp.fast ? "FAST" : "SLOW: " + c.iwarp.slow_reason,
               format_share(c.iwarp.bytes_fast,
                            c.iwarp.bytes_fast + c.iwarp.bytes_slow + c.iwarp.bytes_detour),
               std::to_string(c.iwarp.downgrades), std::to_string(c.iwarp.upgrades),
               std::to_string(c.iwarp.recovery_attempts), std::to_string(c.iwarp.tcp.retransmits),
               size_of(c.verbs.payload_placed), size_of(sent),
               std::to_string(c.iwarp.tcp.srtt_us) + " us", size_of(c.iwarp.tcp.cwnd)});
  }
  return table.empty() ? "  no open connections\n" : table.text(2);
}

// Lists the counters that are not 0, with their labels.
template <std::size_t N>
std::string counts_text(const std::array<std::uint64_t, N>& counts,
                        const char* (*label)(std::size_t)) {
  std::string out;
  for (std::size_t i = 0; i < N; ++i) {
    if (counts[i] == 0) continue;
    out += (out.empty() ? "" : ", ") + std::string(label(i)) + " " + format_count(counts[i]);
  }
  return out.empty() ? "-" : out;
}

// Formats counters for the lines of the table and records which ones have been printed. others()
// lists every remaining counter that is not 0 by its name.
class Said {
 public:
  explicit Said(ConnectionStats total) : t(std::move(total)) {}

  std::uint64_t value(const std::uint64_t& counter) {
    said_.insert(&counter);
    return counter;
  }
  std::string count(const std::uint64_t& counter) { return format_count(value(counter)); }
  std::string others() {
    std::string out;
    for (const auto& c : connection_counters()) {
      const std::uint64_t& counter = c.of(t);
      if (counter == 0 || said_.count(&counter) != 0) continue;
      out += (out.empty() ? "" : ", ") + std::string(c.name) + " " + format_count(counter);
    }
    return out.empty() ? "-" : out;
  }

  ConnectionStats t;

 private:
  std::set<const std::uint64_t*> said_;
};

// Returns "-" if the engine does not use RoCE.
std::string roce_text(const EngineStats& s, Said* said) {
  const RoceHostStats& h = s.roce;
  const RoceStats& r = said->t.roce;
  const std::uint64_t dropped = h.rx_roce_malformed + h.rx_bad_icrc + h.rx_bad_version +
                                h.rx_no_queue_pair + h.rx_wrong_state + h.rx_wrong_service +
                                h.rx_bad_pkey + h.rx_wrong_address + h.rx_bad_qkey;
  if (h.rx_roce + h.tx_roce + h.tx_unroutable + dropped + r.requests_repeated == 0) return "-";
  return format_count(h.rx_roce) + " packets in, " + format_count(dropped) + " dropped; " +
         format_count(h.tx_roce) + " out, " + format_count(h.tx_unroutable) + " unroutable; " +
         said->count(r.requests_repeated) + " resent, " + said->count(r.response_timeouts) +
         " timeouts, NAKs " + said->count(r.sequence_naks_received) + " in, " +
         said->count(r.sequence_naks_sent) + " out, RNR NAKs " + said->count(r.rnr_naks_received) +
         " in, " + said->count(r.rnr_naks_sent) + " out";
}

// How FAST queue pairs of RoCE handled loss: a row of its own if there was any.
std::string behind_gaps_text(const EngineStats& s, Said* said) {
  const RoceStats& r = said->t.roce;
  if (s.roce.held_bytes + r.requests_held + r.requests_parked + r.gap_recoveries +
          r.roce_downgrades + r.roce_upgrades ==
      0) {
    return "-";
  }
  return said->count(r.requests_held) + " packets stored behind " + said->count(r.gap_recoveries) +
         " gaps, " + said->count(r.requests_parked) + " stored until a receive was posted, " +
         size_of(s.roce.held_bytes) + " in use now; " + said->count(r.roce_downgrades) +
         " downgrades (" + said->count(r.store_full_downgrades) + " because the store was full), " +
         said->count(r.roce_upgrades) + " upgrades";
}

// Congestion signals from the network for RoCE, and the reactions (S-10): a row of its own if there
// were any.
std::string congestion_text(Said* said) {
  const RoceStats& r = said->t.roce;
  if (r.ce_marks_received + r.cnps_sent + r.cnps_received + r.window_reductions == 0) return "-";
  return "window reduced " + said->count(r.window_reductions) + " times; CNPs " +
         said->count(r.cnps_received) + " in (" + said->count(r.cnps_ignored) + " ignored), " +
         said->count(r.cnps_sent) + " out; " + said->count(r.ce_marks_received) +
         " packets received with a CE mark";
}

// Connection management of RoCE: a row of its own if there was any.
std::string management_text(const EngineStats& s) {
  const RoceHostStats& h = s.roce;
  if (h.cm_received + h.cm_sent + h.cm_resent_on_timeout + h.cm_resent_on_request + h.cm_dropped +
          h.cm_stale + h.numbers_in_time_wait + h.hellos_sent + h.hellos_received +
          h.hellos_refused ==
      0) {
    return "-";
  }
  return format_count(h.cm_received) + " messages in, " + format_count(h.cm_dropped) +
         " dropped; " + format_count(h.cm_sent) + " out, resent " +
         format_count(h.cm_resent_on_timeout) + " on timeout, " +
         format_count(h.cm_resent_on_request) + " on request; " + format_count(h.cm_stale) +
         " stale rejected; " + format_count(h.numbers_in_time_wait) +
         " queue pair numbers in time-wait; hellos " + format_count(h.hellos_sent) + " out, " +
         format_count(h.hellos_received) + " in, " + format_count(h.hellos_refused) + " refused";
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string link_text(const PortStats& p) {
  const std::string now = p.link_up               ? ", link up"
                          : p.link_reason.empty() ? ", no link"
                                                  : ", no link: " + p.link_reason;
  return now + (p.link_losses == 0 ? "" : "; lost " + format_count(p.link_losses) + " times");
}

}  // namespace

std::string stat_table(const EngineStats& s) {
  Said said(total_of(s));
  const ConnectionStats& t = said.t;
  const IwarpStats& i = t.iwarp;
  const std::uint64_t fast = said.value(i.bytes_fast);
  const std::uint64_t accepted = fast + said.value(i.bytes_slow) + said.value(i.bytes_detour);
  std::string out = s.name + " (process " + std::to_string(s.pid) + ", up " +
                    format_seconds(static_cast<double>(s.uptime_ms) / 1000) + ")\n";
  out += key_values(
      {{"port", s.port.spec + link_text(s.port)},
       {"addresses", s.net.addresses + ", MAC " + s.port.mac +
                         (s.net.address_conflicts == 0
                              ? ""
                              : "; address conflicts: " + format_count(s.net.address_conflicts))},
       {"frames in", format_count(s.port.rx_frames) + " (" + size_of(s.port.rx_bytes) +
                         "); bad: port " + format_count(s.port.rx_bad_port) + ", IP " +
                         format_count(s.net.rx_bad_ip) + ", TCP checksum " +
                         format_count(s.iwarp.rx_bad_tcp_checksum) + ", fragments " +
                         format_count(s.net.rx_fragments) + ", no connection " +
                         format_count(s.iwarp.rx_no_connection) + ", not acceptable " +
                         format_count(s.iwarp.rx_tcp_dropped)},
       {"frames out", format_count(s.port.tx_frames) + " (" + size_of(s.port.tx_bytes) +
                          "); port full " + format_count(s.port.tx_full) + ", system calls " +
                          format_count(s.port.syscalls)},
       {"connections",
        format_count(s.connections_opened) + " opened, " + format_count(s.connections_closed) +
            " closed, " + format_count(s.connections_failed) + " failed, " +
            format_count(s.iwarp.connections_refused) + " refused for lack of resources, " +
            format_count(s.peers_denied) + " denied, " + format_count(s.peers_over_limit) +
            " over a limit; " + format_count(s.iwarp.rst_sent) + " resets sent, cookies " +
            format_count(s.iwarp.cookies_sent) + " sent and " +
            format_count(s.iwarp.cookies_accepted) + " accepted, challenge ACKs " +
            format_count(s.iwarp.challenge_acks) + " sent and " +
            format_count(s.iwarp.challenge_acks_withheld) + " withheld"},
       {"received", format_share(fast, accepted) + " of " + size_of(accepted) +
                        " on the FAST path; " +
                        ratio(said.value(i.bytes_copied), said.value(t.verbs.payload_placed)) +
                        " copies per payload byte"},
       {"FAST/SLOW", said.count(i.downgrades) + " downgrades, " + said.count(i.upgrades) +
                         " upgrades, " + said.count(i.recovery_attempts) + " recovery attempts, " +
                         said.count(i.immediate_dup_acks) + " immediate duplicate ACKs; " +
                         said.count(i.detours) + " detours through reassembly of " +
                         size_of(i.bytes_detour)},
       {"InLogic", counts_text(i.reasons, reason_label)},
       {"FPDUs in", counts_text(i.ddp.fpdus_received, opcode_label)},
       {"FPDUs out", counts_text(i.ddp.fpdus_sent, opcode_label)},
       {"holes", said.count(i.holes_opened) + " opened, " + said.count(i.holes_closed) +
                     " closed; empty receive queue " + said.count(i.empty_rq_drops) + " dropped, " +
                     said.count(i.receive_waits) + " waited"},
       {"completions", said.count(t.verbs.sends_received) + " Sends, written to " +
                           said.count(t.verbs.completion_wqe_writes) + " receives and " +
                           said.count(t.verbs.completion_cqe_writes) + " completion queue entries"},
       {"retransmitted", said.count(i.tcp.retransmits) + " segments, " +
                             said.count(i.tcp.rto_expirations) + " timeouts; duplicate ACKs " +
                             said.count(i.tcp.dup_acks_in) + " in, " +
                             said.count(i.tcp.dup_acks_out) + " out"},
       {"RoCE", roce_text(s, &said)},
       {"RoCE loss", behind_gaps_text(s, &said)},
       {"RoCE congestion", congestion_text(&said)},
       {"RoCE CM", management_text(s)},
       {"other counters", said.others()},
       {"memory", size_of(s.iwarp.reassembly_bytes) + " in reassembly, " +
                      format_count(s.verbs.regions) + " regions"},
       {"engine", format_count(s.polls) + " polls, " + format_count(s.sleeps) + " sleeps, " +
                      format_count(s.wakeups) + " wake-ups"}},
      2);
  return out + connections_text(s);
}

std::string stat_prometheus(const std::vector<EngineStats>& engines) {
  std::string out;
  const auto metric = [&](const std::string& name, const char* type, const std::string& help,
                          const std::function<void(const EngineStats&, const std::string&)>& each) {
    out += "# HELP urnic_" + name + " " + help + "\n# TYPE urnic_" + name + " " + type + "\n";
    for (const EngineStats& s : engines) {
      each(s, "pid=\"" + std::to_string(s.pid) + "\",name=\"" + escaped(s.name) + "\",port=\"" +
                  escaped(s.port.spec) + "\"");
    }
  };
  const auto one = [&](const auto& c, const char* type, const std::string& ending) {
    metric(c.name + ending, type, c.help, [&](const EngineStats& s, const std::string& labels) {
      out += "urnic_" + (c.name + ending) + "{" + labels + "} " + std::to_string(c.of(s)) + "\n";
    });
  };
  metric("link_up", "gauge", "frames can flow",
         [&](const EngineStats& s, const std::string& labels) {
           out += "urnic_link_up{" + labels + "} " + (s.port.link_up ? "1" : "0") + "\n";
         });
  for (const auto& c : engine_counters()) one(c, "counter", "_total");
  for (const auto& c : engine_gauges()) one(c, "gauge", "");
  for (const auto& c : connection_counters()) {
    metric(std::string(c.name) + "_total", "counter", c.help,
           [&](const EngineStats& s, const std::string& labels) {
             out += "urnic_" + std::string(c.name) + "_total{" + labels + "} " +
                    std::to_string(c.of(total_of(s))) + "\n";
           });
  }
  metric("inlogic_total", "counter", "decisions of InLogic by reason",
         [&](const EngineStats& s, const std::string& labels) {
           const ConnectionStats t = total_of(s);
           for (std::size_t i = 0; i < kReasonCount; ++i) {
             out += "urnic_inlogic_total{" + labels + ",reason=\"" + escaped(reason_label(i)) +
                    "\"} " + std::to_string(t.iwarp.reasons[i]) + "\n";
           }
         });
  const auto fpdus = [&](const char* name, const char* help,
                         std::array<std::uint64_t, kOpcodeCount> DdpStats::*counts) {
    metric(name, "counter", help, [&](const EngineStats& s, const std::string& labels) {
      const DdpStats t = total_of(s).iwarp.ddp;
      for (std::size_t i = 0; i < kOpcodeCount; ++i) {
        out += "urnic_" + std::string(name) + "{" + labels + ",opcode=\"" + opcode_label(i) +
               "\"} " + std::to_string((t.*counts)[i]) + "\n";
      }
    });
  };
  fpdus("fpdus_received_total", "FPDUs received by opcode", &DdpStats::fpdus_received);
  fpdus("fpdus_sent_total", "FPDUs sent by opcode", &DdpStats::fpdus_sent);
  metric("connections", "gauge", "open connections by type",
         [&](const EngineStats& s, const std::string& labels) {
           std::uint64_t fast = 0, roce = 0;
           for (const ConnectionStats& c : s.connections) {
             fast += c.iwarp.fast ? 1 : 0;
             roce += c.transport == "roce" ? 1 : 0;
           }
           out += "urnic_connections{" + labels + ",type=\"fast\"} " + std::to_string(fast) + "\n";
           out += "urnic_connections{" + labels + ",type=\"slow\"} " +
                  std::to_string(s.connections.size() - fast - roce) + "\n";
           out += "urnic_connections{" + labels + ",type=\"roce\"} " + std::to_string(roce) + "\n";
         });
  return out;
}

}  // namespace urnic::cli
