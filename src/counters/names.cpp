#include "counters/names.h"

#include <numeric>
#include <string_view>

namespace urnic::counters {
namespace {

constexpr std::uint64_t kWord = 4;  // bytes; the unit of port_xmit_data and port_rcv_data

bool over_kernel_tcp(std::string_view port) {
  return port == "tcp" || port.starts_with("tcp:");
}

std::uint64_t sum(const std::array<std::uint64_t, kOpcodeCount>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

// The kernel's TCP hides its segments: there an FPDU counts as a packet.
std::uint64_t rdma_packets_out(const EngineStats& s) {
  const IwarpStats& i = s.ended.iwarp;
  return s.roce.tx_roce +
         (over_kernel_tcp(s.port.spec) ? sum(i.ddp.fpdus_sent) : i.tcp.segments_out);
}
std::uint64_t rdma_packets_in(const EngineStats& s) {
  const IwarpStats& i = s.ended.iwarp;
  return s.roce.rx_roce +
         (over_kernel_tcp(s.port.spec) ? sum(i.ddp.fpdus_received) : i.tcp.segments_in);
}

using S = const EngineStats&;

// Those of the InfiniBand architecture, in the form of the kernel (PortCounters, 16.1.3.5).
constexpr PortCounter kStandard[] = {
    {"counters/port_xmit_data", On::Each, [](S s) { return s.port.tx_bytes / kWord; }},
    {"counters/port_rcv_data", On::Each, [](S s) { return s.port.rx_bytes / kWord; }},
    {"counters/port_xmit_packets", On::Each,
     [](S s) { return over_kernel_tcp(s.port.spec) ? rdma_packets_out(s) : s.port.tx_frames; }},
    {"counters/port_rcv_packets", On::Each,
     [](S s) { return over_kernel_tcp(s.port.spec) ? rdma_packets_in(s) : s.port.rx_frames; }},
    {"counters/unicast_xmit_packets", On::Each, rdma_packets_out},
    {"counters/unicast_rcv_packets", On::Each, rdma_packets_in},
    {"counters/port_rcv_errors", On::Each,
     [](S s) {
       return s.port.rx_bad_port + s.net.rx_bad_ip + s.iwarp.rx_bad_tcp_checksum +
              s.roce.rx_roce_malformed + s.roce.rx_bad_icrc + s.roce.rx_bad_version;
     }},
    {"counters/port_rcv_constraint_errors", On::Each, [](S s) { return s.roce.rx_bad_pkey; }},
    {"counters/port_xmit_discards", On::Each, [](S s) { return s.roce.tx_unroutable; }},
    {"counters/port_xmit_wait", On::Each, [](S s) { return s.port.tx_full; }},
    {"counters/link_downed", On::Each, [](S s) { return s.port.link_losses; }},
    // These events do not exist: urnic has no lanes, switches, virtual lanes or multicast groups.
    {"counters/multicast_xmit_packets", On::Each, nullptr},
    {"counters/multicast_rcv_packets", On::Each, nullptr},
    {"counters/symbol_error", On::Each, nullptr},
    {"counters/link_error_recovery", On::Each, nullptr},
    {"counters/local_link_integrity_errors", On::Each, nullptr},
    {"counters/excessive_buffer_overrun_errors", On::Each, nullptr},
    {"counters/port_rcv_remote_physical_errors", On::Each, nullptr},
    {"counters/port_rcv_switch_relay_errors", On::Each, nullptr},
    {"counters/port_xmit_constraint_errors", On::Each, nullptr},
    {"counters/VL15_dropped", On::Each, nullptr},

    // Linux's rxe.
    {"hw_counters/sent_pkts", On::Roce, [](S s) { return s.roce.tx_roce; }},
    {"hw_counters/rcvd_pkts", On::Roce, [](S s) { return s.roce.rx_roce; }},
    {"hw_counters/duplicate_request", On::Roce,
     [](S s) { return s.ended.roce.requests_duplicate; }},
    {"hw_counters/out_of_seq_request", On::Roce,
     [](S s) { return s.ended.roce.requests_out_of_sequence; }},
    {"hw_counters/rcvd_rnr_err", On::Roce, [](S s) { return s.ended.roce.rnr_naks_received; }},
    {"hw_counters/send_rnr_err", On::Roce, [](S s) { return s.ended.roce.rnr_naks_sent; }},
    {"hw_counters/rcvd_seq_err", On::Roce, [](S s) { return s.ended.roce.sequence_naks_received; }},
    {"hw_counters/ack_deferred", On::Roce, nullptr},  // rxe's own scheduling
    {"hw_counters/retry_exceeded_err", On::Roce,
     [](S s) { return s.ended.roce.retries_exhausted; }},
    {"hw_counters/retry_rnr_exceeded_err", On::Roce,
     [](S s) { return s.ended.roce.rnr_retries_exhausted; }},
    {"hw_counters/completer_retry_err", On::Roce,
     [](S s) {
       return s.ended.roce.response_timeouts + s.ended.roce.sequence_naks_received +
              s.ended.roce.implied_naks + s.ended.roce.probe_losses;
     }},
    {"hw_counters/send_err", On::Roce, [](S s) { return s.roce.tx_unroutable; }},
    {"hw_counters/link_downed", On::Roce, [](S s) { return s.port.link_losses; }},
    {"hw_counters/rdma_sends", On::Roce, [](S s) { return s.ended.verbs.sends_sent; }},
    {"hw_counters/rdma_recvs", On::Roce, [](S s) { return s.ended.verbs.sends_received; }},

    // mlx5, whose names dashboards and exporters know.
    {"hw_counters/out_of_sequence", On::Roce,
     [](S s) { return s.ended.roce.requests_out_of_sequence; }},
    {"hw_counters/packet_seq_err", On::Roce,
     [](S s) { return s.ended.roce.sequence_naks_received; }},
    {"hw_counters/implied_nak_seq_err", On::Roce, [](S s) { return s.ended.roce.implied_naks; }},
    {"hw_counters/local_ack_timeout_err", On::Roce,
     [](S s) { return s.ended.roce.response_timeouts; }},
    {"hw_counters/rnr_nak_retry_err", On::Roce, [](S s) { return s.ended.roce.rnr_naks_received; }},
    {"hw_counters/rx_read_requests", On::Roce,
     [](S s) { return s.ended.verbs.read_requests_received; }},
    {"hw_counters/rx_icrc_encapsulated", On::Roce, [](S s) { return s.roce.rx_bad_icrc; }},
    {"hw_counters/np_ecn_marked_roce_packets", On::Roce,
     [](S s) { return s.ended.roce.ce_marks_received; }},
    {"hw_counters/np_cnp_sent", On::Roce, [](S s) { return s.ended.roce.cnps_sent; }},
    {"hw_counters/rp_cnp_handled", On::Roce,
     [](S s) { return s.ended.roce.cnps_received - s.ended.roce.cnps_ignored; }},
    {"hw_counters/rp_cnp_ignored", On::Roce, [](S s) { return s.ended.roce.cnps_ignored; }},

    // irdma.
    {"hw_counters/iwOutRdmaWrites", On::Iwarp, [](S s) { return s.ended.verbs.writes_sent; }},
    {"hw_counters/iwOutRdmaSends", On::Iwarp, [](S s) { return s.ended.verbs.sends_sent; }},
    {"hw_counters/iwOutRdmaReads", On::Iwarp, [](S s) { return s.ended.verbs.reads_sent; }},
    {"hw_counters/iwInRdmaSends", On::Iwarp, [](S s) { return s.ended.verbs.sends_received; }},
    {"hw_counters/iwInRdmaReads", On::Iwarp,
     [](S s) { return s.ended.verbs.read_requests_received; }},
    {"hw_counters/tcpInSegs", On::OwnTcp, [](S s) { return s.ended.iwarp.tcp.segments_in; }},
    {"hw_counters/tcpOutSegs", On::OwnTcp, [](S s) { return s.ended.iwarp.tcp.segments_out; }},
    {"hw_counters/tcpRetransSegs", On::OwnTcp, [](S s) { return s.ended.iwarp.tcp.retransmits; }},
    {"hw_counters/tcpInProtoErrors", On::OwnTcp, [](S s) { return s.iwarp.rx_bad_tcp_checksum; }},
};

}  // namespace

std::span<const PortCounter> port_counters() {
  return kStandard;
}

bool is_shown(const PortCounter& c, bool roce, const char* port) {
  switch (c.on) {
    case On::Each:
      return true;
    case On::Roce:
      return roce;
    case On::Iwarp:
      return !roce;
    case On::OwnTcp:
      return !roce && !over_kernel_tcp(port);
  }
  return false;
}

}  // namespace urnic::counters
