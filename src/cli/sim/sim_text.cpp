#include "cli/sim/sim_text.h"

#include <algorithm>
#include <cstdio>

#include "cli/table.h"
#include "cli/units.h"

namespace urnic::cli {
namespace {

using sim::RunResult;
using sim::VariantResult;

constexpr unsigned kWidth = 96;
// bound: lines of a timeline that `urnic sim` prints; beyond: prints the last line and the number
// of omitted ones; test: SimText.ATimelineIsLimitedAndReportsOmittedLines
constexpr std::size_t kMostLines = 40;

// 1234567 ns -> "1.235 ms"
std::string milliseconds(std::int64_t ns) {
  const std::int64_t us = (ns + 500) / 1000;
  char text[48];
  std::snprintf(text, sizeof text, "%lld.%03lld ms", static_cast<long long>(us / 1000),
                static_cast<long long>(us % 1000));
  return text;
}

std::string megabits(std::uint64_t bps) {
  const std::uint64_t tenths = (bps + 50000) / 100000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " Mbit/s";
}

// The value of all runs: "12", or "3..12" if they differ.
template <class F>
std::string range(const VariantResult& v, F&& get) {
  std::uint64_t lo = ~std::uint64_t{0}, hi = 0;
  for (const RunResult& r : v.runs) {
    lo = std::min<std::uint64_t>(lo, get(r));
    hi = std::max<std::uint64_t>(hi, get(r));
  }
  return lo == hi ? format_count(lo) : format_count(lo) + ".." + format_count(hi);
}

template <class T, class F, class G>
std::string ranged_text(const VariantResult& v, F&& get, G&& text, T) {
  T lo = get(v.runs.front()), hi = lo;
  for (const RunResult& r : v.runs) {
    lo = std::min(lo, get(r));
    hi = std::max(hi, get(r));
  }
  return lo == hi ? text(lo) : text(lo) + " .. " + text(hi);
}

std::string ends(const VariantResult& v) {
  std::vector<std::pair<std::string, unsigned>> counts;
  for (const RunResult& r : v.runs) {
    auto it =
        std::find_if(counts.begin(), counts.end(), [&](const auto& c) { return c.first == r.end; });
    if (it == counts.end()) {
      counts.emplace_back(r.end, 1);
    } else {
      ++it->second;
    }
  }
  std::string out;
  for (const auto& [end, n] : counts) {
    if (!out.empty()) out += "; ";
    out += v.runs.size() == 1 ? end : std::to_string(n) + " " + end;
  }
  return out;
}

std::string repairs(const VariantResult& v) {
  std::vector<std::int64_t> all;
  for (const RunResult& r : v.runs) {
    for (const Duration d : r.repairs) all.push_back(d.count_ns());
  }
  if (all.empty()) return "-";
  std::sort(all.begin(), all.end());
  const auto rank = [&](std::size_t percent) {
    return all[std::min(all.size() - 1, all.size() * percent / 100)];
  };
  return milliseconds(rank(50)) + " / " + milliseconds(rank(90)) + " / " + milliseconds(all.back());
}

// The item numbers that any run has exercised.
std::string rules_seen(const VariantResult& v) {
  std::vector<std::string> all;
  for (const RunResult& r : v.runs) {
    for (const std::string& rule : r.rules_seen) {
      if (std::find(all.begin(), all.end(), rule) == all.end()) all.push_back(rule);
    }
  }
  std::string out;
  for (const std::string& rule : all) out += (out.empty() ? "" : " ") + rule;
  return out.empty() ? "-" : out;
}

// Rows that exist for one transport only.
template <class Count, class Row>
void iwarp_rows(Count&& count, Row&& row) {
  count("bytes on the FAST path", [](const RunResult& r) { return r.receiver.iwarp.bytes_fast; });
  count("bytes on the SLOW path", [](const RunResult& r) { return r.receiver.iwarp.bytes_slow; });
  count("detours", [](const RunResult& r) { return r.receiver.iwarp.detours; });
  count("bytes on a detour", [](const RunResult& r) { return r.receiver.iwarp.bytes_detour; });
  count("bytes copied", [](const RunResult& r) { return r.receiver.iwarp.bytes_copied; });
  count("downgrades", [](const RunResult& r) { return r.receiver.iwarp.downgrades; });
  count("upgrades", [](const RunResult& r) { return r.receiver.iwarp.upgrades; });
  count("recovery attempts", [](const RunResult& r) { return r.receiver.iwarp.recovery_attempts; });
  row("repair p50 / p90 / max", repairs);
  count("drops, no receive posted",
        [](const RunResult& r) { return r.receiver.iwarp.empty_rq_drops; });
  count("immediate dup ACKs",
        [](const RunResult& r) { return r.receiver.iwarp.immediate_dup_acks; });
  count("dup ACKs sent", [](const RunResult& r) { return r.receiver.iwarp.tcp.dup_acks_out; });
  count("retransmissions", [](const RunResult& r) { return r.sender.iwarp.tcp.retransmits; });
  count("timeouts", [](const RunResult& r) { return r.sender.iwarp.tcp.rto_expirations; });
  count("max open holes", [](const RunResult& r) { return r.most_holes; });
  count("max messages behind holes", [](const RunResult& r) { return r.most_pending; });
  count("max bytes of hole state", [](const RunResult& r) { return r.most_hole_state; });
  count("max reassembly bytes", [](const RunResult& r) { return r.most_reassembly; });
}

template <class Count, class Row>
void roce_rows(Count&& count, Row&& row) {
  count("request packets sent", [](const RunResult& r) { return r.sender.roce.requests_sent; });
  count("request packets resent",
        [](const RunResult& r) { return r.sender.roce.requests_repeated; });
  count("probes", [](const RunResult& r) { return r.sender.roce.probes_sent; });
  count("timeouts", [](const RunResult& r) { return r.sender.roce.response_timeouts; });
  count("implied NAKs", [](const RunResult& r) { return r.sender.roce.implied_naks; });
  count("packets after a gap",
        [](const RunResult& r) { return r.receiver.roce.requests_out_of_sequence; });
  count("packets after a gap, stored",
        [](const RunResult& r) { return r.receiver.roce.requests_held; });
  count("waited for a posted receive",
        [](const RunResult& r) { return r.receiver.roce.requests_parked; });
  count("duplicates", [](const RunResult& r) { return r.receiver.roce.requests_duplicate; });
  count("Read response packets sent",
        [](const RunResult& r) { return r.receiver.roce.read_packets_sent; });
  count("ACKs sent", [](const RunResult& r) { return r.receiver.roce.acks_sent; });
  count("Sequence NAKs sent",
        [](const RunResult& r) { return r.receiver.roce.sequence_naks_sent; });
  count("RNR NAKs sent", [](const RunResult& r) { return r.receiver.roce.rnr_naks_sent; });
  row("longest RNR wait", [](const VariantResult& v) {
    Duration most;
    for (const RunResult& r : v.runs) most = std::max(most, r.roce.longest_rnr_wait);
    return most == Duration() ? std::string("-") : milliseconds(most.count_ns());
  });
  count("gaps", [](const RunResult& r) { return r.repairs.size(); });
  row("gap closed p50 / p90 / max", repairs);
  count("downgrades", [](const RunResult& r) { return r.receiver.roce.roce_downgrades; });
  count("upgrades", [](const RunResult& r) { return r.receiver.roce.roce_upgrades; });
  count("messages lost", [](const RunResult& r) { return r.receiver.roce.messages_lost; });
  count("queue full", [](const RunResult& r) { return r.to_right.of(fault::FaultKind::Overflow); });
  count("CE marks", [](const RunResult& r) { return r.receiver.roce.ce_marks_received; });
  count("CNPs", [](const RunResult& r) { return r.receiver.roce.cnps_sent; });
  count("window reductions", [](const RunResult& r) { return r.sender.roce.window_reductions; });
  count("bytes of other queue pairs", [](const RunResult& r) {
    std::uint64_t n = 0;
    for (const sim::Beside& b : r.beside) n += b.bytes;
    return n;
  });
  count("max packets stored", [](const RunResult& r) { return r.roce.most_held; });
  count("max bytes stored", [](const RunResult& r) { return r.roce.most_held_bytes; });
  count("dropped: bad ICRC", [](const RunResult& r) { return r.roce.bad_icrc; });
  count("CM messages", [](const RunResult& r) { return r.roce.management; });
  count("CM messages resent", [](const RunResult& r) { return r.roce.management_again; });
}

bool is_roce(const RunResult& r) {
  return r.sender.transport == "roce";
}
bool ends_fast(const RunResult& r) {
  return is_roce(r) ? r.receiver.roce.fast : r.receiver.iwarp.fast;
}

Table side_by_side(const std::vector<VariantResult>& results) {
  std::vector<std::pair<std::string, Table::Align>> columns{{"", Table::Align::Left}};
  for (const VariantResult& v : results) {
    columns.emplace_back(v.name.empty() ? "result" : v.name, Table::Align::Left);
  }
  Table table(std::move(columns));
  const auto row = [&](const char* name, auto&& cell) {
    std::vector<std::string> cells{name};
    bool anything = false;
    for (const VariantResult& v : results) {
      cells.push_back(cell(v));
      anything = anything || (cells.back() != "0" && cells.back() != "-");
    }
    if (anything) table.add(std::move(cells));
  };
  const auto count = [&](const char* name, auto&& get) {
    row(name, [&](const VariantResult& v) { return range(v, get); });
  };
  row("end", ends);
  if (results.front().runs.size() != 1) {
    row("runs", [](const VariantResult& v) { return std::to_string(v.runs.size()); });
  }
  row("virtual time", [](const VariantResult& v) {
    return ranged_text(
        v, [](const RunResult& r) { return r.took.count_ns(); }, milliseconds, std::int64_t{});
  });
  row("goodput", [](const VariantResult& v) {
    return ranged_text(
        v, [](const RunResult& r) { return r.goodput(); }, megabits, std::uint64_t{});
  });
  count("messages delivered", [](const RunResult& r) { return r.messages; });
  count("bytes delivered", [](const RunResult& r) { return r.bytes; });
  count("wrong bytes", [](const RunResult& r) { return r.wrong_bytes; });
  row("FAST at the end", [](const VariantResult& v) {
    const auto fast = std::count_if(v.runs.begin(), v.runs.end(), ends_fast);
    const auto all = static_cast<std::ptrdiff_t>(v.runs.size());
    if (fast == all) return std::string("yes");
    return fast == 0 ? std::string("no") : std::to_string(fast) + " of " + std::to_string(all);
  });
  const auto any = [&](bool roce) {
    return std::any_of(results.begin(), results.end(),
                       [&](const VariantResult& v) { return is_roce(v.runs.front()) == roce; });
  };
  if (any(false)) iwarp_rows(count, row);
  if (any(true)) roce_rows(count, row);
  for (std::size_t k = 0; k < static_cast<std::size_t>(fault::kFirstStreamKind); ++k) {
    const std::string name =
        "wire: " + std::string(fault_kind_name(static_cast<fault::FaultKind>(k)));
    count(name.c_str(),
          [&](const RunResult& r) { return r.to_right.injected[k] + r.to_left.injected[k]; });
  }
  row("rules seen", rules_seen);
  count("dropped by router: too large", [](const RunResult& r) { return r.router_dropped; });
  return table;
}

// Consecutive similar events become one line.
std::string timeline(const RunResult& r) {
  struct Line {
    Duration first, last;
    std::string what;
    std::uint64_t times = 0, count = 0;
  };
  std::vector<Line> lines;
  for (const sim::Event& e : r.events) {
    const std::string what = std::string(e.what) + (e.note.empty() ? "" : " (" + e.note + ")");
    if (!lines.empty() && lines.back().what == what) {
      lines.back().last = e.at;
      ++lines.back().times;
      lines.back().count += e.count;
      continue;
    }
    lines.push_back({e.at, e.at, what, 1, e.count});
  }
  Table table({{"", Table::Align::Right}, {"", Table::Align::Left}});
  const auto add = [&](const Line& l) {
    std::string what = l.what;
    if (l.times > 1) {
      what += ", " + std::to_string(l.times) + " times until " + milliseconds(l.last.count_ns());
    } else if (l.count > 1) {
      what += ", " + std::to_string(l.count);
    }
    table.add({milliseconds(l.first.count_ns()), what});
  };
  const std::size_t head = lines.size() > kMostLines ? kMostLines - 2 : lines.size();
  for (std::size_t i = 0; i < head; ++i) add(lines[i]);
  if (lines.size() > head) {
    const std::uint64_t more = lines.size() - head - 1 + r.events_left_out;
    table.add({"", "... " + format_count(more) + " more (--json has all)"});
    add(lines.back());
  }
  return table.text(2);
}

}  // namespace

std::string sim_text(const sim::Scenario& scenario, const std::vector<VariantResult>& results) {
  std::string out = scenario.name + ": " + scenario.title + "\n";
  std::string about = scenario.about;
  std::replace(about.begin(), about.end(), '\n', ' ');
  while (!about.empty() && about.back() == ' ') about.pop_back();
  if (!about.empty()) out += "\n  " + wrapped(about, 2, kWidth) + "\n";
  if (!scenario.rules.empty()) {
    std::string rules;
    for (const std::string& r : scenario.rules) rules += (rules.empty() ? "" : ", ") + r;
    out += "  shows " + wrapped(rules, 8, kWidth) + "\n";
  }
  out += "\n" + side_by_side(results).text(2);
  for (const VariantResult& v : results) {
    out += "\n  " + (v.name.empty() ? std::string("timeline") : "timeline: " + v.name) +
           (v.runs.size() > 1 ? " (first run)" : "") + "\n" + timeline(v.runs.front());
  }
  return out;
}

}  // namespace urnic::cli
