// The log of a device (settings `log` and `log_file`): one line for each event of a connection or
// the link at info, one for each refusal and downgrade at debug. Lines are written by a thread of
// the log's own, off the paths that move data; when it does not keep up the oldest lines are
// dropped.
//
// Thread safe. Nothing of it exists while `log` is off.
#pragma once

#include <memory>
#include <string>

#include "urnic/config.h"
#include "urnic/status.h"

namespace urnic::device {

enum class LogLevel : std::uint8_t { Error, Warn, Info, Debug };

class Log {
 public:
  // What `config` asks for; null when log = off. Errors: the file cannot be opened, no thread. A
  // file that cannot be written later (a full disk) is said once on standard error.
  static Result<std::unique_ptr<Log>> open(const Config& config);
  ~Log();  // what was said is written
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool wants(LogLevel level) const;
  void line(LogLevel level, const std::string& text);
  // In a forked child: the thread is the parent's.
  void forget();

 private:
  struct Impl;
  explicit Log(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace urnic::device
