// The faults of `urnic run --verbs-faults`: what goes wrong between a program and its verbs. A
// value, written like a FaultPlan: "at=ibv_reg_mr:3+send_wr:5:RETRY_EXC_ERR,late=0.1:5ms,seed=7".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace urnic::fault {

// The names are those of the plan. Calls have the name of the function.
enum class VerbsKind : std::uint8_t {
  ibv_open_device,
  ibv_alloc_pd,
  ibv_reg_mr,
  ibv_create_comp_channel,
  ibv_create_cq,
  ibv_create_srq,
  ibv_create_qp,
  ibv_create_ah,
  ibv_modify_qp,
  ibv_post_send,
  ibv_post_recv,
  ibv_post_srq_recv,
  ibv_poll_cq,
  ibv_req_notify_cq,
  ibv_get_cq_event,
  rdma_create_event_channel,
  rdma_create_id,
  rdma_bind_addr,
  rdma_listen,
  rdma_resolve_addr,
  rdma_resolve_route,
  rdma_create_qp,
  rdma_connect,
  rdma_accept,
  send_wr,  // a request of a send queue ends with a status, and its queue pair is in Error
  recv_wr,  // the same for a receive
  late,     // a completion comes later, and those behind it in its queue with it
  split,    // ibv_poll_cq returns one completion where it could return several
  cq_full,  // a completion queue overruns
  addr_error,
  route_error,
  connect_error,
  unreachable,
  rejected,
  port_err,  // the port is down for a time
  gid_change,
  device_fatal,
  qp_fatal,
  qp_req_err,
  qp_access_err,
  srq_limit,
  Count
};
std::string_view verbs_kind_name(VerbsKind k);

// What the argument of a fault is.
enum class VerbsArgument : std::uint8_t {
  None,
  Errno,   // the errno value of the call
  Status,  // an ibv_wc_status
  Time,    // in nanoseconds
  Answer,  // the status of an event of rdma_cm
};
VerbsArgument verbs_argument_of(VerbsKind k);
// The argument, as it is written.
std::string verbs_argument_text(VerbsKind k, std::int64_t argument);

struct VerbsPlan {
  struct Fault {
    VerbsKind kind = VerbsKind::Count;
    double probability = 0;
    std::uint64_t nth = 0;  // exactly this one, counted from 1; 0: by probability
    std::int64_t argument = 0;
    bool operator==(const Fault&) const = default;
  };
  std::vector<Fault> faults;
  std::uint32_t qp = 0;  // only the n-th queue pair that the process creates; 0: all
  std::string from;      // only calls from this function or file; empty: all
  std::uint64_t seed = 1;

  bool operator==(const VerbsPlan&) const = default;
  // The text that parses to this plan.
  std::string to_string() const;

  // KIND=P[:ARGUMENT], at=KIND:N[:ARGUMENT]+..., qp=N, from=NAME, seed=N. The error is one line for
  // the user.
  static Outcome<VerbsPlan, std::string> parse(std::string_view text);
};

// Plans, each with its own restrictions and seed, between semicolons. A text without a fault is an
// error.
Outcome<std::vector<VerbsPlan>, std::string> parse_verbs_plans(std::string_view text);

}  // namespace urnic::fault
