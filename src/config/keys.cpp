#include "config/keys.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <vector>

#include "base/ip_address.h"
#include "base/nearest.h"

namespace urnic::config {
namespace {

// clang-format off
constexpr Key kKeys[] = {
  {"name", Kind::Text, nullptr, "name of this process in `urnic stat` (default: the program's name)"},
  {"device", Kind::Text, "", "device to open: the name of a section [device.NAME] of the configuration file; empty: the only one; the drop-in libraries open all of them"},
  {"port", Kind::Port, nullptr, "what the data goes over, as kind:key=value,...: memif, tap, dgram, dpdk, mem, udp (the kernel's UDP, RoCE only) or tcp (the kernel's TCP); see docs/ports.md"},
  {"address", Kind::Addresses, "auto", "own IP addresses with prefix length, separated by commas; auto: 10.77.0.1/24,fd77::1/64 on the listening side of the port, 10.77.0.2/24,fd77::2/64 on the other"},
  {"gateway", Kind::Gateway, "", "default gateways, at most one for IPv4 and one for IPv6; empty: none"},
  {"mac", Kind::Mac, "auto", "MAC address; auto: that of the port, or a random one"},
  {"vlan", Kind::Number, "0", "VLAN tag of every frame; 0: none", "", 0, 4094},
  {"mtu", Kind::Number, "auto", "IP MTU in bytes; auto: what the port carries, at most 9000", "auto", 576, 65521},
  {"transport", Kind::Choice, "iwarp", "protocol of the device: iWARP, RoCEv2 (UDP port 4791), or both", "iwarp|roce|both"},
  {"connection_type", Kind::Choice, "fast", "type of new connections: FAST or SLOW", "fast|slow"},
  {"in_logic", Kind::Choice, "auto", "procedure by which InLogic chooses between FAST and SLOW; auto: fig9 without markers, fig3 with markers; see `urnic config --matrix`", "auto|fig9|fig10|fig3"},
  {"framing", Kind::Choice, "no-markers", "framing of FPDUs in the stream; see `urnic config --matrix`", "no-markers|markers|absolute-markers|modified-length"},
  {"max_recovery_attempts", Kind::Number, "32", "refused segments in one recovery before a FAST connection is downgraded to SLOW; RoCE: gaps", "", 0, 1'000'000},
  {"max_cut_frames", Kind::Number, "2", "FPDUs cut by a segment boundary, within 1 MiB of the stream, before a FAST connection is downgraded; 0: no limit", "", 0, 1'000'000},
  {"max_same_segment", Kind::Number, "4", "times in a row that the segment at RCV.NXT may be refused before a FAST connection is downgraded; 0: no limit", "", 0, 1'000'000},
  {"upgrade_after", Kind::Number, "64", "aligned segments in order before a SLOW connection is upgraded to FAST; RoCE: requests in order", "", 1, 65536},
  {"hole_limit", Kind::Number, "256", "most TCP holes of a connection", "", 1, 65535},
  {"immediate_dup_ack", Kind::Switch, "on", "answer a refused segment with a duplicate ACK at once"},
  {"crc", Kind::Switch, "on", "MPA CRC; off works only if both ends turn it off, and such a connection is always SLOW"},
  {"ooo_without_markers", Kind::Choice, "auto", "out-of-order segments of FAST connections: place them at once, or store them until the gap closes; auto: place on memif, mem and dgram, otherwise store", "auto|place|store"},
  {"out_of_order", Kind::Choice, "store", "RoCE: packets behind a gap on a FAST queue pair: store them until the gap closes; place Writes at once, so that a program that polls memory may see them before earlier data; or drop them, as plain RoCEv2 does", "store|place|drop"},
  {"held_packets", Kind::Number, "512", "RoCE: most packets that a FAST queue pair stores behind gaps; beyond that it becomes SLOW", "", 1, 4096},
  {"rnr_park", Kind::Number, "64", "RoCE: packets that a FAST queue pair stores while a Send waits for a receive; 0: send an RNR NAK at once", "", 0, 4096},
  {"rnr_park_ms", Kind::Number, "10", "RoCE: longest time that a Send waits for a receive before an RNR NAK is sent, ms; choose less than the peer's transport timer times its retries", "", 1, 60'000},
  {"probe", Kind::Switch, "on", "RoCE: resend the oldest packet as a probe after two round trips without a response, instead of waiting for the transport timer"},
  {"roce_congestion", Kind::Choice, "window", "RoCE congestion control: window reacts to CNPs, losses and growing round trips; dcqcn adapts the rate to CNPs, as network cards do; off ignores CNPs and CE marks", "window|dcqcn|off"},
  {"roce_window", Kind::Number, "256", "RoCE: most packets of Sends and Writes in flight on a queue pair; raise it on long paths, and set held_packets of the peer to twice as many", "", 2, 16384},
  {"selective", Kind::Switch, "on", "RoCE: selective repeat if the other end is urnic too: only lost packets are sent again"},
  {"rq_nudge", Kind::Switch, "on", "send duplicate ACKs when a receive is posted after a Send was dropped for lack of one"},
  {"receive_wait_ms", Kind::Number, "0", "longest time that an acknowledged Send, and all data behind it, waits for a receive, ms; 0: the connection ends; the drop-in libraries use 120000", "", 0, 86'400'000},
  {"completion_method", Kind::Number, "2", "how received Sends complete: 1: one completion entry for each; 2: one entry for a run of them", "", 1, 2},
  {"completion_threshold", Kind::Number, "auto", "with completion_method 2: Sends pending behind TCP holes before their completions are no longer written to the receives; auto: 16", "auto", 0, 65536},
  {"mpa_revision", Kind::Number, "2", "revision of the MPA request: 2 enhanced (RFC 6581), 1 as in RFC 5044", "", 1, 2},
  {"peer_to_peer", Kind::Switch, "on", "MPA peer-to-peer set-up (RFC 6581)"},
  {"rtr", Kind::Set, "write,read", "ready-to-receive messages to offer and accept", "write|read"},
  {"first_fpdu_delay_ms", Kind::Number, "0", "delay of the initiator's first FPDU after the MPA Reply, ms (Linux siw loses an FPDU that comes too early, docs/interop.md)", "", 0, 10'000},
  {"ird", Kind::Number, "32", "most RDMA Reads of the peer outstanding on a connection", "", 0, 16382},
  {"ord", Kind::Number, "32", "most own RDMA Reads outstanding on a connection", "", 0, 16382},
  {"receive_window", Kind::Size, "4M", "largest TCP receive window, bytes", "", 64 << 10, 1 << 30},
  {"max_connections", Kind::Number, "262144", "most connections of one engine; further ones are refused", "", 1, 16'777'216},
  {"allow", Kind::Prefixes, "", "addresses and prefixes that may connect to a listener, separated by commas; the longest match in allow and deny decides, deny if both match alike; empty: all that are not denied"},
  {"deny", Kind::Prefixes, "", "addresses and prefixes that may not connect, as for allow"},
  {"listener_connections", Kind::Number, "0", "most connections of one listener; 0: no limit", "", 0, 16'777'216},
  {"peer_connections", Kind::Number, "0", "most connections of one listener from one address; 0: no limit", "", 0, 16'777'216},
  {"accept_rate", Kind::Number, "0", "most new connections of one listener in a second; 0: no limit", "", 0, 1'000'000},
  {"reassembly_pool", Kind::Number, "64", "memory for reassembly of one engine, MiB; RoCE: as much again for packets stored behind gaps", "", 1, 1 << 20},
  {"sack", Kind::Switch, "on", "TCP selective acknowledgements (RFC 2018)"},
  {"timestamps", Kind::Switch, "on", "TCP timestamps (RFC 7323)"},
  {"window_scaling", Kind::Switch, "on", "TCP window scaling (RFC 7323)"},
  {"ack_policy", Kind::Choice, "per-burst", "when to acknowledge data in order", "per-burst|every-second|immediate"},
  {"count_plain_dupacks", Kind::Switch, "off", "a SACK sender also counts duplicate ACKs without new SACK information"},
  {"rto_min_ms", Kind::Number, "auto", "least retransmission time-out of TCP, ms; auto: 20 on memif and mem, otherwise 200", "auto", 1, 60'000},
  {"congestion", Kind::Choice, "newreno", "congestion control of TCP (RFC 5681, 6582, 9438, 8257)", "reno|newreno|cubic|dctcp"},
  {"ecn", Kind::Choice, "off", "explicit congestion notification of TCP (RFC 3168); dctcp needs it at both ends", "off|accept|request"},
  {"rack", Kind::Switch, "on", "with SACK: detect losses by time (RFC 8985); off: by counting (RFC 6675)"},
  {"name_corrupted", Kind::Switch, "on", "with rack, if both ends set it: report a segment with a wrong CRC to the sender, which sends it again without closing its window"},
  {"tlp", Kind::Switch, "on", "with SACK: tail loss probes (RFC 8985)"},
  {"prr", Kind::Switch, "on", "with SACK: proportional rate reduction (RFC 6937)"},
  {"undo", Kind::Switch, "on", "restore the congestion window after a spurious retransmission (RFC 3522, 3708, 5682)"},
  {"time_wait_ms", Kind::Number, "60000", "time that a connection stays in TIME-WAIT, ms", "", 0, 240'000},
  {"link_timeout_ms", Kind::Number, "5000", "time that the link may be down before connections fail, ms; 0: no limit", "", 0, 3'600'000},
  {"keepalive", Kind::Switch, "on", "send keepalive probes on idle connections to detect a peer that died silently, also behind `urnic switch`; RoCE: on RC"},
  {"keepalive_s", Kind::Number, "30", "idle time before the first keepalive probe, s; a peer that answers none of three probes within the same time again is dead; RoCE may take up to as long again", "", 1, 86'400},
  {"progress", Kind::Choice, "auto", "thread that drives the engine: auto: the polling program, or urnic's thread while it does not poll; poll: the program alone; thread: urnic's thread alone", "auto|poll|thread"},
  {"spin_us", Kind::Number, "0", "time that urnic's thread polls for work before it sleeps, us", "", 0, 1'000'000},
  {"lookout_us", Kind::Number, "50", "time that a program which often waits for completions polls before it sleeps, us; 0: it sleeps at once", "", 0, 1'000'000},
  {"doze_us", Kind::Number, "200", "time that an empty poll over the kernel's TCP sleeps on a core that other threads need, us; 0: it does not sleep", "", 0, 400},
  {"identity", Kind::Choice, "auto", "kind of device that the drop-in libraries show; auto: roce with transport = roce, otherwise iwarp", "auto|iwarp|ib-like|roce"},
  {"capture", Kind::Text, "", "pcapng file to which every frame of the port is written"},
  {"faults", Kind::Text, "", "faults on the port, in the form that `urnic wire --help` describes"},
  {"stat", Kind::Switch, "on", "let `urnic stat` read the counters of this process"},
  {"log", Kind::Choice, "off", "least severity of messages to log", "off|error|warn|info|debug"},
  {"log_file", Kind::Text, "", "file for the log; empty: standard error"},
};
// clang-format on

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t at = text.find(by);
    const std::string_view item = trimmed(text.substr(0, at));
    if (!item.empty()) out.push_back(item);
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  }
  return out;
}

// "fast, slow or auto"
std::string listed(std::string_view choices) {
  const auto items = split(choices, '|');
  std::string out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += i + 1 == items.size() ? " or " : ", ";
    out += items[i];
  }
  return out;
}

bool is_choice(std::string_view choices, std::string_view text) {
  for (const std::string_view c : split(choices, '|')) {
    if (c == text) return true;
  }
  return false;
}

std::string range(const Key& key) {
  return "a whole number from " + std::to_string(key.lo) + " to " + std::to_string(key.hi) +
         (*key.choices != 0 ? " or " + listed(key.choices) : "");
}

Outcome<std::string, std::string> number(const Key& key, std::string_view text) {
  if (is_choice(key.choices, text)) return std::string(text);
  std::int64_t v = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), v);
  std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  bool fine = ec == std::errc() && !text.empty();
  if (fine && key.kind == Kind::Size && !unit.empty()) {
    constexpr std::array<std::pair<std::string_view, int>, 9> kUnits = {{{"K", 10},
                                                                         {"KiB", 10},
                                                                         {"k", 10},
                                                                         {"M", 20},
                                                                         {"MiB", 20},
                                                                         {"m", 20},
                                                                         {"G", 30},
                                                                         {"GiB", 30},
                                                                         {"g", 30}}};
    const auto* u = std::find_if(kUnits.begin(), kUnits.end(),
                                 [&](const auto& known) { return known.first == unit; });
    fine = u != kUnits.end() && v >= 0 && v <= (INT64_MAX >> u->second);
    if (fine) v <<= u->second;
    unit = {};
  }
  if (!fine || !unit.empty() || v < key.lo || v > key.hi) {
    return fail("expected " + range(key) + (key.kind == Kind::Size ? " (K, M, G allowed)" : ""));
  }
  return std::to_string(v);
}

Outcome<std::string, std::string> on_off(std::string_view text) {
  for (const char* yes : {"on", "yes", "true", "1"}) {
    if (text == yes) return std::string("on");
  }
  for (const char* no : {"off", "no", "false", "0"}) {
    if (text == no) return std::string("off");
  }
  return fail(std::string("expected on or off"));
}

Outcome<std::string, std::string> subset(const Key& key, std::string_view text) {
  std::vector<std::string_view> items = split(text, ',');
  for (const std::string_view item : items) {
    if (!is_choice(key.choices, item)) {
      return fail("expected some of " + listed(key.choices) + ", separated by commas");
    }
  }
  std::string out;
  for (const std::string_view c : split(key.choices, '|')) {
    if (std::find(items.begin(), items.end(), c) == items.end()) continue;
    out += (out.empty() ? "" : ",") + std::string(c);
  }
  if (out.empty()) return fail("expected at least one of " + listed(key.choices));
  return out;
}

Outcome<std::string, std::string> addresses(std::string_view text) {
  if (text == "auto") return std::string("auto");
  std::string out;
  for (const std::string_view item : split(text, ',')) {
    const auto prefix = IpPrefix::parse(item);
    if (!prefix || item.find('/') == std::string_view::npos) {
      return fail("'" + std::string(item) +
                  "' is not an address with prefix length, like 10.77.0.1/24 or fd77::1/64");
    }
    const IpAddress& a = prefix->address;
    if (a.is_any() || a.is_multicast() || a.is_broadcast() || a.is_loopback() ||
        prefix->length == 0 || (prefix->length < a.bits() - 1 && a == prefix->network())) {
      return fail("'" + std::string(item) + "' cannot be the address of a host");
    }
    out += (out.empty() ? "" : ",") + prefix->to_string();
  }
  if (out.empty()) return fail(std::string("expected addresses with prefix length, or auto"));
  return out;
}

Outcome<std::string, std::string> gateway(std::string_view text) {
  std::string out;
  int v4 = 0, v6 = 0;
  for (const std::string_view item : split(text, ',')) {
    const auto a = IpAddress::parse(item);
    if (!a || a->is_any() || a->is_multicast() || a->is_broadcast() || a->is_loopback()) {
      return fail("'" + std::string(item) + "' is not the address of a gateway");
    }
    if (++(a->is_v4() ? v4 : v6) > 1) {
      return fail(std::string("expected at most one gateway for each family"));
    }
    out += (out.empty() ? "" : ",") + a->to_string();
  }
  return out;
}

Outcome<std::string, std::string> prefixes(std::string_view text) {
  std::string out;
  for (const std::string_view item : split(text, ',')) {
    const auto prefix = IpPrefix::parse(item);
    if (!prefix) {
      return fail("'" + std::string(item) +
                  "' is neither an address nor a prefix, like 10.77.0.0/24 or fd77::1");
    }
    out += (out.empty() ? "" : ",") + IpPrefix{prefix->network(), prefix->length}.to_string();
  }
  return out;
}

Outcome<std::string, std::string> mac(std::string_view text) {
  if (text == "auto") return std::string("auto");
  const auto m = MacAddress::parse(text);
  if (!m) return fail(std::string("expected auto or a MAC address like 02:00:0a:4d:00:01"));
  if (m->is_multicast() || m->is_zero()) {
    return fail(std::string("not the address of one station (multicast or all zero)"));
  }
  return m->to_string();
}

Outcome<std::string, std::string> port(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (text == "tcp" || text == "udp") return std::string(text);  // which need no more than a name
  if (colon == 0 || colon == std::string_view::npos) {
    return fail(
        std::string("expected kind:key=value,..., e.g. memif:socket=/run/user/1000/u.sock"));
  }
  return std::string(text);
}

// A folder of the user's own: systemd's, else one below /tmp that only this user may enter.
std::string default_port() {
  const char* run = std::getenv("XDG_RUNTIME_DIR");
  std::string socket;
  if (run != nullptr && run[0] == '/') {
    socket = std::string(run) + "/urnic.sock";
  } else if (const std::string home = "/run/user/" + std::to_string(geteuid());
             access(home.c_str(), W_OK | X_OK) == 0) {
    socket = home + "/urnic.sock";
  } else {
    socket = "/tmp/urnic-" + std::to_string(geteuid()) + "/urnic.sock";
  }
  return "memif:socket=" + socket + ",mtu=9000";
}

}  // namespace

std::span<const Key> keys() {
  return kKeys;
}

int find_key(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kKeys); ++i) {
    if (name == kKeys[i].name) return static_cast<int>(i);
  }
  return -1;
}

std::string nearest_key(std::string_view name) {
  std::vector<std::string> names;
  for (const Key& key : kKeys) names.emplace_back(key.name);
  return nearest_of(name, names);
}

std::string default_text(const Key& key) {
  if (key.standard == nullptr) {
    return std::string_view(key.name) == "port" ? default_port() : program_invocation_short_name;
  }
  return normalise(key, key.standard).value();
}

Outcome<std::string, std::string> normalise(const Key& key, std::string_view text) {
  text = trimmed(text);
  if (text.size() > 4096) return fail(std::string("longer than 4096 characters"));
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f) return fail(std::string("contains a control character"));
  }
  switch (key.kind) {
    case Kind::Text:
      return std::string(text);
    case Kind::Number:
    case Kind::Size:
      return number(key, text);
    case Kind::Switch:
      return on_off(text);
    case Kind::Choice:
      if (!is_choice(key.choices, text)) return fail("expected " + listed(key.choices));
      return std::string(text);
    case Kind::Set:
      return subset(key, text);
    case Kind::Addresses:
      return addresses(text);
    case Kind::Gateway:
      return gateway(text);
    case Kind::Mac:
      return mac(text);
    case Kind::Prefixes:
      return prefixes(text);
    case Kind::Port:
      return port(text);
  }
  return fail(std::string("not understood"));
}

}  // namespace urnic::config
