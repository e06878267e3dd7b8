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
  while (const auto chunk = file_.source->next_ready()) {
    any = true;
    const std::size_t at = std::size_t{chunk->slot} * offer_.window.chunk;
    // The notice follows the data on the same stream: when it arrives, the data is there.
    if (auto ok = rdma_.channel->write(chunk->slot, rdma_.buffer.sge(at, chunk->length),
                                       offer_.remote + at, offer_.rkey);
        !ok) {
      fail_with(ok.error().message);
      return true;
    }
    ++data_outstanding_;
    slots_.give(chunk->slot);
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
  if (offer_.read_only)
    return Error{Errc::permission, "target: " + std::string(describe(Status::ReadOnly))};
  const double began = now_seconds();
  Transfer t;
  t.size = file->size;
  if (!open(OpenMode::Put, name, file->size, file->permissions)) return ended(path);
  file_.progress = progress;
  file_.source = std::make_unique<FileSource>(&files_, 0, offer_.window, std::move(file->fd),
                                              file->size, path);
  const auto work = [&] {
    if (pump_source()) return true;
    if (!file_.commit_sent && file_.source->finished()) {
      Message m = request(MessageKind::Commit);
      m.size = t.size;
      m.sha256 = t.sha256 = file_.source->digest();
      send(m);
      file_.commit_sent = true;
      return true;
    }
    return false;
  };
  const bool ran = run(work, [&] { return file_.result || file_.source->error(); });
  if (ran && !file_.result && file_.source->error()) {
    const FileError why = *file_.source->error();
    Message m = request(MessageKind::Abort);
    m.status = why.status;
    m.text = why.text;
    send(m);
    run([] { return false; }, [&] { return file_.result.has_value(); });
    settle();
    return Error{Errc::io, why.text};
  }
  if (file_.progress && ran && file_.result->status == Status::Ok) file_.progress(t.size, t.size);
  file_.progress = nullptr;
  settle();
  if (!ran || file_.result->status != Status::Ok) return ended(path);
  if (file_.result->sha256 != t.sha256 || file_.result->size != t.size) {
    return Error{Errc::protocol, path + ": the target confirms another SHA-256"};
  }
  t.seconds = now_seconds() - began;
  t.bytes_fast = file_.result->bytes_fast;
  t.bytes_slow = file_.result->bytes_slow;
  t.downgrades = file_.result->downgrades;
  t.upgrades = file_.result->upgrades;
  t.recoveries = file_.result->recoveries;
  return t;
}

// ---- get

bool Initiator::pump_sink() {
  bool any = false;
  while (const auto slot = file_.sink->next_freed()) {
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
  run([] { return false; }, [&] { return file_.result.has_value(); });
}

Result<Transfer> Initiator::get(const std::string& name, const LocalDestination& to,
                                const ProgressFunction& progress) {
  if (const std::string wrong = check_name(name); !wrong.empty()) {
    return Error{Errc::invalid_argument, "'" + name + "': " + wrong};
  }
  const double began = now_seconds();
  if (!open(OpenMode::Get, name, 0, 0)) return ended(name);
  Transfer t;
  t.size = file_.opened->size;
  IncomingFile file;
  if (to.is_stream()) {
    file_.sink = std::make_unique<FileSink>(offer_.window, to.stream(), t.size, to.shown());
  } else {
    auto created = IncomingFile::create(to.folder(), to.leaf(), t.size, file_.opened->permissions);
    if (!created.ok()) {
      give_up(Status::Aborted);
      return Error{Errc::io, to.prefix() + created.error().text};
    }
    file = std::move(*created);
    file_.sink =
        std::make_unique<FileSink>(&files_, 0, offer_.window, file.fd(), t.size, to.shown());
  }
  file_.progress = progress;
  take_early_chunks();
  const bool ran =
      run([&] { return pump_sink(); },
          [&] {
            return file_.result || file_.sink->error() || (file_.commit && file_.sink->finished());
          });
  const auto error = file_.sink->error();
  const bool complete = ran && file_.commit && file_.sink->finished();
  const bool begun = to.is_stream() && file_.sink->stored() != 0;
  if (complete) t.sha256 = file_.sink->digest();
  if (ran && !complete && !file_.result && error) give_up(error->status);
  if (file_.progress && complete) file_.progress(t.size, t.size);
  file_.progress = nullptr;
  settle();
  const std::string partly = begun ? " (a part is written)" : "";
  if (stop_requested() && error) return Error{Errc::io, "stopped" + partly};
  if (error) return Error{Errc::io, error->text + partly};
  if (!complete) {
    Error why = ended(name);
    why.message += partly;
    return why;
  }
  if (file_.commit->size != t.size || file_.commit->sha256 != t.sha256) {
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
  if (file_.opened->size > kMostListing) {
    return Error{Errc::protocol, endpoint_ + ": the listing is larger than 64 MiB"};
  }
  file_.sink = std::make_unique<FileSink>(offer_.window, file_.opened->size);
  take_early_chunks();
  const bool ran = run([&] { return pump_sink(); },
                       [&] { return file_.result || (file_.commit && file_.sink->finished()); });
  const bool complete = ran && file_.commit && file_.sink->finished();
  std::vector<std::uint8_t> bytes = file_.sink->memory();
  const bool same = complete && file_.sink->digest() == file_.commit->sha256;
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
