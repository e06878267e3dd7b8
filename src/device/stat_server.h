// Serves the counters of this process to `urnic stat` (D10): a unix stream socket of the user that
// answers every connection with one JSON document and closes it.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "port/fd.h"
#include "urnic/stats.h"

namespace urnic::engine {

class StatServer {
 public:
  explicit StatServer(std::function<EngineStats()> source);
  ~StatServer();
  StatServer(const StatServer&) = delete;
  StatServer& operator=(const StatServer&) = delete;

  // Readable when there is something to serve; -1 when the socket could not be made (then there is
  // just no `urnic stat`).
  int fd() const { return epoll_.get(); }
  // Takes waiting clients and goes on with those that had no room for all of their answer. Never
  // blocks: it may run in the thread that drives the engine. Of clients that do not read, the
  // oldest are cut off.
  void serve();

 private:
  struct Client {
    port::Fd socket;
    std::string text;
    std::size_t done = 0;
  };
  void take_clients();
  static bool finished(Client& c);
  void watch(int fd, std::uint32_t events) const;

  std::function<EngineStats()> source_;
  std::string path_;
  int owner_;  // process: a forked child leaves the socket file alone
  port::Fd socket_, epoll_;
  std::deque<Client> clients_;  // oldest first
};

// Where the sockets of this user live: $XDG_RUNTIME_DIR/urnic or /tmp/urnic-<uid>.
std::string stat_directory();

}  // namespace urnic::engine
