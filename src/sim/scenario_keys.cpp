#include "sim/scenario_keys.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "fault/plan.h"

namespace urnic::sim {

const char* read_whole(const Value& v, std::uint64_t lo, std::uint64_t hi, std::uint64_t* to,
                       const char* expected) {
  std::uint64_t n = 0;
  const char* end = v.text.data() + v.text.size();
  const auto [at, ec] = std::from_chars(v.text.data(), end, n);
  const bool right_type = v.type == ValueType::Whole || v.type == ValueType::Given;
  if (!right_type || v.text.empty() || ec != std::errc() || at != end || n < lo || n > hi) {
    return expected;
  }
  *to = n;
  return nullptr;
}

const char* read_time(const Value& v, Duration* to) {
  constexpr const char* kExpected = "a time up to one hour, like \"2ms\" (ns, us, ms, s)";
  if (v.type != ValueType::Text && v.type != ValueType::Given) return kExpected;
  if (v.text.empty() || v.text.find(',') != std::string::npos) return kExpected;
  const auto plan = fault::FaultPlan::parse("delay=" + v.text);
  if (!plan) return kExpected;
  *to = plan->delay;
  return nullptr;
}

const char* read_text(const Value& v, std::string* to) {
  if (v.type != ValueType::Text && v.type != ValueType::Given) return "a string";
  *to = v.text;
  return nullptr;
}

namespace {

// ---- values by type: what was expected, or nullptr --------------------------------------------

template <class T>
const char* whole32(const Value& v, std::uint64_t lo, std::uint64_t hi, T* to,
                    const char* expected) {
  std::uint64_t n = 0;
  if (const char* wrong = read_whole(v, lo, hi, &n, expected)) return wrong;
  *to = static_cast<T>(n);
  return nullptr;
}

const char* flag(const Value& v, bool* to) {
  const bool yes = v.text == "true", no = v.text == "false";
  if ((v.type != ValueType::Flag && v.type != ValueType::Given) || yes == no) {
    return "true or false";
  }
  *to = yes;
  return nullptr;
}

template <class T>
struct Named {
  const char* name;
  T value;
};
template <class T, std::size_t N>
const char* choice(const Value& v, const Named<T> (&names)[N], T* to, const char* expected) {
  if (v.type != ValueType::Text && v.type != ValueType::Given) return expected;
  for (const Named<T>& n : names) {
    if (v.text != n.name) continue;
    *to = n.value;
    return nullptr;
  }
  return expected;
}

std::vector<std::string> items_of(const Value& v) {
  if (v.type == ValueType::List) return v.items;
  std::vector<std::string> out;
  std::string_view rest = v.text;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    out.emplace_back(one);
  }
  return out;
}

const char* sizes(const Value& v, std::vector<std::uint32_t>* to) {
  constexpr const char* kExpected = "bytes, 0 to 16777216: one number or a list";
  if (v.type != ValueType::Whole && v.type != ValueType::List && v.type != ValueType::Given) {
    return kExpected;
  }
  std::vector<std::uint32_t> out;
  for (const std::string& item : items_of(v)) {
    std::uint32_t n = 0;
    Value one;
    one.type = ValueType::Given;
    one.text = item;
    if (whole32(one, 0, 16u << 20, &n, kExpected) != nullptr) return kExpected;
    out.push_back(n);
  }
  if (out.empty()) return kExpected;
  *to = std::move(out);
  return nullptr;
}

// ---- the keys ---------------------------------------------------------------------------------

using engine::Options;
using OutOfOrder = Options::OutOfOrder;
using fastpath::ConnectionType;
using fastpath::InLogicVariant;

constexpr SceneKey kSceneKeys[] = {
    {"title", "one line", [](Scenario& s, const Value& v) { return read_text(v, &s.title); }},
    {"about", "what to look at",
     [](Scenario& s, const Value& v) { return read_text(v, &s.about); }},
    {"rules", "items of the specification that can be seen, a list",
     [](Scenario& s, const Value& v) -> const char* {
       if (v.type != ValueType::List && v.type != ValueType::Given) return "a list of strings";
       s.rules = items_of(v);
       return nullptr;
     }},
    {"seed", "of all that is left to chance",
     [](Scenario& s, const Value& v) {
       return read_whole(v, 0, ~std::uint64_t{0} / 4, &s.seed, "a whole number");
     }},
    {"runs", "of each variant, each with the next seed; all are counted, the first is shown",
     [](Scenario& s, const Value& v) { return whole32(v, 1, 10000, &s.runs, "1 to 10000"); }},
    {"limit", "virtual time after which a run is ended",
     [](Scenario& s, const Value& v) { return read_time(v, &s.limit); }},
    {"plot",
     "picture: timeline, recovery, memory, copies, delivery, bars, writes; RoCE: psn, packets, "
     "goodput, window, datagrams",
     [](Scenario& s, const Value& v) -> const char* {
       constexpr Named<const char*> kKinds[] = {
           {"timeline", "timeline"}, {"recovery", "recovery"}, {"memory", "memory"},
           {"copies", "copies"},     {"delivery", "delivery"}, {"bars", "bars"},
           {"writes", "writes"},     {"psn", "psn"},           {"packets", "packets"},
           {"goodput", "goodput"},   {"window", "window"},     {"datagrams", "datagrams"}};
       const char* kind = nullptr;
       if (const char* wrong = choice(v, kKinds, &kind,
                                      "timeline, recovery, memory, copies, delivery, bars, "
                                      "writes, psn, packets, goodput, window or datagrams")) {
         return wrong;
       }
       s.plot = kind;
       return nullptr;
     }},
};

constexpr SetupKey kSetupKeys[] = {
    {"name", "of the variant", [](Setup& s, const Value& v) { return read_text(v, &s.name); }},
    {"mtu", "IP MTU of both nodes",
     [](Setup& s, const Value& v) { return whole32(v, 576, 9000, &s.mtu, "bytes, 576 to 9000"); }},
    {"transport", "iwarp or roce",
     [](Setup& s, const Value& v) {
       constexpr Named<bool> kTransports[] = {{"iwarp", false}, {"roce", true}};
       return choice(v, kTransports, &s.roce.on, "iwarp or roce");
     }},
    {"service", "RoCE: rc, uc, ud, xrc or rd",
     [](Setup& s, const Value& v) {
       constexpr Named<verbs::Service> kServices[] = {{"rc", verbs::Service::Rc},
                                                      {"uc", verbs::Service::Uc},
                                                      {"ud", verbs::Service::Ud},
                                                      {"xrc", verbs::Service::XrcSend},
                                                      {"rd", verbs::Service::Rc}};
       s.roce.rd = v.text == "rd";
       return choice(v, kServices, &s.roce.service, "rc, uc, ud, xrc or rd");
     }},
    {"connect", "RoCE: hand (the default) or cm, connection management",
     [](Setup& s, const Value& v) {
       constexpr Named<bool> kWays[] = {{"hand", false}, {"cm", true}};
       return choice(v, kWays, &s.roce.by_cm, "hand or cm");
     }},
    {"faults_at_setup", "the wire's faults strike the set-up of the connection too",
     [](Setup& s, const Value& v) { return flag(v, &s.faults_at_setup); }},
    {"qp.ack_timeout",
     "RoCE, both queue pairs: code of the transport timer, 4.096 us * 2^N; 0: none",
     [](Setup& s, const Value& v) { return whole32(v, 0, 31, &s.roce.ack_timeout, "0 to 31"); }},
    {"qp.retry_count", "RoCE: repetitions without an answer",
     [](Setup& s, const Value& v) { return whole32(v, 0, 7, &s.roce.retry_count, "0 to 7"); }},
    {"qp.rnr_retry", "RoCE: repetitions after an RNR NAK; 7: for ever",
     [](Setup& s, const Value& v) { return whole32(v, 0, 7, &s.roce.rnr_retry, "0 to 7"); }},
    {"qp.min_rnr_timer", "RoCE: RNR NAK timer code",
     [](Setup& s, const Value& v) { return whole32(v, 0, 31, &s.roce.min_rnr_timer, "0 to 31"); }},
    {"qp.on_rnr", "RD: what follows an RNR NAK: retry, suspend, abandon or error",
     [](Setup& s, const Value& v) {
       constexpr Named<ib::OnRnr> kWays[] = {{"retry", ib::OnRnr::Retry},
                                             {"suspend", ib::OnRnr::Suspend},
                                             {"abandon", ib::OnRnr::Abandon},
                                             {"error", ib::OnRnr::Error}};
       return choice(v, kWays, &s.roce.on_rnr, "retry, suspend, abandon or error");
     }},
    {"qp.depth", "RoCE: Reads and atomics outstanding",
     [](Setup& s, const Value& v) { return whole32(v, 1, 16, &s.roce.depth, "1 to 16"); }},
    {"work.op", "write, send, read or, with RoCE, atomic (fetch and add); the left node asks",
     [](Setup& s, const Value& v) {
       constexpr Named<Op> kOps[] = {
           {"write", Op::Write}, {"send", Op::Send}, {"read", Op::Read}, {"atomic", Op::Atomic}};
       return choice(v, kOps, &s.work.op, "write, send, read or atomic");
     }},
    {"work.size", "bytes of a message, or a list of sizes used in turn",
     [](Setup& s, const Value& v) { return sizes(v, &s.work.sizes); }},
    {"work.count", "messages",
     [](Setup& s, const Value& v) {
       return whole32(v, 1, 10000000, &s.work.count, "1 to 10000000");
     }},
    {"work.depth", "work requests outstanding",
     [](Setup& s, const Value& v) { return whole32(v, 1, 200000, &s.work.depth, "1 to 200000"); }},
    {"work.gap", "least time from one posting to the next",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.gap); }},
    {"work.receives", "receives kept posted at the right node",
     [](Setup& s, const Value& v) {
       return whole32(v, 1, 200000, &s.work.receives, "1 to 200000");
     }},
    {"work.receives_begin", "no receive is posted before",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.receives_begin); }},
    {"work.flows", "RoCE: queue pairs that all do this; the first is looked at, and the run is its",
     [](Setup& s, const Value& v) { return whole32(v, 1, 64, &s.work.flows, "1 to 64"); }},
    {"work.beside_tcp", "RoCE: so does a connection of iWARP, over the same wire",
     [](Setup& s, const Value& v) { return flag(v, &s.work.beside_tcp); }},
    {"work.receives_gap", "least time from one posted receive to the next",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.receives_gap); }},
    {"work.sqd_begin", "RoCE: the left queue pair goes to Sqd then",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.sqd_begin); }},
    {"work.sqd_time", "RoCE: and back to Rts so long after it has drained",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.sqd_time); }},
    {"work.sqe_begin", "UD: a request that cannot be sent is posted then, and leads to Sqe",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.sqe_begin); }},
    {"work.sqe_time", "UD, RD: a queue pair in Sqe goes back to Rts after that time",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.sqe_time); }},
    {"work.bad_every", "RD: every so manieth message of the first queue pair is refused; 0: none",
     [](Setup& s, const Value& v) {
       return whole32(v, 0, 1000000, &s.work.bad_every, "0 to 1000000");
     }},
    {"work.embed",
     "Writes carry an FPDU in their payload, bytes 100 to 183: a Write of 64 bytes to "
     "where none is meant to go",
     [](Setup& s, const Value& v) { return flag(v, &s.work.embed); }},
};

// One TCP sender by name, whatever was said before.
const char* sender(const Value& v, tcp::Config* to) {
  enum Kind { Reno, NewReno, Sack, SackCountsPlain, Rack };
  constexpr Named<Kind> kSenders[] = {{"reno", Reno},
                                      {"newreno", NewReno},
                                      {"sack", Sack},
                                      {"sack-counts-plain", SackCountsPlain},
                                      {"rack", Rack}};
  Kind which = NewReno;
  if (const char* wrong =
          choice(v, kSenders, &which, "reno, newreno, sack, sack-counts-plain or rack")) {
    return wrong;
  }
  to->congestion = which == Reno ? tcp::CongestionControl::Reno : tcp::CongestionControl::NewReno;
  to->sack = which != Reno && which != NewReno;
  to->rack = to->tlp = to->prr = which == Rack;
  to->count_plain_dupacks = which == SackCountsPlain;
  return nullptr;
}

constexpr NodeKey kNodeKeys[] = {
    {"type", "initiated as: fast or slow (ConnectionType 62; RoCE: S-1)",
     [](Options& o, const Value& v) {
       constexpr Named<bool> kTypes[] = {{"fast", true}, {"slow", false}};
       bool fast = true;
       if (const char* wrong = choice(v, kTypes, &fast, "fast or slow")) return wrong;
       o.context.initiated_as = fast ? ConnectionType::Fast : ConnectionType::Slow;
       o.roce.loss.type = fast ? ib::ConnectionType::Fast : ib::ConnectionType::Slow;
       return static_cast<const char*>(nullptr);
     },
     KeyOf::Both},
    {"framing",
     "no-markers, markers, absolute-markers or modified-length; with markers Fig 3 decides",
     [](Options& o, const Value& v) -> const char* {
       const auto policy = mpa::policy_by_name(v.text);
       if ((v.type != ValueType::Text && v.type != ValueType::Given) || !policy) {
         return "no-markers, markers, absolute-markers or modified-length";
       }
       o.mpa.policy = *policy;
       if (mpa::has_markers(*policy)) o.context.variant = InLogicVariant::Fig3;
       return nullptr;
     }},
    {"in_logic", "fig9 or fig10, without markers",
     [](Options& o, const Value& v) -> const char* {
       if (mpa::has_markers(o.mpa.policy)) return "none: Fig 3 needs markers";
       constexpr Named<InLogicVariant> kVariants[] = {{"fig9", InLogicVariant::Fig9},
                                                      {"fig10", InLogicVariant::Fig10}};
       return choice(v, kVariants, &o.context.variant, "fig9 or fig10");
     }},
    {"max_recovery_attempts",
     "refused segments (RoCE: gaps) in one recovery before a downgrade; 0: the first error "
     "downgrades",
     [](Options& o, const Value& v) {
       const char* wrong = whole32(v, 0, 1000000, &o.context.max_recovery_attempts, "0 to 1000000");
       if (wrong == nullptr) o.roce.loss.max_recovery_attempts = o.context.max_recovery_attempts;
       return wrong;
     },
     KeyOf::Both},
    {"max_cut_frames",
     "FPDUs that come cut in two before a downgrade (decisions/cut-frames.md); 0: off",
     [](Options& o, const Value& v) {
       return whole32(v, 0, 1000000, &o.context.max_cut_frames, "0 to 1000000");
     }},
    {"max_same_segment",
     "refusals in a row of the segment at RCV.NXT before a downgrade; 0: no limit",
     [](Options& o, const Value& v) {
       return whole32(v, 0, 1000000, &o.context.max_same_segment, "0 to 1000000");
     }},
    {"upgrade_after", "aligned segments (RoCE: requests) in order before an upgrade",
     [](Options& o, const Value& v) {
       const char* wrong =
           whole32(v, 1, fastpath::kMaxUpgradeAfter, &o.context.upgrade_after, "1 to 65536");
       if (wrong == nullptr) o.roce.loss.upgrade_after = o.context.upgrade_after;
       return wrong;
     },
     KeyOf::Both},
    {"immediate_dup_ack", "send a duplicate ACK for every refused segment at once",
     [](Options& o, const Value& v) { return flag(v, &o.context.immediate_dup_ack); }},
    {"out_of_order", "out-of-order data: iWARP: place or store; RoCE: store or drop",
     [](Options& o, const Value& v) {
       enum Way { Place, Store, Drop };
       constexpr Named<Way> kWays[] = {{"place", Place}, {"store", Store}, {"drop", Drop}};
       Way way = Store;
       if (const char* wrong = choice(v, kWays, &way, "place, store or drop")) return wrong;
       o.out_of_order = way == Place ? OutOfOrder::Place : OutOfOrder::Store;
       o.roce.loss.out_of_order = way == Drop ? ib::OutOfOrder::Drop : ib::OutOfOrder::Store;
       return static_cast<const char*>(nullptr);
     },
     KeyOf::Both},
    {"held_packets", "most packets stored behind gaps",
     [](Options& o, const Value& v) {
       return whole32(v, 1, ib::LossRules::kMostStored, &o.roce.loss.store_packets, "1 to 4096");
     },
     KeyOf::Roce},
    {"rnr_park", "packets stored while a Send waits for a receive; 0: send an RNR NAK at once",
     [](Options& o, const Value& v) {
       return whole32(v, 0, ib::LossRules::kMostStored, &o.roce.loss.rnr_park, "0 to 4096");
     },
     KeyOf::Roce},
    {"rnr_park_time", "longest wait of a Send for a receive",
     [](Options& o, const Value& v) { return read_time(v, &o.roce.loss.rnr_park_time); },
     KeyOf::Roce},
    {"probe", "resend the oldest packet as a probe after two round trips without a response",
     [](Options& o, const Value& v) { return flag(v, &o.roce.probe); }, KeyOf::Roce},
    {"selective", "send only lost packets again, if both ends do",
     [](Options& o, const Value& v) { return flag(v, &o.roce.selective); }, KeyOf::Roce},
    {"congestion", "RoCE congestion control: window, dcqcn or off",
     [](Options& o, const Value& v) {
       constexpr Named<ib::CongestionRule> kRules[] = {{"window", ib::CongestionRule::Window},
                                                       {"dcqcn", ib::CongestionRule::Dcqcn},
                                                       {"off", ib::CongestionRule::Off}};
       return choice(v, kRules, &o.roce.send.congestion, "window, dcqcn or off");
     },
     KeyOf::Roce},
    {"credits", "send credits, and obey them",
     [](Options& o, const Value& v) {
       const char* wrong = flag(v, &o.roce.tell_credits);
       if (wrong == nullptr) o.roce.send.obey_credits = o.roce.tell_credits;
       return wrong;
     },
     KeyOf::Roce},
    {"window", "packets of Sends and Writes unacknowledged at most",
     [](Options& o, const Value& v) {
       return whole32(v, 1, 65536, &o.roce.send.window, "1 to 65536");
     },
     KeyOf::Roce},
    {"ack_every", "of a long message, every so manieth packet asks for an ACK",
     [](Options& o, const Value& v) {
       return whole32(v, 1, 65536, &o.roce.send.ack_every, "1 to 65536");
     },
     KeyOf::Roce},
    {"rq_nudge", "send duplicate ACKs when a missing receive is posted",
     [](Options& o, const Value& v) { return flag(v, &o.rq_nudge); }},
    {"completion_method", "1: a WQE and a CQE for each Send; 2: WQEs share a CQE (9.4)",
     [](Options& o, const Value& v) {
       std::uint64_t n = 0;
       if (const char* wrong = read_whole(v, 1, 2, &n, "1 or 2")) return wrong;
       o.completion_method = static_cast<ddp::CompletionMethod>(n);
       return static_cast<const char*>(nullptr);
     }},
    {"completion_threshold", "M of method 2: Sends behind holes kept in the RNIC (Q-26)",
     [](Options& o, const Value& v) {
       return whole32(v, 0, 65536, &o.completion_threshold, "0 to 65536");
     }},
    {"hole_limit", "most TCP holes",
     [](Options& o, const Value& v) {
       return whole32(v, 1, 100000, &o.tcp.hole_limit, "1 to 100000");
     }},
    {"sender",
     "loss recovery: reno, newreno (both no SACK), sack (RFC 6675), sack-counts-plain or "
     "rack (RFC 8985, with tail loss probes and PRR)",
     [](Options& o, const Value& v) { return sender(v, &o.tcp); }},
    {"name_corrupted", "report segments with a wrong CRC to the sender, if both ends do",
     [](Options& o, const Value& v) { return flag(v, &o.tcp.name_corrupted); }},
    {"sack", "offer SACK", [](Options& o, const Value& v) { return flag(v, &o.tcp.sack); }},
    {"ecn", "ask for ECN (RFC 3168)",
     [](Options& o, const Value& v) {
       bool on = false;
       if (const char* wrong = flag(v, &on)) return wrong;
       o.tcp.ecn = on ? tcp::EcnMode::Request : tcp::EcnMode::Off;
       return static_cast<const char*>(nullptr);
     },
     KeyOf::Both},
    {"timestamps", "offer timestamps",
     [](Options& o, const Value& v) { return flag(v, &o.tcp.timestamps); }},
    {"ack_policy", "burst, second or every",
     [](Options& o, const Value& v) {
       constexpr Named<tcp::AckPolicy> kPolicies[] = {{"burst", tcp::AckPolicy::PerBurst},
                                                      {"second", tcp::AckPolicy::EverySecond},
                                                      {"every", tcp::AckPolicy::Immediate}};
       return choice(v, kPolicies, &o.tcp.ack_policy, "burst, second or every");
     }},
    {"initial_window", "bytes; 0: as in RFC 6928",
     [](Options& o, const Value& v) {
       return whole32(v, 0, 64u << 20, &o.tcp.initial_window, "0 to 67108864");
     }},
    {"receive_window", "largest receive window, bytes",
     [](Options& o, const Value& v) {
       return whole32(v, 65536, 64u << 20, &o.tcp.receive_buffer, "65536 to 67108864");
     }},
    {"rto_min", "least retransmission timeout",
     [](Options& o, const Value& v) { return read_time(v, &o.tcp.rto_min); }},
    {"rto_max", "largest retransmission timeout",
     [](Options& o, const Value& v) { return read_time(v, &o.tcp.rto_max); }},
};

constexpr WireKey kWireKeys[] = {
    {"rate", "rate", "of the line, like \"1gbit\""},
    {"delay", "delay", "of every frame"},
    {"jitter", "jitter", "up to this much more delay; order is kept"},
    {"queue", "limit", "frames waiting in the line; more are lost"},
    {"mark", "mark",
     "frames that wait longer for the line get a CE mark, if they can be marked; 0: none do"},
    {"loss", "loss", "probability, or \"P:FRAMES\" for losses in a row"},
    {"dup", "dup", "probability"},
    {"reorder", "reorder", "probability, \"P:FRAMES\" or \"P:TIME\""},
    {"corrupt", "corrupt",
     "probability; the checksum is mended: only the MPA CRC, or RoCE's ICRC, can tell"},
    {"badsum", "badsum", "probability; the TCP checksum is wrong"},
    {"reseg", "reseg", "probability that a segment is cut or joined"},
    {"hold", "hold", "longest wait for a frame to reorder with or join to"},
    {"payload_only", "payload_only",
     "touch only TCP segments and packets of RoCE with more payload than this"},
    {"at", "at",
     "exact faults, \"KIND:N+KIND:N\" or a list (empty: none): loss dup reorder corrupt badsum "
     "cut"},
    {"cut_at", "cut_at", "\"FROM-TO\": bytes of the payload that an exact cut makes a segment of"},
};

}  // namespace

std::span<const SceneKey> scene_keys() {
  return kSceneKeys;
}
std::span<const SetupKey> setup_keys() {
  return kSetupKeys;
}
std::span<const NodeKey> node_keys() {
  return kNodeKeys;
}
std::span<const WireKey> wire_keys() {
  return kWireKeys;
}

}  // namespace urnic::sim
