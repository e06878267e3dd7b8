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
  constexpr const char* kExpected = "a time up to one hour, for example \"2ms\" (ns, us, ms, s)";
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

// ---- parse values by type; return the expected format, or nullptr on success --------------------

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
  constexpr const char* kExpected = "bytes from 0 to 16777216, a number or a list";
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
    {"title", "title of the scenario, one line",
     [](Scenario& s, const Value& v) { return read_text(v, &s.title); }},
    {"about", "description: what the scenario shows",
     [](Scenario& s, const Value& v) { return read_text(v, &s.about); }},
    {"rules", "list of the rules of the specification that the scenario shows",
     [](Scenario& s, const Value& v) -> const char* {
       if (v.type != ValueType::List && v.type != ValueType::Given) return "a list of strings";
       s.rules = items_of(v);
       return nullptr;
     }},
    {"seed", "seed of all random choices",
     [](Scenario& s, const Value& v) {
       return read_whole(v, 0, ~std::uint64_t{0} / 4, &s.seed, "a whole number");
     }},
    {"runs",
     "runs of each variant, with consecutive seeds; counters cover all runs, the plot shows the "
     "first",
     [](Scenario& s, const Value& v) { return whole32(v, 1, 10000, &s.runs, "1 to 10000"); }},
    {"limit", "virtual time at which a run ends at the latest",
     [](Scenario& s, const Value& v) { return read_time(v, &s.limit); }},
    {"plot",
     "kind of plot: timeline, recovery, memory, copies, delivery, bars, writes; RoCE: psn, "
     "packets, "
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
    {"name", "name of the variant", [](Setup& s, const Value& v) { return read_text(v, &s.name); }},
    {"mtu", "IP MTU of both nodes, bytes",
     [](Setup& s, const Value& v) {
       return whole32(v, 576, 9000, &s.mtu, "bytes from 576 to 9000");
     }},
    {"transport", "transport of both nodes: iwarp or roce",
     [](Setup& s, const Value& v) {
       constexpr Named<bool> kTransports[] = {{"iwarp", false}, {"roce", true}};
       return choice(v, kTransports, &s.roce.on, "iwarp or roce");
     }},
    {"service", "RoCE: transport service: rc, uc, ud, xrc or rd",
     [](Setup& s, const Value& v) {
       constexpr Named<verbs::Service> kServices[] = {{"rc", verbs::Service::Rc},
                                                      {"uc", verbs::Service::Uc},
                                                      {"ud", verbs::Service::Ud},
                                                      {"xrc", verbs::Service::XrcSend},
                                                      {"rd", verbs::Service::Rc}};
       s.roce.rd = v.text == "rd";
       return choice(v, kServices, &s.roce.service, "rc, uc, ud, xrc or rd");
     }},
    {"connect", "RoCE: how to connect: hand (modify, the default) or cm (connection management)",
     [](Setup& s, const Value& v) {
       constexpr Named<bool> kPolicies[] = {{"hand", false}, {"cm", true}};
       return choice(v, kPolicies, &s.roce.by_cm, "hand or cm");
     }},
    {"faults_at_setup", "apply the faults of the wire during connection set-up too",
     [](Setup& s, const Value& v) { return flag(v, &s.faults_at_setup); }},
    {"qp.ack_timeout", "RoCE: ack timeout N of both queue pairs: 4.096 us * 2^N; 0: no timeout",
     [](Setup& s, const Value& v) { return whole32(v, 0, 31, &s.roce.ack_timeout, "0 to 31"); }},
    {"qp.retry_count", "RoCE: retransmissions without a response before the queue pair fails",
     [](Setup& s, const Value& v) { return whole32(v, 0, 7, &s.roce.retry_count, "0 to 7"); }},
    {"qp.rnr_retry", "RoCE: retransmissions after an RNR NAK; 7: no limit",
     [](Setup& s, const Value& v) { return whole32(v, 0, 7, &s.roce.rnr_retry, "0 to 7"); }},
    {"qp.min_rnr_timer", "RoCE: code of the wait time that an RNR NAK requests",
     [](Setup& s, const Value& v) { return whole32(v, 0, 31, &s.roce.min_rnr_timer, "0 to 31"); }},
    {"qp.on_rnr", "RD: reaction to an RNR NAK: retry, suspend, abandon or error",
     [](Setup& s, const Value& v) {
       constexpr Named<OnRnr> kPolicies[] = {{"retry", OnRnr::Retry},
                                             {"suspend", OnRnr::Suspend},
                                             {"abandon", OnRnr::Abandon},
                                             {"error", OnRnr::Error}};
       return choice(v, kPolicies, &s.roce.on_rnr, "retry, suspend, abandon or error");
     }},
    {"qp.depth", "RoCE: limit of outstanding Reads and atomics",
     [](Setup& s, const Value& v) { return whole32(v, 1, 16, &s.roce.depth, "1 to 16"); }},
    {"work.op",
     "operation: write, send, read or, with RoCE, atomic (fetch and add); posted at the left node",
     [](Setup& s, const Value& v) {
       constexpr Named<Op> kOps[] = {
           {"write", Op::Write}, {"send", Op::Send}, {"read", Op::Read}, {"atomic", Op::Atomic}};
       return choice(v, kOps, &s.work.op, "write, send, read or atomic");
     }},
    {"work.size", "message size in bytes, or a list of sizes used in turn",
     [](Setup& s, const Value& v) { return sizes(v, &s.work.sizes); }},
    {"work.count", "number of messages",
     [](Setup& s, const Value& v) {
       return whole32(v, 1, 10000000, &s.work.count, "1 to 10000000");
     }},
    {"work.depth", "limit of outstanding work requests",
     [](Setup& s, const Value& v) { return whole32(v, 1, 200000, &s.work.depth, "1 to 200000"); }},
    {"work.gap", "minimum time between two posted work requests",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.gap); }},
    {"work.receives", "receives kept posted at the right node",
     [](Setup& s, const Value& v) {
       return whole32(v, 1, 200000, &s.work.receives, "1 to 200000");
     }},
    {"work.receives_begin", "time of the first posted receive",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.receives_begin); }},
    {"work.flows",
     "RoCE: number of queue pairs with this work; plot and end of the run are those of the first",
     [](Setup& s, const Value& v) { return whole32(v, 1, 64, &s.work.flows, "1 to 64"); }},
    {"work.beside_tcp", "RoCE: run an iWARP connection with this work over the same wire",
     [](Setup& s, const Value& v) { return flag(v, &s.work.beside_tcp); }},
    {"work.receives_gap", "minimum time between two posted receives",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.receives_gap); }},
    {"work.sqd_begin", "RoCE: time at which the left queue pair goes to SQD",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.sqd_begin); }},
    {"work.sqd_time", "RoCE: time from drained until it returns to RTS",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.sqd_time); }},
    {"work.sqe_begin", "UD: time at which an invalid request is posted, which leads to SQE",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.sqe_begin); }},
    {"work.sqe_time", "UD, RD: time until a queue pair in SQE returns to RTS",
     [](Setup& s, const Value& v) { return read_time(v, &s.work.sqe_time); }},
    {"work.bad_every", "RD: reject every N-th message of the first queue pair; 0: none",
     [](Setup& s, const Value& v) {
       return whole32(v, 0, 1000000, &s.work.bad_every, "0 to 1000000");
     }},
    {"work.embed",
     "embed an FPDU in the payload of each Write (bytes 100 to 183): a Write of 64 bytes to an "
     "unintended address",
     [](Setup& s, const Value& v) { return flag(v, &s.work.embed); }},
};

// Selects one TCP sender by name, overriding earlier settings.
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
    {"type", "initial connection type: fast or slow",
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
     "MPA framing: no-markers, markers, absolute-markers or modified-length; markers select "
     "InLogic fig3",
     [](Options& o, const Value& v) -> const char* {
       const auto policy = mpa::policy_by_name(v.text);
       if ((v.type != ValueType::Text && v.type != ValueType::Given) || !policy) {
         return "no-markers, markers, absolute-markers or modified-length";
       }
       o.mpa.policy = *policy;
       if (mpa::has_markers(*policy)) o.context.variant = InLogicVariant::Fig3;
       return nullptr;
     }},
    {"in_logic", "InLogic variant without markers: fig9 or fig10",
     [](Options& o, const Value& v) -> const char* {
       if (mpa::has_markers(o.mpa.policy))
         return "no in_logic: framing with markers always uses Fig 3";
       constexpr Named<InLogicVariant> kVariants[] = {{"fig9", InLogicVariant::Fig9},
                                                      {"fig10", InLogicVariant::Fig10}};
       return choice(v, kVariants, &o.context.variant, "fig9 or fig10");
     }},
    {"max_recovery_attempts",
     "recovery attempts (RoCE: gaps) before a downgrade; 0: downgrade at the first error",
     [](Options& o, const Value& v) {
       const char* wrong = whole32(v, 0, 1000000, &o.context.max_recovery_attempts, "0 to 1000000");
       if (wrong == nullptr) o.roce.loss.max_recovery_attempts = o.context.max_recovery_attempts;
       return wrong;
     },
     KeyOf::Both},
    {"max_cut_frames", "FPDUs received in two segments before a downgrade; 0: off",
     [](Options& o, const Value& v) {
       return whole32(v, 0, 1000000, &o.context.max_cut_frames, "0 to 1000000");
     }},
    {"max_same_segment", "consecutive drops of the segment at RCV.NXT before a downgrade; 0: off",
     [](Options& o, const Value& v) {
       return whole32(v, 0, 1000000, &o.context.max_same_segment, "0 to 1000000");
     }},
    {"upgrade_after", "consecutive aligned segments (RoCE: in-order requests) before an upgrade",
     [](Options& o, const Value& v) {
       const char* wrong =
           whole32(v, 1, fastpath::kMaxUpgradeAfter, &o.context.upgrade_after, "1 to 65536");
       if (wrong == nullptr) o.roce.loss.upgrade_after = o.context.upgrade_after;
       return wrong;
     },
     KeyOf::Both},
    {"immediate_dup_ack", "send a duplicate ACK for each dropped segment",
     [](Options& o, const Value& v) { return flag(v, &o.context.immediate_dup_ack); }},
    {"out_of_order", "handling of out-of-order data: place or store (iWARP), store or drop (RoCE)",
     [](Options& o, const Value& v) {
       enum Policy { Place, Store, Drop };
       constexpr Named<Policy> kPolicies[] = {{"place", Place}, {"store", Store}, {"drop", Drop}};
       Policy way = Store;
       if (const char* wrong = choice(v, kPolicies, &way, "place, store or drop")) return wrong;
       o.out_of_order = way == Place ? OutOfOrder::Place : OutOfOrder::Store;
       o.roce.loss.out_of_order = way == Drop ? ib::OutOfOrder::Drop : ib::OutOfOrder::Store;
       return static_cast<const char*>(nullptr);
     },
     KeyOf::Both},
    {"held_packets", "limit of packets held behind gaps",
     [](Options& o, const Value& v) {
       return whole32(v, 1, ib::LossRules::kMostStored, &o.roce.loss.store_packets, "1 to 4096");
     },
     KeyOf::Roce},
    {"rnr_park", "limit of packets that wait for a posted receive; 0: send an RNR NAK at once",
     [](Options& o, const Value& v) {
       return whole32(v, 0, ib::LossRules::kMostStored, &o.roce.loss.rnr_park, "0 to 4096");
     },
     KeyOf::Roce},
    {"rnr_park_time", "maximum time that a packet waits for a posted receive",
     [](Options& o, const Value& v) { return read_time(v, &o.roce.loss.rnr_park_time); },
     KeyOf::Roce},
    {"probe", "without a response, resend the oldest packet as a probe",
     [](Options& o, const Value& v) { return flag(v, &o.roce.probe); }, KeyOf::Roce},
    {"selective", "retransmit only lost packets, if the peer supports it",
     [](Options& o, const Value& v) { return flag(v, &o.roce.selective); }, KeyOf::Roce},
    {"congestion", "RoCE: congestion control: window, dcqcn or off",
     [](Options& o, const Value& v) {
       constexpr Named<ib::CongestionRule> kRules[] = {{"window", ib::CongestionRule::Window},
                                                       {"dcqcn", ib::CongestionRule::Dcqcn},
                                                       {"off", ib::CongestionRule::Off}};
       return choice(v, kRules, &o.roce.send.congestion, "window, dcqcn or off");
     },
     KeyOf::Roce},
    {"credits", "send end-to-end credits and obey them",
     [](Options& o, const Value& v) {
       const char* wrong = flag(v, &o.roce.tell_credits);
       if (wrong == nullptr) o.roce.send.obey_credits = o.roce.tell_credits;
       return wrong;
     },
     KeyOf::Roce},
    {"window", "limit of unacknowledged packets of Sends and Writes",
     [](Options& o, const Value& v) {
       return whole32(v, 1, 65536, &o.roce.send.window, "1 to 65536");
     },
     KeyOf::Roce},
    {"ack_every", "request an ACK in every N-th packet of a long message",
     [](Options& o, const Value& v) {
       return whole32(v, 1, 65536, &o.roce.send.ack_every, "1 to 65536");
     },
     KeyOf::Roce},
    {"rq_nudge", "send duplicate ACKs when a receive is posted after drops",
     [](Options& o, const Value& v) { return flag(v, &o.rq_nudge); }},
    {"completion_method", "1: a WQE and a CQE for each Send; 2: WQEs share a CQE",
     [](Options& o, const Value& v) {
       std::uint64_t n = 0;
       if (const char* wrong = read_whole(v, 1, 2, &n, "1 or 2")) return wrong;
       o.completion_method = static_cast<ddp::CompletionMethod>(n);
       return static_cast<const char*>(nullptr);
     }},
    {"completion_threshold",
     "completion_method 2: completions of Sends after holes that the RNIC keeps in its own memory "
     "(M)",
     [](Options& o, const Value& v) {
       return whole32(v, 0, 65536, &o.completion_threshold, "0 to 65536");
     }},
    {"hole_limit", "limit of TCP holes",
     [](Options& o, const Value& v) {
       return whole32(v, 1, 100000, &o.tcp.hole_limit, "1 to 100000");
     }},
    {"sender",
     "loss recovery: reno, newreno (both no SACK), sack (RFC 6675), sack-counts-plain (counts "
     "plain duplicate ACKs too) or "
     "rack (RFC 8985, with tail loss probes and PRR)",
     [](Options& o, const Value& v) { return sender(v, &o.tcp); }},
    {"name_corrupted", "report segments with a wrong CRC to the sender, if both ends support it",
     [](Options& o, const Value& v) { return flag(v, &o.tcp.name_corrupted); }},
    {"sack", "offer SACK", [](Options& o, const Value& v) { return flag(v, &o.tcp.sack); }},
    {"ecn", "request ECN (RFC 3168)",
     [](Options& o, const Value& v) {
       bool on = false;
       if (const char* wrong = flag(v, &on)) return wrong;
       o.tcp.ecn = on ? tcp::EcnMode::Request : tcp::EcnMode::Off;
       return static_cast<const char*>(nullptr);
     },
     KeyOf::Both},
    {"timestamps", "offer timestamps",
     [](Options& o, const Value& v) { return flag(v, &o.tcp.timestamps); }},
    {"ack_policy",
     "send an ACK for each burst, every second segment or every segment: burst, second or every",
     [](Options& o, const Value& v) {
       constexpr Named<tcp::AckPolicy> kPolicies[] = {{"burst", tcp::AckPolicy::PerBurst},
                                                      {"second", tcp::AckPolicy::EverySecond},
                                                      {"every", tcp::AckPolicy::Immediate}};
       return choice(v, kPolicies, &o.tcp.ack_policy, "burst, second or every");
     }},
    {"initial_window", "initial congestion window, bytes; 0: as in RFC 6928",
     [](Options& o, const Value& v) {
       return whole32(v, 0, 64u << 20, &o.tcp.initial_window, "0 to 67108864");
     }},
    {"receive_window", "maximum receive window, bytes",
     [](Options& o, const Value& v) {
       return whole32(v, 65536, 64u << 20, &o.tcp.receive_buffer, "65536 to 67108864");
     }},
    {"rto_min", "minimum retransmission timeout",
     [](Options& o, const Value& v) { return read_time(v, &o.tcp.rto_min); }},
    {"rto_max", "maximum retransmission timeout",
     [](Options& o, const Value& v) { return read_time(v, &o.tcp.rto_max); }},
};

constexpr WireKey kWireKeys[] = {
    {"rate", "rate", "rate of the line, for example \"1gbit\""},
    {"delay", "delay", "delay of every frame"},
    {"jitter", "jitter", "maximum additional random delay; frames stay in order"},
    {"queue", "limit", "length of the queue in frames; more are lost"},
    {"mark", "mark", "queueing delay above which ECN-capable frames get a CE mark; 0: no marks"},
    {"loss", "loss", "probability of a loss, or \"P:FRAMES\" for bursts of losses"},
    {"dup", "dup", "probability of a duplicate"},
    {"reorder", "reorder", "probability of reordering, \"P:FRAMES\" or \"P:TIME\""},
    {"corrupt", "corrupt",
     "probability of corruption with a corrected checksum: only the MPA CRC or RoCE's ICRC detects "
     "it"},
    {"badsum", "badsum", "probability of a wrong TCP checksum"},
    {"reseg", "reseg", "probability that a segment is split or merged"},
    {"hold", "hold", "maximum wait for a frame to reorder or merge with"},
    {"payload_only", "payload_only",
     "apply faults only to TCP segments and RoCE packets with more payload than this, bytes"},
    {"at", "at",
     "faults at exact frames, \"KIND:N+KIND:N\" or a list (empty: none); kinds: loss dup reorder "
     "corrupt badsum cut"},
    {"cut_at", "cut_at",
     "\"FROM-TO\": byte range of the payload that an exact cut turns into a segment"},
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
