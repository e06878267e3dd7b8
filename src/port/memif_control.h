// The control side of a memif port: listening or connecting, the handshake, detecting that the peer
// is gone. It runs inside whichever thread serves the port (D13); the port protects it with a lock.
//
// It never blocks. All its descriptors are in one epoll descriptor, which sleeping threads of the
// port poll.
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
  std::string secret;  // empty: neither required nor sent
  PeerUser peer_user;
  // The service that the program offers on this wire ("target"), announced in HELLO. If set, this
  // end does not become the client of another server: both would wait for each other forever.
  std::string serves;
};

class Control {
 public:
  // Starts listening or connecting. It is not an error if the client's server does not exist yet.
  static Outcome<std::unique_ptr<Control>, std::string> start(Config config);
  ~Control() = default;

  Side side() const { return side_; }
  // Readable if `run` has work to do.
  int wait_fd() const { return epoll_.get(); }
  // When `run` must be called even if nothing becomes readable, in milliseconds of the monotonic
  // clock; 0: never.
  std::uint64_t deadline_ms() const;
  // True while a handshake is in progress.
  bool is_handshaking() const { return !shaking_.empty(); }

  // Does all due work; may change `link`. Returns the number of system calls made.
  unsigned run();
  // The current connection; null without a peer.
  const std::shared_ptr<Link>& link() const { return link_; }
  // Why the last connection ended or the last attempt failed, as text for the user.
  const std::string& last_reason() const { return reason_; }

  // Notifies the peer and removes the socket file. Not called in a forked child.
  void shut_down();

 private:
  // A socket to a peer, and its handshake so far.
  struct Peer {
    Fd socket;
    std::shared_ptr<Link> link;
    bool introduced = false;       // server: INIT accepted
    std::vector<Message> to_send;  // client: messages to send, one per ACK
    std::size_t sent = 0;
    std::uint64_t give_up_ms = 0;  // client: deadline for the server's next answer
  };
  enum class PeerStep : std::uint8_t { kGoOn, kUp, kDrop };

  explicit Control(Config config) : config_(std::move(config)) {}

  // The service of the server at `socket`, read from its HELLO without removing the message.
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
  std::vector<std::unique_ptr<Peer>> shaking_;  // handshakes; a client has at most one
  std::unique_ptr<Peer> peer_;                  // the connected peer
  std::shared_ptr<Link> link_;
  std::string reason_;
  std::uint64_t next_try_ms_ = 0;
  std::uint64_t retry_delay_ms_ = 0;
  unsigned calls_ = 0;  // system calls of the current run
};

std::uint64_t monotonic_ms();

}  // namespace urnic::port::memif
