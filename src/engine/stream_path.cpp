// Connections over the kernel's TCP: readiness in, octets out and in, FPDUs out of the octets. What
// the connection means - start-up, placement, delivery, Terminate, the end - is shared with frames
// (lifecycle.cpp, rx_path.cpp). Such a connection shows no segments: it is SLOW for ever (E-31).
#include <errno.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>

#include "engine/engine.h"
#include "mpa/fpdu.h"
#include "reassembly/extract.h"

namespace urnic::engine {
namespace {

// Octets one connection may receive before the next one has its turn, and bursts it may send.
constexpr std::size_t kReceiveTurn = 1 << 20;
constexpr unsigned kSendTurn = 8;
// Before the consumer has answered a request this much of what follows it is taken, no more.
constexpr std::size_t kEarly = 64 * 1024;
// FPDUs to ourselves fit no segment since there is none: as large as they get.
constexpr std::uint32_t kLocalSegment = 65536;
constexpr unsigned kMssUses = 64;
constexpr unsigned kReadyAtOnce = 64;
// A payload from here on is given to the kernel where it lies.
constexpr std::uint32_t kWorthAView = 4096;
// The tag of a listening socket; connections have their id, which has 32 bits.
constexpr std::uint64_t kListening = std::uint64_t{1} << 32;
constexpr Duration kAcceptPause = Duration::ms(100);

bool same_host(const FlowKey& key) {
  return key.remote.is_loopback() || key.local == key.remote;
}

Error socket_error(int e, const std::string& what) {
  const std::string text = what + ": " + std::strerror(e);
  switch (e) {
    case EADDRINUSE:
      return {Errc::in_use, what + ": the port is taken by another program"};
    case EADDRNOTAVAIL:
      return {Errc::invalid_argument, what + ": not an address of this machine"};
    case EACCES:
    case EPERM:
      return {Errc::permission, text + " (ports below 1024 need a right)"};
    case EMFILE:
      return {Errc::no_memory, what + ": this process has no file descriptor left (see ulimit -n)"};
    case ENFILE:
      return {Errc::no_memory, what + ": the machine has no file descriptor left"};
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
      return {Errc::no_memory, text};
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
      return {Errc::unreachable, "no route to " + what};
    case EAFNOSUPPORT:
      return {Errc::unsupported, what + ": this machine does not speak that version of IP"};
    default:
      return {Errc::io, text};
  }
}

struct End {
  Errc code;
  const char* why;
};

End end_of(int e, bool opening) {
  switch (e) {
    case ECONNREFUSED:
      return {Errc::refused, "connection refused by the peer (nobody listens on that port)"};
    case ETIMEDOUT:
      return {Errc::timed_out, opening ? "no answer from the peer: connecting timed out"
                                       : "the peer stopped answering: TCP gave up retransmitting"};
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
      return {Errc::unreachable, "the peer is unreachable"};
    case EIO:
      return {Errc::reset, "a local error ended the stream"};
    default:
      return {Errc::reset, "connection reset by the peer"};
  }
}

void add_piece(StreamBatch& b, ByteView bytes) {
  if (bytes.empty()) return;
  b.pieces[b.piece_count++] = {const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
}

// The pieces of `view` behind its first `skip` octets.
void add_view(StreamBatch& b, const ddp::FpduView& view, std::size_t skip) {
  const auto add = [&](ByteView bytes) {
    const std::size_t n = std::min(skip, bytes.size());
    skip -= n;
    add_piece(b, bytes.subspan(n));
  };
  add({view.head.data(), view.head_octets});
  for (std::uint32_t i = 0; i < view.count; ++i) add(view.pieces[i]);
  add({view.tail.data(), view.tail_octets});
}

void close_record(StreamBatch& b, std::size_t first_piece, std::uint32_t octets) {
  b.record_pieces[b.record_count] = static_cast<std::uint32_t>(b.piece_count - first_piece);
  b.record_octets[b.record_count++] = octets;
  b.octets += octets;
}

}  // namespace

// ---- the transport below a connection, whichever it is
// -----------------------------------------------

bool Engine::has_undelivered(const Connection& c) {
  return c.link != nullptr ? !c.link->inbox.empty() : !c.buffer.empty();
}

void Engine::drop_undelivered(Connection& c) {
  if (c.link != nullptr) {
    c.link->inbox.clear();
  } else {
    c.buffer.reset(c.tcb.rcv.holes.rcv_nxt());
  }
}

StreamOffset Engine::sent_end(const Connection& c) {
  return c.link != nullptr ? c.link->sent + (c.link->rest.size() - c.link->rest_at) : c.tcb.snd.nxt;
}

// FIN behind the last octet.
void Engine::finish_sending(Connection& c, Instant now) {
  if (c.link != nullptr) {
    c.link->finish = true;
  } else {
    tcp::shutdown_send(c.tcb, now);
  }
}

void Engine::abort_transport(Connection& c, Instant now) {
  if (c.link == nullptr) {
    tcp::abort(c.tcb, now);
    return;
  }
  if (!c.link->socket.is_open()) return;
  stream_->poller->remove(c.link->socket.fd());
  c.link->socket.reset();
}

bool Engine::transport_closed(const Connection& c) {
  return c.link != nullptr ? !c.link->socket.is_open() : c.tcb.state == tcp::State::Closed;
}

// ---- opening
// ---------------------------------------------------------------------------------------

Result<std::unique_ptr<StreamLink>> Engine::open_link(const SocketAddress& to, FlowKey* key) {
  const IpAddress& bind = stream_->options.bind;
  const bool same_version = bind.is_v6() == to.ip.is_v6();
  if (!bind.is_any() && !same_version) {
    return Error{Errc::unreachable, "no route to " + to.ip.to_string() + ": bind=" +
                                        bind.to_string() + " is of the other version of IP"};
  }
  auto socket = stream::Socket::connect(to, bind);
  if (!socket) {
    if (socket.error() == ECONNREFUSED) {
      return Error{Errc::refused, end_of(ECONNREFUSED, true).why};
    }
    return socket_error(socket.error(), to.to_string());
  }
  const SocketAddress local = socket->local();
  *key = {local.ip, to.ip, local.port, to.port};
  return std::make_unique<StreamLink>(std::move(*socket), &stream_->pool);
}

// The connection watches its socket from now on. 0 or an errno value.
int Engine::adopt_link(Connection& c, std::unique_ptr<StreamLink> link) {
  c.link = std::move(link);
  c.link->aligned = stream_->options.align && !same_host(c.key);
  return stream_->poller->add(c.link->socket.fd(), c.id);
}

Listener* Engine::listen_stream(std::uint16_t port, int backlog, Error* error) {
  const IpAddress& bind = stream_->options.bind;
  backlog = std::max(backlog, 1);
  auto socket = stream::Socket::listen({bind.is_any() ? IpAddress::any_v6() : bind, port}, backlog);
  if (!socket && bind.is_any() && socket.error() == EAFNOSUPPORT) {  // a kernel without IPv6
    socket = stream::Socket::listen({IpAddress::any_v4(), port}, backlog);
  }
  int e = socket ? 0 : socket.error();
  auto l = std::make_unique<Listener>();
  if (e == 0) {
    l->socket = std::move(*socket);
    l->port = l->socket.local().port;
    l->backlog = backlog;
    e = stream_->poller->add(l->socket.fd(), kListening | l->port);
  }
  if (e != 0) {
    *error = socket_error(e, "cannot listen on TCP port " + std::to_string(port));
    return nullptr;
  }
  listeners_.push_back(std::move(l));
  return listeners_.back().get();
}

void Engine::accept_waiting(Listener& l, Instant now) {
  while (l.acceptable && l.pending < l.backlog) {
    auto socket = l.socket.accept();
    if (!socket) {
      l.acceptable = false;
      if (socket.error() != EAGAIN) turn_away(l, socket.error(), now);
      return;
    }
    const SocketAddress local = socket->local(), remote = socket->remote();
    Connection* c = new_connection({local.ip, remote.ip, local.port, remote.port}, now);
    if (c == nullptr) {
      l.acceptable = false;  // 2^24 connections
      return;
    }
    begin_passive(*c, l, now);
    if (const int e =
            adopt_link(*c, std::make_unique<StreamLink>(std::move(*socket), &stream_->pool));
        e != 0) {
      lose(*c, Errc::no_memory, "", now);
      continue;
    }
    c->stage = Stage::Startup;
    arm_timer(*c);
  }
}

// No descriptor for the next connection: with one given up for a moment it is closed at once, so
// that its peer learns of it and the queue does not stand still.
void Engine::turn_away(Listener& l, int error, Instant now) {
  ++counters_.connections_failed;
  ++stream_->turned_away;
  bool done = false;
  if ((error == EMFILE || error == ENFILE) && stream_->spare.is_open()) {
    stream_->spare.close();
    if (auto socket = l.socket.accept(); socket.ok()) {
      socket->reset();
      done = true;
    }
    stream_->spare = stream::Socket(eventfd(0, EFD_CLOEXEC));
  }
  l.acceptable = true;
  if (!done) {
    l.acceptable = false;
    l.paused = true;
    stream_->accept_again = now + kAcceptPause;
  }
}

void Engine::close_listening(Listener& l) {
  if (l.socket.is_open()) stream_->poller->remove(l.socket.fd());
}

// A connection request can be taken without anything new happening.
bool Engine::can_accept() const {
  return std::any_of(listeners_.begin(), listeners_.end(),
                     [](const auto& l) { return l->acceptable && l->pending < l->backlog; });
}

// ---- driving
// ---------------------------------------------------------------------------------------

bool Engine::poll_sockets(Instant now) {
  stream::Poller::Ready ready[kReadyAtOnce];
  const unsigned n = stream_->poller->take(ready, kReadyAtOnce);
  for (unsigned i = 0; i < n; ++i) take_readiness(ready[i], now);
  if (stream_->accept_again <= now) {
    stream_->accept_again = Instant::never();
    for (const auto& l : listeners_) {
      l->acceptable = l->acceptable || l->paused;
      l->paused = false;
    }
  }
  for (std::size_t i = 0; i < listeners_.size(); ++i) accept_waiting(*listeners_[i], now);
  bool any = n != 0;
  for (std::size_t left = stream_->readable.size(); left > 0; --left) {
    const ConnectionId id = stream_->readable.front();
    stream_->readable.pop_front();
    Connection* c = find(id);
    if (c == nullptr) continue;
    any = true;
    c->link->queued = false;
    receive_stream(*c, now);
    if (c->id == id && c->link->readable && !is_held_back(*c)) enqueue_read(*c);
  }
  return any;
}

void Engine::take_readiness(const stream::Poller::Ready& ready, Instant now) {
  if ((ready.tag & kListening) != 0) {
    for (const auto& l : listeners_) {
      if (l->port == (ready.tag & 0xffff)) l->acceptable = true;
    }
    return;
  }
  Connection* c = find(static_cast<ConnectionId>(ready.tag));
  if (c == nullptr) return;
  StreamLink& l = *c->link;
  if (ready.writable) {
    l.writable = true;
    if (c->stage == Stage::Opening) {
      if (const int e = l.socket.take_error(); e != 0) {
        const End end = end_of(e, true);
        lose(*c, end.code, end.why, now);
        return;
      }
      on_tcp_established(*c, now);
    }
    enqueue_tx(*c);
  }
  if (ready.readable) {
    l.readable = true;
    l.ending = l.ending || ready.ended;
    enqueue_read(*c);
  }
}

void Engine::enqueue_read(Connection& c) {
  if (c.link->queued) return;
  c.link->queued = true;
  stream_->readable.push_back(c.id);
}

// ---- receive
// ---------------------------------------------------------------------------------------

// The consumer has not answered the request: what its eager peer sends meanwhile stays in the
// kernel, and TCP's window closes.
bool Engine::is_held_back(const Connection& c) {
  return c.stage == Stage::Startup && c.link->inbox.octets().size() >= kEarly;
}

void Engine::receive_stream(Connection& c, Instant now) {
  const ConnectionId id = c.id;
  StreamLink& l = *c.link;
  if (c.stage == Stage::Opening || l.ended) {
    l.readable = false;
    return;
  }
  std::size_t budget = kReceiveTurn;
  while (l.readable && budget != 0 && !is_held_back(c)) {
    const std::span<std::uint8_t> space = l.inbox.space();
    const stream::Moved got = l.socket.receive(space);
    ++stream_->reads;
    if (got.what != stream::Moved::What::Some) {
      l.readable = false;
      l.inbox.settle();
      if (got.what == stream::Moved::What::NotNow && l.send_error == 0) return;
      end_of_stream(c, got, now);
      return;
    }
    l.inbox.received(got.octets);
    stream_->octets_in += got.octets;
    budget -= std::min(budget, got.octets);
    ++c.counters.segments_in;
    take_octets(c, now);
    if (c.id != id || !l.socket.is_open()) return;
    // Less than there was room for: there was no more, and whatever comes next is reported anew.
    if (got.octets < space.size() && !l.ending) l.readable = false;
  }
  l.inbox.settle();
}

// What has come in order, by the stage the connection is in.
void Engine::take_octets(Connection& c, Instant now) {
  const ConnectionId id = c.id;
  if (c.stage == Stage::Startup) run_startup(c, now);
  if (c.id != id) return;
  if (c.stage == Stage::Full || c.stage == Stage::Closing) drain_stream(c, now);
  if (c.id != id) return;
  if (c.stage == Stage::Terminated || c.stage == Stage::Lingering) c.link->inbox.clear();
}

// Whole FPDUs where they lie, placed and delivered one by one.
void Engine::drain_stream(Connection& c, Instant now) {
  const ConnectionId id = c.id;
  stream::Inbox& inbox = c.link->inbox;
  while (c.id == id && (c.stage == Stage::Full || c.stage == Stage::Closing)) {
    ByteView ulpdu;
    std::uint32_t length = 0;
    const auto got = reassembly::next_fpdu(inbox.octets(), c.context.config.crc, &ulpdu, &length);
    if (got == reassembly::Extracted::NeedMore) return;
    c.counters.bytes_slow += length;
    c.counters.bytes_copied += length;
    if (got == reassembly::Extracted::BadCrc) {
      raise_terminate(c, ddp::Violation::MpaCrc, {}, now);
      return;
    }
    if (!take_fpdu(c, ulpdu, now) || c.id != id || inbox.empty()) return;
    inbox.consume(length);
  }
}

// FIN, or the end by an error.
void Engine::end_of_stream(Connection& c, const stream::Moved& got, Instant now) {
  const ConnectionId id = c.id;
  StreamLink& l = *c.link;
  if (got.what == stream::Moved::What::End) {
    l.ended = true;
    on_fin(c, now);
    if (c.id == id) finish_link(c, now);
    return;
  }
  if (refuses_revision2(c)) {  // E-35: some peers reset instead of closing
    retry_as_revision1(c, now);
    return;
  }
  const End end = end_of(got.what == stream::Moved::What::Failed ? got.error : l.send_error, false);
  lose(c, end.code, end.why, now);
}

// ---- send
// ------------------------------------------------------------------------------------------

// True when the connection still has something it could send now.
bool Engine::transmit_stream(Connection& c, Instant now) {
  const ConnectionId id = c.id;
  StreamLink& l = *c.link;
  if (!l.socket.is_open()) {
    on_closed(c, now);
    return false;
  }
  if (c.stage == Stage::Opening) return false;
  bool more = false;
  for (unsigned turns = kSendTurn; l.writable;) {
    if (turns-- == 0) {
      more = true;
      break;
    }
    if (!send_burst(c, now)) break;
    if (c.id != id) return false;
  }
  if (c.stream != nullptr) {  // handed to TCP, which keeps a copy: done (E-23)
    c.stream->sender.acked(l.sent, [&](const ddp::Completion& done) {
      if (c.qp != nullptr) post_completion(*c.qp, done);
    });
  }
  if (c.stage == Stage::Closing || c.stage == Stage::Terminated) try_finish_close(c, now);
  if (c.id == id) finish_link(c, now);
  return more && c.id == id;
}

// One system call's worth. False when there is nothing to send, or no room.
bool Engine::send_burst(Connection& c, Instant now) {
  StreamLink& l = *c.link;
  StreamBatch& b = stream_->batch;
  b.clear();
  if (!l.rest.empty()) {
    add_piece(b, ByteView(l.rest).subspan(l.rest_at));
    close_record(b, 0, static_cast<std::uint32_t>(l.rest.size() - l.rest_at));
  } else if (c.stream == nullptr || !build_burst(c)) {
    if (c.stream != nullptr && c.stream->sender.failed() && c.stage != Stage::Terminated) {
      fail_sender(c, now);
      return c.id != 0;
    }
    return false;
  }
  const std::span<const iovec> pieces(b.pieces.data(), b.piece_count);
  const stream::Moved moved =
      l.aligned ? l.socket.send_records(pieces, {b.record_pieces.data(), b.record_count})
                : l.socket.send(pieces);
  ++stream_->writes;
  if (moved.what != stream::Moved::What::Some) {
    l.writable = false;
    if (moved.what == stream::Moved::What::Failed) {  // why, the receiving side tells
      l.send_error = moved.error;
      l.readable = true;
      enqueue_read(c);
    }
    keep_rest(l, 0);
    return false;
  }
  stream_->octets_out += moved.octets;
  c.counters.segments_out += b.record_count;
  keep_rest(l, moved.octets);
  l.sent += moved.octets;
  if (moved.octets < b.octets) l.writable = false;
  return true;
}

// As many segments as one system call takes. False when there is none.
bool Engine::build_burst(Connection& c) {
  StreamLink& l = *c.link;
  StreamBatch& b = stream_->batch;
  if (b.built.empty()) b.built.resize(StreamBatch::kOctets + kLocalSegment);
  if (l.mss_uses == 0) {
    l.mss = l.aligned ? l.socket.mss() : kLocalSegment;
    l.mss_uses = kMssUses;
  }
  --l.mss_uses;
  ddp::Sender& sender = c.stream->sender;
  StreamOffset at = l.sent;
  while (b.octets < StreamBatch::kOctets && b.record_count < StreamBatch::kRecords &&
         b.view_count < StreamBatch::kViews &&
         b.piece_count + ddp::FpduView::kMaxPieces + 2 <= StreamBatch::kPieces) {
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
      std::uint8_t* const dst = b.built.data() + b.built_octets;
      sender.fill(at, cut.len, dst, &ok);
      if (!ok) {
        // An FPDU of which the peer has a part cannot be finished: nothing may follow it.
        if (!sender.failed()) {
          l.send_error = EIO;
          l.readable = true;
          enqueue_read(c);
        }
        break;
      }
      add_piece(b, {dst, cut.len});
      b.built_octets += cut.len;
    }
    close_record(b, first_piece, cut.len);
    at += cut.len;
  }
  return b.record_count != 0;
}

// The kernel has taken the first `taken` octets of the burst. Of a segment it took in part the rest
// stays as it was built; whole segments behind are built again (they have not begun). One that was
// given as views is looked at again where it lies: without CRC there is nothing that could differ.
void Engine::keep_rest(StreamLink& l, std::size_t taken) {
  StreamBatch& b = stream_->batch;
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
    if (taken >= b.record_octets[i]) {
      taken -= b.record_octets[i];
      piece += b.record_pieces[i];
      continue;
    }
    const auto* at = static_cast<const std::uint8_t*>(b.pieces[piece].iov_base);
    const bool built = at >= b.built.data() && at < b.built.data() + b.built_octets;
    if (taken != 0 && built) l.rest.assign(at + taken, at + b.record_octets[i]);
    return;
  }
}

// Our FIN when everything is in the kernel's hands; the end when the peer's has come as well.
void Engine::finish_link(Connection& c, Instant now) {
  StreamLink& l = *c.link;
  if (!l.socket.is_open()) return;
  const bool all_sent =
      l.rest.empty() && (c.stream == nullptr || c.stream->sender.available() <= l.sent);
  if (l.finish && !l.finished && (all_sent || l.send_error != 0)) {
    l.finished = true;
    l.socket.finish();
  }
  if (!l.finished || !l.ended) return;
  stream_->poller->remove(l.socket.fd());
  l.socket.close();
  on_closed(c, now);
}

}  // namespace urnic::engine
