#include "sim/scenario.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/nearest.h"
#include "fault/plan.h"
#include "sim/scenario_keys.h"

namespace urnic::sim {
namespace {

// bound: bytes of a workload's buffer in a scenario; limit: 256 MiB (`kMostMemory`); beyond: the
// scenario is refused with an error; test: Scenario.ImpossibleScenariosAreRefused
constexpr std::uint64_t kMostMemory = 256u << 20;  // bytes of one buffer of a workload

constexpr int kRight = 0, kLeft = 1;

std::vector<std::string> wire_names() {
  std::vector<std::string> out;
  for (const WireKey& k : wire_keys()) out.emplace_back(k.name);
  return out;
}

// All keys of a scenario except those of the wire.
std::vector<std::string> all_names() {
  std::vector<std::string> out = {"wire", "variant", "phase"};
  for (const SceneKey& k : scene_keys()) out.emplace_back(k.name);
  for (const SetupKey& k : setup_keys()) out.emplace_back(k.name);
  for (const char* who : {"both.", "left.", "right."}) {
    for (const NodeKey& k : node_keys()) out.push_back(std::string(who) + k.name);
  }
  return out;
}

struct WireDraft {
  std::map<std::string, std::string> plan[2];  // by plan key: to the right, to the left
  std::uint32_t path_mtu = 0;

  std::string text(int way) const {
    std::string out;
    for (const auto& [key, value] : plan[way]) {
      out += (out.empty() ? "" : ",") + key + "=" + value;
    }
    return out;
  }
};

struct Draft {
  Setup setup;
  WireDraft wire;
  std::vector<Values> phases;
};

// Returns what RD, which runs without engines, does not support.
const char* rd_breach(const Setup& s) {
  if (s.work.op != Op::Send && s.work.op != Op::Write) {
    return "service = rd needs work.op = send or write";
  }
  if (s.roce.by_cm || s.work.beside_tcp || s.work.sqd_begin != Duration()) {
    return "connect = cm, work.beside_tcp and work.sqd_begin are not possible with service = rd";
  }
  if (s.phases.size() > 1) return "phases are not possible with service = rd";
  return nullptr;
}

// Returns what the transport and service do not support; null if everything is supported.
const char* transport_breach(const Setup& s) {
  const bool drops = s.left.roce.loss.out_of_order == ib::OutOfOrder::Drop ||
                     s.right.roce.loss.out_of_order == ib::OutOfOrder::Drop;
  if (!s.roce.on) {
    if (drops) return "out_of_order = drop needs transport = roce";
    if (s.work.op == Op::Atomic) return "work.op = atomic needs transport = roce";
    if (s.work.sqd_begin != Duration()) return "work.sqd_begin needs transport = roce";
    if (s.work.sqe_begin != Duration()) return "work.sqe_begin needs transport = roce";
    if (s.work.bad_every != 0) return "work.bad_every needs transport = roce";
    return nullptr;
  }
  if (s.work.embed) return "work.embed needs transport = iwarp";
  if (s.work.sqe_begin != Duration() && s.roce.service != verbs::Service::Ud) {
    return "work.sqe_begin needs service = ud";
  }
  if (s.roce.rd) return rd_breach(s);
  if (s.work.bad_every != 0) return "work.bad_every needs service = rd";
  if (s.roce.on_rnr != OnRnr::Retry) return "qp.on_rnr needs service = rd";
  const bool shared = s.work.flows != 1 || s.work.beside_tcp;
  if (shared && s.roce.by_cm) return "work.flows and work.beside_tcp need connect = hand";
  if (s.roce.service == verbs::Service::Rc) return nullptr;
  if (verbs::is_xrc(s.roce.service)) {
    return shared ? "work.flows and work.beside_tcp need service = rc" : nullptr;
  }
  if (s.work.op != Op::Send) return "service = uc and ud need work.op = send";
  if (s.roce.by_cm) return "connect = cm needs service = rc or xrc";
  if (shared) return "work.flows and work.beside_tcp need service = rc";
  const std::uint64_t largest = *std::max_element(s.work.sizes.begin(), s.work.sizes.end());
  if (s.roce.service == verbs::Service::Ud && largest > bytes(ib::path_mtu_of(s.mtu))) {
    return "work.size: a UD message must not exceed the path MTU (the largest of 256 to 4096 that "
           "fits `mtu`)";
  }
  return nullptr;
}

class Builder {
 public:
  explicit Builder(const std::string& path) : path_(path) {}

  bool build(const ScenarioValues& values, std::span<const Override> overrides);
  Scenario scenario;
  std::string wrong;

 private:
  bool bad(const std::string& key, const Value& v, const std::string& what) {
    wrong =
        (v.line != 0 ? path_ + ":" + std::to_string(v.line) + ": " : "--set ") + key + ": " + what;
    return false;
  }
  bool expected(const std::string& key, const Value& v, const std::string& what) {
    const std::string got = v.type == ValueType::List ? "a list" : "'" + v.text + "'";
    return bad(key, v, "expected " + what + ", not " + got);
  }
  bool split_overrides(std::span<const Override> overrides);
  bool scene(const std::string& key, const Value& v, bool* known);
  bool layer(const Values& values, Draft* d);
  bool wire_key(const std::string& shown, std::string_view key, const Value& v, int only,
                WireDraft* w);
  bool wire_layer(const Values& values, const std::string& prefix, WireDraft* w);
  bool node(const std::string& key, const Value& v, Draft* d, bool* known);
  bool phase(const Values& values, std::size_t number, const WireDraft& base, Setup* setup);
  bool finish(Draft& d);
  bool check(const Setup& s);
  bool check_keys();

  const std::string& path_;
  Values given_;                               // --set except phases
  std::map<std::size_t, Values> phase_given_;  // --set phase.N.key
  Values given_keys_[2];                       // for nodes: keys of iWARP only, keys of RoCE only
};

bool Builder::split_overrides(std::span<const Override> overrides) {
  for (const Override& o : overrides) {
    Value v;
    v.type = ValueType::Given;
    v.text = o.value;
    if (!o.key.starts_with("phase.")) {
      given_[o.key] = v;
      continue;
    }
    std::size_t number = 0;
    const char *begin = o.key.data() + 6, *end = o.key.data() + o.key.size();
    const auto [at, ec] = std::from_chars(begin, end, number);
    if (ec != std::errc() || at == end || *at != '.' || number == 0) {
      return bad(o.key, v, "expected phase.N.KEY, N at least 1");
    }
    phase_given_[number - 1][std::string(at + 1, end)] = v;
  }
  return true;
}

bool Builder::scene(const std::string& key, const Value& v, bool* known) {
  for (const SceneKey& k : scene_keys()) {
    if (key != k.name) continue;
    *known = true;
    if (const char* what = k.set(scenario, v)) return expected(key, v, what);
    return true;
  }
  return true;
}

bool Builder::wire_key(const std::string& shown, std::string_view key, const Value& v, int only,
                       WireDraft* w) {
  if (key == "path_mtu") {
    if (only != -1) return bad(shown, v, "applies to both directions: set it in [wire]");
    constexpr const char* kExpected = "bytes from 576 to 9000, or 0 for no router";
    std::uint64_t bytes = 0;
    const char* what = read_whole(v, 0, 9000, &bytes, kExpected);
    if (what != nullptr || (bytes != 0 && bytes < 576)) return expected(shown, v, kExpected);
    w->path_mtu = static_cast<std::uint32_t>(bytes);
    return true;
  }
  for (const WireKey& k : wire_keys()) {
    if (key != k.name) continue;
    std::string value = v.text;
    if (v.type == ValueType::List) {
      for (const std::string& item : v.items) value += (value.empty() ? "" : "+") + item;
    }
    if (k.plan == std::string_view("at") && v.type == ValueType::List && value.empty()) {
      for (const int way : {kRight, kLeft}) {  // at = []: removes them in a phase or variant
        if (only == -1 || only == way) w->plan[way].erase("at");
      }
      return true;
    }
    const auto plan = fault::FaultPlan::parse(std::string(k.plan) + "=" + value);
    const bool one = value.find(',') == std::string::npos && !value.empty();
    if (!plan || !one || v.type == ValueType::Flag) {
      const auto colon = plan ? std::string::npos : plan.error().find("expected ");
      return expected(shown, v,
                      colon != std::string::npos ? plan.error().substr(colon + 9) : k.help);
    }
    for (const int way : {kRight, kLeft}) {
      if (only == -1 || only == way) w->plan[way][k.plan] = value;
    }
    return true;
  }
  return bad(shown, v,
             "unknown key" + nearest_hint(key, wire_names()) + " (urnic sim --keys lists them)");
}

// Settings for both directions come first, so that a setting for one direction overrides them.
bool Builder::wire_layer(const Values& values, const std::string& prefix, WireDraft* w) {
  for (const int pass : {-1, kRight, kLeft}) {
    for (const auto& [key, v] : values) {
      if (!key.starts_with(prefix)) continue;
      std::string_view rest = std::string_view(key).substr(prefix.size());
      int way = -1;
      if (rest.starts_with("to_right.")) way = kRight;
      if (rest.starts_with("to_left.")) way = kLeft;
      if (way != pass) continue;
      if (way != -1) rest.remove_prefix(rest.find('.') + 1);
      if (prefix.empty() && (rest == "begin" || rest == "name")) continue;
      if (!wire_key(prefix.empty() ? "phase: " + key : key, rest, v, way, w)) return false;
    }
  }
  return true;
}

bool Builder::node(const std::string& key, const Value& v, Draft* d, bool* known) {
  const auto dot = key.find('.');
  const std::string who = key.substr(0, dot);
  if (dot == std::string::npos || (who != "left" && who != "right" && who != "both")) return true;
  for (const NodeKey& k : node_keys()) {
    if (key.substr(dot + 1) != k.name) continue;
    *known = true;
    if (k.of != KeyOf::Both) given_keys_[k.of == KeyOf::Roce][key] = v;
    const char* what = nullptr;
    if (who != "right") what = k.set(d->setup.left, v);
    if (who != "left" && what == nullptr) what = k.set(d->setup.right, v);
    return what == nullptr || expected(key, v, what);
  }
  return true;
}

// std::map sorts "both." before "left." and "right.", so a setting for one node overrides it.
bool Builder::layer(const Values& values, Draft* d) {
  for (const auto& [key, v] : values) {
    if (key.starts_with("wire.")) continue;
    bool known = false;
    for (const SetupKey& k : setup_keys()) {
      if (key != k.name) continue;
      known = true;
      if (const char* what = k.set(d->setup, v)) return expected(key, v, what);
    }
    if (!known && !node(key, v, d, &known)) return false;
    if (!known) {
      return bad(key, v,
                 "unknown key" + nearest_hint(key, all_names()) + " (urnic sim --keys lists them)");
    }
  }
  return wire_layer(values, "wire.", &d->wire);
}

bool Builder::phase(const Values& values, std::size_t number, const WireDraft& base, Setup* setup) {
  Phase p;
  WireDraft wire = base;
  if (!wire_layer(values, "", &wire)) return false;
  Values all = values;
  if (const auto it = phase_given_.find(number); it != phase_given_.end()) {
    if (!wire_layer(it->second, "", &wire)) return false;
    for (const auto& [key, v] : it->second) all[key] = v;
  }
  const auto begin = all.find("begin");
  if (begin == all.end()) {
    wrong = path_ + ": phase " + std::to_string(number + 1) + " has no `begin`";
    return false;
  }
  if (const char* what = read_time(begin->second, &p.begin)) {
    return expected("phase: begin", begin->second, what);
  }
  if (p.begin <= setup->phases.back().begin) {
    return bad("phase: begin", begin->second,
               "must be after the begin of the previous phase, and after 0");
  }
  if (const auto name = all.find("name"); name != all.end()) {
    if (const char* what = read_text(name->second, &p.name)) {
      return expected("phase: name", name->second, what);
    }
  }
  p.to_right = wire.text(kRight);
  p.to_left = wire.text(kLeft);
  p.path_mtu = wire.path_mtu;
  setup->phases.push_back(std::move(p));
  return true;
}

bool Builder::check(const Setup& s) {
  const auto no = [&](const std::string& what) {
    wrong = path_ + ": " + (s.name.empty() ? "" : "variant '" + s.name + "': ") + what;
    return false;
  };
  const std::uint64_t largest = *std::max_element(s.work.sizes.begin(), s.work.sizes.end());
  const std::uint64_t slots = std::min(s.work.depth, s.work.count);
  if (s.roce.rd &&
      largest * s.work.flows * std::max<std::uint64_t>(slots, s.work.receives) > kMostMemory) {
    return no("work: size * flows * depth (or receives) must be at most 256 MiB");
  }
  if (largest * slots > kMostMemory) {
    return no("work: size * depth must be at most 256 MiB");
  }
  if (s.work.op == Op::Send && largest * s.work.receives > kMostMemory) {
    return no("work: size * receives must be at most 256 MiB");
  }
  if (s.left.tcp.rto_min > s.left.tcp.rto_max || s.right.tcp.rto_min > s.right.tcp.rto_max) {
    return no("rto_min must not be larger than rto_max");
  }
  const char* const breach = transport_breach(s);
  return breach == nullptr || no(breach);
}

// Rejects a key that no variant's transport uses.
bool Builder::check_keys() {
  for (const bool roce : {false, true}) {
    const bool spoken = std::any_of(scenario.variants.begin(), scenario.variants.end(),
                                    [&](const Setup& s) { return s.roce.on == roce; });
    if (spoken || given_keys_[roce].empty()) continue;
    const auto& [key, v] = *given_keys_[roce].begin();
    return bad(key, v,
               std::string("applies only to ") + (roce ? "RoCE" : "iWARP") +
                   ", and no variant has transport = " + (roce ? "roce" : "iwarp"));
  }
  return true;
}

bool Builder::finish(Draft& d) {
  Setup& s = d.setup;
  Phase first;
  first.to_right = d.wire.text(kRight);
  first.to_left = d.wire.text(kLeft);
  first.path_mtu = d.wire.path_mtu;
  s.phases.push_back(std::move(first));
  for (std::size_t i = 0; i < d.phases.size(); ++i) {
    if (!phase(d.phases[i], i, d.wire, &s)) return false;
  }
  if (!phase_given_.empty() && phase_given_.rbegin()->first >= d.phases.size()) {
    wrong = "--set phase." + std::to_string(phase_given_.rbegin()->first + 1) +
            ": there are only " + std::to_string(d.phases.size()) + " phases";
    return false;
  }
  if (!check(s)) return false;
  s.left.speaks_roce = s.right.speaks_roce = s.roce.on;
  for (const Setup& other : scenario.variants) {
    if (other.name == s.name) {
      wrong = path_ + ": two variants have the name '" + s.name + "'";
      return false;
    }
  }
  scenario.variants.push_back(std::move(s));
  return true;
}

bool Builder::build(const ScenarioValues& values, std::span<const Override> overrides) {
  if (!split_overrides(overrides)) return false;
  // Settings of the scenario as a whole are applied first; the rest is common to all variants.
  Values common, over;
  for (const Values* from : {&values.common, static_cast<const Values*>(&given_)}) {
    for (const auto& [key, v] : *from) {
      bool known = false;
      if (!scene(key, v, &known)) return false;
      if (!known) (from == &given_ ? over : common)[key] = v;
    }
  }
  Draft base;
  for (engine::Options* o : {&base.setup.left, &base.setup.right}) {
    o->tcp.ack_policy = tcp::AckPolicy::PerBurst;  // the product's default (E-7)
    o->out_of_order = engine::Options::OutOfOrder::Place;
    o->roce.probe = true;
    o->roce.send.congestion = ib::CongestionRule::Window;
    o->roce.loss.type = ib::ConnectionType::Fast;
    o->roce.loss.rnr_park = 64;
  }
  if (!layer(common, &base)) return false;
  base.phases = values.phases;
  if (values.variants.empty()) return layer(over, &base) && finish(base) && check_keys();
  for (const ScenarioValues::Variant& variant : values.variants) {
    Draft d = base;
    if (!layer(variant.values, &d)) return false;
    if (!variant.phases.empty()) d.phases = variant.phases;
    if (d.setup.name.empty()) {
      wrong = path_ + ":" + std::to_string(variant.line) + ": the variant has no `name`";
      return false;
    }
    if (!layer(over, &d) || !finish(d)) return false;
  }
  return check_keys();
}

std::string name_of(const std::string& path) {
  const auto slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.ends_with(".toml")) name.resize(name.size() - 5);
  return name;
}

}  // namespace

std::string_view op_name(Op op) {
  switch (op) {
    case Op::Write:
      return "write";
    case Op::Send:
      return "send";
    case Op::Read:
      return "read";
    case Op::Atomic:
      return "atomic";
  }
  return "?";
}

Outcome<Scenario, std::string> parse_scenario(std::string_view text, const std::string& path,
                                              std::span<const Override> overrides) {
  auto values = read_values(text, path);
  if (!values) return fail(values.error());
  Builder builder(path);
  if (!builder.build(*values, overrides)) return fail(std::move(builder.wrong));
  builder.scenario.name = name_of(path);
  if (builder.scenario.title.empty()) builder.scenario.title = builder.scenario.name;
  return std::move(builder.scenario);
}

std::vector<KeyHelp> scenario_keys() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const WireKey& k : wire_keys()) out.push_back(std::string("wire.") + k.name);
    for (const NodeKey& k : node_keys()) out.push_back(std::string("both.") + k.name);
    return out;
  }();
  std::vector<KeyHelp> out;
  for (const SceneKey& k : scene_keys()) out.push_back({k.name, k.help});
  for (const SetupKey& k : setup_keys()) out.push_back({k.name, k.help});
  std::size_t i = 0;
  for (const WireKey& k : wire_keys()) out.push_back({names[i++], k.help});
  out.push_back(
      {"wire.path_mtu", "a router drops larger IP datagrams and reports it by ICMP; 0: no router"});
  for (const NodeKey& k : node_keys()) out.push_back({names[i++], k.help});
  return out;
}

}  // namespace urnic::sim
