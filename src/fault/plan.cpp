#include "fault/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "fault/plan_words.h"

namespace urnic::fault {
namespace {

constexpr std::string_view kKindNames[] = {"loss",   "dup",   "reorder", "corrupt",
                                           "badsum", "cut",   "join",    "overflow",
                                           "mark",   "stall", "reset",   "close_window"};

constexpr unsigned kFrames = 1, kStream = 2, kBoth = 3;
constexpr unsigned bit(Carrier c) {
  return c == Carrier::Frames ? kFrames : kStream;
}
struct Key {
  std::string_view name;
  unsigned carriers;
};
constexpr Key kKeys[] = {{"loss", kBoth},
                         {"dup", kFrames},
                         {"reorder", kFrames},
                         {"corrupt", kBoth},
                         {"badsum", kFrames},
                         {"reseg", kBoth},
                         {"stall", kStream},
                         {"reset", kStream},
                         {"close_window", kStream},
                         {"delay", kBoth},
                         {"jitter", kBoth},
                         {"rate", kBoth},
                         {"limit", kFrames},
                         {"mark", kFrames},
                         {"hold", kBoth},
                         {"rto", kStream},
                         {"mtu", kFrames},
                         {"payload_only", kBoth},
                         {"after", kBoth},
                         {"skip_handshake", kBoth},
                         {"at", kBoth},
                         {"cut_at", kBoth},
                         {"seed", kBoth}};

// Kinds of which an exact fault can be requested. Join and Overflow need more than one frame.
struct ExactKind {
  FaultKind kind;
  unsigned carriers;
};
constexpr ExactKind kExact[] = {{FaultKind::Loss, kBoth},         {FaultKind::Duplicate, kFrames},
                                {FaultKind::Reorder, kFrames},    {FaultKind::Corrupt, kBoth},
                                {FaultKind::BadSum, kFrames},     {FaultKind::Cut, kBoth},
                                {FaultKind::Stall, kStream},      {FaultKind::Reset, kStream},
                                {FaultKind::CloseWindow, kStream}};

std::string list_of(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

std::string keys_of(Carrier c) {
  std::vector<std::string_view> names;
  for (const Key& k : kKeys) {
    if ((k.carriers & bit(c)) != 0) names.push_back(k.name);
  }
  return list_of(names);
}

std::string exact_kinds_of(Carrier c) {
  std::vector<std::string_view> names;
  for (const ExactKind& k : kExact) {
    if ((k.carriers & bit(c)) != 0) names.push_back(fault_kind_name(k.kind));
  }
  return list_of(names);
}

// The kind of an exact fault.
std::optional<FaultKind> exact_kind(std::string_view name, Carrier c) {
  for (const ExactKind& k : kExact) {
    if ((k.carriers & bit(c)) != 0 && fault_kind_name(k.kind) == name) return k.kind;
  }
  return std::nullopt;
}

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
  explicit Parser(Carrier carrier) : carrier_(carrier) {}
  FaultPlan plan;
  std::string wrong;

  bool item(std::string_view key, std::string_view value);

 private:
  bool expect(bool ok, std::string_view what) {
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
  bool for_a_time(std::string_view v, double& p, Duration& to);
  bool rate(std::string_view v);
  bool fault(std::string_view key, std::string_view v);
  bool stage(std::string_view key, std::string_view v);
  bool choice(std::string_view key, std::string_view v);

  Carrier carrier_;
};

bool Parser::loss(std::string_view v) {
  if (carrier_ == Carrier::Stream) {
    return probability(v, plan.loss) ||
           expect(false, "a probability from 0 to 1; a stream has no bursts of losses");
  }
  const auto colon = v.find(':');
  if (!probability(v.substr(0, colon), plan.loss)) return false;
  return colon == v.npos || count(v.substr(colon + 1), plan.loss_burst, 1);
}

bool Parser::for_a_time(std::string_view v, double& p, Duration& to) {
  const auto colon = v.find(':');
  if (!probability(v.substr(0, colon), p)) return false;
  return colon == v.npos || time(v.substr(colon + 1), to);
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
    const auto kind = exact_kind(one.substr(0, colon), carrier_);
    const auto n = colon == one.npos ? std::nullopt : to_whole(one.substr(colon + 1));
    if (!kind || !n || *n == 0) {
      return expect(false, "KIND:N+KIND:N..., KIND is one of " + exact_kinds_of(carrier_));
    }
    plan.at.push_back({*kind, *n});
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

bool Parser::rate(std::string_view v) {
  const auto rate = with_unit(v, kRates);
  const bool ok = rate && *rate >= 1000 && *rate <= 1e13;
  if (ok) plan.rate_bps = static_cast<std::uint64_t>(std::llround(*rate));
  return expect(ok, "a rate from 1kbit to 10000gbit, for example 500mbit");
}

// The keys of faults of single frames or records.
bool Parser::fault(std::string_view key, std::string_view v) {
  if (key == "loss") return loss(v);
  if (key == "dup") return probability(v, plan.duplicate);
  if (key == "reorder") return reorder(v);
  if (key == "corrupt") return probability(v, plan.corrupt);
  if (key == "badsum") return probability(v, plan.bad_checksum);
  if (key == "reseg") return probability(v, plan.resegment);
  if (key == "stall") return for_a_time(v, plan.stall, plan.stall_time);
  if (key == "reset") return probability(v, plan.reset);
  if (key == "close_window") return for_a_time(v, plan.close_window, plan.window_time);
  if (key == "at") return at(v);
  return false;
}

// The line, and the limits of faults.
bool Parser::stage(std::string_view key, std::string_view v) {
  if (key == "delay") return time(v, plan.delay);
  if (key == "jitter") return time(v, plan.jitter);
  if (key == "hold") return time(v, plan.hold);
  if (key == "rto") return time(v, plan.rto);
  if (key == "limit") return count(v, plan.limit, 1);
  if (key == "mark") return time(v, plan.mark);
  if (key == "cut_at") return cut_at(v);
  if (key == "rate") return rate(v);
  if (key == "mtu") {
    return count(v, plan.mtu, 0) && expect(plan.mtu >= 576 && plan.mtu <= 65535, "576 to 65535");
  }
  return false;
}

// Which frames or records are eligible, and the seed.
bool Parser::choice(std::string_view key, std::string_view v) {
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
  return false;
}

bool Parser::item(std::string_view key, std::string_view v) {
  wrong.clear();
  if (fault(key, v)) return true;
  if (wrong.empty() && stage(key, v)) return true;
  return wrong.empty() && choice(key, v);
}

std::string text_of(const std::vector<FaultPlan::At>& at) {
  std::string list;
  for (const FaultPlan::At& a : at) {
    if (!list.empty()) list += '+';
    list += std::string(fault_kind_name(a.kind)) + ":" + std::to_string(a.frame);
  }
  return list;
}

// Why a plan for `carrier` cannot have this key; nullopt: it can.
std::optional<std::string> refusal(std::string_view key, Carrier carrier) {
  const auto known =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const Key& k) { return k.name == key; });
  if (known != std::end(kKeys) && (known->carriers & bit(carrier)) != 0) return std::nullopt;
  std::string why = "fault plan: ";
  if (known == std::end(kKeys)) {
    why += "unknown key '" + std::string(key) + "'";
  } else if (carrier == Carrier::Stream) {
    why += "'" + std::string(key) + "' needs frames, and port = tcp sends a stream of bytes";
  } else {
    why += "'" + std::string(key) + "' is only for port = tcp, which sends a stream of bytes";
  }
  return why + "; keys: " + keys_of(carrier);
}

}  // namespace

std::string_view fault_kind_name(FaultKind k) {
  return k < FaultKind::Count ? kKindNames[static_cast<std::size_t>(k)] : "invalid";
}

bool FaultPlan::idle() const {
  return loss == 0 && duplicate == 0 && reorder == 0 && corrupt == 0 && bad_checksum == 0 &&
         resegment == 0 && stall == 0 && reset == 0 && close_window == 0 && delay == Duration() &&
         jitter == Duration() && rate_bps == 0 &&
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
  const auto put_time = [&](const char* key, Duration value, Duration usual) {
    if (value != usual) put(key, time_text(value));
  };
  const auto put_number = [&](const char* key, std::uint64_t value, std::uint64_t usual) {
    if (value != usual) put(key, std::to_string(value));
  };
  const auto put_for = [&](const char* key, double p, Duration value, Duration usual) {
    if (p == 0 && value == usual) return;
    put(key, number(p) + (value == usual ? "" : ":" + time_text(value)));
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
  put_for("stall", stall, stall_time, plain.stall_time);
  if (reset != 0) put("reset", number(reset));
  put_for("close_window", close_window, window_time, plain.window_time);
  put_time("delay", delay, plain.delay);
  put_time("jitter", jitter, plain.jitter);
  if (rate_bps != 0) put("rate", std::to_string(rate_bps) + "bit");
  put_number("limit", limit, plain.limit);
  put_time("mark", mark, plain.mark);
  put_time("hold", hold, plain.hold);
  put_time("rto", rto, plain.rto);
  put_number("mtu", mtu, plain.mtu);
  if (tcp_only) put("payload_only", std::to_string(payload_only));
  put_number("after", after, plain.after);
  if (skip_handshake) put("skip_handshake", "on");
  if (!at.empty()) put("at", text_of(at));
  if (cut_to != 0) put("cut_at", std::to_string(cut_from) + "-" + std::to_string(cut_to));
  put_number("seed", seed, plain.seed);
  return out;
}

Outcome<FaultPlan, std::string> FaultPlan::parse(std::string_view text, Carrier carrier) {
  Parser p(carrier);
  std::string wrong = for_each_item(
      "fault plan", text,
      [&](std::string_view item, std::string_view key, std::string_view value) -> std::string {
        if (auto refused = refusal(key, carrier)) return std::move(*refused);
        if (p.item(key, value)) return {};
        return "fault plan: " + std::string(item) + ": expected " + p.wrong;
      });
  if (!wrong.empty()) return fail(std::move(wrong));
  return p.plan;
}

}  // namespace urnic::fault
