// Two threads call rdma_cm on one id at the same time.
#include <atomic>
#include <thread>

#include "dropin/cm_ends.h"

namespace cm {
namespace {

// One thread gets the disconnect event and destroys, while the other one is in rdma_disconnect.
// proves: DI-8
TEST_F(CmTest, DisconnectMayRunWhileItsQueuePairIsDestroyed) {
  constexpr int kRounds = 300;
  std::atomic<rdma_cm_id*> ending{nullptr};
  std::atomic<int> ended{0};
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      rdma_cm_id* id = nullptr;
      while ((id = ending.exchange(nullptr)) == nullptr) std::this_thread::yield();
      if (id == client_) break;  // the other thread has given up
      rdma_disconnect(id);
      ++ended;
    }
  });
  const auto round = [&](int i) {
    connect();
    accept();
    ending = server_;
    rdma_destroy_qp(server_);
    if (!urnic::test::soon([&] { return ended == i + 1; })) return false;
    pass(channel_, RDMA_CM_EVENT_DISCONNECTED);
    pass(peers_, RDMA_CM_EVENT_DISCONNECTED);
    rdma_destroy_qp(client_);
    EXPECT_EQ(rdma_destroy_id(server_), 0);
    EXPECT_EQ(rdma_destroy_id(client_), 0);
    server_ = nullptr;
    return rdma_create_id(peers_, &client_, this, RDMA_PS_TCP) == 0 && !HasFailure();
  };
  for (int i = 0; i < kRounds; ++i) {
    if (round(i)) continue;
    ending = client_;
    break;
  }
  other.join();
}

}  // namespace
}  // namespace cm
