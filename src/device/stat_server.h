// Serves the counters of this process to `urnic stat` (D10): a unix stream socket of the user that
// answers every connection with one JSON document and closes it. The document is built piece by
// piece, so that no call takes longer than a burst, however many connections there are.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "port/fd.h"
#include "urnic/stats.h"

namespace urnic::device {

using engine::StatsPlace;

// Source of the counters: everything but the connections, and then some connections at a time,
// starting at `place`, until it returns false.
struct StatSource {
  std::function<EngineStats()> totals;
  std::function<bool(StatsPlace* place, std::size_t most, std::vector<ConnectionStats>* out)>
      connections;
};

class StatServer {
 public:
  // Connections in one piece.
  static constexpr std::size_t kPiece = 4;

  explicit StatServer(StatSource source);
  ~StatServer();
  StatServer(const StatServer&) = delete;
  StatServer& operator=(const StatServer&) = delete;

  // Readable when there is something to serve; -1 when the socket could not be created (then only
  // `urnic stat` does not work).
  int fd() const { return epoll_.get(); }
  // Accepts one waiting client, or sends another piece to a client whose answer is unfinished. fd()
  // stays readable while there is more to do. Never blocks: it may run in the thread that drives
  // the engine. If too many clients do not read, the oldest is disconnected.
  void serve();

 private:
  struct Client {
    port::Fd socket;
    std::string text;  // a piece, of which `done` bytes have been sent
    std::size_t done = 0;
    ConnectionStats ended;
    StatsPlace place;
    bool any = false, whole = false;
  };
  void take_client();
  bool next_piece(Client& c);
  bool finished(Client& c);
  void watch(int fd, std::uint32_t events) const;

  StatSource source_;
  std::string path_;
  int owner_;  // process: a forked child leaves the socket file alone
  port::Fd socket_, epoll_;
  std::deque<Client> clients_;  // oldest first
  std::size_t turn_ = 0;        // index of the next client
};

// The directory of this user's sockets: $XDG_RUNTIME_DIR/urnic or /tmp/urnic-<uid>.
std::string stat_directory();
// Creates it if necessary. False: it is not this user's alone, as one that another user made under
// a public /tmp.
bool has_stat_directory();

}  // namespace urnic::device
