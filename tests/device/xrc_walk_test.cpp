// A random walk over XRC, compared with a model.
#include "tests/device/walk_xrc.h"

namespace urnic::test {
namespace {

class XrcWalk : public WorldWalk {
 public:
  explicit XrcWalk(Dice& dice) : WorldWalk(dice, 20), xrc_(world_) {}

  void act(Dice& dice) override {
    switch (dice.below(13)) {
      case 0:
      case 1:
        xrc_.change_queues(dice);
        break;
      case 2:
      case 3:
        xrc_.post_receive(dice);
        break;
      case 4:
      case 5:
        xrc_.connect(dice);
        break;
      case 6:
        xrc_.end(dice);
        break;
      case 7:
        xrc_.break_rules(dice);
        break;
      default:
        xrc_.work(dice);
        break;
    }
  }
  void check() override { xrc_.check(); }
  void clean_up() override { xrc_.drop_all(); }

 private:
  XrcSteps xrc_;
};

}  // namespace

TEST(XrcWalk, AgreesWithItsModel) {
  walk({.episodes = 150, .steps = 80, .make = [](Dice& dice) {
          return std::make_unique<XrcWalk>(dice);
        }});
}

}  // namespace urnic::test
