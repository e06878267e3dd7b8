// Runs a walk over the calls of the drop-in in a process of its own, whose device speaks one
// transport and whose settings differ from the defaults.
#pragma once

#include <gtest/gtest.h>
#include <rdma/rdma_cma.h>

#include <map>

#include "dropin/cm_walk_ids.h"
#include "dropin/own_process.h"
#include "support/loopback_network.h"

namespace calls_walk {

class WalkTest : public own_process::Test {
 protected:
  // False in the first process, where the test meanwhile runs in a process of its own.
  bool open(const std::string& transport) {
    if (!within()) return false;
    is_roce_ = transport == "roce";
    // The drop-in would treat the variables of a walk as settings of its own.
    std::map<std::string, std::string> walk;
    for (const char* word : {"URNIC_WALK_SEED", "URNIC_WALK_EPISODES", "URNIC_WALK_REPLAY"}) {
      if (const char* const value = getenv(word); value != nullptr) walk[word] = value;
      unsetenv(word);
    }
    unsetenv("URNIC_CONFIG");
    setenv("URNIC_TRANSPORT", transport.c_str(), 1);
    setenv("URNIC_IRD", std::to_string(kIrd).c_str(), 1);
    setenv("URNIC_ORD", std::to_string(kOrd).c_str(), 1);
    if (is_roce_) {
      address_ = urnic::test::loopback_network() + "1";
      setenv("URNIC_PORT", ("udp:bind=" + address_ + ",mtu=5000").c_str(), 1);
    }
    Statistics::prepare();
    int devices = 0;
    rdma_free_devices(rdma_get_devices(&devices));
    EXPECT_EQ(devices, 1);
    for (const auto& [word, value] : walk) setenv(word.c_str(), value.c_str(), 1);
    for (int i = 0; i < 20; ++i) {  // some destroyed ones are kept
      rdma_destroy_event_channel(rdma_create_event_channel());
    }
    return true;
  }
  void TearDown() override {
    if (is_within()) Statistics::clean();
  }

  bool is_roce_ = false;
  std::string address_ = "127.0.0.1";
};

}  // namespace calls_walk
