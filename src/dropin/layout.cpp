// The layout of the structures with which programs were compiled. If the installed headers differ,
// a library built with them must not be used with these programs.
#include <pthread.h>

#include <cstddef>

#include "dropin/exported.h"

#if defined(__x86_64__) || defined(__aarch64__)
static_assert(sizeof(ibv_device) == 664);
static_assert(sizeof(ibv_context) == 288 + sizeof(pthread_mutex_t));
static_assert(sizeof(ibv_context_ops) == 256);
// These grow with the headers: at the front, at the end, by the size that the caller passes.
static_assert(sizeof(verbs_context) >= 648);
static_assert(sizeof(ibv_qp_ex) >= 352);
static_assert(sizeof(ibv_port_attr) >= 52);
static_assert(sizeof(ibv_pd) == 16);
static_assert(sizeof(ibv_mr) == 48);
static_assert(sizeof(ibv_mw) == 32);
static_assert(sizeof(ibv_qp) == 120 + sizeof(pthread_mutex_t));
static_assert(sizeof(ibv_cq) == 88 + sizeof(pthread_mutex_t));
static_assert(sizeof(ibv_cq_ex) == 248 + sizeof(pthread_mutex_t));
static_assert(sizeof(ibv_srq) == 88 + sizeof(pthread_mutex_t));
static_assert(sizeof(ibv_comp_channel) == 16);
static_assert(sizeof(ibv_wc) == 48);
static_assert(sizeof(ibv_send_wr) == 128);
static_assert(sizeof(ibv_recv_wr) == 32);
static_assert(sizeof(ibv_sge) == 16);
static_assert(sizeof(ibv_device_attr) == 232);
static_assert(sizeof(ibv_device_attr_ex) == 400);
static_assert(sizeof(ibv_qp_attr) == 144);
static_assert(sizeof(ibv_qp_init_attr) == 64);
static_assert(sizeof(ibv_qp_init_attr_ex) == 136);
static_assert(sizeof(ibv_gid_entry) == 32);
static_assert(sizeof(rdma_cm_id) == 416);
static_assert(sizeof(rdma_cm_event) == 80);
static_assert(sizeof(rdma_conn_param) == 24);
static_assert(sizeof(rdma_addrinfo) == 96);
static_assert(offsetof(ibv_context, ops.poll_cq) == 96);
static_assert(offsetof(ibv_context, ops.post_send) == 208);
static_assert(offsetof(ibv_context, async_fd) == 268);
static_assert(offsetof(ibv_context, abi_compat) == 280 + sizeof(pthread_mutex_t));
#endif
