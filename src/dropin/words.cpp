// Names of values, as programs print them and scripts read them; link rates.
#include "dropin/exported.h"

#include <array>

namespace {

template <std::size_t N>
const char* word(const std::array<const char*, N>& words, int value, const char* otherwise) {
  return value >= 0 && static_cast<std::size_t>(value) < N ? words[static_cast<std::size_t>(value)]
                                                           : otherwise;
}

struct Rate {
  ibv_rate rate;
  int mult;  // multiples of 2.5 Gbit/s; -1: not a multiple
  int mbps;
};
constexpr Rate kRates[] = {
    {IBV_RATE_2_5_GBPS, 1, 2500},     {IBV_RATE_5_GBPS, 2, 5000},
    {IBV_RATE_10_GBPS, 4, 10000},     {IBV_RATE_20_GBPS, 8, 20000},
    {IBV_RATE_30_GBPS, 12, 30000},    {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000},    {IBV_RATE_80_GBPS, 32, 80000},
    {IBV_RATE_120_GBPS, 48, 120000},  {IBV_RATE_28_GBPS, 11, 28125},
    {IBV_RATE_50_GBPS, 20, 53125},    {IBV_RATE_400_GBPS, 160, 425000},
    {IBV_RATE_600_GBPS, 240, 637500}, {IBV_RATE_14_GBPS, -1, 14062},
    {IBV_RATE_56_GBPS, -1, 56250},    {IBV_RATE_112_GBPS, -1, 112500},
    {IBV_RATE_168_GBPS, -1, 168750},  {IBV_RATE_25_GBPS, -1, 25781},
    {IBV_RATE_100_GBPS, -1, 103125},  {IBV_RATE_200_GBPS, -1, 206250},
    {IBV_RATE_300_GBPS, -1, 309375},
};

}  // namespace

const char* urnic_ibv_node_type_str(ibv_node_type type) {
  static constexpr std::array<const char*, 8> kWords{
      "unknown",           "InfiniBand channel adapter",
      "InfiniBand switch", "InfiniBand router",
      "iWARP NIC",         "usNIC",
      "usNIC UDP",         "unspecified"};
  return word(kWords, type, "unknown");
}

const char* urnic_ibv_port_state_str(ibv_port_state state) {
  static constexpr std::array<const char*, 6> kWords{
      "no state change (NOP)", "down", "init", "armed", "active", "active defer"};
  return word(kWords, state, "unknown");
}

const char* urnic_ibv_event_type_str(ibv_event_type event) {
  static constexpr std::array<const char*, 20> kWords{"CQ error",
                                                      "local work queue catastrophic error",
                                                      "invalid request local work queue error",
                                                      "local access violation work queue error",
                                                      "communication established",
                                                      "send queue drained",
                                                      "path migrated",
                                                      "path migration request error",
                                                      "local catastrophic error",
                                                      "port active",
                                                      "port error",
                                                      "LID change",
                                                      "P_Key change",
                                                      "SM change",
                                                      "SRQ catastrophic error",
                                                      "SRQ limit reached",
                                                      "last WQE reached",
                                                      "client reregistration",
                                                      "GID table change",
                                                      "WQ fatal"};
  return word(kWords, event, "unknown");
}

const char* urnic_ibv_wc_status_str(ibv_wc_status status) {
  static constexpr std::array<const char*, 24> kWords{"success",
                                                      "local length error",
                                                      "local QP operation error",
                                                      "local EE context operation error",
                                                      "local protection error",
                                                      "Work Request Flushed Error",
                                                      "memory management operation error",
                                                      "bad response error",
                                                      "local access error",
                                                      "remote invalid request error",
                                                      "remote access error",
                                                      "remote operation error",
                                                      "transport retry counter exceeded",
                                                      "RNR retry counter exceeded",
                                                      "local RDD violation error",
                                                      "remote invalid RD request",
                                                      "aborted error",
                                                      "invalid EE context number",
                                                      "invalid EE context state",
                                                      "fatal error",
                                                      "response timeout error",
                                                      "general error",
                                                      "TM error",
                                                      "TM software rendezvous"};
  return word(kWords, status, "unknown");
}

const char* urnic_rdma_event_str(rdma_cm_event_type event) {
  static constexpr std::array<const char*, 16> kWords{
      "RDMA_CM_EVENT_ADDR_RESOLVED",   "RDMA_CM_EVENT_ADDR_ERROR",
      "RDMA_CM_EVENT_ROUTE_RESOLVED",  "RDMA_CM_EVENT_ROUTE_ERROR",
      "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",   "RDMA_CM_EVENT_UNREACHABLE",
      "RDMA_CM_EVENT_REJECTED",        "RDMA_CM_EVENT_ESTABLISHED",
      "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN",  "RDMA_CM_EVENT_MULTICAST_ERROR",
      "RDMA_CM_EVENT_ADDR_CHANGE",     "RDMA_CM_EVENT_TIMEWAIT_EXIT"};
  return word(kWords, event, "UNKNOWN EVENT");
}

int urnic_ibv_rate_to_mult(ibv_rate rate) {
  for (const Rate& r : kRates) {
    if (r.rate == rate) return r.mult;
  }
  return -1;
}

ibv_rate urnic_mult_to_ibv_rate(int mult) {
  for (const Rate& r : kRates) {
    if (r.mult == mult && mult > 0) return r.rate;
  }
  return IBV_RATE_MAX;
}

int urnic_ibv_rate_to_mbps(ibv_rate rate) {
  for (const Rate& r : kRates) {
    if (r.rate == rate) return r.mbps;
  }
  return -1;
}

ibv_rate urnic_mbps_to_ibv_rate(int mbps) {
  for (const Rate& r : kRates) {
    if (r.mbps == mbps) return r.rate;
  }
  return IBV_RATE_MAX;
}
