// Serves the counters of this process to `urnic stat` (D10): a unix stream socket of the user that
// answers every connection with one JSON document and closes it.
#pragma once

#include <functional>
#include <string>

#include "urnic/stats.h"

namespace urnic::engine {

class StatServer {
 public:
  explicit StatServer(std::function<EngineStats()> source);
  ~StatServer();
  StatServer(const StatServer&) = delete;
  StatServer& operator=(const StatServer&) = delete;

  // Listening descriptor, -1 when the socket could not be made (then there is just no `urnic
  // stat`).
  int fd() const { return fd_; }
  // Answer one waiting client. Never blocks for long: a reader that does not read is cut off.
  void serve();

 private:
  std::function<EngineStats()> source_;
  std::string path_;
  int owner_;  // process: a forked child leaves the socket file alone
  int fd_ = -1;
};

// Where the sockets of this user live: $XDG_RUNTIME_DIR/urnic or /tmp/urnic-<uid>.
std::string stat_directory();

}  // namespace urnic::engine
