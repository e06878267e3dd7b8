#include "fault/capture_port.h"

#include <algorithm>
#include <utility>

#include "fault/machine.h"
#include "fault/pcapng.h"
#include "port/adapter.h"

namespace urnic::fault {

// ---- the file -------------------------------------------------------------------------------

CaptureFile::CaptureFile(std::string path, port::Fd fd, const CaptureOptions& options)
    : path_(std::move(path)), fd_(std::move(fd)), options_(options) {
  append_section(buffer_, "urnic", options.comment);
  stats_.bytes = buffer_.size();
}

Outcome<std::shared_ptr<CaptureFile>, std::string> CaptureFile::create(
    const std::string& path, const CaptureOptions& options) {
  auto fd = machine::create_file(path);
  if (!fd.ok()) return fail("capture file " + path + ": " + fd.error());
  std::shared_ptr<CaptureFile> file(new CaptureFile(path, std::move(*fd), options));
  file->flush();  // reports a full disk or a size limit at once
  if (std::string e = file->error(); !e.empty()) return fail(e);
  return file;
}

CaptureFile::~CaptureFile() {
  flush();
}

std::uint32_t CaptureFile::add_interface(std::string_view name) {
  std::lock_guard hold(lock_);
  const std::size_t before = buffer_.size();
  append_interface(buffer_, name, options_.snap_length);
  stats_.bytes += buffer_.size() - before;
  return interfaces_++;
}

void CaptureFile::add(std::uint32_t interface_id, Direction direction, std::uint64_t unix_ns,
                      ByteView head, ByteView tail) {
  std::lock_guard hold(lock_);
  const std::size_t length = head.size() + tail.size();
  const std::size_t kept =
      options_.snap_length != 0 ? std::min<std::size_t>(length, options_.snap_length) : length;
  const bool full = options_.max_bytes != 0 && stats_.bytes + kept + 64 > options_.max_bytes;
  if (!error_.empty() || full) {
    ++stats_.missing;
    return;
  }
  const std::size_t before = buffer_.size();
  append_packet(buffer_, interface_id, direction, unix_ns, head, tail,
                static_cast<std::uint32_t>(kept));
  stats_.bytes += buffer_.size() - before;
  ++stats_.frames;
  ++buffered_;
  if (buffer_.size() >= options_.buffer_bytes) write_out();
}

void CaptureFile::write_out() {
  if (error_.empty()) {
    const std::string why = machine::write_all(fd_, buffer_);
    if (!why.empty()) error_ = "capture file " + path_ + ": " + why;
  }
  if (!error_.empty()) {  // frames of the buffer may be incomplete in the file
    stats_.frames -= buffered_;
    stats_.missing += buffered_;
  }
  buffer_.clear();
  buffered_ = 0;
}

std::string CaptureFile::shortfall() {
  std::lock_guard hold(lock_);
  write_out();
  if (error_.empty() && stats_.missing == 0) return {};
  return (error_.empty() ? "capture file " + path_ + ": size limit reached" : error_) + "; " +
         std::to_string(stats_.missing) + " frames are missing";
}

void CaptureFile::flush() {
  std::lock_guard hold(lock_);
  write_out();
}

std::string CaptureFile::error() const {
  std::lock_guard hold(lock_);
  return error_;
}

CaptureStats CaptureFile::stats() const {
  std::lock_guard hold(lock_);
  return stats_;
}

// ---- the port -------------------------------------------------------------------------------

namespace {

class CapturePort {
 public:
  CapturePort(port::Port inner, std::shared_ptr<CaptureFile> file, std::string_view name,
              const WireClock& clock, std::int64_t wall_offset_ns)
      : inner_(std::move(inner)),
        file_(std::move(file)),
        id_(file_->add_interface(name)),
        clock_(clock),
        wall_offset_ns_(wall_offset_ns) {}
  ~CapturePort() { file_->flush(); }
  static Outcome<std::unique_ptr<CapturePort>, std::string> make(port::Args&) {
    return fail(std::string("'capture' wraps another port and cannot be opened by name"));
  }

  void info(urnic_port_info* i) const { *i = inner_.info(); }
  void stats(urnic_port_stats* s) const { *s = inner_.stats(); }
  unsigned rx_burst(unsigned q, urnic_frame* frames, unsigned n) {
    const unsigned got = inner_.rx_burst(q, frames, n);
    if (got != 0) record(Direction::Rx, frames, got);
    return got;
  }
  void rx_release(unsigned q, const urnic_frame* frames, unsigned n) {
    inner_.rx_release(q, frames, n);
  }
  unsigned tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n) {
    return inner_.tx_reserve(q, len, frames, n);
  }
  void tx_commit(unsigned q, urnic_frame* frames, unsigned n) {
    if (n != 0) record(Direction::Tx, frames, n);
    inner_.tx_commit(q, frames, n);
  }
  unsigned wait_fds(unsigned q, int* fds, unsigned max) { return inner_.wait_fds(q, fds, max); }
  int arm(unsigned q) {
    file_->flush();  // the port is idle: make the file complete for readers
    return inner_.arm(q) ? 1 : 0;
  }
  void disarm(unsigned q) { inner_.disarm(q); }
  std::string why() const { return inner_.why(); }

 private:
  void record(Direction d, const urnic_frame* frames, unsigned n) {
    const std::uint64_t now = clock_.now_ns(clock_.context);
    for (unsigned i = 0; i < n; ++i) {
      const urnic_frame& f = frames[i];
      if (f.len[0] == 0) continue;  // returned unsent
      const std::uint64_t at = d == Direction::Rx && f.arrival_ns != 0 ? f.arrival_ns : now;
      file_->add(id_, d, at + static_cast<std::uint64_t>(wall_offset_ns_), {f.data[0], f.len[0]},
                 {f.data[1], f.len[1]});
    }
  }

  port::Port inner_;
  std::shared_ptr<CaptureFile> file_;
  std::uint32_t id_;
  WireClock clock_;
  std::int64_t wall_offset_ns_;
};

constinit const urnic_port_ops kCapturePortOps = port::Adapter<CapturePort>::table("capture");

}  // namespace

port::Port wrap_capture(port::Port inner, std::shared_ptr<CaptureFile> file, std::string_view name,
                        const WireClock& clock, std::int64_t wall_offset_ns) {
  auto* wrapped = new CapturePort(std::move(inner), std::move(file), name, clock, wall_offset_ns);
  return port::Port(&kCapturePortOps, port::as_handle(wrapped));
}

}  // namespace urnic::fault
