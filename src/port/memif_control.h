// The control side of a memif port: listening or connecting, the handshake, noticing that the peer
// is gone. Runs inside whichever thread serves the port (D13); the port holds a lock around it.
//
// It never blocks. All its descriptors are in one epoll descriptor, which the port's sleepers
// watch.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "port/fd.h"
#include "port/memif_link.h"
#include "port/memif_socket.h"
#include "port/peer_user.h"
#include "port/unix_address.h"

namespace urnic::port::memif {

inline constexpr std::size_t kMostServes = 20;

enum class Role : std::uint8_t { kServer, kClient, kAuto };

struct Config {
  UnixAddress address;
  Role role = Role::kAuto;
  std::uint32_t id = 0;
  std::uint32_t max_frame = 1514;
  std::uint32_t buffer_size = 2048;
  unsigned log2_ring = 8;
  unsigned queues = 1;
  std::string secret;  // empty: none asked, none given
  PeerUser peer_user;
  // What the consumer serves on this wire ("target"); told in HELLO. With it, this end does not
  // become the client of another that serves: two of them would wait for each other for ever.
  std::string serves;
};

class Control {
 public:
  // Starts listening or connecting. A client whose server is not there yet is no error.
  static Outcome<std::unique_ptr<Control>, std::string> start(Config config);
  ~Control() = default;

  Side side() const { return side_; }
  // Readable when `run` has something to do.
  int wait_fd() const { return epoll_.get(); }
  // Milliseconds of the monotonic clock at which `run` wants to be called though nothing became
  // readable; 0: never.
  std::uint64_t deadline_ms() const;
  // A handshake is under way.
  bool is_handshaking() const { return !shaking_.empty(); }

  // Does what is due. Afterwards `link` may have changed. Returns the system calls made.
  unsigned run();
  // The connection in use; null without a peer.
  const std::shared_ptr<Link>& link() const { return link_; }
  // Why the last connection ended or the last attempt failed; for people.
  const std::string& last_reason() const { return reason_; }

  // Says goodbye and removes the socket file. Not called in a forked child.
  void shut_down();

 private:
  // A socket to a peer with the handshake so far.
  struct Peer {
    Fd socket;
    std::shared_ptr<Link> link;
    bool introduced = false;       // server: INIT accepted
    std::vector<Message> to_send;  // client: what goes out, one per ACK
    std::size_t sent = 0;
    std::uint64_t give_up_ms = 0;  // client: the server must have given its next answer by then
  };
  enum class PeerStep : std::uint8_t { kGoOn, kUp, kDrop };

  explicit Control(Config config) : config_(std::move(config)) {}

  // What the server at `socket` serves, from its HELLO, which stays in the socket.
  static std::string served_at(int socket);
  std::string refuse_second_server(int socket) const;
  void watch(int fd);
  void accept_peers();
  void try_connect();
  void begin(ConnectAttempt a);
  PeerStep read_from(Peer& peer);
  PeerStep take_as_server(Peer& peer, const Message& m, Fd fd);
  PeerStep take_as_client(Peer& peer, const Message& m);
  std::string take_init(Peer& peer, const Message& m);
  std::string take_region(Peer& peer, const Message& m, Fd fd);
  std::string take_ring(Peer& peer, const Message& m, Fd fd);
  std::string take_hello(Peer& peer, const Message& m);
  void queue_client_messages(Peer& peer);
  PeerStep send_next(Peer& peer);
  PeerStep refuse(Peer& peer, const std::string& reason);
  void drop(Peer& peer);
  void connected_ended();
  void check_fault();
  void retry_later();

  Config config_;
  Side side_ = Side::kServer;
  Fd epoll_;
  std::optional<BoundSocket> listener_;
  std::vector<std::unique_ptr<Peer>> shaking_;  // server: handshakes under way; client: at most one
  std::unique_ptr<Peer> peer_;                  // the one connected
  std::shared_ptr<Link> link_;
  std::string reason_;
  std::uint64_t next_try_ms_ = 0;
  std::uint64_t retry_delay_ms_ = 0;
  unsigned calls_ = 0;  // system calls of this run
};

std::uint64_t monotonic_ms();

}  // namespace urnic::port::memif
