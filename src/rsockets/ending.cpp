#include "rsockets/ending.h"

namespace urnic::rsockets {

std::optional<Control> Ending::close(bool reading, bool writing) {
  const bool was_writable = writable_, was_readable = readable_;
  if (reading) readable_ = false;
  if (writing) writable_ = false;
  if (!connected_ || (!was_readable && !was_writable)) return std::nullopt;
  if (!readable_ && !writable_) return Control::disconnect;
  return writing && was_writable ? std::optional(Control::shutdown) : std::nullopt;
}

bool Ending::on_control(std::uint32_t value) {
  switch (static_cast<Control>(value)) {
    case Control::disconnect:
      over(0);
      return true;
    case Control::shutdown:
      // If this end does not send any more either, both directions are finished.
      if (writable_) {
        readable_ = false;
      } else {
        over(0);
      }
      return true;
    case Control::keepalive:
      return true;
  }
  return false;
}

}  // namespace urnic::rsockets
