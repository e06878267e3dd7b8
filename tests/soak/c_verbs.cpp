// The traffic of the soak test over the C libraries, libibverbs and librdmacm: the drop-in ones, by
// `urnic run`.
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "verbs.h"

namespace urnic::soak {
namespace {

constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                        IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
constexpr int kResolveMs = 2000;

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "soak: %s: %s\n", what, std::strerror(errno));
  std::exit(2);
}

sockaddr_in address_of(const std::string& address, std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  if (inet_pton(AF_INET, address.c_str(), &a.sin_addr) != 1) give_up("address");
  return a;
}

// Shared by all connections of the process; created with the first that has a device.
struct Shared {
  rdma_event_channel* channel = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* completions = nullptr;
  ibv_cq* cq = nullptr;
  unsigned unacknowledged = 0;

  void make(ibv_context* context) {
    if (pd != nullptr) return;
    pd = ibv_alloc_pd(context);
    completions = ibv_create_comp_channel(context);
    if (pd == nullptr || completions == nullptr) give_up("protection domain");
    cq = ibv_create_cq(context, 2 * kDepth * kMostConnections, nullptr, completions, 0);
    if (cq == nullptr) give_up("completion queue");
    fcntl(completions->fd, F_SETFL, O_NONBLOCK);
  }
};

class CWire : public Wire {
 public:
  CWire(Shared& shared, rdma_cm_id* id, std::span<std::uint8_t> memory) : shared_(shared), id_(id) {
    shared_.make(id->verbs);
    region_ = ibv_reg_mr(shared_.pd, memory.data(), memory.size(), kRights);
    if (region_ == nullptr) give_up("memory region");
    ibv_qp_init_attr a{};
    a.send_cq = a.recv_cq = shared_.cq;
    a.qp_type = IBV_QPT_RC;
    a.sq_sig_all = 1;
    a.cap = {kDepth, kDepth, 1, 1, 0};
    if (rdma_create_qp(id_, shared_.pd, &a) != 0) give_up("queue pair");
    number_ = id_->qp->qp_num;
  }
  ~CWire() override {
    rdma_destroy_qp(id_);
    for (Window& w : windows_) {
      if (w.window != nullptr) ibv_dealloc_mw(w.window);
    }
    ibv_dereg_mr(region_);
    rdma_destroy_id(id_);
  }
  std::uint32_t number() const override { return number_; }
  std::uint32_t key() const override { return region_->rkey; }
  bool post(const Request& r) override;
  bool receive(std::uint64_t id, std::uint8_t* at, std::uint32_t length) override {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(at), length, region_->lkey};
    ibv_recv_wr wr{id, nullptr, &sge, 1}, *bad = nullptr;
    return ibv_post_recv(id_->qp, &wr, &bad) == 0;
  }
  std::uint32_t window_key(unsigned window) override {
    Window& w = windows_[window];
    if (w.window == nullptr) {
      w.window = ibv_alloc_mw(shared_.pd, IBV_MW_TYPE_2);
      if (w.window == nullptr) give_up("memory window");
      w.key = w.window->rkey;
    }
    return w.key = ibv_inc_rkey(w.key);
  }
  bool begin() override {
    rdma_conn_param p = parameters();
    return rdma_connect(id_, &p) == 0;
  }
  bool accept(std::span<const std::uint8_t> private_data) override {
    rdma_conn_param p = parameters();
    p.private_data = private_data.data();
    p.private_data_len = static_cast<std::uint8_t>(private_data.size());
    return rdma_accept(id_, &p) == 0;
  }
  void disconnect() override { rdma_disconnect(id_); }
  // The C library offers no other way to end it; work is in progress.
  void abort() override { rdma_disconnect(id_); }

 private:
  struct Window {
    ibv_mw* window = nullptr;
    std::uint32_t key = 0;
  };
  static rdma_conn_param parameters() {
    rdma_conn_param p{};
    p.initiator_depth = 8;
    p.responder_resources = 9;
    p.retry_count = 6;
    p.rnr_retry_count = 7;
    return p;
  }

  Shared& shared_;
  rdma_cm_id* id_;
  std::uint32_t number_ = 0;
  ibv_mr* region_ = nullptr;
  std::array<Window, kWindows> windows_;
};

bool CWire::post(const Request& r) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(r.data), r.length, region_->lkey};
  ibv_send_wr wr{}, *bad = nullptr;
  wr.wr_id = r.id;
  if (r.data != nullptr) {
    wr.sg_list = &sge;
    wr.num_sge = 1;
  }
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = r.remote;
  wr.wr.rdma.rkey = r.key;
  switch (r.op) {
    case Op::Send:
      wr.opcode = IBV_WR_SEND;
      break;
    case Op::SendImmediate:
      wr.opcode = IBV_WR_SEND_WITH_IMM;
      wr.imm_data = htonl(r.immediate);
      break;
    case Op::SendInvalidate:
      wr.opcode = IBV_WR_SEND_WITH_INV;
      wr.invalidate_rkey = r.key;
      break;
    case Op::Write:
      wr.opcode = IBV_WR_RDMA_WRITE;
      break;
    case Op::WriteImmediate:
      wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
      wr.imm_data = htonl(r.immediate);
      break;
    case Op::Read:
      wr.opcode = IBV_WR_RDMA_READ;
      break;
    case Op::FetchAdd:
    case Op::CompareSwap:
      wr.opcode = r.op == Op::FetchAdd ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP;
      wr.wr.atomic.remote_addr = r.remote;
      wr.wr.atomic.rkey = r.key;
      wr.wr.atomic.compare_add = r.op == Op::FetchAdd ? r.add_or_swap : r.compare;
      wr.wr.atomic.swap = r.add_or_swap;
      break;
    case Op::Bind:
      wr.opcode = IBV_WR_BIND_MW;
      wr.bind_mw.mw = windows_[r.window].window;
      wr.bind_mw.rkey = r.key;
      wr.bind_mw.bind_info = {region_, r.remote, r.length,
                              IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
      break;
    case Op::LocalInvalidate:
      wr.opcode = IBV_WR_LOCAL_INV;
      wr.invalidate_rkey = r.key;
      break;
  }
  return ibv_post_send(id_->qp, &wr, &bad) == 0;
}

class CVerbs : public Verbs {
 public:
  CVerbs() {
    shared_.channel = rdma_create_event_channel();
    if (shared_.channel == nullptr) give_up("event channel");
    fcntl(shared_.channel->fd, F_SETFL, O_NONBLOCK);
  }
  bool listen(const std::string& address, std::uint16_t port) override {
    sockaddr_in a = address_of(address, port);
    return rdma_create_id(shared_.channel, &listener_, nullptr, RDMA_PS_TCP) == 0 &&
           rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&a)) == 0 &&
           rdma_listen(listener_, 64) == 0;
  }
  std::unique_ptr<Wire> open(const std::string& address, std::uint16_t port,
                             std::span<std::uint8_t> memory, std::string* why) override {
    sockaddr_in a = address_of(address, port);
    rdma_cm_id* id = nullptr;
    if (rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP) != 0) give_up("id");
    if (rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&a), kResolveMs) == 0 &&
        rdma_resolve_route(id, kResolveMs) == 0 && rdma_migrate_id(id, shared_.channel) == 0) {
      return std::make_unique<CWire>(shared_, id, memory);
    }
    *why = std::strerror(errno);
    rdma_destroy_id(id);
    return nullptr;
  }
  std::unique_ptr<Wire> take(std::span<std::uint8_t> memory, std::string*) override {
    return std::make_unique<CWire>(shared_, asked_, memory);
  }
  bool next(Happening* out) override {
    for (rdma_cm_event* e = nullptr; rdma_get_cm_event(shared_.channel, &e) == 0;) {
      *out = {};
      rdma_cm_id* id = e->id;
      const rdma_cm_event_type type = e->event;
      if (id->qp != nullptr) out->qp = id->qp->qp_num;
      out->why = std::string(rdma_event_str(type)) + " " + std::to_string(e->status);
      const auto* data = static_cast<const std::uint8_t*>(e->param.conn.private_data);
      if (data != nullptr) out->private_data.assign(data, data + e->param.conn.private_data_len);
      rdma_ack_cm_event(e);
      switch (type) {
        case RDMA_CM_EVENT_CONNECT_REQUEST:
          asked_ = id;
          out->kind = Happening::Kind::Asked;
          return true;
        case RDMA_CM_EVENT_ESTABLISHED:
          out->kind = Happening::Kind::Up;
          return true;
        case RDMA_CM_EVENT_DISCONNECTED:
          out->kind = Happening::Kind::Ended;
          out->why.clear();
          return true;
        case RDMA_CM_EVENT_CONNECT_ERROR:
        case RDMA_CM_EVENT_UNREACHABLE:
        case RDMA_CM_EVENT_REJECTED:
          out->kind = Happening::Kind::Failed;
          return true;
        default:
          break;
      }
    }
    return false;
  }

 private:
  void fetch(std::vector<Done>* out) override {
    if (shared_.cq == nullptr) return;
    std::array<ibv_wc, 32> c;
    const int n = ibv_poll_cq(shared_.cq, static_cast<int>(c.size()), c.data());
    if (n < 0) {
      std::puts("VIOLATION the completion queue has overrun");
      std::exit(3);
    }
    for (int i = 0; i < n; ++i) {
      const ibv_wc& w = c[static_cast<std::size_t>(i)];
      const bool ok = w.status == IBV_WC_SUCCESS;
      const bool immediate = (w.wc_flags & IBV_WC_WITH_IMM) != 0;
      const bool invalidated = (w.wc_flags & IBV_WC_WITH_INV) != 0;
      out->push_back({w.wr_id, w.qp_num, ok, w.byte_len, immediate,
                      immediate ? ntohl(w.imm_data) : 0, invalidated,
                      invalidated ? w.invalidated_rkey : 0, ok ? "" : ibv_wc_status_str(w.status)});
    }
  }
  void arm() override {
    if (shared_.cq == nullptr) return;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    while (ibv_get_cq_event(shared_.completions, &cq, &context) == 0) ++shared_.unacknowledged;
    if (shared_.unacknowledged > 1000) {
      ibv_ack_cq_events(shared_.cq, shared_.unacknowledged);
      shared_.unacknowledged = 0;
    }
    ibv_req_notify_cq(shared_.cq, 0);
  }
  void sleep(int ms) override {
    pollfd fds[] = {{shared_.channel->fd, POLLIN, 0},
                    {shared_.cq == nullptr ? -1 : shared_.completions->fd, POLLIN, 0}};
    ::poll(fds, 2, ms);
  }

  Shared shared_;
  rdma_cm_id *listener_ = nullptr, *asked_ = nullptr;
};

}  // namespace

std::unique_ptr<Verbs> open_verbs(const std::string& /*the settings say it*/) {
  return std::make_unique<CVerbs>();
}

}  // namespace urnic::soak
