// A random walk of clients over a storage target, compared with a model.
#include "cli/target_walk.h"

namespace urnic::cli::model {
namespace {

// proves: E-38
TEST(TargetWalk, AnswersAndFilesAreAsTheModelPredicts) {
  test::walk({200, 50, [](Dice& d) { return std::make_unique<TargetWalk>(d); }});
}

}  // namespace
}  // namespace urnic::cli::model
