// The log of a device (settings `log` and `log_file`): one line for each event of a connection or
// the link at info, one for each refused change of a queue pair at warn, one for each other refusal
// and each downgrade at debug. The log has a thread of its own that writes the lines, so that the
// data paths do not wait; when it does not keep up, the oldest lines are dropped.
//
// Thread safe. No object exists while `log` is off.
#pragma once

#include <memory>
#include <string>

#include "urnic/config.h"
#include "urnic/status.h"

namespace urnic::device {

enum class LogLevel : std::uint8_t { Error, Warn, Info, Debug };

class Log {
 public:
  // Opens the log that `config` describes; null when log = off. Errors: the file cannot be opened,
  // no thread. If the file cannot be written later (a full disk), one line on standard error
  // reports it.
  static Result<std::unique_ptr<Log>> open(const Config& config);
  ~Log();  // all lines are written first
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool wants(LogLevel level) const;
  void line(LogLevel level, const std::string& text);
  // In a forked child: the log's thread exists only in the parent.
  void forget();

 private:
  struct Impl;
  explicit Log(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace urnic::device
