// A random walk over the verbs in which the line goes down and up, compared with a model.
#include "tests/device/walk_losses.h"

namespace urnic::test {
namespace {

class LossWalk : public WorldWalk {
 public:
  explicit LossWalk(Dice& dice)
      : WorldWalk(dice, 30), connect_(world_), work_(world_), losses_(world_, connect_, work_) {}

  void act(Dice& dice) override {
    switch (dice.below(14)) {
      case 0:
      case 1:
      case 2:
        losses_.lose_link(dice);
        break;
      case 3:
        losses_.nobody_answers(dice);
        break;
      case 4:
        connect_.end(dice);
        break;
      case 5:
      case 6:
        connect_.again(dice);
        break;
      case 7:
        connect_.destroy(dice);
        break;
      case 8:
      case 9:
      case 10:
      case 11:
        connect_.connect(dice);
        break;
      default:
        work_.work(dice);
        break;
    }
  }
  void clean_up() override { connect_.close_listeners(); }

 private:
  ConnectSteps connect_;
  WorkSteps work_;
  LossSteps losses_;
};

}  // namespace

TEST(LossWalk, AgreesWithItsModel) {
  walk({.episodes = 100, .steps = 60, .make = [](Dice& dice) {
          return std::make_unique<LossWalk>(dice);
        }});
}

}  // namespace urnic::test
