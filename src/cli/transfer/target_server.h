// Serves a folder on one device: accepts initiators and drives their sessions from one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cli/file_queue.h"
#include "cli/runtime.h"
#include "cli/transfer/quota.h"
#include "cli/transfer/storage_token.h"
#include "cli/transfer/target_session.h"
#include "urnic/urnic.h"

namespace urnic::cli {

class TargetServer {
 public:
  struct Options {
    TargetOptions session;
    std::uint16_t tcp_port = kStoragePort;
    // bound: memory for the windows of a target's clients; limit: `--memory`, 128 MiB; beyond:
    // windows get smaller; without any memory the client is refused as busy; test:
    // TargetServerTest.WindowMemoryIsLimitedAndReleasedWhenAClientLeaves
    std::uint64_t memory = 128 << 20;  // for the windows of all clients
    // bound: clients of a target; limit: `--max-clients`, 64; beyond: the client idle for longest
    // gives way; if none is idle, the new one is refused as busy; test:
    // TargetServerTest.ClientsAreLimitedAndAPlaceIsReused
    // bound: clients of a target from one address; setting: peer_connections; limit: a quarter of
    // `--max-clients`, unless set; beyond: its client idle for longest gives way, else the new one
    // is refused; test: TargetServerTest.OneAddressHasAQuarterOfThePlaces
    unsigned max_clients = 64;
    bool use_uring = true;
    bool once = false;                  // exit after the first client has left
    bool verbose = false;               // print a line for each client and file
    std::optional<StorageToken> token;  // clients must send it
    std::shared_ptr<Quota> quota;       // shared by all servers of the folder
    double parts_every = 24 * 3600;     // seconds between scans for old parts, with a client
  };
  static Result<std::unique_ptr<TargetServer>> open(const Config& config, const Options& options);
  ~TargetServer();

  // Runs until stop_requested() or stop(), or with `once` until the first client has left.
  void run();
  // One turn of run(); true if there was any work. Tests call it directly.
  bool step();
  // Resources in use by the clients of this target.
  struct InUse {
    std::size_t sessions = 0, queue_pairs = 0;
    std::uint64_t memory = 0, regions = 0;  // free for windows; registered
    unsigned file_operations = 0;
  };
  InUse in_use() const;
  // May be called from any thread.
  void stop();
  DeviceInfo info() const { return device_.info(); }
  const std::string& file_backend() const { return files_.backend(); }
  TargetTotals totals() const { return totals_; }
  std::uint16_t tcp_port() const { return listener_.port(); }
  // "TCP port 18700", or "RoCE port 18700" (a port of the RDMA connection manager).
  std::string listens_on() const;
  unsigned clients_served() const { return clients_served_; }

 private:
  TargetServer(const Config& config, const Options& options);
  Result<void> start();
  void on_event(Event& e);
  void on_request(ConnectRequest& request);
  std::string refusal_of(std::span<const std::uint8_t> greeting) const;
  // Why there is no place for a client; empty if there is one, possibly one freed by an idle
  // client.
  std::string find_place(const std::string& client);
  // Ends the session that has been idle longest, among those of `client` or among all, but never
  // `for_it`. To free memory, considers only sessions with a window. False if none is idle.
  enum class For : std::uint8_t { place, memory };
  bool make_room(For what, const std::string& client, bool own_share, const TargetSession* for_it);
  void remove_parts();
  void sleep();
  // Drops clients that have been silent too long or whose link is down.
  void check_clients(double now);
  void reap();
  TargetSession* find(void* context);
  void say(const std::string& line);
  using Sessions = std::map<std::uint32_t, std::unique_ptr<TargetSession>>;
  Sessions::iterator remove(Sessions::iterator gone);

  Config config_;
  Options options_;
  unsigned most_of_peer_;  // clients from one address
  FileQueue files_;
  WindowBudget budget_;
  TargetTotals totals_;
  Device device_;
  ProtectionDomain pd_;
  CompletionQueue cq_;
  EventQueue events_;
  Listener listener_;
  Sessions sessions_;  // by id
  std::map<std::uint32_t, TargetSession*> by_qp_;
  std::uint32_t last_id_ = 0;
  unsigned clients_served_ = 0;
  double next_check_ = 0;
  double next_parts_ = 0;
  double link_down_since_ = 0;
  std::atomic<bool> stopped_{false};
};

}  // namespace urnic::cli
