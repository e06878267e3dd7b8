#include "cli/target_session.h"

#include <algorithm>
#include <utility>

#include "cli/units.h"

namespace urnic::cli {
namespace {

constexpr std::uint32_t kLeastChunk = 4096;
constexpr std::size_t kMostEntries = 100'000;  // of a listing

}  // namespace

TargetSession::TargetSession(std::uint32_t id, Device* device, ProtectionDomain pd,
                             FileQueue* files, const TargetOptions* options, TargetTotals* totals,
                             std::uint64_t* budget, std::unique_ptr<Channel> channel,
                             std::string peer)
    : id_(id),
      device_(device),
      pd_(std::move(pd)),
      files_(files),
      options_(options),
      totals_(totals),
      budget_(budget),
      peer_(std::move(peer)),
      channel_(std::move(channel)) {}

TargetSession::~TargetSession() {
  *budget_ += buffer_.size();
}

unsigned TargetSession::in_flight() const {
  unsigned n = 0;
  if (source_) n += source_->in_flight();
  if (sink_) n += sink_->in_flight();
  if (old_source_) n += old_source_->in_flight();
  if (old_sink_) n += old_sink_->in_flight();
  return n;
}

void TargetSession::send(const Message& m) {
  if (ended_) return;
  if (auto ok = channel_->send(m); !ok) on_end();
}

void TargetSession::note_failure(const std::string& why) {
  ++totals_->failed;
  const char* what = mode_ == OpenMode::Put ? "put of " : mode_ == OpenMode::Get ? "get of " : "";
  // A file error begins with the name.
  const std::string reason = why.starts_with(name_ + ": ") ? why.substr(name_.size() + 2) : why;
  options_->report(std::string(what) + (mode_ == OpenMode::List ? "listing" : name_) + " by " +
                   peer_ + " failed: " + reason);
}

void TargetSession::refuse(Status status, std::string text) {
  note_failure(text);
  result(status, std::move(text));
}

void TargetSession::violation(const std::string& what) {
  if (ended_ || closing_) return;
  if (open_) note_failure(what);
  drop_file();
  result(Status::BadRequest, what);
  closing_ = true;
}

void TargetSession::on_end() {
  if (ended_) return;
  ended_ = true;
  if (open_) note_failure("the connection ended before the file was complete");
  drop_file();
}

void TargetSession::drop_file() {
  open_ = commit_wanted_ = commit_sent_ = false;
  // One at a time is waited for: no Open is taken up before that (on_open).
  if (source_ && source_->in_flight() != 0) old_source_ = std::move(source_);
  if (sink_ && sink_->in_flight() != 0) {
    old_sink_ = std::move(sink_);
    old_incoming_ = std::move(incoming_);
  }
  source_.reset();
  sink_.reset();
  incoming_.discard();
}

void TargetSession::result(Status status, std::string text, const Digest& digest,
                           std::uint64_t size) {
  Message m;
  m.kind = MessageKind::Result;
  m.transfer = transfer_;
  m.status = status;
  m.text = std::move(text);
  m.sha256 = digest;
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
  last_sign_ = now;
  const Channel::Incoming in = channel_->take(c);
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

void TargetSession::on_message(const Message& m) {
  if (m.kind == MessageKind::Hello) return on_hello(m);
  if (slots_ == 0) return violation("the first message must be HELLO");
  if (m.kind == MessageKind::Open) return on_open(m);
  // What the initiator had sent before it learned that a transfer had failed.
  if (!open_ || m.transfer != transfer_) {
    if (m.transfer != 0 && m.transfer == transfer_ && m.kind == MessageKind::Abort) return;
    if (m.kind == MessageKind::Chunk || m.kind == MessageKind::Taken ||
        m.kind == MessageKind::Commit || m.kind == MessageKind::Abort) {
      return;
    }
    return violation("a message of a kind that only a target sends");
  }
  switch (m.kind) {
    case MessageKind::Chunk:
      if (!sink_ || commit_wanted_ || m.slot >= slots_ ||
          !sink_->announce({m.slot, m.length, m.offset})) {
        return violation("a chunk out of order or of a wrong size");
      }
      sink_->arrived(m.slot);
      return;
    case MessageKind::Taken:
      if (!source_ || !source_->slot_free(m.slot)) {
        return violation("a slot was given back that had not been lent");
      }
      return;
    case MessageKind::Commit:
      if (!sink_ || commit_wanted_ || !sink_->complete() || m.size != sink_->size()) {
        return violation("a commit before all of the file");
      }
      commit_wanted_ = true;
      commit_ = m;
      return;
    case MessageKind::Abort:
      note_failure(m.text);
      drop_file();
      return result(Status::Aborted, m.text);
    default:
      return violation("a message of a kind that only a target sends");
  }
}

void TargetSession::on_hello(const Message& m) {
  if (slots_ != 0) return violation("a second HELLO");
  const std::uint32_t slots =
      std::clamp<std::uint32_t>(m.slots, 1, std::min(options_->slots, Channel::kMaxSlots));
  const std::uint32_t chunk =
      std::clamp<std::uint32_t>(m.chunk, kLeastChunk, std::max(options_->chunk, kLeastChunk));
  const std::uint64_t octets = std::uint64_t{slots} * chunk;
  if (octets > *budget_) return violation(describe(Status::Busy));
  auto buffer = RdmaBuffer::make(*device_, pd_, octets,
                                 access_local_write | access_remote_write | access_remote_read);
  if (!buffer) return violation(buffer.error().message);
  buffer_ = std::move(*buffer);
  *budget_ -= octets;
  slots_ = slots;
  chunk_ = chunk;
  Message w;
  w.kind = MessageKind::Welcome;
  w.slots = slots;
  w.chunk = chunk;
  w.rkey = buffer_.region().rkey();
  w.address = buffer_.region().remote_address();
  w.read_only = options_->read_only;
  send(w);
}

void TargetSession::on_open(const Message& m) {
  if (open_ || waiting_open_ || m.transfer == 0) {
    return violation("a file was opened while another one is under way");
  }
  if (old_source_ || old_sink_) {
    waiting_open_ = std::make_unique<Message>(m);
    return;
  }
  transfer_ = m.transfer;
  commit_sent_ = false;
  mode_ = m.mode;
  name_ = m.mode == OpenMode::List ? std::string() : m.text;
  if (m.mode != OpenMode::List) {
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
      return open_list();
  }
}

void TargetSession::open_put(const Message& m) {
  if (options_->read_only) return refuse(Status::ReadOnly, m.text + ": the export is read-only");
  auto file = IncomingFile::create(options_->folder, m.text, m.size, m.permissions);
  if (!file.ok()) return refuse(file.error().status, file.error().text);
  incoming_ = std::move(*file);
  sink_ = std::make_unique<FileSink>(files_, tag_base(), window(), incoming_.fd(), m.size, m.text);
  open_ = true;
  Message o;
  o.kind = MessageKind::Opened;
  o.transfer = transfer_;
  o.size = m.size;
  send(o);
}

void TargetSession::open_get(const Message& m) {
  auto file = open_for_reading(options_->folder, m.text);
  if (!file.ok()) return refuse(file.error().status, file.error().text);
  open_source(std::make_unique<FileSource>(files_, tag_base(), window(), std::move(file->fd),
                                           file->size, m.text),
              file->permissions);
}

void TargetSession::open_list() {
  open_source(std::make_unique<FileSource>(
                  window(), encode_listing(list_folder(options_->folder, kMostEntries))),
              0);
}

void TargetSession::open_source(std::unique_ptr<FileSource> source, std::uint32_t permissions) {
  source_ = std::move(source);
  open_ = true;
  Message o;
  o.kind = MessageKind::Opened;
  o.transfer = transfer_;
  o.size = source_->size();
  o.permissions = permissions;
  send(o);
}

void TargetSession::on_file(std::uint32_t slot, std::int64_t result, double now) {
  last_sign_ = now;
  if (old_source_) {
    old_source_->file_done(slot, result);
  } else if (old_sink_) {
    old_sink_->file_done(slot, result);
  } else if (source_) {
    source_->file_done(slot, result);
  } else if (sink_) {
    sink_->file_done(slot, result);
  }
  if (old_source_ && old_source_->in_flight() == 0) old_source_.reset();
  if (old_sink_ && old_sink_->in_flight() == 0) {
    old_sink_.reset();
    old_incoming_.discard();
  }
  if (waiting_open_ && !old_source_ && !old_sink_ && !ended_)
    on_open(*std::exchange(waiting_open_, nullptr));
}

bool TargetSession::step(double now) {
  if (ended_ || !open_) return false;
  bool worked = source_ ? source_->step() : sink_->step();
  if (const auto& error = source_ ? source_->error() : sink_->error(); error) {
    const FileError why = *error;
    drop_file();
    refuse(why.status, why.text);
    return true;
  }
  if (source_) {
    while (const auto chunk = source_->next_ready()) {
      Message m;
      m.kind = MessageKind::Chunk;
      m.transfer = transfer_;
      m.slot = chunk->slot;
      m.length = chunk->length;
      m.offset = chunk->offset;
      send(m);
      worked = true;
      if (ended_) return true;
    }
    if (source_->finished()) {
      Message m;
      m.kind = MessageKind::Commit;
      m.transfer = transfer_;
      m.size = source_->size();
      m.sha256 = source_->digest();
      if (mode_ == OpenMode::List) {
        ++totals_->listings;
      } else {
        ++totals_->files_out;
        totals_->bytes_out += m.size;
        options_->report("sent " + name_ + " (" + format_size(static_cast<double>(m.size)) +
                         ") to " + peer_);
      }
      drop_file();
      send(m);
      worked = true;
    }
  } else {
    while (const auto slot = sink_->next_freed()) {
      Message m;
      m.kind = MessageKind::Taken;
      m.transfer = transfer_;
      m.slot = *slot;
      send(m);
      worked = true;
      if (ended_) return true;
    }
    if (commit_wanted_ && sink_->finished()) {
      finish_put();
      worked = true;
    }
  }
  if (worked) last_sign_ = now;
  return worked;
}

void TargetSession::finish_put() {
  const Digest digest = sink_->digest();
  const std::uint64_t size = sink_->size();
  sink_.reset();
  open_ = commit_wanted_ = false;
  if (digest != commit_.sha256) {
    incoming_.discard();
    return refuse(Status::Checksum, "the SHA-256 of what arrived differs from what was sent");
  }
  auto done = incoming_.commit(size, options_->durable);
  if (!done.ok()) return refuse(done.error().status, done.error().text);
  ++totals_->files_in;
  totals_->bytes_in += size;
  options_->report("received " + name_ + " (" + format_size(static_cast<double>(size)) + ") from " +
                   peer_);
  result(Status::Ok, "", digest, size);
}

void TargetSession::check_time(double now) {
  if (ended_) return;
  if (last_sign_ == 0) last_sign_ = now;
  const double limit = open_ || slots_ == 0 ? options_->stall_limit : options_->idle_limit;
  if (now - last_sign_ < limit) return;
  channel_->qp().abort();
  on_end();
}

}  // namespace urnic::cli
