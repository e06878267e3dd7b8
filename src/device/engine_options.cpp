#include "device/engine_options.h"

#include <sstream>

namespace urnic::device {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string item; std::getline(in, item, ',');) {
    const auto b = item.find_first_not_of(" \t"), e = item.find_last_not_of(" \t");
    if (b != std::string::npos) out.push_back(item.substr(b, e - b + 1));
  }
  return out;
}

std::uint8_t rtr_kinds(const std::string& text) {
  std::uint8_t kinds = 0;
  for (const std::string& k : split(text)) {
    if (k == "write") kinds |= mpa::kRtrWrite;
    if (k == "read") kinds |= mpa::kRtrRead;
  }
  return kinds;
}

// auto: the variant that the framing policy requires, or Fig 9 if there is a choice (E-35).
fastpath::InLogicVariant variant_of(const std::string& text, mpa::Policy policy) {
  if (mpa::has_markers(policy)) return fastpath::InLogicVariant::Fig3;
  return text == "fig10" ? fastpath::InLogicVariant::Fig10 : fastpath::InLogicVariant::Fig9;
}

ib::CongestionRule congestion_rule(const std::string& name) {
  if (name == "off") return ib::CongestionRule::Off;
  return name == "dcqcn" ? ib::CongestionRule::Dcqcn : ib::CongestionRule::Window;
}

// S-1: settings that iWARP has too have the same names.
ib::LossRules loss_rules(const Config& c) {
  ib::LossRules r;
  const auto number = [&](const char* name) { return static_cast<std::uint32_t>(c.get_int(name)); };
  r.type = c.get("connection_type") == "slow" ? ib::ConnectionType::Slow : ib::ConnectionType::Fast;
  const std::string way = c.get("out_of_order");
  r.out_of_order = way == "drop"    ? ib::OutOfOrder::Drop
                   : way == "place" ? ib::OutOfOrder::Place
                                    : ib::OutOfOrder::Store;
  r.store_packets = number("held_packets");
  r.max_recovery_attempts = number("max_recovery_attempts");
  r.upgrade_after = number("upgrade_after");
  r.rnr_park = number("rnr_park");
  r.rnr_park_time = Duration::ms(c.get_int("rnr_park_ms"));
  return r;
}

}  // namespace

Options options_from(const Config& c, std::string_view port_kind) {
  Options o;
  const auto text = [&](const char* name) {
    const std::string v = c.get(name);
    return v == "auto" ? std::string() : v;
  };
  const auto number = [&](const char* name) { return static_cast<std::uint32_t>(c.get_int(name)); };
  o.addresses = split(text("address"));
  o.gateway = text("gateway");
  o.mac = text("mac");
  o.vlan = number("vlan");
  const std::string transport = c.get("transport");
  o.speaks_iwarp = transport != "roce";
  o.speaks_roce = transport != "iwarp";
  o.mtu = text("mtu").empty() ? 0 : number("mtu");

  o.tcp.sack = c.get_bool("sack");
  o.tcp.timestamps = c.get_bool("timestamps");
  o.tcp.window_scaling = c.get_bool("window_scaling");
  o.tcp.receive_buffer = number("receive_window");
  o.tcp.hole_limit = number("hole_limit");
  o.tcp.count_plain_dupacks = c.get_bool("count_plain_dupacks");
  const std::string ack = c.get("ack_policy");
  o.tcp.ack_policy = ack == "every-second" ? tcp::AckPolicy::EverySecond
                     : ack == "immediate"  ? tcp::AckPolicy::Immediate
                                           : tcp::AckPolicy::PerBurst;
  const std::string congestion = c.get("congestion");
  o.tcp.congestion = congestion == "reno"    ? tcp::CongestionControl::Reno
                     : congestion == "cubic" ? tcp::CongestionControl::Cubic
                     : congestion == "dctcp" ? tcp::CongestionControl::Dctcp
                                             : tcp::CongestionControl::NewReno;
  const std::string ecn = c.get("ecn");
  o.tcp.ecn = ecn == "accept"    ? tcp::EcnMode::Accept
              : ecn == "request" ? tcp::EcnMode::Request
                                 : tcp::EcnMode::Off;
  o.tcp.rack = c.get_bool("rack");
  o.tcp.name_corrupted = c.get_bool("name_corrupted");
  o.tcp.tlp = c.get_bool("tlp");
  o.tcp.prr = c.get_bool("prr");
  o.tcp.undo = o.tcp.frto = c.get_bool("undo");
  o.rto_auto = text("rto_min_ms").empty();
  if (!o.rto_auto) o.tcp.rto_min = Duration::ms(c.get_int("rto_min_ms"));
  o.tcp.time_wait = Duration::ms(c.get_int("time_wait_ms"));

  o.context.initiated_as = c.get("connection_type") == "slow" ? fastpath::ConnectionType::Slow
                                                              : fastpath::ConnectionType::Fast;
  o.mpa.policy = mpa::policy_by_name(c.get("framing")).value_or(mpa::Policy::NoMarkers);
  o.context.variant = variant_of(c.get("in_logic"), o.mpa.policy);
  o.context.max_recovery_attempts = number("max_recovery_attempts");
  o.context.max_same_segment = number("max_same_segment");
  o.context.max_cut_frames = number("max_cut_frames");
  o.context.upgrade_after = number("upgrade_after");
  o.context.immediate_dup_ack = c.get_bool("immediate_dup_ack");
  const std::string ooo = c.get("ooo_without_markers");
  o.out_of_order = ooo == "place"   ? Options::OutOfOrder::Place
                   : ooo == "store" ? Options::OutOfOrder::Store
                                    : Options::OutOfOrder::Auto;

  o.mpa.crc = c.get_bool("crc");
  o.context.crc = o.mpa.crc;
  o.mpa.revision = static_cast<std::uint8_t>(number("mpa_revision"));
  o.mpa.peer_to_peer = c.get_bool("peer_to_peer");
  o.mpa.rtr = rtr_kinds(c.get("rtr"));
  o.mpa.ird = static_cast<std::uint16_t>(number("ird"));
  o.mpa.ord = static_cast<std::uint16_t>(number("ord"));
  o.roce.probe = c.get_bool("probe");
  o.roce.selective = c.get_bool("selective");
  o.roce.send.congestion = congestion_rule(c.get("roce_congestion"));
  o.roce.send.window = number("roce_window");
  o.roce.loss = loss_rules(c);
  o.roce.held_bytes = static_cast<std::size_t>(c.get_int("reassembly_pool")) << 20;
  o.rq_nudge = c.get_bool("rq_nudge");
  o.receive_wait = Duration::ms(c.get_int("receive_wait_ms"));
  o.first_fpdu_delay = Duration::ms(c.get_int("first_fpdu_delay_ms"));
  o.completion_method = static_cast<ddp::CompletionMethod>(number("completion_method"));
  if (!text("completion_threshold").empty()) {
    o.completion_threshold = number("completion_threshold");
  }
  o.max_connections = number("max_connections");
  for (const std::string& prefix : split(text("allow")))
    o.gate.access.allow(*IpPrefix::parse(prefix));
  for (const std::string& prefix : split(text("deny")))
    o.gate.access.deny(*IpPrefix::parse(prefix));
  o.gate.most = number("listener_connections");
  o.gate.most_of_peer = number("peer_connections");
  o.gate.rate = number("accept_rate");
  o.reassembly_pool = static_cast<std::uint64_t>(c.get_int("reassembly_pool")) << 20;
  o.link_timeout = Duration::ms(c.get_int("link_timeout_ms"));
  o.keepalive_idle = Duration::s(c.get_int("keepalive_s"));
  o.keepalive = c.get_bool("keepalive");
  if (o.keepalive) o.roce.keepalive = o.keepalive_idle;
  o.duplicate_address_detection = port_kind == "tap" || port_kind == "dpdk";
  settle_by_port_kind(&o, port_kind);
  o.real_time = true;
  return o;
}

}  // namespace urnic::device
