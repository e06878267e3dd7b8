// A random walk over the verbs with little memory and small queues, compared with a model.
#include "tests/device/walk_refusals.h"
#include "tests/device/walk_work.h"

namespace urnic::test {
namespace {

class RefusalWalk : public WorldWalk {
 public:
  explicit RefusalWalk(Dice& dice)
      : WorldWalk(dice, 30), connect_(world_), work_(world_), refusals_(world_, connect_) {}

  void act(Dice& dice) override {
    switch (dice.below(16)) {
      case 0:
        refusals_.connect(dice);
        break;
      case 1:
        refusals_.overrun(dice);
        break;
      case 2:
        connect_.end(dice);
        break;
      case 3:
      case 4:
        connect_.again(dice);
        break;
      case 5:
      case 6:
      case 7:
        connect_.connect(dice);
        break;
      case 8:
        work_.work(dice);
        break;
      case 9:
        connect_.destroy(dice);
        break;
      default:
        refusals_.make(dice);
        break;
    }
  }
  void clean_up() override { connect_.close_listeners(); }

 private:
  ConnectSteps connect_;
  WorkSteps work_;
  RefusalSteps refusals_;
};

}  // namespace

TEST(RefusalWalk, AgreesWithItsModel) {
  walk({.episodes = 600, .steps = 80, .make = [](Dice& dice) {
          return std::make_unique<RefusalWalk>(dice);
        }});
}

}  // namespace urnic::test
