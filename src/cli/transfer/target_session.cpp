#include "cli/transfer/target_session.h"

#include <algorithm>
#include <utility>

#include "cli/runtime.h"

namespace urnic::cli {
namespace {

constexpr std::uint32_t kLeastChunk = WindowBudget::kLeast;

}  // namespace

TargetSession::TargetSession(std::uint32_t id, TargetHost host, std::unique_ptr<Channel> channel,
                             std::string peer, double now)
    : id_(id),
      host_(std::move(host)),
      peer_(std::move(peer)),
      channel_(std::move(channel)),
      last_progress_(now) {}

TargetSession::~TargetSession() {
  host_.budget->give_back(client(), buffer_.size());
}

unsigned TargetSession::in_flight() const {
  return file_.in_flight() + old_.in_flight();
}

void TargetSession::send(const Message& m) {
  if (ended_) return;
  if (auto ok = channel_->send(m); !ok) on_end();
}

void TargetSession::note_failure(const std::string& why) {
  ++host_.totals->failed;
  const char* what = request_.mode == OpenMode::Put          ? "put of "
                     : request_.mode == OpenMode::Get        ? "get of "
                     : request_.mode == OpenMode::MakeFolder ? "creating folder "
                                                             : "";
  // File errors begin with the name, which the report already contains.
  const std::string reason =
      why.starts_with(request_.name + ": ") ? why.substr(request_.name.size() + 2) : why;
  host_.options->report(std::string(what) +
                        (request_.mode == OpenMode::List ? "listing" : request_.name) + " by " +
                        peer_ + " failed: " + reason);
}

void TargetSession::refuse(Status status, std::string text) {
  note_failure(text);
  result(status, std::move(text));
}

void TargetSession::violation(const std::string& what) {
  if (ended_ || closing_) return;
  if (request_.open) note_failure(what);
  drop_file();
  result(Status::BadRequest, what);
  closing_ = true;
}

void TargetSession::on_end() {
  if (ended_) return;
  ended_ = true;
  if (request_.open) note_failure("the connection ended before the file was complete");
  drop_file();
}

void TargetSession::drop_file() {
  request_.open = false;
  request_.commit.reset();
  // Waits for one at a time: no Open is accepted before it has ended (on_open).
  if (file_.in_flight() != 0) old_ = std::exchange(file_, {});
  file_.drop();
}

void TargetSession::result(Status status, std::string text, const Digest& digest,
                           std::uint64_t size) {
  Message m;
  m.kind = MessageKind::Result;
  m.transfer = request_.transfer;
  m.status = status;
  m.text = std::move(text);
  m.hash = digest;
  m.size = size;
  const ConnectionStats s = channel_->qp().stats();
  m.bytes_fast = s.iwarp.bytes_fast;
  m.bytes_slow = s.iwarp.bytes_slow;
  m.downgrades = s.iwarp.downgrades;
  m.upgrades = s.iwarp.upgrades;
  m.recoveries = s.iwarp.recovery_attempts;
  send(m);
}

void TargetSession::on_completion(const Completion& c, double now) {
  if (ended_) return;
  const Channel::Incoming in = channel_->take(c);
  if (is_progress(in)) last_progress_ = now;
  if (in.what == Channel::What::Received && !closing_) on_message(in.message);
  if (in.what == Channel::What::Failed) {
    if (c.status == WcStatus::success) {
      violation(in.error);
    } else {
      on_end();
    }
  }
  if (closing_ && !ended_ && channel_->outstanding() == 0) {
    channel_->qp().disconnect();
    on_end();
  }
}

// Unexpected messages do not count as progress, so they cannot keep a place.
bool TargetSession::is_progress(const Channel::Incoming& in) const {
  if (in.what != Channel::What::Received) return in.what != Channel::What::Failed;
  const Message& m = in.message;
  return m.kind == MessageKind::Hello || m.kind == MessageKind::Open ||
         (request_.open && m.transfer == request_.transfer);
}

void TargetSession::on_message(const Message& m) {
  if (m.kind == MessageKind::Hello) return on_hello(m);
  if (window_.slots == 0) return violation("the first message is not HELLO");
  if (m.kind == MessageKind::Open) return on_open(m);
  // Messages that the initiator sent before it learned that a transfer had failed.
  if (!request_.open || m.transfer != request_.transfer) {
    if (m.transfer != 0 && m.transfer == request_.transfer && m.kind == MessageKind::Abort) return;
    if (m.kind == MessageKind::Chunk || m.kind == MessageKind::Taken ||
        m.kind == MessageKind::Commit || m.kind == MessageKind::Abort ||
        m.kind == MessageKind::Begin) {
      return;
    }
    return violation("the client sent a target message");
  }
  switch (m.kind) {
    case MessageKind::Begin:
      return on_begin(m);
    case MessageKind::Chunk:
      if (!file_.sink || request_.commit || m.slot >= window_.slots ||
          !file_.sink->announce({m.slot, m.length, m.offset, m.hole})) {
        return violation("a chunk out of order or of a wrong size");
      }
      file_.sink->arrived(m.slot);
      return;
    case MessageKind::Taken:
      if (file_.check && file_.check->compared()) return;
      if (!file_.source || !file_.source->slot_free(m.slot)) {
        return violation("a slot was returned that was not in use");
      }
      return;
    case MessageKind::Commit:
      if (!file_.sink || request_.commit || !file_.sink->complete() ||
          m.size != file_.sink->size()) {
        return violation("a commit before the end of the file");
      }
      request_.commit = m;
      return;
    case MessageKind::Abort:
      note_failure(m.text);
      drop_file();
      return result(Status::Aborted, m.text);
    default:
      return violation("the client sent a target message");
  }
}

void TargetSession::on_hello(const Message& m) {
  if (window_.slots != 0) return violation("a second HELLO");
  std::uint32_t slots =
      std::clamp<std::uint32_t>(m.slots, 1, std::min(host_.options->slots, Channel::kMaxSlots));
  std::uint32_t chunk =
      std::clamp<std::uint32_t>(m.chunk, kLeastChunk, std::max(host_.options->chunk, kLeastChunk));
  const std::uint64_t wanted = std::uint64_t{slots} * chunk;
  std::uint64_t offer = host_.budget->offer(client(), wanted);
  while (offer < kLeastChunk && host_.make_room(*this, host_.budget->is_used_up_by(client()))) {
    offer = host_.budget->offer(client(), wanted);
  }
  if (offer < kLeastChunk) return violation(describe(Status::Busy));
  if (offer < wanted) {  // reduce the chunk size first: slots hide the latency
    slots = std::min(slots, static_cast<std::uint32_t>(offer / kLeastChunk));
    chunk = static_cast<std::uint32_t>(offer / slots) / kLeastChunk * kLeastChunk;
  }
  const std::uint64_t bytes = std::uint64_t{slots} * chunk;
  auto buffer = RdmaBuffer::make(*host_.device, host_.pd, bytes,
                                 access_local_write | access_remote_write | access_remote_read);
  if (!buffer) return violation(buffer.error().message);
  buffer_ = std::move(*buffer);
  host_.budget->take(client(), bytes);
  window_ = {buffer_.data(), slots, chunk};
  Message w;
  w.kind = MessageKind::Welcome;
  w.slots = slots;
  w.chunk = chunk;
  w.rkey = buffer_.region().rkey();
  w.address = buffer_.region().remote_address();
  w.read_only = host_.options->read_only;
  send(w);
}

void TargetSession::on_open(const Message& m) {
  if (request_.open || waiting_open_ || m.transfer == 0) {
    return violation("a file was opened during another transfer");
  }
  if (old_.any()) {
    waiting_open_ = std::make_unique<Message>(m);
    return;
  }
  request_.transfer = m.transfer;
  request_.mode = m.mode;
  request_.name = m.text;
  if (m.mode != OpenMode::List || !m.text.empty()) {
    if (const std::string wrong = check_name(m.text); !wrong.empty()) {
      return refuse(Status::BadName, wrong);
    }
  }
  switch (m.mode) {
    case OpenMode::Put:
      return open_put(m);
    case OpenMode::Get:
      return open_get(m);
    case OpenMode::List:
      return open_list(m.text);
    case OpenMode::MakeFolder:
      return open_folder(m);
  }
}

void TargetSession::on_file(std::uint32_t slot, std::int64_t result, double now) {
  last_progress_ = now;
  Moving& of = old_.any() ? old_ : file_;
  if (of.source) {
    of.source->file_done(slot, result);
  } else if (of.sink) {
    of.sink->file_done(slot, result);
  }
  if (old_.any() && old_.in_flight() == 0) old_.drop();
  if (waiting_open_ && !old_.any() && !ended_) on_open(*std::exchange(waiting_open_, nullptr));
}

void TargetSession::check_time(double now) {
  if (ended_ || now - last_progress_ < host_.options->stall_limit) return;
  give_way();
}

double TargetSession::idle_for(double now) const {
  if (ended_ || request_.open || waiting_open_ || in_flight() != 0) return -1;
  return now - last_progress_;
}

void TargetSession::give_way() {
  channel_->qp().abort();
  on_end();
}

}  // namespace urnic::cli
