// The counters of an engine as text: for people, and for Prometheus.
#include <algorithm>
#include <cstdio>
#include <functional>

#include "cli/stat_client.h"
#include "cli/table.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

std::string size_of(std::uint64_t octets) {
  return format_size(static_cast<double>(octets));
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
    const std::uint64_t sent = c.write_bytes_sent + c.send_bytes_sent + c.read_response_bytes_sent;
    table.add({c.local + " - " + c.peer, c.state, c.fast ? "FAST" : "SLOW: " + c.slow_reason,
               format_share(c.bytes_fast, c.bytes_fast + c.bytes_slow + c.bytes_detour),
               std::to_string(c.downgrades), std::to_string(c.upgrades),
               std::to_string(c.recovery_attempts), std::to_string(c.retransmits),
               size_of(c.payload_placed), size_of(sent), std::to_string(c.srtt_us) + " us",
               size_of(c.cwnd)});
  }
  return table.empty() ? "  no connection is open\n" : table.text(2);
}

// Those that are not 0, by name.
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

// What the lines of the table say besides. A counter that is not among them appears by its name as
// soon as it is not 0.
constexpr std::string_view kInTheLines[] = {"downgrades",
                                            "upgrades",
                                            "recovery_attempts",
                                            "immediate_dup_acks",
                                            "detours",
                                            "bytes_detour",
                                            "bytes_fast",
                                            "bytes_slow",
                                            "bytes_copied",
                                            "payload_placed",
                                            "holes_opened",
                                            "holes_closed",
                                            "empty_rq_drops",
                                            "sends_received",
                                            "retransmits",
                                            "rto_expirations",
                                            "completion_wqe_writes",
                                            "completion_cqe_writes",
                                            "dup_acks_in",
                                            "dup_acks_out"};

std::string more_text(const ConnectionStats& t) {
  std::string out;
  for (const auto& c : connection_counters()) {
    if (t.*c.value == 0 || std::find(std::begin(kInTheLines), std::end(kInTheLines), c.name) !=
                               std::end(kInTheLines)) {
      continue;
    }
    out += (out.empty() ? "" : ", ") + std::string(c.name) + " " + format_count(t.*c.value);
  }
  return out.empty() ? "-" : out;
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

}  // namespace

std::string stat_table(const EngineStats& s) {
  const ConnectionStats t = total_of(s);
  const std::uint64_t accepted = t.bytes_fast + t.bytes_slow + t.bytes_detour;
  std::string out = s.name + " (process " + std::to_string(s.pid) + ", up " +
                    format_seconds(static_cast<double>(s.uptime_ms) / 1000) + ")\n";
  out += key_values(
      {{"port", s.port + (s.link_up               ? ", link up"
                          : s.link_reason.empty() ? ", no link"
                                                  : ", no link: " + s.link_reason)},
       {"addresses", s.addresses + ", MAC " + s.mac +
                         (s.address_conflicts == 0 ? ""
                                                   : "; seen at other stations too: " +
                                                         format_count(s.address_conflicts))},
       {"frames in", format_count(s.rx_frames) + " (" + size_of(s.rx_bytes) + "); bad: port " +
                         format_count(s.rx_bad_port) + ", IP " + format_count(s.rx_bad_ip) +
                         ", TCP checksum " + format_count(s.rx_bad_tcp_checksum) + ", fragments " +
                         format_count(s.rx_fragments) + ", no connection " +
                         format_count(s.rx_no_connection) + ", not acceptable " +
                         format_count(s.rx_tcp_dropped)},
       {"frames out", format_count(s.tx_frames) + " (" + size_of(s.tx_bytes) + "); port full " +
                          format_count(s.tx_full)},
       {"connections",
        format_count(s.connections_opened) + " opened, " + format_count(s.connections_closed) +
            " closed, " + format_count(s.connections_failed) + " failed, " +
            format_count(s.turned_away) + " turned away; " + format_count(s.rst_sent) +
            " resets sent, cookies " + format_count(s.cookies_sent) + " sent and " +
            format_count(s.cookies_taken) + " taken, challenge ACKs " +
            format_count(s.challenge_acks) + " sent and " +
            format_count(s.challenge_acks_withheld) + " withheld"},
       {"received", format_share(t.bytes_fast, accepted) + " of " + size_of(accepted) +
                        " on the FAST path; " + ratio(t.bytes_copied, t.payload_placed) +
                        " copies per payload octet"},
       {"FAST/SLOW", format_count(t.downgrades) + " downgrades, " + format_count(t.upgrades) +
                         " upgrades, " + format_count(t.recovery_attempts) +
                         " recovery attempts, " + format_count(t.immediate_dup_acks) +
                         " immediate duplicate ACKs; " + format_count(t.detours) + " detours of " +
                         size_of(t.bytes_detour)},
       {"InLogic", counts_text(t.reasons, reason_label)},
       {"FPDUs in", counts_text(t.fpdus_received, opcode_label)},
       {"FPDUs out", counts_text(t.fpdus_sent, opcode_label)},
       {"holes", format_count(t.holes_opened) + " opened, " + format_count(t.holes_closed) +
                     " closed; empty receive queue " + format_count(t.empty_rq_drops)},
       {"completions", format_count(t.sends_received) + " Sends by " +
                           format_count(t.completion_wqe_writes) + " receive and " +
                           format_count(t.completion_cqe_writes) + " queue writes"},
       {"sent again", format_count(t.retransmits) + " segments, " +
                          format_count(t.rto_expirations) + " time-outs; duplicate ACKs " +
                          format_count(t.dup_acks_in) + " in, " + format_count(t.dup_acks_out) +
                          " out"},
       {"besides", more_text(t)},
       {"memory",
        size_of(s.reassembly_bytes) + " in reassembly, " + format_count(s.regions) + " regions"},
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
                  escaped(s.port) + "\"");
    }
  };
  const auto one = [&](const std::string& name, const char* type, const std::string& help,
                       std::uint64_t EngineStats::*field) {
    metric(name, type, help, [&](const EngineStats& s, const std::string& labels) {
      out += "urnic_" + name + "{" + labels + "} " + std::to_string(s.*field) + "\n";
    });
  };
  metric("link_up", "gauge", "frames can flow",
         [&](const EngineStats& s, const std::string& labels) {
           out += "urnic_link_up{" + labels + "} " + (s.link_up ? "1" : "0") + "\n";
         });
  for (const auto& c : engine_counters()) {
    one(std::string(c.name) + "_total", "counter", c.help, c.value);
  }
  for (const auto& c : engine_gauges()) one(c.name, "gauge", c.help, c.value);
  for (const auto& m : connection_counters()) {
    metric(std::string(m.name) + "_total", "counter", m.help,
           [&](const EngineStats& s, const std::string& labels) {
             out += "urnic_" + std::string(m.name) + "_total{" + labels + "} " +
                    std::to_string(total_of(s).*m.value) + "\n";
           });
  }
  metric("inlogic_total", "counter", "decisions of InLogic by reason",
         [&](const EngineStats& s, const std::string& labels) {
           const ConnectionStats t = total_of(s);
           for (std::size_t i = 0; i < kReasonCount; ++i) {
             out += "urnic_inlogic_total{" + labels + ",reason=\"" + escaped(reason_label(i)) +
                    "\"} " + std::to_string(t.reasons[i]) + "\n";
           }
         });
  const auto fpdus = [&](const char* name, const char* help,
                         std::array<std::uint64_t, kOpcodeCount> ConnectionStats::*counts) {
    metric(name, "counter", help, [&](const EngineStats& s, const std::string& labels) {
      const ConnectionStats t = total_of(s);
      for (std::size_t i = 0; i < kOpcodeCount; ++i) {
        out += "urnic_" + std::string(name) + "{" + labels + ",opcode=\"" + opcode_label(i) +
               "\"} " + std::to_string((t.*counts)[i]) + "\n";
      }
    });
  };
  fpdus("fpdus_received_total", "FPDUs received by opcode", &ConnectionStats::fpdus_received);
  fpdus("fpdus_sent_total", "FPDUs sent by opcode", &ConnectionStats::fpdus_sent);
  metric("connections", "gauge", "open connections by type",
         [&](const EngineStats& s, const std::string& labels) {
           std::uint64_t fast = 0;
           for (const ConnectionStats& c : s.connections) fast += c.fast ? 1 : 0;
           out += "urnic_connections{" + labels + ",type=\"fast\"} " + std::to_string(fast) + "\n";
           out += "urnic_connections{" + labels + ",type=\"slow\"} " +
                  std::to_string(s.connections.size() - fast) + "\n";
         });
  return out;
}

}  // namespace urnic::cli
