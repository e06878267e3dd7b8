#include "verbs/control_path.h"

#include <string>

namespace urnic::verbs {

std::string text_of_move(QpState from, QpState to) {
  return "from state " + std::string(verbs::name(from)) + " to " + std::string(verbs::name(to));
}

Error no_such_move(QpState from, QpState to) {
  return {Errc::wrong_state, "the state of the queue pair cannot change " + text_of_move(from, to)};
}

}  // namespace urnic::verbs
