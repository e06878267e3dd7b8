// Captures all frames that a port receives and sends (D10), as pcapng for Wireshark.
//
// A capture never delays or stops traffic: if the file cannot be written any more, frames still
// flow, error() returns the reason, and missing frames are counted.
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
  std::uint32_t snap_length = 0;  // bytes stored per frame; 0: all
  // bound: bytes of a capture; limit: its owner's limit, and the disk; beyond: frames pass on;
  // missing ones are counted; test: CaptureFile.LimitsAreRespectedAndMissingFramesCounted,
  // CaptureFile.AFullDiskEndsTheCaptureNotTheTraffic
  std::uint64_t max_bytes = 0;            // stop when the file has this size; 0: no limit
  std::size_t buffer_bytes = 256 * 1024;  // bytes collected before a write
  std::string comment;                    // in the file, for its readers; empty: none
};

struct CaptureStats {
  std::uint64_t frames = 0;   // in the file or its buffer
  std::uint64_t missing = 0;  // not captured: error or size limit
  std::uint64_t bytes = 0;    // size of the file, buffer included
};

// A capture file that several ports may share, each as one interface. Thread safe.
class CaptureFile {
 public:
  // Creates or truncates `path` (a regular file or /dev/null). The error is one line for the user.
  static Outcome<std::shared_ptr<CaptureFile>, std::string> create(
      const std::string& path, const CaptureOptions& options = {});
  ~CaptureFile();
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  // Returns the interface number for add().
  std::uint32_t add_interface(std::string_view name);
  void add(std::uint32_t interface_id, Direction direction, std::uint64_t unix_ns, ByteView head,
           ByteView tail);
  // Writes the buffer to the file. Also happens when the buffer is full and at the end.
  void flush();
  // Why the capture ended; empty if there is no error.
  std::string error() const;
  CaptureStats stats() const;
  // Writes the buffer to the file. Returns one line if the capture is incomplete, with the reason,
  // else nothing.
  std::string shortfall();

 private:
  CaptureFile(std::string path, port::Fd fd, const CaptureOptions& options);
  void write_out();

  const std::string path_;
  port::Fd fd_;
  const CaptureOptions options_;
  mutable std::mutex lock_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t buffered_ = 0;  // frames in the buffer
  std::uint32_t interfaces_ = 0;
  std::string error_;
  CaptureStats stats_;
};

// Wraps `inner` and writes all its frames to `file` under the name `name`. `wall_offset_ns` is the
// wall clock (since 1970) minus `clock`. Received frames keep the arrival time of the port, if it
// provides one. The file is flushed whenever the port goes to sleep and when it closes.
port::Port wrap_capture(port::Port inner, std::shared_ptr<CaptureFile> file, std::string_view name,
                        const WireClock& clock, std::int64_t wall_offset_ns = 0);

}  // namespace urnic::fault
