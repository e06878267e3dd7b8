#include "iwarp/departing_streams.h"

#include <algorithm>
#include <new>
#include <utility>

namespace urnic::iwarp {
namespace {

constexpr std::size_t kMostDeparting = 1024;
// Nothing reports room in the kernel for them.
constexpr Duration kAskForRoom = Duration::ms(1);

}  // namespace

kernel_tcp::Moved pass_due(const kernel_tcp::Socket& socket, kernel_tcp::FaultyStream& faults,
                           bool aligned, Instant now) {
  using What = kernel_tcp::Moved::What;
  std::size_t bytes = 0;
  for (;;) {
    const ByteView due = faults.due(now);
    if (due.empty()) return {What::Some, bytes, 0};
    const iovec piece{const_cast<std::uint8_t*>(due.data()), due.size()};
    const std::uint32_t pieces = 1;
    const kernel_tcp::Moved moved =
        aligned ? socket.send_records({&piece, 1}, {&pieces, 1}) : socket.send({&piece, 1});
    if (moved.what == What::Some) faults.passed(moved.bytes);
    bytes += moved.bytes;
    if (moved.what == What::Failed) return {What::Failed, bytes, moved.error};
    if (moved.bytes < due.size()) return {What::NotNow, bytes, 0};
  }
}

void DepartingStreams::add(kernel_tcp::Socket socket,
                           std::unique_ptr<kernel_tcp::FaultyStream> faults, bool aligned,
                           Instant until, Instant now) {
  if (all_.size() >= kMostDeparting || !make_place()) {
    socket.reset();
    return;
  }
  all_.push_back({std::move(socket), std::move(faults), aligned, until, now});
  next_ = earlier(next_, now);
}

// An end must not fail for lack of memory.
bool DepartingStreams::make_place() {
  try {
    all_.reserve(all_.size() + 1);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool DepartingStreams::advance(Stream* s, Instant now) {
  const kernel_tcp::Moved moved = pass_due(s->socket, *s->faults, s->aligned, now);
  const bool over = moved.what == kernel_tcp::Moved::What::Failed || s->faults->end_is_due(now) ||
                    s->faults->reset_is_due(now) || s->until <= now;
  if (over) {
    s->socket.reset();
    return false;
  }
  const bool no_room = moved.what == kernel_tcp::Moved::What::NotNow;
  s->again = earlier(no_room ? now + kAskForRoom : s->faults->next_due(), s->until);
  return true;
}

void DepartingStreams::run(Instant now) {
  std::erase_if(all_, [&](Stream& s) { return s.again <= now && !advance(&s, now); });
  next_ = Instant::never();
  for (const Stream& s : all_) next_ = earlier(next_, s.again);
}

void DepartingStreams::end() {
  for (Stream& s : all_) s.socket.reset();
  all_.clear();
  next_ = Instant::never();
}

}  // namespace urnic::iwarp
