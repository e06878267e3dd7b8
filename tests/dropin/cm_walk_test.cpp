// A random walk over the calls of rdma_cm, as a C program makes them, with both ends of each
// connection in this process. A small model gives the result of each call and the contents of each
// event; an episode must leave nothing behind.
#include <gtest/gtest.h>

#include "dropin/calls_walk_process.h"
#include "dropin/cm_walk_moves.h"

namespace calls_walk {
namespace {

class CmWalk : public urnic::test::Walk {
 public:
  CmWalk(bool roce, const std::string& address) {
    world_ = std::make_unique<CmWorld>(roce, address, &told);
    moves_ = std::make_unique<CmMoves>(*world_, address);
  }
  void step(Dice& dice) override {
    switch (dice.below(37)) {
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
      case 24:
        moves_->meet(dice);
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

class CmWalkTest : public WalkTest, public testing::WithParamInterface<const char*> {};

TEST_P(CmWalkTest, IdentifiersDoWhatTheModelSays) {
  if (!open(GetParam())) return;
  urnic::test::WalkPlan plan;
  plan.episodes = 40;
  plan.steps = 120;
  plan.make = [&](Dice&) { return std::make_unique<CmWalk>(is_roce_, address_); };
  urnic::test::walk(plan);
}

INSTANTIATE_TEST_SUITE_P(Transports, CmWalkTest, testing::Values("iwarp", "roce"));

}  // namespace
}  // namespace calls_walk
