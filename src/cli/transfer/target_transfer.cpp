// How a session handles the requested file: opening, resuming from a part, moving, ending.
#include <algorithm>
#include <utility>

#include "cli/runtime.h"
#include "cli/transfer/target_session.h"
#include "cli/units.h"

namespace urnic::cli {

void TargetSession::open_put(const Message& m) {
  if (host_.options->read_only)
    return refuse(Status::ReadOnly, m.text + ": the export is read-only");
  if (host_.quota != nullptr) {
    auto share = host_.quota->reserve(client(), m.text, m.size, now_seconds());
    if (!share.ok()) return refuse(share.error().status, share.error().text);
    file_.share = std::move(*share);
  }
  request_.is = {m.size, m.allocated, m.permissions, m.modified};
  // Parts count for no quota, so with a quota no parts are kept.
  const Resume resume = !m.resume                ? Resume::No
                        : host_.quota == nullptr ? Resume::Keep
                                                 : Resume::Compare;
  auto file = IncomingFile::create(host_.options->folder, m.text, request_.is, resume);
  if (!file.ok()) {
    file_.share.give_back();
    return refuse(file.error().status, file.error().text);
  }
  file_.incoming = std::move(*file);
  const std::uint64_t there = std::min(file_.incoming.there(), m.size);
  if (m.resume) {
    check_what_is_there(file_.incoming.check_fd(), there);
  } else {
    file_.sink = std::make_unique<FileSink>(host_.files, tag_base(), window_, file_.incoming.fd(),
                                            m.size, m.text);
  }
  opened(request_.is, there, file_.incoming.whole_only());
}

void TargetSession::open_get(const Message& m) {
  auto file = open_for_reading(host_.options->folder, m.text);
  if (!file.ok()) return refuse(file.error().status, file.error().text);
  const FileAttributes is = file->is;
  const std::uint64_t there = m.resume ? std::min(m.offset, is.size) : 0;
  if (m.resume) {
    file_.outgoing = std::move(*file);
    check_what_is_there(file_.outgoing->fd.get(), there);
  } else {
    file_.source = std::make_unique<FileSource>(host_.files, tag_base(), window_,
                                                std::move(file->fd), is.size, m.text);
  }
  opened(is, there);
}

void TargetSession::open_list(const std::string& name) {
  auto entries = list_folder(host_.options->folder, name, kMostEntries);
  if (!entries.ok()) return refuse(entries.error().status, entries.error().text);
  file_.source = std::make_unique<FileSource>(window_, encode_listing(*entries));
  opened({file_.source->size(), 0, 0, {}}, 0);
}

void TargetSession::open_folder(const Message& m) {
  if (host_.options->read_only)
    return refuse(Status::ReadOnly, m.text + ": the export is read-only");
  Quota::Share share;
  if (host_.quota != nullptr) {
    auto reserved = host_.quota->reserve(client(), m.text, 0, now_seconds());
    if (!reserved.ok()) return refuse(reserved.error().status, reserved.error().text);
    share = std::move(*reserved);
  }
  auto made = make_folder(host_.options->folder, m.text, m.permissions);
  if (!made.ok()) return refuse(made.error().status, made.error().text);
  if (*made) {
    share.keep(std::nullopt);
    host_.options->report("created folder " + m.text + " for " + peer_);
  }
  result(Status::Ok, "");
}

void TargetSession::opened(const FileAttributes& is, std::uint64_t there, bool whole_only) {
  request_.open = true;
  Message o;
  o.kind = MessageKind::Opened;
  o.transfer = request_.transfer;
  o.size = is.size;
  o.allocated = is.allocated;
  o.permissions = is.permissions;
  o.modified = is.modified;
  o.offset = there;
  o.whole_only = whole_only;
  send(o);
}

// ---- resuming

void TargetSession::check_what_is_there(int fd, std::uint64_t length) {
  file_.check = std::make_unique<PrefixTeller>(fd, length, request_.name);
}

bool TargetSession::step_check() {
  bool worked = file_.check->step();
  if (const auto& error = file_.check->error(); error) {
    const FileError why = *error;
    drop_file();
    refuse(why.status, why.text);
    return true;
  }
  while (const auto told = file_.check->next()) {
    Message m;
    m.kind = MessageKind::Have;
    m.transfer = request_.transfer;
    m.offset = told->offset;
    m.hash = told->digest;
    send(m);
    worked = true;
    if (ended_) return true;
  }
  return worked;
}

void TargetSession::on_begin(const Message& m) {
  auto point = file_.check ? file_.check->begin(m.offset) : std::nullopt;
  const bool whole_only = file_.incoming.whole_only() && m.offset != request_.is.size;
  if (!point || (whole_only && m.offset != 0)) {
    return violation("a start offset that was not announced");
  }
  if (request_.mode == OpenMode::Put) {
    if (auto ok = file_.incoming.begin_at(point->offset); !ok.ok()) {
      drop_file();
      return refuse(ok.error().status, ok.error().text);
    }
    file_.sink = std::make_unique<FileSink>(host_.files, tag_base(), window_, file_.incoming.fd(),
                                            request_.is.size, request_.name);
    file_.sink->begin_at(point->offset, std::move(point->hash));
  } else {
    file_.source = std::make_unique<FileSource>(host_.files, tag_base(), window_,
                                                std::move(file_.outgoing->fd),
                                                file_.outgoing->is.size, request_.name);
    file_.source->begin_at(point->offset, std::move(point->hash));
  }
  file_.drop_check();
}

// ---- moving

bool TargetSession::step(double now) {
  if (ended_ || !request_.open) return false;
  const bool worked = file_.check ? step_check() : file_.source ? step_source() : step_sink();
  if (worked) last_progress_ = now;
  return worked;
}

bool TargetSession::step_source() {
  bool worked = file_.source->step();
  if (const auto& error = file_.source->error(); error) {
    const FileError why = *error;
    drop_file();
    refuse(why.status, why.text);
    return true;
  }
  while (const auto chunk = file_.source->next_ready()) {
    Message m;
    m.kind = MessageKind::Chunk;
    m.transfer = request_.transfer;
    m.slot = chunk->slot;
    m.length = chunk->length;
    m.offset = chunk->offset;
    m.hole = chunk->hole;
    send(m);
    worked = true;
    if (ended_) return true;
  }
  if (!file_.source->finished()) return worked;
  Message m;
  m.kind = MessageKind::Commit;
  m.transfer = request_.transfer;
  m.size = file_.source->size();
  m.hash = file_.source->digest();
  if (request_.mode == OpenMode::List) {
    ++host_.totals->listings;
  } else {
    ++host_.totals->files_out;
    host_.totals->bytes_out += m.size;
    host_.options->report("sent " + request_.name + " (" +
                          format_size(static_cast<double>(m.size)) + ") to " + peer_);
  }
  drop_file();
  send(m);
  return true;
}

bool TargetSession::step_sink() {
  bool worked = file_.sink->step();
  if (const auto& error = file_.sink->error(); error) {
    const FileError why = *error;
    if (why.status == Status::NoSpace) file_.incoming.keep_nothing();
    drop_file();
    refuse(why.status, why.text);
    return true;
  }
  while (const auto slot = file_.sink->next_freed()) {
    Message m;
    m.kind = MessageKind::Taken;
    m.transfer = request_.transfer;
    m.slot = *slot;
    send(m);
    worked = true;
    if (ended_) return true;
  }
  if (!request_.commit || !file_.sink->finished()) return worked;
  finish_put();
  return true;
}

void TargetSession::finish_put() {
  const Digest digest = file_.sink->digest();
  const std::uint64_t size = file_.sink->size();
  file_.sink.reset();
  request_.open = false;
  const Message commit = *std::exchange(request_.commit, std::nullopt);
  if (digest != commit.hash) {
    file_.incoming.discard();  // leave no part
    file_.drop();
    return refuse(Status::Checksum, "hash mismatch: the received data is corrupt");
  }
  // Another server of the folder may replace the file at the same moment: the next scan corrects
  // that.
  std::optional<std::uint64_t> replaced;
  if (host_.quota != nullptr) replaced = size_of_file(host_.options->folder, request_.name);
  auto done = file_.incoming.commit(size, host_.options->durable);
  if (!done.ok()) {
    file_.share.give_back();
    return refuse(done.error().status, done.error().text);
  }
  file_.share.keep(replaced);
  ++host_.totals->files_in;
  host_.totals->bytes_in += size;
  host_.options->report("received " + request_.name + " (" +
                        format_size(static_cast<double>(size)) + ") from " + peer_);
  result(Status::Ok, "", digest, size);
}

}  // namespace urnic::cli
