// The operations of an initiator over its connection: put, get and list files.
#include <utility>

#include "cli/transfer/initiator.h"

namespace urnic::cli {
namespace {

// bound: bytes of a listing that a client reads; beyond: the client gives the listing up with an
// error; the connection continues; test:
// InitiatorFiles.AnOversizedListingIsRejectedAndTheNextOneIsRead
constexpr std::uint64_t kMostListing = 64 << 20;

}  // namespace

// ---- put

bool Initiator::pump_source() {
  bool any = false;
  while (pace_.may(now_seconds())) {
    const auto chunk = file_.source->next_ready();
    if (!chunk) break;
    any = true;
    const std::size_t at = std::size_t{chunk->slot} * offer_.window.chunk;
    // The notice follows the data on the same stream, so the data arrives before it.
    if (!chunk->hole) {
      if (auto ok = rdma_.channel->write(chunk->slot, rdma_.buffer.sge(at, chunk->length),
                                         offer_.remote + at, offer_.rkey);
          !ok) {
        fail_with(ok.error().message);
        return true;
      }
      ++data_outstanding_;
      pace_.spend(chunk->length, now_seconds());
    }
    slots_.give(chunk->slot, !chunk->hole);
    Message m = request(MessageKind::Chunk);
    m.slot = chunk->slot;
    m.length = chunk->length;
    m.offset = chunk->offset;
    m.hole = chunk->hole;
    send(m);
  }
  return any;
}

// ---- resuming

Result<Point> Initiator::begin(int fd, std::uint64_t there, bool whole_only,
                               const std::string& what) {
  const std::uint64_t common = file_.opened->offset;
  PrefixComparer compare(fd, there >= common ? common : 0, what);
  const auto work = [&] {
    while (!file_.haves.empty()) {
      compare.told(file_.haves.front().offset, file_.haves.front().hash);
      file_.haves.pop_front();
    }
    bool answered = false;
    const bool worked = compare.step(&answered);
    if (answered) send(request(MessageKind::Taken));
    return worked;
  };
  const bool ran = run(work, [&] { return file_.result || compare.finished(); });
  if (!ran || file_.result) return ended(what);
  if (const auto& error = compare.error(); error) {
    give_up(error->status);
    return Error{Errc::io, error->text};
  }
  Point same = compare.take();
  if (whole_only && same.offset != common) same = Point{};
  Message m = request(MessageKind::Begin);
  m.offset = same.offset;
  send(m);
  return same;
}

// Opens the file at the target and continues after the bytes that it already has.
Result<void> Initiator::prepare_source(OpenedFile file, const std::string& path,
                                       const std::string& name, const FileOptions& how,
                                       Transfer* t) {
  Message m;
  m.mode = OpenMode::Put;
  m.text = name;
  m.size = file.is.size;
  m.allocated = file.is.allocated;
  m.permissions = file.is.permissions;
  if (how.times) m.modified = file.is.modified;
  m.resume = how.resume;
  if (!open(m)) return ended(path);
  Point from_here;
  if (how.resume) {
    auto same = begin(file.fd.get(), file.is.size, file_.opened->whole_only, path);
    if (!same) return same.error();
    from_here = std::move(*same);
  }
  t->began_at = from_here.offset;
  file_.source =
      std::make_unique<FileSource>(&files_, 0, offer_.window, std::move(file.fd), t->size, path);
  if (how.resume) file_.source->begin_at(t->began_at, std::move(from_here.hash));
  return {};
}

Result<Transfer> Initiator::put(const LocalSource& from, const std::string& name,
                                const FileOptions& how, const ProgressFunction& progress) {
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
  t.size = file->is.size;
  if (auto ok = prepare_source(std::move(*file), path, name, how, &t); !ok) return ok.error();
  file_.progress = progress;
  const auto work = [&] {
    if (pump_source()) return true;
    if (!file_.commit_sent && file_.source->finished()) {
      Message commit = request(MessageKind::Commit);
      commit.size = t.size;
      commit.hash = t.hash = file_.source->digest();
      send(commit);
      file_.commit_sent = true;
      return true;
    }
    return false;
  };
  const bool ran = run(work, [&] { return file_.result || file_.source->error(); });
  if (ran && !file_.result && file_.source->error()) {
    const FileError why = *file_.source->error();
    Message abort = request(MessageKind::Abort);
    abort.status = why.status;
    abort.text = why.text;
    send(abort);
    answered();
    settle();
    return Error{Errc::io, why.text};
  }
  if (file_.progress && ran && file_.result->status == Status::Ok) file_.progress(t.size, t.size);
  file_.progress = nullptr;
  settle();
  if (!ran || file_.result->status != Status::Ok) return ended(path);
  if (file_.result->hash != t.hash || file_.result->size != t.size) {
    return Error{Errc::protocol, path + ": hash mismatch: the target received different data"};
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
  while (!file_.announced.empty() && pace_.may(now_seconds())) {
    any = true;
    const Message m = file_.announced.front();
    file_.announced.pop_front();
    pace_.spend(m.length, now_seconds());
    fetch(m);
  }
  return any;
}

// Tells the target to abandon the current file.
void Initiator::give_up(Status status) {
  Message m = request(MessageKind::Abort);
  m.status = status;
  m.text = "the peer cannot store the file";
  send(m);
  answered();
}

// Prepares the destination and determines how many bytes are there already.
Result<void> Initiator::prepare_sink(const LocalDestination& to, const FileOptions& how,
                                     IncomingFile* file, Transfer* t) {
  if (to.is_stream()) {
    file_.sink = std::make_unique<FileSink>(offer_.window, to.stream(), t->size, to.shown());
    return {};
  }
  const Message& o = *file_.opened;
  const FileAttributes is{o.size, o.allocated, o.permissions, how.times ? o.modified : FileTime{}};
  auto created =
      IncomingFile::create(to.folder(), to.leaf(), is, how.resume ? Resume::Keep : Resume::No);
  if (!created.ok()) {
    give_up(Status::Aborted);
    return Error{Errc::io, to.prefix() + created.error().text};
  }
  *file = std::move(*created);
  Point from_here;
  if (how.resume) {
    auto same = begin(file->check_fd(), file->there(), file->whole_only(), to.shown());
    if (!same) return same.error();
    from_here = std::move(*same);
    if (auto ok = file->begin_at(from_here.offset); !ok.ok()) {
      give_up(Status::Aborted);
      return Error{Errc::io, to.prefix() + ok.error().text};
    }
  }
  t->began_at = from_here.offset;
  file_.sink =
      std::make_unique<FileSink>(&files_, 0, offer_.window, file->fd(), t->size, to.shown());
  if (how.resume) file_.sink->begin_at(t->began_at, std::move(from_here.hash));
  return {};
}

// Runs until all bytes are in place; otherwise returns the reason.
Result<void> Initiator::fill_sink(const std::string& name, const LocalDestination& to,
                                  const ProgressFunction& progress, Transfer* t) {
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
  if (complete) t->hash = file_.sink->digest();
  if (ran && !complete && !file_.result && error) give_up(error->status);
  if (file_.progress && complete) file_.progress(t->size, t->size);
  file_.progress = nullptr;
  settle();
  const std::string partly = begun ? " (partly written)" : "";
  if (stop_requested() && error) return Error{Errc::io, "stopped" + partly};
  if (error) {
    const bool full = error->status == Status::NoSpace;
    return Error{full ? Errc::no_memory : Errc::io, error->text + partly};
  }
  if (!complete) {
    Error why = ended(name);
    why.message += partly;
    return why;
  }
  if (file_.commit->size != t->size || file_.commit->hash != t->hash) {
    return Error{Errc::protocol, name + ": " + describe(Status::Checksum) + partly};
  }
  return {};
}

Result<Transfer> Initiator::get(const std::string& name, const LocalDestination& to,
                                const FileOptions& options, const ProgressFunction& progress) {
  if (const std::string wrong = check_name(name); !wrong.empty()) {
    return Error{Errc::invalid_argument, "'" + name + "': " + wrong};
  }
  const double began = now_seconds();
  FileOptions how = options;
  if (to.is_stream()) how.resume = false;
  Message m;
  m.mode = OpenMode::Get;
  m.text = name;
  m.resume = how.resume;
  if (how.resume) m.offset = IncomingFile::left(to.folder(), to.leaf());
  if (!open(m)) return ended(name);
  Transfer t;
  t.size = file_.opened->size;
  IncomingFile file;
  if (auto ok = prepare_sink(to, how, &file, &t); !ok) return ok.error();
  if (auto ok = fill_sink(name, to, progress, &t); !ok) {
    // Do not keep a part that is known to be wrong, or one that has filled the disk.
    const Errc code = ok.error().code;
    if (code == Errc::protocol || code == Errc::no_memory) file.discard();
    return ok.error();
  }
  if (!to.is_stream()) {
    if (auto done = file.commit(t.size, false); !done.ok()) {
      return Error{Errc::io, to.prefix() + done.error().text};
    }
  }
  t.seconds = now_seconds() - began;
  const ConnectionStats s = rdma_.channel->qp().stats();
  t.bytes_fast = s.iwarp.bytes_fast;
  t.bytes_slow = s.iwarp.bytes_slow;
  t.downgrades = s.iwarp.downgrades;
  t.upgrades = s.iwarp.upgrades;
  t.recoveries = s.iwarp.recovery_attempts;
  return t;
}

// ---- folders

Result<void> Initiator::make_folder(const std::string& name, std::uint32_t permissions) {
  if (const std::string wrong = check_name(name); !wrong.empty()) {
    return Error{Errc::invalid_argument, "'" + name + "': " + wrong};
  }
  Message m;
  m.mode = OpenMode::MakeFolder;
  m.text = name;
  m.permissions = permissions;
  if (open(m))
    return Error{Errc::protocol, endpoint_ + ": protocol error: the target opened a folder"};
  if (!failure_.empty() || file_.result->status != Status::Ok) return ended(name);
  return {};
}

Result<std::vector<std::uint8_t>> Initiator::fetch_listing(const std::string& name) {
  Message m;
  m.mode = OpenMode::List;
  m.text = name;
  if (!open(m)) return ended(endpoint_);
  if (file_.opened->size > kMostListing) {
    send(request(MessageKind::Abort));
    answered();
    return Error{Errc::protocol, endpoint_ + ": the listing is too large (limit 64 MiB)"};
  }
  file_.sink = std::make_unique<FileSink>(offer_.window, file_.opened->size);
  take_early_chunks();
  const bool ran = run([&] { return pump_sink(); },
                       [&] { return file_.result || (file_.commit && file_.sink->finished()); });
  const bool complete = ran && file_.commit && file_.sink->finished();
  std::vector<std::uint8_t> bytes = file_.sink->memory();
  const bool same = complete && file_.sink->digest() == file_.commit->hash;
  settle();
  if (!complete) return ended(endpoint_);
  if (!same) return Error{Errc::protocol, endpoint_ + ": " + describe(Status::Checksum)};
  return bytes;
}

Result<std::vector<ListEntry>> Initiator::list(const std::string& name) {
  auto bytes = fetch_listing(name);
  if (!bytes) return bytes.error();
  auto entries = decode_listing(*bytes);
  if (!entries.ok()) return Error{Errc::protocol, endpoint_ + ": " + entries.error()};
  return std::move(*entries);
}

}  // namespace urnic::cli
