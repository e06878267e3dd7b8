// The counters that tools find, and which of urnic's counters they are.
#include "counters/names.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "counters/page.h"

namespace urnic::counters {
namespace {

// What each counter shows if urnic has counted this.
std::map<std::string, std::uint64_t> shown(const EngineStats& s) {
  std::map<std::string, std::uint64_t> out;
  for (const PortCounter& c : port_counters()) {
    const std::uint64_t value = c.value == nullptr ? 0 : c.value(s);
    if (value != 0) out[c.path] = value;
  }
  return out;
}
using Values = std::map<std::string, std::uint64_t>;

TEST(CounterNames, FitInAPageAndAreDifferent) {
  std::set<std::string> paths;
  std::size_t counted = 0;
  for (const PortCounter& c : port_counters()) {
    EXPECT_TRUE(paths.insert(c.path).second) << c.path;
    EXPECT_LT(std::string(c.path).size(), sizeof Entry::path) << c.path;
    counted += c.value != nullptr ? 1 : 0;
  }
  EXPECT_LE(counted, kMostEntries);
}

TEST(CounterNames, NothingCountedIsNothingShown) {
  EXPECT_EQ(shown({}), Values());
}

TEST(CounterNames, DataIsInWordsAndPacketsAreFrames) {
  EngineStats s;
  s.port.spec = "memif:socket=/tmp/x";
  s.port.tx_bytes = 4003;
  s.port.rx_bytes = 8000;
  s.port.tx_frames = 7;
  s.port.rx_frames = 9;
  s.ended.iwarp.tcp.segments_out = 5;  // the other two frames were ARP
  s.ended.iwarp.tcp.segments_in = 6;
  EXPECT_EQ(shown(s), (Values{{"counters/port_xmit_data", 1000},
                              {"counters/port_rcv_data", 2000},
                              {"counters/port_xmit_packets", 7},
                              {"counters/port_rcv_packets", 9},
                              {"counters/unicast_xmit_packets", 5},
                              {"counters/unicast_rcv_packets", 6},
                              {"hw_counters/tcpOutSegs", 5},
                              {"hw_counters/tcpInSegs", 6}}));
}

// proves: DI-28
TEST(CounterNames, OverTheKernelsTcpPacketsAreFpdus) {
  for (const char* port : {"tcp", "tcp:bind=127.0.0.1"}) {
    EngineStats s;
    s.port.spec = port;
    s.ended.iwarp.ddp.fpdus_sent[0] = 3;
    s.ended.iwarp.ddp.fpdus_sent[kOpcodeCount - 1] = 4;
    s.ended.iwarp.ddp.fpdus_received[1] = 5;
    EXPECT_EQ(shown(s), (Values{{"counters/port_xmit_packets", 7},
                                {"counters/port_rcv_packets", 5},
                                {"counters/unicast_xmit_packets", 7},
                                {"counters/unicast_rcv_packets", 5}}));
  }
}

TEST(CounterNames, ErrorsOfThePortAreAddedUp) {
  EngineStats s;
  s.port.rx_bad_port = 1;
  s.net.rx_bad_ip = 10;
  s.iwarp.rx_bad_tcp_checksum = 100;
  s.roce.rx_roce_malformed = 1000;
  s.roce.rx_bad_icrc = 10000;
  s.roce.rx_bad_version = 100000;
  s.roce.rx_bad_pkey = 2;
  s.roce.tx_unroutable = 3;
  s.port.tx_full = 4;
  s.port.link_losses = 5;
  EXPECT_EQ(shown(s), (Values{{"counters/port_rcv_errors", 111111},
                              {"counters/port_rcv_constraint_errors", 2},
                              {"counters/port_xmit_discards", 3},
                              {"counters/port_xmit_wait", 4},
                              {"counters/link_downed", 5},
                              {"hw_counters/send_err", 3},
                              {"hw_counters/link_downed", 5},
                              {"hw_counters/rx_icrc_encapsulated", 10000},
                              {"hw_counters/tcpInProtoErrors", 100}}));
}

TEST(CounterNames, RoceHasThoseOfRxe) {
  EngineStats s;
  s.port.spec = "udp";
  s.roce.tx_roce = 1;
  s.roce.rx_roce = 2;
  RoceStats& r = s.ended.roce;
  r.requests_duplicate = 3;
  r.requests_out_of_sequence = 4;
  r.rnr_naks_received = 5;
  r.rnr_naks_sent = 6;
  r.sequence_naks_received = 7;
  r.retries_exhausted = 8;
  r.rnr_retries_exhausted = 9;
  r.response_timeouts = 10;
  r.implied_naks = 20;
  r.probe_losses = 40;
  s.ended.verbs.sends_sent = 11;
  s.ended.verbs.sends_received = 12;
  const Values rxe{
      {"sent_pkts", 1},          {"rcvd_pkts", 2},          {"duplicate_request", 3},
      {"out_of_seq_request", 4}, {"rcvd_rnr_err", 5},       {"send_rnr_err", 6},
      {"rcvd_seq_err", 7},       {"retry_exceeded_err", 8}, {"retry_rnr_exceeded_err", 9},
      {"rdma_sends", 11},        {"rdma_recvs", 12},        {"completer_retry_err", 77},
      {"ack_deferred", 0},       {"send_err", 0},           {"link_downed", 0}};
  const Values all = shown(s);
  for (const auto& [name, value] : rxe) {
    const auto found = all.find("hw_counters/" + name);
    EXPECT_EQ(found == all.end() ? 0 : found->second, value) << name;
  }
  EXPECT_EQ(all.at("counters/unicast_xmit_packets"), 1u);
  EXPECT_EQ(all.at("counters/unicast_rcv_packets"), 2u);
}

TEST(CounterNames, RoceHasThoseOfMlx5) {
  EngineStats s;
  RoceStats& r = s.ended.roce;
  r.requests_out_of_sequence = 1;
  r.sequence_naks_received = 2;
  r.implied_naks = 3;
  r.response_timeouts = 4;
  r.rnr_naks_received = 5;
  s.ended.verbs.read_requests_received = 6;
  r.ce_marks_received = 7;
  r.cnps_sent = 8;
  r.cnps_received = 10;
  r.cnps_ignored = 1;
  const Values all = shown(s);
  const Values mlx5{{"out_of_sequence", 1},
                    {"packet_seq_err", 2},
                    {"implied_nak_seq_err", 3},
                    {"local_ack_timeout_err", 4},
                    {"rnr_nak_retry_err", 5},
                    {"rx_read_requests", 6},
                    {"np_ecn_marked_roce_packets", 7},
                    {"np_cnp_sent", 8},
                    {"rp_cnp_handled", 9},
                    {"rp_cnp_ignored", 1}};
  for (const auto& [name, value] : mlx5) EXPECT_EQ(all.at("hw_counters/" + name), value) << name;
}

TEST(CounterNames, IwarpHasThoseOfIrdma) {
  EngineStats s;
  s.ended.verbs.writes_sent = 1;
  s.ended.verbs.sends_sent = 2;
  s.ended.verbs.reads_sent = 3;
  s.ended.verbs.sends_received = 4;
  s.ended.verbs.read_requests_received = 5;
  s.ended.iwarp.tcp.retransmits = 6;
  const Values all = shown(s);
  const Values irdma{{"iwOutRdmaWrites", 1}, {"iwOutRdmaSends", 2}, {"iwOutRdmaReads", 3},
                     {"iwInRdmaSends", 4},   {"iwInRdmaReads", 5},  {"tcpRetransSegs", 6}};
  for (const auto& [name, value] : irdma) EXPECT_EQ(all.at("hw_counters/" + name), value) << name;
}

TEST(CounterNames, ADeviceShowsThoseOfItsTransport) {
  const auto has = [](const std::string& path, bool roce, const char* port) {
    for (const PortCounter& c : port_counters()) {
      if (path == c.path) return is_shown(c, roce, port);
    }
    ADD_FAILURE() << path;
    return false;
  };
  for (const bool roce : {false, true}) {
    EXPECT_TRUE(has("counters/port_xmit_data", roce, "tcp"));
    EXPECT_TRUE(has("counters/symbol_error", roce, "udp"));
    EXPECT_EQ(has("hw_counters/sent_pkts", roce, "memif:socket=x"), roce);
    EXPECT_EQ(has("hw_counters/np_cnp_sent", roce, "memif:socket=x"), roce);
    EXPECT_EQ(has("hw_counters/iwInRdmaSends", roce, "memif:socket=x"), !roce);
    EXPECT_EQ(has("hw_counters/tcpOutSegs", roce, "memif:socket=x"), !roce);
    EXPECT_FALSE(has("hw_counters/tcpOutSegs", roce, "tcp:bind=127.0.0.1"));
    EXPECT_EQ(has("hw_counters/iwInRdmaSends", roce, "tcp"), !roce);
  }
}

}  // namespace
}  // namespace urnic::counters
