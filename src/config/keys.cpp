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
  {"device", Kind::Text, "", "device to open, by its section [device.NAME] in the configuration file; empty: the only one (the drop-in libraries: all devices)"},
  {"port", Kind::Port, nullptr, "port that carries the frames, as kind:key=value,... (memif, tap, dgram, dpdk, mem; udp for RoCE), or tcp for the kernel's TCP; see docs/ports.md"},
  {"address", Kind::Addresses, "auto", "local IP addresses with prefix length, separated by commas; auto: 10.77.0.1/24,fd77::1/64 on the listening side of the port, 10.77.0.2/24,fd77::2/64 on the other side"},
  {"gateway", Kind::Gateway, "", "default gateways, at most one IPv4 and one IPv6 address; empty: none"},
  {"mac", Kind::Mac, "auto", "MAC address; auto: the port's own, or else a random address chosen at start"},
  {"vlan", Kind::Number, "0", "VLAN ID of the tag on every frame; 0: no tag", "", 0, 4094},
  {"mtu", Kind::Number, "auto", "IP MTU in bytes; auto: what the port carries, at most 9000 except over memif", "auto", 576, 65521},
  {"transport", Kind::Choice, "iwarp", "RDMA protocol of the device: iwarp, roce (RoCEv2, UDP port 4791) or both at the same time", "iwarp|roce|both"},
  {"connection_type", Kind::Choice, "fast", "path on which new connections start: fast (place data directly from each segment or packet) or slow (ordinary TCP reassembly; RoCE: strict packet order)", "fast|slow"},
  {"in_logic", Kind::Choice, "auto", "rule that decides which received TCP segments a FAST connection accepts: fig9, fig10 or fig3; auto: fig9 without MPA markers, fig3 with markers; see `urnic config --matrix`", "auto|fig9|fig10|fig3"},
  {"framing", Kind::Choice, "no-markers", "MPA framing of iWARP messages in TCP segments: no-markers, markers, absolute-markers or modified-length; see `urnic config --matrix`", "no-markers|markers|absolute-markers|modified-length"},
  {"max_recovery_attempts", Kind::Number, "32", "segments dropped in one recovery after which a FAST connection becomes SLOW; RoCE: sequence gaps after which a FAST queue pair becomes SLOW", "", 0, 1'000'000},
  {"max_cut_frames", Kind::Number, "2", "FPDUs received in two segments, within 1 MiB of the stream, after which a FAST connection becomes SLOW; 0: no limit", "", 0, 1'000'000},
  {"max_same_segment", Kind::Number, "4", "times in a row that the next expected segment (at RCV.NXT) is refused before a FAST connection becomes SLOW; 0: no limit", "", 0, 1'000'000},
  {"upgrade_after", Kind::Number, "64", "aligned in-order segments after which a SLOW connection becomes FAST; RoCE: requests in order", "", 1, 65536},
  {"hole_limit", Kind::Number, "256", "gaps in the received TCP stream that a connection may have at a time", "", 1, 65535},
  {"immediate_dup_ack", Kind::Switch, "on", "send a duplicate ACK immediately when a segment is refused"},
  {"crc", Kind::Switch, "on", "use the MPA CRC; off takes effect only if both ends set it, and then the connection is always SLOW"},
  {"ooo_without_markers", Kind::Choice, "auto", "handling of out-of-order segments on FAST connections without markers: place (write to memory immediately) or store (until the gap is filled); auto: place on memif, mem and dgram, otherwise store", "auto|place|store"},
  {"out_of_order", Kind::Choice, "store", "RoCE: handling of requests after a lost packet on a FAST queue pair: store (keep until the packet arrives), place (as store, but write RDMA Write data immediately: a program that polls memory can see it before earlier data) or drop (standard RoCE)", "store|place|drop"},
  {"held_packets", Kind::Number, "512", "RoCE: out-of-order packets that a FAST queue pair stores at a time; one more makes it SLOW", "", 1, 4096},
  {"rnr_park", Kind::Number, "64", "RoCE: packets that a FAST queue pair stores when a Send finds no posted receive, before it sends an RNR NAK; 0: send the RNR NAK immediately (standard RoCE)", "", 0, 4096},
  {"rnr_park_ms", Kind::Number, "10", "RoCE: longest time in ms that these packets (rnr_park) wait for a receive; set it below the peer's transport timeout times its retry count", "", 1, 60'000},
  {"probe", Kind::Switch, "on", "RoCE: after two round trips without a response, resend the oldest packet as a probe instead of waiting for the transport timer"},
  {"roce_congestion", Kind::Choice, "window", "RoCE: congestion control of a queue pair: window (reduce a window on CNPs, repeated loss and rising round-trip times), dcqcn (reduce the rate on CNPs, as hardware NICs do) or off (also send no CNPs for CE marks)", "window|dcqcn|off"},
  {"roce_window", Kind::Number, "256", "RoCE: most Send and Write packets in flight on a queue pair; raise it for long round trips, and set held_packets of the peer to twice as many", "", 2, 16384},
  {"selective", Kind::Switch, "on", "RoCE: selective retransmission if the peer is urnic too: the receiver reports which packets arrived, only the others are resent"},
  {"rq_nudge", Kind::Switch, "on", "send duplicate ACKs when a receive is posted for a Send that was dropped for lack of one, so that the peer resends it early"},
  {"receive_wait_ms", Kind::Number, "0", "time in ms that a Send already acknowledged by TCP, and all data after it, waits for a posted receive before the connection ends; 0: end the connection immediately; the drop-in libraries: 120000", "", 0, 86'400'000},
  {"completion_method", Kind::Number, "2", "method for completions of received Sends: 1 (update the receive and write one completion for each Send) or 2 (one completion for a run of Sends)", "", 1, 2},
  {"completion_threshold", Kind::Number, "auto", "received Sends after TCP gaps for which a connection keeps the completion data in its own memory; for further ones it writes the data to their receives (completion_method 2 only); auto: 16", "auto", 0, 65536},
  {"mpa_revision", Kind::Number, "2", "MPA request revision: 2 (enhanced connection setup, RFC 6581) or 1 (RFC 5044)", "", 1, 2},
  {"peer_to_peer", Kind::Switch, "on", "MPA peer-to-peer connection setup (RFC 6581)"},
  {"rtr", Kind::Set, "write,read", "ready-to-receive (RTR) messages offered and accepted in peer-to-peer setup: write, read or both, separated by a comma", "write|read"},
  {"first_fpdu_delay_ms", Kind::Number, "0", "time in ms that the initiator waits after the MPA Reply before it sends its first FPDU (Linux siw loses FPDUs that arrive too early, docs/interop.md)", "", 0, 10'000},
  {"ird", Kind::Number, "32", "incoming RDMA Reads that a connection serves at a time (IRD)", "", 0, 16382},
  {"ord", Kind::Number, "32", "outgoing RDMA Reads that a connection has outstanding at a time (ORD)", "", 0, 16382},
  {"receive_window", Kind::Size, "4M", "largest TCP receive window, in bytes", "", 64 << 10, 1 << 30},
  {"max_connections", Kind::Number, "262144", "most connections of one engine at a time; further ones are refused", "", 1, 16'777'216},
  {"allow", Kind::Prefixes, "", "addresses and prefixes that may connect to a listener, separated by commas; the longest match in allow and deny decides, deny wins a tie; empty: all addresses that deny does not list"},
  {"deny", Kind::Prefixes, "", "addresses and prefixes that may not connect to a listener, as for allow"},
  {"listener_connections", Kind::Number, "0", "most connections of one listener at a time; 0: no limit", "", 0, 16'777'216},
  {"peer_connections", Kind::Number, "0", "most connections of one listener with one peer address at a time; 0: no limit", "", 0, 16'777'216},
  {"accept_rate", Kind::Number, "0", "most new connections of one listener per second; 0: no limit", "", 0, 1'000'000},
  {"reassembly_pool", Kind::Number, "64", "memory for TCP reassembly of one engine, in MiB; RoCE: as much again for out-of-order packets", "", 1, 1 << 20},
  {"sack", Kind::Switch, "on", "TCP selective acknowledgements (RFC 2018)"},
  {"timestamps", Kind::Switch, "on", "TCP timestamps (RFC 7323)"},
  {"window_scaling", Kind::Switch, "on", "TCP window scaling (RFC 7323)"},
  {"ack_policy", Kind::Choice, "per-burst", "TCP acknowledgement of in-order data: per-burst (one ACK for all segments received together), every-second (at least every second full-sized segment, a single one within 40 ms) or immediate (every segment)", "per-burst|every-second|immediate"},
  {"count_plain_dupacks", Kind::Switch, "off", "count duplicate ACKs without new SACK information as signs of loss too (RFC 6675 does not); matters only with sack = on"},
  {"rto_min_ms", Kind::Number, "auto", "smallest TCP retransmission timeout, in ms; auto: 20 on memif and mem, otherwise 200", "auto", 1, 60'000},
  {"congestion", Kind::Choice, "newreno", "TCP congestion control: reno (RFC 5681), newreno (RFC 6582), cubic (RFC 9438) or dctcp (RFC 8257; needs ecn)", "reno|newreno|cubic|dctcp"},
  {"ecn", Kind::Choice, "off", "explicit congestion notification of TCP (RFC 3168): off, accept (use it if the peer requests it) or request; dctcp needs it at both ends", "off|accept|request"},
  {"rack", Kind::Switch, "on", "detect TCP loss by time (RACK, RFC 8985), with SACK; off: by counting SACKed data (RFC 6675)"},
  {"name_corrupted", Kind::Switch, "on", "report segments with a wrong CRC to the peer, so that it resends them without reducing its window; needs rack, and this setting at both ends"},
  {"tlp", Kind::Switch, "on", "TCP tail loss probes (RFC 8985), with SACK"},
  {"prr", Kind::Switch, "on", "TCP proportional rate reduction (RFC 6937), with SACK"},
  {"undo", Kind::Switch, "on", "restore the congestion window after a spurious retransmission (RFC 3522, 3708, 5682)"},
  {"time_wait_ms", Kind::Number, "60000", "time in ms that a closed connection stays in TIME-WAIT", "", 0, 240'000},
  {"link_timeout_ms", Kind::Number, "5000", "time in ms that the link may be down before connections fail; 0: no limit", "", 0, 3'600'000},
  {"keepalive", Kind::Switch, "on", "send keepalive probes on idle connections to detect a peer that died, also behind `urnic switch`; RoCE: on RC queue pairs only"},
  {"keepalive_s", Kind::Number, "30", "seconds without a frame from the peer before the first keepalive probe; without a response to three probes the connection ends after as many seconds again (RoCE: up to twice as many)", "", 1, 86'400},
  {"progress", Kind::Choice, "auto", "thread that runs the engine: auto (the program while it polls, otherwise a background thread), poll (only the program; nothing moves while it does not poll) or thread (always a background thread)", "auto|poll|thread"},
  {"spin_us", Kind::Number, "0", "time in us that the background thread polls for work before it sleeps", "", 0, 1'000'000},
  {"lookout_us", Kind::Number, "50", "longest time in us that a program polls before it sleeps, if it waits for completions again and again; 0: sleep immediately", "", 0, 1'000'000},
  {"doze_us", Kind::Number, "200", "longest time in us that an empty poll over the kernel's TCP sleeps when other threads need the core; 0: keep the core", "", 0, 400},
  {"identity", Kind::Choice, "auto", "kind of device that the drop-in libraries report: iwarp, ib-like (iWARP on the wire) or roce; auto: roce with transport = roce, otherwise iwarp", "auto|iwarp|ib-like|roce"},
  {"capture", Kind::Text, "", "pcapng file to which every frame of the port is written; empty: none"},
  {"faults", Kind::Text, "", "plan of faults to inject into what this process sends, not into what it receives: frames, or bytes over the kernel's TCP; empty: none; see docs/fault.md"},
  {"stat", Kind::Switch, "on", "let `urnic stat` read the counters of this process"},
  {"log", Kind::Choice, "off", "least severe messages to log: error, warn, info or debug; off: none", "off|error|warn|info|debug"},
  {"log_file", Kind::Text, "", "file for log messages; empty: standard error"},
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
      return fail("expected one or more of " + listed(key.choices) + ", separated by commas");
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
      return fail("'" + std::string(item) + "' cannot be a host address");
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
      return fail("'" + std::string(item) + "' cannot be a gateway address");
    }
    if (++(a->is_v4() ? v4 : v6) > 1) {
      return fail(std::string("expected at most one IPv4 and one IPv6 gateway"));
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
    return fail(std::string("must be a unicast address (not multicast, not all zero)"));
  }
  return m->to_string();
}

Outcome<std::string, std::string> port(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (text == "tcp" || text == "udp") return std::string(text);  // these need no further text
  if (colon == 0 || colon == std::string_view::npos) {
    return fail(
        std::string("expected kind:key=value,..., e.g. memif:socket=/run/user/1000/u.sock"));
  }
  return std::string(text);
}

// A folder that only this user can access: systemd's, else one below /tmp.
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
  return "memif:socket=" + socket + ",mtu=65000";
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
  if (text.size() > 4096) return fail(std::string("too long (limit 4096 characters)"));
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
  return fail(std::string("cannot be parsed"));
}

}  // namespace urnic::config
