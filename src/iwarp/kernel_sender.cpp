#include <errno.h>

#include <algorithm>

#include "iwarp/kernel_sender.h"

namespace urnic::iwarp {
namespace {

constexpr unsigned kSendTurn = 8;  // bursts of one connection before the next one gets its turn
// FPDUs to ourselves are not limited by a segment, so they are as large as possible.
constexpr std::uint32_t kLocalSegment = 65536;
constexpr unsigned kMssUses = 64;
// A payload of at least this size is passed to the kernel without a copy.
constexpr std::uint32_t kWorthAView = 4096;

void add_piece(KernelBatch& b, ByteView bytes) {
  if (bytes.empty()) return;
  b.pieces[b.piece_count++] = {const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

// Adds the pieces of `view` after its first `skip` bytes.
void add_view(KernelBatch& b, const ddp::FpduView& view, std::size_t skip) {
  const auto add = [&](ByteView bytes) {
    const std::size_t n = std::min(skip, bytes.size());
    skip -= n;
    add_piece(b, bytes.subspan(n));
  };
  add({view.head.data(), view.head_bytes});
  for (std::uint32_t i = 0; i < view.count; ++i) add(view.pieces[i]);
  add({view.tail.data(), view.tail_bytes});
}

void close_record(KernelBatch& b, std::size_t first_piece, std::uint32_t bytes) {
  b.record_pieces[b.record_count] = static_cast<std::uint32_t>(b.piece_count - first_piece);
  b.record_bytes[b.record_count++] = bytes;
  b.bytes += bytes;
}

void wait_for_room(KernelLink& l) {
  l.writable = false;
  l.room.begin();
}

}  // namespace

Sent KernelSender::transmit(Connection& c, Instant now) {
  KernelLink& l = *c.link;
  Sent turn;
  if (!l.socket.is_open()) {
    turn.found.closed = true;
    return turn;
  }
  if (c.stage == Stage::Opening) return turn;
  if (l.faults != nullptr) [[unlikely]] {
    turn.more = transmit_faulty(c, now, &turn.found);
  } else {
    for (unsigned turns = kSendTurn; l.writable;) {
      if (turns-- == 0) {
        turn.more = true;
        break;
      }
      if (!send_burst(c, now, &turn.found)) break;
    }
  }
  // Passed to TCP, which keeps a copy, so the request is done (E-23).
  if (c.stream != nullptr) complete_acked(completions_, c, l.sent);
  return turn;
}

// Bursts go to the faults, and what is due goes from there to the kernel. Returns true if there is
// more to send.
bool KernelSender::transmit_faulty(Connection& c, Instant now, Found* found) {
  for (unsigned turns = kSendTurn; turns != 0; --turns) {
    if (!pass_on(c, now)) return false;
    found->reset = c.link->faults->reset_is_due(now);
    if (found->reset || !send_burst(c, now, found)) return false;
  }
  return true;
}

// Passes on to the kernel what is due. Returns false if the kernel has no room for more.
bool KernelSender::pass_on(Connection& c, Instant now) {
  KernelLink& l = *c.link;
  if (!l.writable) return false;
  const kernel_tcp::Moved moved = pass_due(l.socket, *l.faults, l.aligned, now);
  s_.kernel->bytes_out += moved.bytes;
  s_.kernel->writes += moved.bytes != 0;
  if (moved.what == kernel_tcp::Moved::What::Some) return true;
  wait_for_room(l);
  if (moved.what == kernel_tcp::Moved::What::Failed) break_off(c, moved.error);
  return false;
}

// Passes a burst to the kernel, or to the faults, which take whole segments.
kernel_tcp::Moved KernelSender::pass_burst(KernelLink& l, std::span<const iovec> pieces,
                                           Instant now) {
  const KernelBatch& b = s_.kernel->batch;
  if (l.faults != nullptr) [[unlikely]] {
    const std::size_t n = l.faults->send(pieces, {b.record_bytes.data(), b.record_count}, now);
    return {n != 0 ? kernel_tcp::Moved::What::Some : kernel_tcp::Moved::What::NotNow, n, 0};
  }
  const kernel_tcp::Moved moved =
      l.aligned ? l.socket.send_records(pieces, {b.record_pieces.data(), b.record_count})
                : l.socket.send(pieces);
  ++s_.kernel->writes;
  s_.kernel->bytes_out += moved.bytes;
  return moved;
}

// Sends as much as one system call takes. Returns false if there is nothing to send, or no room.
bool KernelSender::send_burst(Connection& c, Instant now, Found* found) {
  KernelLink& l = *c.link;
  KernelBatch& b = s_.kernel->batch;
  b.clear();
  if (!l.rest.empty()) {
    add_piece(b, ByteView(l.rest).subspan(l.rest_at));
    close_record(b, 0, static_cast<std::uint32_t>(l.rest.size() - l.rest_at));
  } else if (c.stream == nullptr || !build_burst(c)) {
    if (c.stream != nullptr && c.stream->sender.failed() && c.stage != Stage::Terminated) {
      note_failed_sender(c, found);
    }
    return false;
  }
  const std::span<const iovec> pieces(b.pieces.data(), b.piece_count);
  const kernel_tcp::Moved moved = pass_burst(l, pieces, now);
  if (moved.what != kernel_tcp::Moved::What::Some) {
    if (l.faults != nullptr) return false;  // they have room when something leaves them
    wait_for_room(l);
    if (moved.what == kernel_tcp::Moved::What::Failed) {
      // A view of the consumer's memory, which is gone.
      if (moved.error == EFAULT && c.stream != nullptr)
        note_source_removed(c.stream->sender, l.sent);
      break_off(c, moved.error);
    }
    keep_rest(l, 0);
    return false;
  }
  if (s_.kernel->tap) {
    s_.kernel->tap->sent(tapped(c.key, l), pieces, {b.record_bytes.data(), b.record_count},
                         moved.bytes);
  }
  c.counters.segments_out += b.record_count;
  keep_rest(l, moved.bytes);
  l.sent += moved.bytes;
  if (moved.bytes < b.bytes && l.faults == nullptr) wait_for_room(l);
  return true;
}

// No data can be sent after this. The receiving side reports the reason.
void KernelSender::break_off(Connection& c, int error) {
  c.link->send_error = error;
  c.link->readable = true;
  enqueue_read(c);
}

// Builds as many segments as one system call takes. Returns false if there are none.
bool KernelSender::build_burst(Connection& c) {
  KernelLink& l = *c.link;
  KernelBatch& b = s_.kernel->batch;
  if (b.built.empty()) b.built.resize(KernelBatch::kBytes + kLocalSegment);
  if (l.mss_uses == 0) {
    l.mss = l.aligned ? l.socket.mss() : kLocalSegment;
    l.mss_uses = kMssUses;
  }
  --l.mss_uses;
  ddp::Sender& sender = c.stream->sender;
  StreamOffset at = l.sent;
  while (b.bytes < KernelBatch::kBytes && b.record_count < KernelBatch::kRecords &&
         b.view_count < KernelBatch::kViews &&
         b.piece_count + ddp::FpduView::kMaxPieces + 2 <= KernelBatch::kPieces) {
    const auto cut = sender.cut(at, l.mss, l.mss, false);
    if (cut.len == 0) break;
    const std::size_t first_piece = b.piece_count;
    std::uint32_t skip = 0;
    ddp::FpduView& view = b.views[b.view_count];
    if (sender.view(at, cut.len, kWorthAView, &view, &skip)) {
      ++b.view_count;
      add_view(b, view, skip);
    } else {
      bool ok = true;
      std::uint8_t* const dst = b.built.data() + b.built_bytes;
      sender.fill(at, cut.len, dst, &ok);
      if (!ok) {
        if (is_torn(sender) || !sender.failed()) break_off(c, EIO);
        break;
      }
      add_piece(b, {dst, cut.len});
      b.built_bytes += cut.len;
    }
    close_record(b, first_piece, cut.len);
    at += cut.len;
  }
  return b.record_count != 0;
}

// The kernel has accepted the first `taken` bytes of the burst. The rest of a partly accepted
// segment is kept as it was built. Later whole segments are built again (they have not begun). A
// segment passed as views is read again from memory: without CRC no difference can be detected.
void KernelSender::keep_rest(KernelLink& l, std::size_t taken) {
  KernelBatch& b = s_.kernel->batch;
  if (!l.rest.empty()) {
    l.rest_at += taken;
    if (l.rest_at == l.rest.size()) {
      std::vector<std::uint8_t>().swap(l.rest);
      l.rest_at = 0;
    }
    return;
  }
  std::size_t piece = 0;
  for (std::size_t i = 0; i < b.record_count; ++i) {
    if (taken >= b.record_bytes[i]) {
      taken -= b.record_bytes[i];
      piece += b.record_pieces[i];
      continue;
    }
    const auto* at = static_cast<const std::uint8_t*>(b.pieces[piece].iov_base);
    const bool built = at >= b.built.data() && at < b.built.data() + b.built_bytes;
    if (taken != 0 && built) l.rest.assign(at + taken, at + b.record_bytes[i]);
    return;
  }
}

bool KernelSender::finish(Connection& c, Instant now) {
  KernelLink& l = *c.link;
  if (!l.socket.is_open()) return false;
  // The rest of a segment in `rest` is also part of available().
  const bool all_sent = c.stream == nullptr || c.stream->sender.available() <= l.sent;
  if (l.finish && !l.finished && (l.send_error != 0 || (all_sent && may_end(l, now)))) {
    l.finished = true;
    l.socket.finish();
    if (s_.kernel->tap) s_.kernel->tap->ended(tapped(c.key, l), kernel_tcp::Tap::End::Fin, false);
  }
  if (!l.finished || !l.ended) return false;
  s_.kernel->poller->remove(l.socket.fd());
  l.socket.close();
  return true;
}

void KernelSender::enqueue_read(Connection& c) {
  if (c.link->queued) return;
  c.link->queued = true;
  s_.kernel->readable.push_back(c.id);
}

}  // namespace urnic::iwarp
