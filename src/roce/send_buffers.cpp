#include "roce/send_buffers.h"

#include <new>

namespace urnic::roce {

bool SendBuffers::take(const Path& path, unsigned expected, Buffer* b) {
  if (path.route != Route::Own) {
    b->frame = wire_.tx().next(expected);
    if (b->frame == nullptr) return false;
    b->at = b->frame->data[0];
    return true;
  }
  if (wire_.loop_full()) return false;
  try {
    b->looped = &wire_.new_looped(path.headers.size() + wire_.mtu());
  } catch (const std::bad_alloc&) {
    return false;
  }
  b->at = b->looped->data();
  return true;
}

void SendBuffers::keep(const Buffer& b, std::size_t bytes) {
  if (b.looped != nullptr) return b.looped->resize(bytes);
  b.frame->len[0] = static_cast<std::uint32_t>(bytes);
  b.frame->len[1] = 0;
  wire_.tx().keep();
}

void SendBuffers::give_back(const Buffer& b) {
  if (b.looped != nullptr) wire_.take_back_looped();
}

}  // namespace urnic::roce
