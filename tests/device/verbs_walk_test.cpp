// A random walk over the verbs: connections made, used, broken, ended and made again, over both
// transports, compared with a model.
#include "tests/device/walk_connect.h"
#include "tests/device/walk_moves.h"
#include "tests/device/walk_work.h"

namespace urnic::test {
namespace {

class VerbsWalk : public WorldWalk {
 public:
  explicit VerbsWalk(Dice& dice)
      : WorldWalk(dice, 30, WalkWorld::Line::perhaps_faulty),
        connect_(world_),
        work_(world_),
        moves_(world_) {}

  void act(Dice& dice) override {
    switch (dice.below(38)) {
      case 0:
        connect_.make(dice);
        break;
      case 1:
        connect_.destroy(dice);
        break;
      case 2:
        connect_.connect_to_nobody(dice);
        break;
      case 3:
        connect_.end(dice);
        break;
      case 4:
      case 5:
        connect_.again(dice);
        break;
      case 6:
      case 7:
      case 8:
      case 9:
        connect_.connect(dice);
        break;
      case 10:
        work_.post_receives(dice);
        break;
      case 11:
        work_.overfill(dice);
        break;
      case 12:
        work_.refuse(dice);
        connect_.close_listener(dice);
        break;
      case 34:
      case 35:
      case 36:
        work_.change_queues(dice);
        break;
      case 13:
      case 32:
        work_.break_rules(dice);
        break;
      case 14:
      case 15:
        work_.change_regions(dice);
        break;
      case 16:
      case 17:
      case 18:
      case 30:
      case 31:
        work_.change_windows(dice);
        break;
      case 19:
        moves_.join(dice);
        break;
      case 20:
      case 21:
      case 22:
        moves_.move(dice);
        break;
      case 23:
        moves_.move_way(dice);
        break;
      default:
        work_.work(dice);
        break;
    }
  }
  void check() override {
    world_.check();
    moves_.check();
  }
  void clean_up() override { connect_.close_listeners(); }

 private:
  ConnectSteps connect_;
  WorkSteps work_;
  MoveSteps moves_;
};

}  // namespace

TEST(VerbsWalk, AgreesWithItsModel) {
  walk({.episodes = 600, .steps = 100, .make = [](Dice& dice) {
          return std::make_unique<VerbsWalk>(dice);
        }});
}

}  // namespace urnic::test
