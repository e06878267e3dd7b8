// A random walk over the calls of rdma_cm, as a C program makes them, with both ends of each
// connection in this process. A small model says what each call answers and what each event holds;
// nothing is left behind an episode.
#include <gtest/gtest.h>

#include "compat/cm_walk_moves.h"
#include "compat/own_process.h"
#include "support/loopback_network.h"

namespace calls_walk {
namespace {

struct Device {
  bool is_roce;
  std::string address;
};

class CmWalk : public urnic::test::Walk {
 public:
  explicit CmWalk(const Device& on) {
    world_ = std::make_unique<CmWorld>(on.is_roce, on.address, &told);
    moves_ = std::make_unique<CmMoves>(*world_);
  }
  void step(Dice& dice) override {
    switch (dice.below(36)) {
      case 0:
      case 1:
        moves_->make(dice);
        break;
      case 2:
        moves_->bind(dice);
        break;
      case 3:
        moves_->listen(dice);
        break;
      case 4:
      case 5:
        moves_->resolve_address(dice);
        break;
      case 6:
      case 7:
        moves_->resolve_route(dice);
        break;
      case 8:
        moves_->make_queues(dice);
        break;
      case 9:
      case 10:
        moves_->connect(dice);
        break;
      case 11:
      case 12:
        moves_->answer(dice);
        break;
      case 13:
        moves_->disconnect(dice);
        break;
      case 14:
        moves_->destroy_queues(dice);
        break;
      case 15:
        moves_->destroy(dice);
        break;
      case 16:
        moves_->migrate(dice);
        break;
      case 17:
        moves_->set_option(dice);
        break;
      case 18:
        moves_->acknowledge(dice);
        break;
      case 19:
        moves_->misuse(dice);
        break;
      case 20:
      case 21:
      case 22:
      case 23:
        moves_->work(dice);
        break;
      default:
        moves_->go_on(dice);
    }
    if (dice.one_in(2)) world_->settle(dice);
  }
  void finish() override {
    Dice dice(1);
    world_->settle(dice);
    while (!world_->ids.empty()) moves_->destroy(*world_->ids[world_->ids.size() / 2], dice);
    moves_.reset();
    world_.reset();
    agree_that_nothing_is_left(before_);
  }

 private:
  const Holdings before_ = quiet_holdings();
  std::unique_ptr<CmWorld> world_;
  std::unique_ptr<CmMoves> moves_;
};

class CmWalkTest : public own_process::Test {
 protected:
  void walk_over(const char* transport) {
    if (!within()) return;
    Device on{std::string(transport) == "roce", "127.0.0.1"};
    // The drop-in takes the variables of a walk for settings of its own.
    std::map<std::string, std::string> walk;
    for (const char* word : {"URNIC_WALK_SEED", "URNIC_WALK_EPISODES", "URNIC_WALK_REPLAY"}) {
      if (const char* const value = getenv(word); value != nullptr) walk[word] = value;
      unsetenv(word);
    }
    unsetenv("URNIC_CONFIG");
    setenv("URNIC_TRANSPORT", transport, 1);
    setenv("URNIC_IRD", std::to_string(kIrd).c_str(), 1);
    setenv("URNIC_ORD", std::to_string(kOrd).c_str(), 1);
    if (on.is_roce) {
      on.address = urnic::test::loopback_network() + "1";
      setenv("URNIC_PORT", ("udp:bind=" + on.address + ",mtu=5000").c_str(), 1);
    }
    Statistics::prepare();
    int devices = 0;
    ibv_context** const list = rdma_get_devices(&devices);
    ASSERT_EQ(devices, 1);
    rdma_free_devices(list);
    for (const auto& [word, value] : walk) setenv(word.c_str(), value.c_str(), 1);
    for (int i = 0; i < 20; ++i) {  // some that were destroyed are kept
      rdma_destroy_event_channel(rdma_create_event_channel());
    }
    urnic::test::WalkPlan plan;
    plan.episodes = 40;
    plan.steps = 120;
    plan.make = [&](Dice&) { return std::make_unique<CmWalk>(on); };
    urnic::test::walk(plan);
    Statistics::clean();
  }
};

TEST_F(CmWalkTest, IdsOfIwarpDoWhatTheModelSays) {
  walk_over("iwarp");
}
TEST_F(CmWalkTest, IdsOfRoceDoWhatTheModelSays) {
  walk_over("roce");
}

}  // namespace
}  // namespace calls_walk
