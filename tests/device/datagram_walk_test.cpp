// A random walk over UD, compared with a model.
#include "tests/device/walk_datagrams.h"
#include "tests/device/walk_work.h"

namespace urnic::test {
namespace {

class DatagramWalk : public WorldWalk {
 public:
  explicit DatagramWalk(Dice& dice) : WorldWalk(dice, 5), work_(world_), datagrams_(world_) {}

  void act(Dice& dice) override {
    switch (dice.below(14)) {
      case 0:
      case 1:
        datagrams_.ready(dice);
        break;
      case 2:
        datagrams_.change(dice);
        break;
      case 3:
      case 4:
        datagrams_.change_handles(dice);
        break;
      case 5:
        datagrams_.refuse_handle(dice);
        break;
      case 6:
      case 7:
      case 8:
        work_.post_receives(dice);
        break;
      case 9:
        work_.change_queues(dice);
        break;
      default:
        datagrams_.send(dice);
        break;
    }
  }
  void check() override {
    datagrams_.adopt_headers();
    world_.check();
    for (unsigned i = 0; i < 2; ++i) {
      agree_on(world_.ends[i]->device.stats().roce.rx_bad_qkey, datagrams_.wrong_keys[i],
               "wrong Q_Keys");
    }
  }
  void clean_up() override { datagrams_.drop_handles(); }

 private:
  WorkSteps work_;
  DatagramSteps datagrams_;
};

}  // namespace

TEST(DatagramWalk, AgreesWithItsModel) {
  walk({.episodes = 200, .steps = 80, .make = [](Dice& dice) {
          return std::make_unique<DatagramWalk>(dice);
        }});
}

}  // namespace urnic::test
