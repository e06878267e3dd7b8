#include "fault/verbs_plan.h"

#include <errno.h>
#include <string.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/nearest.h"
#include "base/time.h"
#include "fault/plan_words.h"

namespace urnic::fault {
namespace {

// Whose number `qp=` and `from=` compare with.
enum class Scope : std::uint8_t { Caller, CallerAndQp, Qp, None };

struct Kind {
  std::string_view name;
  VerbsArgument argument;
  std::int64_t usual;  // the argument, if none is given
  Scope scope;
};

constexpr std::int64_t kRetryExceeded = 12, kLocalProtection = 4;  // ibv_wc_status
constexpr std::int64_t kLate = 10'000'000, kPortDown = 100'000'000;

constexpr Kind call(std::string_view name, Scope scope = Scope::Caller) {
  return {name, VerbsArgument::Errno, ENOMEM, scope};
}
constexpr Kind event(std::string_view name, Scope scope) {
  return {name, VerbsArgument::None, 0, scope};
}
constexpr Kind answer(std::string_view name, std::int64_t usual) {
  return {name, VerbsArgument::Answer, usual, Scope::Caller};
}

// In the order of VerbsKind.
constexpr Kind kKinds[] = {
    call("ibv_open_device"),
    call("ibv_alloc_pd"),
    call("ibv_reg_mr"),
    call("ibv_create_comp_channel"),
    call("ibv_create_cq"),
    call("ibv_create_srq"),
    call("ibv_create_qp"),
    call("ibv_create_ah"),
    call("ibv_modify_qp", Scope::CallerAndQp),
    call("ibv_post_send", Scope::CallerAndQp),
    call("ibv_post_recv", Scope::CallerAndQp),
    call("ibv_post_srq_recv"),
    call("ibv_poll_cq"),
    call("ibv_req_notify_cq"),
    call("ibv_get_cq_event"),
    call("rdma_create_event_channel"),
    call("rdma_create_id"),
    call("rdma_bind_addr"),
    call("rdma_listen"),
    call("rdma_resolve_addr"),
    call("rdma_resolve_route"),
    call("rdma_create_qp"),
    call("rdma_connect"),
    call("rdma_accept"),
    {"send_wr", VerbsArgument::Status, kRetryExceeded, Scope::CallerAndQp},
    {"recv_wr", VerbsArgument::Status, kLocalProtection, Scope::CallerAndQp},
    {"late", VerbsArgument::Time, kLate, Scope::None},
    event("split", Scope::None),
    event("cq_full", Scope::None),
    answer("addr_error", -ENODEV),
    answer("route_error", -ETIMEDOUT),
    answer("connect_error", -ECONNRESET),
    answer("unreachable", -ETIMEDOUT),
    answer("rejected", 0),  // 0: as the transport reports a refusal by the program
    {"port_err", VerbsArgument::Time, kPortDown, Scope::None},
    event("gid_change", Scope::None),
    event("device_fatal", Scope::None),
    event("qp_fatal", Scope::Qp),
    event("qp_req_err", Scope::Qp),
    event("qp_access_err", Scope::Qp),
    event("srq_limit", Scope::None),
};
static_assert(std::size(kKinds) == static_cast<std::size_t>(VerbsKind::Count));

// In the order of ibv_wc_status, without IBV_WC_; success is no fault.
constexpr std::string_view kStatuses[] = {"",
                                          "LOC_LEN_ERR",
                                          "LOC_QP_OP_ERR",
                                          "LOC_EEC_OP_ERR",
                                          "LOC_PROT_ERR",
                                          "WR_FLUSH_ERR",
                                          "MW_BIND_ERR",
                                          "BAD_RESP_ERR",
                                          "LOC_ACCESS_ERR",
                                          "REM_INV_REQ_ERR",
                                          "REM_ACCESS_ERR",
                                          "REM_OP_ERR",
                                          "RETRY_EXC_ERR",
                                          "RNR_RETRY_EXC_ERR",
                                          "LOC_RDD_VIOL_ERR",
                                          "REM_INV_RD_REQ_ERR",
                                          "REM_ABORT_ERR",
                                          "INV_EECN_ERR",
                                          "INV_EEC_STATE_ERR",
                                          "FATAL_ERR",
                                          "RESP_TIMEOUT_ERR",
                                          "GENERAL_ERR"};

const Kind& kind_of(VerbsKind k) {
  return kKinds[static_cast<std::size_t>(k)];
}

std::optional<VerbsKind> to_kind(std::string_view name) {
  const auto* found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                   [&](const Kind& k) { return k.name == name; });
  if (found == std::end(kKinds)) return std::nullopt;
  return static_cast<VerbsKind>(found - std::begin(kKinds));
}

std::string name_of_errno(std::int64_t number) {
  const char* const name = strerrorname_np(static_cast<int>(number));
  return name != nullptr ? name : std::to_string(number);
}

std::optional<std::int64_t> to_errno(std::string_view s) {
  constexpr int kMost = 4095;
  for (int e = 1; e < 200; ++e) {
    const char* const name = strerrorname_np(e);
    if (name != nullptr && s == name) return e;
  }
  const auto number = to_whole(s);
  if (!number || *number == 0 || *number > kMost) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<std::int64_t> to_argument(VerbsArgument what, std::string_view s) {
  switch (what) {
    case VerbsArgument::Errno:
      return to_errno(s);
    case VerbsArgument::Status: {
      const auto* const found = std::find(std::begin(kStatuses), std::end(kStatuses), s);
      if (s.empty() || found == std::end(kStatuses)) return std::nullopt;
      return found - std::begin(kStatuses);
    }
    case VerbsArgument::Time: {
      const auto time = to_time(s);
      if (!time) return std::nullopt;
      return time->count_ns();
    }
    case VerbsArgument::Answer: {
      // A reject reason as RoCE carries it, or an errno value, which events show negated.
      const auto reason = to_whole(s);
      if (reason && *reason != 0 && *reason < 256) return static_cast<std::int64_t>(*reason);
      const auto e = reason ? std::nullopt : to_errno(s);
      if (!e) return std::nullopt;
      return -*e;
    }
    case VerbsArgument::None:
      break;
  }
  return std::nullopt;
}

const char* expected(VerbsArgument what) {
  switch (what) {
    case VerbsArgument::Errno:
      return "an errno value, for example ENOMEM";
    case VerbsArgument::Status:
      return "an ibv_wc_status without IBV_WC_, for example RETRY_EXC_ERR";
    case VerbsArgument::Time:
      return "a time up to one hour, for example 2ms (ns, us, ms, s)";
    case VerbsArgument::Answer:
      return "a reject reason from 1 to 255, or an errno value";
    case VerbsArgument::None:
      break;
  }
  return "no argument";
}

// Parses one key=value at a time; on failure `wrong` is the expected format, or empty for an
// unknown key.
class Parser {
 public:
  VerbsPlan plan;
  std::string wrong;

  bool item(std::string_view key, std::string_view v) {
    if (key == "at") return at(v);
    if (key == "from") {
      plan.from = v;
      return expect(!v.empty(), "the name of a function or of a file");
    }
    if (key == "seed") {
      const auto seed = to_whole(v);
      if (seed) plan.seed = *seed;
      return expect(seed.has_value(), "a whole number");
    }
    if (key == "qp") {
      const auto n = to_whole(v);
      const bool ok = n && *n > 0 && *n <= UINT32_MAX;
      if (ok) plan.qp = static_cast<std::uint32_t>(*n);
      return expect(ok, "a whole number, at least 1");
    }
    const auto kind = to_kind(key);
    if (!kind) return expect(false, "");
    const auto colon = v.find(':');
    const auto p = to_probability(v.substr(0, colon));
    if (!p) return expect(false, "a probability from 0 to 1");
    return add({*kind, *p, 0, 0}, colon == v.npos ? v.npos : colon + 1, v);
  }

  // Restrictions that the faults of the plan cannot have. Empty: none.
  std::string contradiction() const {
    for (const VerbsPlan::Fault& f : plan.faults) {
      const Scope scope = kind_of(f.kind).scope;
      const std::string name(kind_of(f.kind).name);
      if (plan.qp != 0 && scope != Scope::Qp && scope != Scope::CallerAndQp) {
        return "qp= does not apply to " + name + ": write it as a plan of its own, after ';'";
      }
      if (!plan.from.empty() && scope != Scope::Caller && scope != Scope::CallerAndQp) {
        return "from= does not apply to " + name + ": write it as a plan of its own, after ';'";
      }
    }
    return {};
  }

 private:
  bool expect(bool ok, const char* what) {
    if (!ok) wrong = what;
    return ok;
  }
  // The argument begins at `from`; npos: there is none.
  bool add(VerbsPlan::Fault fault, std::size_t from, std::string_view in) {
    const Kind& kind = kind_of(fault.kind);
    fault.argument = kind.usual;
    if (from != in.npos) {
      const auto argument = to_argument(kind.argument, in.substr(from));
      if (!argument) return expect(false, expected(kind.argument));
      fault.argument = *argument;
    }
    plan.faults.push_back(fault);
    return true;
  }
  bool at(std::string_view v) {
    if (v.empty()) return expect(false, "KIND:N[:ARGUMENT]+KIND:N...");
    while (!v.empty()) {
      const std::string_view one = take_item(v, '+');
      const auto first = one.find(':');
      const auto second = first == one.npos ? one.npos : one.find(':', first + 1);
      const auto kind = to_kind(one.substr(0, first));
      const auto n =
          first == one.npos ? std::nullopt : to_whole(one.substr(first + 1, second - first - 1));
      if (!kind || !n || *n == 0) return expect(false, "KIND:N[:ARGUMENT]+KIND:N...");
      if (!add({*kind, 0, *n, 0}, second == one.npos ? one.npos : second + 1, one)) return false;
    }
    return true;
  }
};

std::string unknown(std::string_view key) {
  std::vector<std::string> known = {"at", "qp", "from", "seed"};
  for (const Kind& k : kKinds) known.emplace_back(k.name);
  return "verbs faults: unknown key '" + std::string(key) + "'" + nearest_hint(key, known);
}

}  // namespace

std::string_view verbs_kind_name(VerbsKind k) {
  return k < VerbsKind::Count ? kind_of(k).name : "invalid";
}

VerbsArgument verbs_argument_of(VerbsKind k) {
  return kind_of(k).argument;
}

std::string verbs_argument_text(VerbsKind k, std::int64_t argument) {
  switch (kind_of(k).argument) {
    case VerbsArgument::Errno:
      return name_of_errno(argument);
    case VerbsArgument::Status:
      return std::string(kStatuses[static_cast<std::size_t>(argument)]);
    case VerbsArgument::Time:
      return time_text(Duration::ns(argument));
    case VerbsArgument::Answer:
      if (argument == 0) return {};
      return argument < 0 ? name_of_errno(-argument) : std::to_string(argument);
    case VerbsArgument::None:
      break;
  }
  return {};
}

std::string VerbsPlan::to_string() const {
  std::string out, list;
  const auto put = [&](const std::string& item) { out += (out.empty() ? "" : ",") + item; };
  for (const Fault& f : faults) {
    const std::string name(kind_of(f.kind).name);
    const bool usual = f.argument == kind_of(f.kind).usual;
    const std::string argument = usual ? "" : ":" + verbs_argument_text(f.kind, f.argument);
    if (f.nth == 0) {
      put(name + "=" + number(f.probability) + argument);
    } else {
      list += (list.empty() ? "" : "+") + name + ":" + std::to_string(f.nth) + argument;
    }
  }
  if (!list.empty()) put("at=" + list);
  if (qp != 0) put("qp=" + std::to_string(qp));
  if (!from.empty()) put("from=" + from);
  if (seed != VerbsPlan().seed) put("seed=" + std::to_string(seed));
  return out;
}

Outcome<VerbsPlan, std::string> VerbsPlan::parse(std::string_view text) {
  Parser p;
  std::string wrong = for_each_item(
      "verbs faults", text,
      [&](std::string_view item, std::string_view key, std::string_view value) -> std::string {
        if (p.item(key, value)) return {};
        if (p.wrong.empty()) return unknown(key);
        return "verbs faults: " + std::string(item) + ": expected " + p.wrong;
      });
  if (!wrong.empty()) return fail(std::move(wrong));
  if (p.plan.faults.empty()) return fail(std::string("verbs faults: the plan has no fault"));
  if (std::string why = p.contradiction(); !why.empty()) {
    return fail("verbs faults: " + std::move(why));
  }
  return std::move(p.plan);
}

Outcome<std::vector<VerbsPlan>, std::string> parse_verbs_plans(std::string_view text) {
  std::vector<VerbsPlan> plans;
  do {
    auto plan = VerbsPlan::parse(take_item(text, ';'));
    if (!plan.ok()) return fail(plan.error());
    plans.push_back(std::move(*plan));
  } while (!text.empty());
  return plans;
}

}  // namespace urnic::fault
