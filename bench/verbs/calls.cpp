// V7: the cost of calls of the drop-in libraries, through their exported names. Prints the time of
// an empty ibv_poll_cq with a connection over the kernel's TCP and of a clock_gettime in ns, and of
// registering and deregistering 1 GiB of untouched memory, with 1 queue pair and with 1000, in us.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "bench/e2e/pin.h"

using urnic::bench::seconds;

namespace {

constexpr std::size_t kGigabyte = std::size_t{1} << 30;
constexpr int kSlices = 200, kPolls = 1000, kRegistrations = 100;

ibv_qp_init_attr attributes(ibv_cq* cq) {
  ibv_qp_init_attr a{};
  a.qp_type = IBV_QPT_RC;
  a.send_cq = a.recv_cq = cq;
  a.cap.max_send_wr = a.cap.max_recv_wr = 4;
  a.cap.max_send_sge = a.cap.max_recv_sge = 1;
  return a;
}

// Both ends are in this process; null if it failed.
rdma_cm_id* connected() {
  rdma_addrinfo hints{}, *passive = nullptr, *active = nullptr;
  hints.ai_port_space = RDMA_PS_TCP;
  hints.ai_flags = RAI_PASSIVE;
  rdma_cm_id *listener = nullptr, *client = nullptr;
  auto servers = attributes(nullptr), clients = attributes(nullptr);
  if (rdma_getaddrinfo("127.0.0.1", "0", &hints, &passive) != 0 ||
      rdma_create_ep(&listener, passive, nullptr, &servers) != 0 || rdma_listen(listener, 1) != 0) {
    return nullptr;
  }
  std::thread server([&] {
    rdma_cm_id* id = nullptr;
    if (rdma_get_request(listener, &id) == 0) rdma_accept(id, nullptr);
  });
  hints.ai_flags = 0;
  const std::string port = std::to_string(ntohs(rdma_get_src_port(listener)));
  const bool made = rdma_getaddrinfo("127.0.0.1", port.c_str(), &hints, &active) == 0 &&
                    rdma_create_ep(&client, active, nullptr, &clients) == 0 &&
                    rdma_connect(client, nullptr) == 0;
  if (!made) return nullptr;  // the process ends, and the thread with it
  server.join();
  return client;
}

// Seconds per call: the median of slices, so that a few slices disturbed by other processes do not
// count.
template <class F>
double each(int slices, int calls, const F& f) {
  std::vector<double> took;
  for (int s = 0; s < slices; ++s) {
    const double begin = seconds();
    for (int i = 0; i < calls; ++i) f();
    took.push_back((seconds() - begin) / calls);
  }
  std::nth_element(took.begin(), took.begin() + slices / 2, took.end());
  return took[static_cast<std::size_t>(slices / 2)];
}

}  // namespace

int main() {
  rdma_cm_id* id = connected();
  if (id == nullptr) {
    std::perror("bench_verbs_calls: no connection");
    std::_Exit(1);
  }
  bool wrong = false;
  ibv_wc wc;
  const auto poll = [&] { wrong |= ibv_poll_cq(id->send_cq, 1, &wc) != 0; };
  timespec t;
  each(kSlices / 10, kPolls, poll);
  const double empty = each(kSlices, kPolls, poll);
  const double clock = each(kSlices, kPolls, [&] { clock_gettime(CLOCK_MONOTONIC, &t); });
  void* memory = mmap(nullptr, kGigabyte, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const auto both = [&] {
    ibv_mr* mr = ibv_reg_mr(id->pd, memory, kGigabyte, IBV_ACCESS_LOCAL_WRITE);
    wrong |= mr == nullptr || ibv_dereg_mr(mr) != 0;
  };
  const double with_one = each(kSlices, kRegistrations, both);
  ibv_cq* cq = ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
  for (int i = 1; i < 1000; ++i) {
    auto a = attributes(cq);
    wrong |= ibv_create_qp(id->pd, &a) == nullptr;
  }
  const double with_many = each(kSlices, kRegistrations, both);
  std::printf("%.1f %.1f %.3f %.3f\n", empty * 1e9, clock * 1e9, with_one * 1e6, with_many * 1e6);
  std::fflush(stdout);
  std::_Exit(wrong ? 1 : 0);  // without releasing anything
}
