// A random walk over the calls of rsockets, from rsocket() to the last close, compared with a
// model.
#include "rsockets/rsocket_walk.h"

namespace urnic::rsockets::model {
namespace {

// proves: DI-14, DI-15, DI-16, DI-17, DI-18, DI-19
TEST(RsocketWalk, EveryCallMatchesTheModelAndNothingLeaks) {
  test::walk({600, 80, [](Dice& d) { return std::make_unique<RsocketWalk>(d); }});
}

}  // namespace
}  // namespace urnic::rsockets::model
