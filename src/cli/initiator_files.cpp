// What an initiator does with its connection: put, get and list files.
#include <utility>

#include "cli/initiator.h"

namespace urnic::cli {
namespace {

constexpr std::uint64_t kMostListing = 64 << 20;

}  // namespace

// ---- put

bool Initiator::pump_source() {
  bool any = false;
  while (const auto chunk = source_->next_ready()) {
    any = true;
    const std::size_t at = std::size_t{chunk->slot} * window_.chunk;
    // The notice follows the data on the same stream: when it arrives, the data is there.
    if (auto ok = channel_->write(chunk->slot, buffer_.sge(at, chunk->length), remote_ + at, rkey_);
        !ok) {
      fail_with(ok.error().message);
      return true;
    }
    ++data_outstanding_;
    write_pending_[chunk->slot] = take_pending_[chunk->slot] = 1;
    Message m = request(MessageKind::Chunk);
    m.slot = chunk->slot;
    m.length = chunk->length;
    m.offset = chunk->offset;
    send(m);
  }
  return any;
}

Result<Transfer> Initiator::put(const LocalSource& from, const std::string& name,
                                const ProgressFunction& progress) {
  const std::string& path = from.shown();
  auto file = from.again();
  if (!file.ok()) return Error{Errc::io, file.error()};
  if (const std::string wrong = check_name(name); !wrong.empty()) {
    return Error{Errc::invalid_argument, "'" + name + "': " + wrong};
  }
  if (read_only_)
    return Error{Errc::permission, "target: " + std::string(describe(Status::ReadOnly))};
  const double began = now_seconds();
  Transfer t;
  t.size = file->size;
  if (!open(OpenMode::Put, name, file->size, file->permissions)) return ended(path);
  progress_ = progress;
  source_ =
      std::make_unique<FileSource>(&files_, 0, window_, std::move(file->fd), file->size, path);
  const auto work = [&] {
    if (pump_source()) return true;
    if (!commit_sent_ && source_->finished()) {
      Message m = request(MessageKind::Commit);
      m.size = t.size;
      m.sha256 = t.sha256 = source_->digest();
      send(m);
      commit_sent_ = true;
      return true;
    }
    return false;
  };
  const bool ran = run(work, [&] { return result_here_ || source_->error(); });
  if (ran && !result_here_ && source_->error()) {
    const FileError why = *source_->error();
    Message m = request(MessageKind::Abort);
    m.status = why.status;
    m.text = why.text;
    send(m);
    run([] { return false; }, [&] { return result_here_; });
    settle();
    return Error{Errc::io, why.text};
  }
  if (progress_ && ran && result_.status == Status::Ok) progress_(t.size, t.size);
  progress_ = nullptr;
  settle();
  if (!ran || result_.status != Status::Ok) return ended(path);
  if (result_.sha256 != t.sha256 || result_.size != t.size) {
    return Error{Errc::protocol, path + ": the target confirms another SHA-256"};
  }
  t.seconds = now_seconds() - began;
  t.bytes_fast = result_.bytes_fast;
  t.bytes_slow = result_.bytes_slow;
  t.downgrades = result_.downgrades;
  t.upgrades = result_.upgrades;
  t.recoveries = result_.recoveries;
  return t;
}

// ---- get

bool Initiator::pump_sink() {
  bool any = false;
  while (const auto slot = sink_->next_freed()) {
    any = true;
    Message m = request(MessageKind::Taken);
    m.slot = *slot;
    send(m);
  }
  return any;
}

// Tells the target that the file under way is not wanted any more.
void Initiator::give_up(Status status) {
  Message m = request(MessageKind::Abort);
  m.status = status;
  m.text = "the other end cannot store the file";
  send(m);
  run([] { return false; }, [&] { return result_here_; });
}

Result<Transfer> Initiator::get(const std::string& name, const LocalDestination& to,
                                const ProgressFunction& progress) {
  if (const std::string wrong = check_name(name); !wrong.empty()) {
    return Error{Errc::invalid_argument, "'" + name + "': " + wrong};
  }
  const double began = now_seconds();
  if (!open(OpenMode::Get, name, 0, 0)) return ended(name);
  Transfer t;
  t.size = opened_message_.size;
  IncomingFile file;
  if (to.is_stream()) {
    sink_ = std::make_unique<FileSink>(window_, to.stream(), t.size, to.shown());
  } else {
    auto created =
        IncomingFile::create(to.folder(), to.leaf(), t.size, opened_message_.permissions);
    if (!created.ok()) {
      give_up(Status::Aborted);
      return Error{Errc::io, to.prefix() + created.error().text};
    }
    file = std::move(*created);
    sink_ = std::make_unique<FileSink>(&files_, 0, window_, file.fd(), t.size, to.shown());
  }
  progress_ = progress;
  take_early_chunks();
  const bool ran =
      run([&] { return pump_sink(); },
          [&] { return result_here_ || sink_->error() || (commit_here_ && sink_->finished()); });
  const auto error = sink_->error();
  const bool complete = ran && commit_here_ && sink_->finished();
  const bool begun = to.is_stream() && sink_->stored() != 0;
  if (complete) t.sha256 = sink_->digest();
  if (ran && !complete && !result_here_ && error) give_up(error->status);
  if (progress_ && complete) progress_(t.size, t.size);
  progress_ = nullptr;
  settle();
  const std::string partly = begun ? " (a part is written)" : "";
  if (stop_requested() && error) return Error{Errc::io, "stopped" + partly};
  if (error) return Error{Errc::io, error->text + partly};
  if (!complete) {
    Error why = ended(name);
    why.message += partly;
    return why;
  }
  if (commit_.size != t.size || commit_.sha256 != t.sha256) {
    return Error{Errc::protocol, name + ": " + describe(Status::Checksum) + partly};
  }
  if (!to.is_stream()) {
    if (auto done = file.commit(t.size, false); !done.ok()) {
      return Error{Errc::io, to.prefix() + done.error().text};
    }
  }
  t.seconds = now_seconds() - began;
  const ConnectionStats s = stats();
  t.bytes_fast = s.iwarp.bytes_fast;
  t.bytes_slow = s.iwarp.bytes_slow;
  t.downgrades = s.iwarp.downgrades;
  t.upgrades = s.iwarp.upgrades;
  t.recoveries = s.iwarp.recovery_attempts;
  return t;
}

// ---- list

Result<std::vector<std::uint8_t>> Initiator::fetch_listing() {
  if (!open(OpenMode::List, "", 0, 0)) return ended(endpoint_);
  if (opened_message_.size > kMostListing) {
    return Error{Errc::protocol, endpoint_ + ": the listing is larger than 64 MiB"};
  }
  sink_ = std::make_unique<FileSink>(window_, opened_message_.size);
  take_early_chunks();
  const bool ran = run([&] { return pump_sink(); },
                       [&] { return result_here_ || (commit_here_ && sink_->finished()); });
  const bool complete = ran && commit_here_ && sink_->finished();
  std::vector<std::uint8_t> bytes = sink_->memory();
  const bool same = complete && sink_->digest() == commit_.sha256;
  settle();
  if (!complete) return ended(endpoint_);
  if (!same) return Error{Errc::protocol, endpoint_ + ": " + describe(Status::Checksum)};
  return bytes;
}

Result<std::vector<ListEntry>> Initiator::list() {
  auto bytes = fetch_listing();
  if (!bytes) return bytes.error();
  auto entries = decode_listing(*bytes);
  if (!entries.ok()) return Error{Errc::protocol, endpoint_ + ": " + entries.error()};
  return std::move(*entries);
}

}  // namespace urnic::cli
