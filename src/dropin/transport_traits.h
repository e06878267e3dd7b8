// The differences between the two transports that verbs and rdma_cm show, one field each, as in the
// manual pages and docs/dropin-fields.md. Other code of the drop-in uses these fields and does not
// test for the transport.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "urnic/qp_attributes.h"

namespace urnic::dropin {

struct TransportTraits {
  Transport transport;

  // ---- the device
  bool has_datagrams;          // IBV_QPT_UD, with address handles and RDMA_PS_UDP
  bool has_uc;                 // IBV_QPT_UC
  bool has_xrc;                // IBV_QPT_XRC_SEND and IBV_QPT_XRC_RECV, with their domains and SRQs
  bool has_rnr_nak;            // IBV_DEVICE_RC_RNR_NAK_GEN
  std::uint8_t max_rd_atomic;  // Reads and atomics at a time: max_qp_rd_atom, max_qp_init_rd_atom

  // ---- its port
  struct {
    // active_mtu is the payload of a packet; else an MTU step not above the IP MTU
    bool has_path_mtu;
    std::uint32_t max_msg_sz, cap_flags;
    std::uint8_t flags;
  } port;

  // ---- rdma_cm
  bool has_path_records;    // route.path_rec, with the GIDs and the P_Key of route.addr.addr.ibaddr
  bool resolve_addr_binds;  // rdma_resolve_addr reserves the port of an id; else connecting does
  bool carries_conn_param;  // its retries, flow control, `srq` and `qp_num` reach the peer
  // rdma_connect and rdma_accept move a queue pair to RTS, and need one. Otherwise the id may have
  // none, and the program moves its own, with rdma_init_qp_attr and rdma_establish.
  bool connection_moves_qp;
  bool acceptor_learns_conn_param;  // ESTABLISHED at the accepting end has depths and private data
  bool acceptor_sees_unreachable;   // a silent peer is UNREACHABLE there too; else CONNECT_ERROR

  // ---- queue pairs
  // ibv_modify_qp has InfiniBand's moves, each with its attributes, and ibv_query_qp returns them.
  // Otherwise the moves are those of RFC 5040, and attributes without a meaning there are only
  // stored.
  bool has_ib_states;
  bool
      needs_peer_matcher;  // without rdma_cm, a queue pair's number has a TCP port (peer_matcher.h)
  bool drains_in_sqd;      // sq_draining
  bool has_comm_est_in_rts;  // a message that arrived in RTR is reported in RTS too

  // ---- work
  // Immediate data has eight bytes (RFC 7306), of which verbs use the first four (work.h).
  bool has_wide_immediate;
};

constexpr TransportTraits traits_of(Transport transport) {
  const bool is_roce = transport == Transport::roce;
  return {
      .transport = transport,

      .has_datagrams = is_roce,
      .has_uc = is_roce,
      .has_xrc = is_roce,
      .has_rnr_nak = is_roce,
      .max_rd_atomic = static_cast<std::uint8_t>(is_roce ? 16 : 255),

      .port = {.has_path_mtu = is_roce,
               .max_msg_sz = is_roce ? 0x80000000 : 0xffffffff,
               .cap_flags = is_roce ? IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS : 0u,
               .flags = static_cast<std::uint8_t>(is_roce ? IBV_QPF_GRH_REQUIRED : 0)},

      .has_path_records = is_roce,
      .resolve_addr_binds = is_roce,
      .carries_conn_param = is_roce,
      .connection_moves_qp = !is_roce,
      .acceptor_learns_conn_param = !is_roce,
      .acceptor_sees_unreachable = is_roce,

      .has_ib_states = is_roce,
      .needs_peer_matcher = !is_roce,
      .drains_in_sqd = is_roce,
      .has_comm_est_in_rts = is_roce,

      .has_wide_immediate = !is_roce,
  };
}

}  // namespace urnic::dropin
