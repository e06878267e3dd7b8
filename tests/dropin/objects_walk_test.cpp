// A random walk over the objects of verbs, as a C program creates, uses and destroys them in any
// order. A small model gives the result of each call, the result of each query and the remaining
// objects.
#include <gtest/gtest.h>

#include "dropin/calls_walk_process.h"
#include "dropin/objects_walk_moves.h"

namespace calls_walk {
namespace {

class ObjectsWalk : public urnic::test::Walk {
 public:
  explicit ObjectsWalk(bool roce) {
    world_ = std::make_unique<Objects>(roce, &told);
    moves_ = std::make_unique<ObjectMoves>(*world_);
  }
  void step(Dice& dice) override {
    using Move = void (ObjectMoves::*)(Dice&);
    static constexpr Move kMoves[] = {
        &ObjectMoves::make_domain, &ObjectMoves::make_channel, &ObjectMoves::make_queue,
        &ObjectMoves::make_shared, &ObjectMoves::make_region,  &ObjectMoves::change_region,
        &ObjectMoves::make_window, &ObjectMoves::make_way,     &ObjectMoves::arm,
        &ObjectMoves::poll,        &ObjectMoves::resize,       &ObjectMoves::acknowledge,
        &ObjectMoves::post_shared, &ObjectMoves::limit,        &ObjectMoves::destroy};
    const auto n = dice.below(std::size(kMoves) + 9);
    if (n < std::size(kMoves)) {
      (moves_.get()->*kMoves[n])(dice);
    } else if (n < std::size(kMoves) + 2) {
      moves_->pairs().make(dice);
    } else if (n < std::size(kMoves) + 4) {
      moves_->pairs().receive(dice);
    } else {
      moves_->pairs().move(dice);
    }
  }
  void finish() override {
    Dice dice(1);
    moves_->destroy_all(dice);
    moves_.reset();
    world_.reset();
    agree_that_nothing_is_left(before_);
  }

 private:
  const Holdings before_ = quiet_holdings();
  std::unique_ptr<Objects> world_;
  std::unique_ptr<ObjectMoves> moves_;
};

class ObjectsWalkTest : public WalkTest, public testing::WithParamInterface<const char*> {};

TEST_P(ObjectsWalkTest, ObjectsOfVerbsDoWhatTheModelSays) {
  if (!open(GetParam())) return;
  urnic::test::WalkPlan plan;
  plan.episodes = 150;
  plan.steps = 200;
  plan.make = [&](Dice&) { return std::make_unique<ObjectsWalk>(is_roce_); };
  urnic::test::walk(plan);
}

INSTANTIATE_TEST_SUITE_P(Transports, ObjectsWalkTest, testing::Values("iwarp", "roce"));

}  // namespace
}  // namespace calls_walk
