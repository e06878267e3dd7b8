// Capture at a port (D10): everything it receives and sends, as pcapng, for Wireshark.
//
// A capture never stands in the way of traffic: when the file cannot be written any more, the
// frames still flow, error() says why, and what is missing is counted.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "fault/fault_log.h"
#include "fault/wire_clock.h"
#include "port/fd.h"
#include "port/port.h"

namespace urnic::fault {

struct CaptureOptions {
  std::uint32_t snap_length = 0;  // bytes kept of each frame; 0: all
  // bound: bytes of a capture; limit: its owner's limit, and the disk; beyond: frames pass on;
  // missing ones are counted; test: CaptureFile.LimitsAreKeptAndCounted,
  // CaptureFile.AFullDiskEndsTheCaptureNotTheTraffic
  std::uint64_t max_bytes = 0;            // stop when the file has this size; 0: no limit
  std::size_t buffer_bytes = 256 * 1024;  // collected before they are written
};

struct CaptureStats {
  std::uint64_t frames = 0;   // in the file or its buffer
  std::uint64_t missing = 0;  // not captured: error, or the file is full
  std::uint64_t bytes = 0;    // of the file, buffer included
};

// One file, which several ports may share as its interfaces. Thread safe.
class CaptureFile {
 public:
  // Creates or empties `path` (a regular file or /dev/null). The error is one line for the user.
  static Outcome<std::shared_ptr<CaptureFile>, std::string> create(
      const std::string& path, const CaptureOptions& options = {});
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  // Returns the number of the interface for add().
  std::uint32_t add_interface(std::string_view name);
  void add(std::uint32_t interface_id, Direction direction, std::uint64_t unix_ns, ByteView head,
           ByteView tail);
  // Writes the buffer out. Also done when it is full and at the end.
  void flush();
  // Empty while all is well; else why the capture ended.
  std::string error() const;
  CaptureStats stats() const;
  // Writes the buffer out; then what the file lacks and why, in one line, or nothing.
  std::string shortfall();

 private:
  CaptureFile(std::string path, port::Fd fd, const CaptureOptions& options);
  void write_out();

  const std::string path_;
  port::Fd fd_;
  const CaptureOptions options_;
  mutable std::mutex lock_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t buffered_ = 0;  // frames in it
  std::uint32_t interfaces_ = 0;
  std::string error_;
  CaptureStats stats_;
};

// `inner` with everything that passes written to `file` under the name `name`. `wall_offset_ns` is
// the wall clock (since 1970) minus `clock`. Received frames keep their arrival time when the port
// knows it. The file is flushed whenever the port goes to sleep and when it closes.
port::Port wrap_capture(port::Port inner, std::shared_ptr<CaptureFile> file, std::string_view name,
                        const WireClock& clock, std::int64_t wall_offset_ns = 0);

}  // namespace urnic::fault
