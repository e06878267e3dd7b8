#include "fault/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "fault/plan_words.h"

namespace urnic::fault {
namespace {

constexpr std::string_view kKindNames[] = {"loss", "dup",  "reorder",  "corrupt", "badsum",
                                           "cut",  "join", "overflow", "mark"};

constexpr Unit kRates[] = {{"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}, {"bit", 1}};
constexpr Unit kSizes[] = {{"k", 1024}, {"m", 1048576}, {"g", 1073741824}, {"", 1}};

std::optional<std::uint32_t> to_count(std::string_view s) {
  const auto v = to_whole(s);
  if (!v || *v > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*v);
}

// Parses one key=value at a time; on failure sets `wrong` to the expected format.
class Parser {
 public:
  FaultPlan plan;
  std::string wrong;

  bool item(std::string_view key, std::string_view value);

 private:
  bool expect(bool ok, const char* what) {
    if (!ok) wrong = what;
    return ok;
  }
  bool probability(std::string_view s, double& to) {
    const auto v = to_probability(s);
    if (v) to = *v;
    return expect(v.has_value(), "a probability from 0 to 1");
  }
  bool time(std::string_view s, Duration& to) {
    const auto v = to_time(s);
    if (v) to = *v;
    return expect(v.has_value(), "a time up to one hour, for example 2ms (ns, us, ms, s)");
  }
  bool count(std::string_view s, std::uint32_t& to, std::uint32_t lo) {
    const auto v = to_count(s);
    if (v && *v >= lo) to = *v;
    return expect(v && *v >= lo, lo == 0 ? "a whole number" : "a whole number, at least 1");
  }
  bool loss(std::string_view v);
  bool reorder(std::string_view v);
  bool at(std::string_view v);
  bool cut_at(std::string_view v);
};

bool Parser::loss(std::string_view v) {
  const auto colon = v.find(':');
  if (!probability(v.substr(0, colon), plan.loss)) return false;
  return colon == v.npos || count(v.substr(colon + 1), plan.loss_burst, 1);
}

bool Parser::reorder(std::string_view v) {
  const auto colon = v.find(':');
  if (!probability(v.substr(0, colon), plan.reorder)) return false;
  if (colon == v.npos) return true;
  const std::string_view how = v.substr(colon + 1);
  if (const auto t = to_time(how)) {
    plan.reorder_frames = 0;
    plan.reorder_delay = *t;
    return true;
  }
  if (count(how, plan.reorder_frames, 1)) return true;
  return expect(false, "P:FRAMES or P:TIME, for example 0.02:3 or 0.02:5ms");
}

bool Parser::at(std::string_view v) {
  while (!v.empty()) {
    const std::string_view one = v.substr(0, v.find('+'));
    v.remove_prefix(std::min(v.size(), one.size() + 1));
    const auto colon = one.find(':');
    const auto kind = std::find(std::begin(kKindNames), std::end(kKindNames), one.substr(0, colon));
    const auto n = colon == one.npos ? std::nullopt : to_whole(one.substr(colon + 1));
    const auto index = static_cast<std::size_t>(kind - std::begin(kKindNames));
    // Join and Overflow need more than one frame, so they cannot be requested for a single frame.
    if (index > static_cast<std::size_t>(FaultKind::Cut) || !n || *n == 0) {
      return expect(false, "KIND:N+KIND:N..., KIND is loss, dup, reorder, corrupt, badsum or cut");
    }
    plan.at.push_back({static_cast<FaultKind>(index), *n});
  }
  return true;
}

bool Parser::cut_at(std::string_view v) {
  const auto dash = v.find('-');
  const auto from = to_count(v.substr(0, dash));
  const auto to = dash == v.npos ? std::nullopt : to_count(v.substr(dash + 1));
  const bool ok = from && to && *from != 0 && *from < *to;
  if (ok) {
    plan.cut_from = *from;
    plan.cut_to = *to;
  }
  return expect(ok, "FROM-TO, byte offsets in the payload, FROM at least 1");
}

bool Parser::item(std::string_view key, std::string_view v) {
  if (key == "loss") return loss(v);
  if (key == "dup") return probability(v, plan.duplicate);
  if (key == "reorder") return reorder(v);
  if (key == "corrupt") return probability(v, plan.corrupt);
  if (key == "badsum") return probability(v, plan.bad_checksum);
  if (key == "reseg") return probability(v, plan.resegment);
  if (key == "delay") return time(v, plan.delay);
  if (key == "jitter") return time(v, plan.jitter);
  if (key == "hold") return time(v, plan.hold);
  if (key == "limit") return count(v, plan.limit, 1);
  if (key == "mark") return time(v, plan.mark);
  if (key == "at") return at(v);
  if (key == "cut_at") return cut_at(v);
  if (key == "rate") {
    const auto rate = with_unit(v, kRates);
    const bool ok = rate && *rate >= 1000 && *rate <= 1e13;
    if (ok) plan.rate_bps = static_cast<std::uint64_t>(std::llround(*rate));
    return expect(ok, "a rate from 1kbit to 10000gbit, for example 500mbit");
  }
  if (key == "mtu") {
    return count(v, plan.mtu, 0) && expect(plan.mtu >= 576 && plan.mtu <= 65535, "576 to 65535");
  }
  if (key == "payload_only") {
    plan.tcp_only = true;
    return count(v, plan.payload_only, 0);
  }
  if (key == "after") {
    const auto bytes = with_unit(v, kSizes);
    const bool ok = bytes && *bytes >= 0 && *bytes < 1e15;
    if (ok) plan.after = static_cast<std::uint64_t>(std::llround(*bytes));
    return expect(ok, "a number of bytes, for example 64k");
  }
  if (key == "skip_handshake") {
    plan.skip_handshake = v.empty() || v == "on";
    return expect(v.empty() || v == "on" || v == "off", "on or off");
  }
  if (key == "seed") {
    const auto seed = to_whole(v);
    if (seed) plan.seed = *seed;
    return expect(seed.has_value(), "a whole number");
  }
  wrong.clear();
  return false;
}

}  // namespace

std::string_view fault_kind_name(FaultKind k) {
  return k < FaultKind::Count ? kKindNames[static_cast<std::size_t>(k)] : "invalid";
}

bool FaultPlan::idle() const {
  return loss == 0 && duplicate == 0 && reorder == 0 && corrupt == 0 && bad_checksum == 0 &&
         resegment == 0 && delay == Duration() && jitter == Duration() && rate_bps == 0 &&
         at.empty();  // there is no queue, so no frame is marked
}

std::string FaultPlan::to_string() const {
  const FaultPlan plain;
  std::string out;
  const auto put = [&](const char* key, const std::string& value) {
    if (!out.empty()) out += ',';
    out += key;
    out += '=';
    out += value;
  };
  if (loss != 0 || loss_burst != plain.loss_burst) {
    put("loss", number(loss) + (loss_burst == 1 ? "" : ":" + std::to_string(loss_burst)));
  }
  if (duplicate != 0) put("dup", number(duplicate));
  if (reorder != 0 || reorder_frames != plain.reorder_frames) {
    put("reorder",
        number(reorder) + ":" +
            (reorder_frames != 0 ? std::to_string(reorder_frames) : time_text(reorder_delay)));
  }
  if (corrupt != 0) put("corrupt", number(corrupt));
  if (bad_checksum != 0) put("badsum", number(bad_checksum));
  if (resegment != 0) put("reseg", number(resegment));
  if (delay != plain.delay) put("delay", time_text(delay));
  if (jitter != plain.jitter) put("jitter", time_text(jitter));
  if (rate_bps != 0) put("rate", std::to_string(rate_bps) + "bit");
  if (limit != plain.limit) put("limit", std::to_string(limit));
  if (mark != Duration()) put("mark", time_text(mark));
  if (hold != plain.hold) put("hold", time_text(hold));
  if (mtu != 0) put("mtu", std::to_string(mtu));
  if (tcp_only) put("payload_only", std::to_string(payload_only));
  if (after != 0) put("after", std::to_string(after));
  if (skip_handshake) put("skip_handshake", "on");
  if (!at.empty()) {
    std::string list;
    for (const At& a : at) {
      if (!list.empty()) list += '+';
      list += std::string(fault_kind_name(a.kind)) + ":" + std::to_string(a.frame);
    }
    put("at", list);
  }
  if (cut_to != 0) put("cut_at", std::to_string(cut_from) + "-" + std::to_string(cut_to));
  if (seed != plain.seed) put("seed", std::to_string(seed));
  return out;
}

Outcome<FaultPlan, std::string> FaultPlan::parse(std::string_view text) {
  Parser p;
  std::vector<std::string_view> seen;
  while (!text.empty()) {
    const std::string_view item = take_item(text, ',');
    if (item.empty()) continue;
    const auto eq = item.find('=');
    const std::string_view key = trimmed(item.substr(0, eq));
    const std::string_view value = eq == item.npos ? "" : trimmed(item.substr(eq + 1));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      return fail("fault plan: '" + std::string(key) + "' is given twice");
    }
    seen.push_back(key);
    if (p.item(key, value)) continue;
    if (p.wrong.empty()) {
      return fail("fault plan: unknown key '" + std::string(key) +
                  "'; keys: loss, dup, reorder, corrupt, badsum, reseg, delay, jitter, rate, "
                  "limit, mark, hold, mtu, payload_only, after, skip_handshake, at, cut_at, seed");
    }
    return fail("fault plan: " + std::string(item) + ": expected " + p.wrong);
  }
  return p.plan;
}

}  // namespace urnic::fault
