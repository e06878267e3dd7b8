#include "port/memif_control.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace urnic::port::memif {
namespace {

// The number of concurrent handshakes at a server. One more replaces the oldest, so that clients
// that connect and stay silent cannot block others.
// bound: memif handshakes in progress; beyond: the oldest gives way; test:
// MemifHostile.SilentClientsDoNotBlockOthers
constexpr std::size_t kMaxShaking = 8;
// A client retries after 100 ms, then at doubling intervals up to once a second (E-39).
constexpr std::uint64_t kFirstRetryMs = 100;
constexpr std::uint64_t kSlowestRetryMs = 1000;
// The time limit for each of the server's answers; a whole handshake has six or more.
constexpr std::uint64_t kAnswerMs = 2000;
// The most messages taken from one socket per run, so that a flooding peer cannot block the engine.
constexpr unsigned kMessagesPerRun = 64;
// How long a second server waits for the HELLO of the one that is already listening.
constexpr int kHelloMs = 1000;
constexpr std::string_view kServesPrefix = "urnic:";

Message make(MessageType t) {
  Message m;
  m.set_type(t);
  return m;
}

Message disconnect_message(const std::string& reason) {
  Message m = make(MessageType::kDisconnect);
  m.set_text(disconnect::kReason, kReasonSize, reason);
  return m;
}

// Makes text from a peer safe to show to the user.
std::string printable(std::string s) {
  for (char& c : s) {
    if (c < ' ' || c > '~') c = '?';
  }
  return s;
}

}  // namespace

std::uint64_t monotonic_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 +
         static_cast<std::uint64_t>(t.tv_nsec) / 1000000;
}

Outcome<std::unique_ptr<Control>, std::string> Control::start(Config config) {
  std::unique_ptr<Control> c(new Control(std::move(config)));
  c->epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  if (!c->epoll_)
    return fail(std::string("cannot create an epoll descriptor: ") + std::strerror(errno));
  const PeerUser& allowed = c->config_.peer_user;
  if (!c->config_.address.abstract()) {
    make_fallback_folder(c->config_.address.name());
    // A sticky folder is sufficient, because the user at the other end is checked.
    const std::string fault = folder_fault(c->config_.address.name(), allowed, true);
    if (!fault.empty()) return fail("socket=" + c->config_.address.name() + ": " + fault);
  }
  const auto refusal = [&](const ConnectAttempt& a) {
    return a.result == ConnectResult::kConnected ? allowed.refusal_of(a.fd.get()) : std::string();
  };

  if (c->config_.role != Role::kServer) {
    ConnectAttempt a = connect_to(c->config_.address, SOCK_SEQPACKET);
    if (a.result == ConnectResult::kRefused) {
      return fail("cannot connect to " + c->config_.address.name() + ": " + std::strerror(a.error));
    }
    if (std::string wrong = refusal(a); !wrong.empty()) {
      return fail("socket=" + c->config_.address.name() + ": " + wrong);
    }
    if (c->config_.role == Role::kClient || a.result != ConnectResult::kNobody) {
      c->side_ = Side::kClient;
      if (std::string wrong = c->refuse_second_server(a.fd.get()); !wrong.empty()) {
        return fail(wrong);
      }
      c->begin(std::move(a));
      return c;
    }
  }
  auto listener = BoundSocket::open(c->config_.address, SOCK_SEQPACKET,
                                    "another server is listening on " + c->config_.address.name() +
                                        ": use another socket=, or role=client to connect to it",
                                    allowed.lets_others() ? 0666 : 0600);
  if (!listener.ok()) {
    // role=auto: another process may have become the server meanwhile.
    ConnectAttempt a;
    if (c->config_.role == Role::kAuto) a = connect_to(c->config_.address, SOCK_SEQPACKET);
    if (a.result != ConnectResult::kConnected || !refusal(a).empty()) {
      return fail(listener.error());
    }
    c->side_ = Side::kClient;
    if (std::string wrong = c->refuse_second_server(a.fd.get()); !wrong.empty()) {
      return fail(wrong);
    }
    c->begin(std::move(a));
    return c;
  }
  c->side_ = Side::kServer;
  c->listener_.emplace(std::move(listener.value()));
  c->watch(c->listener_->fd());
  return c;
}

std::string Control::served_at(int socket) {
  pollfd p{socket, POLLIN, 0};
  Message m;
  if (::poll(&p, 1, kHelloMs) <= 0 ||
      recv(socket, m.bytes.data(), m.bytes.size(), MSG_PEEK | MSG_DONTWAIT) !=
          static_cast<ssize_t>(m.bytes.size()) ||
      m.type() != MessageType::kHello) {
    return {};
  }
  const std::string name = printable(m.text(hello::kName, kNameSize));
  return name.starts_with(kServesPrefix) ? name.substr(kServesPrefix.size()) : std::string();
}

std::string Control::refuse_second_server(int socket) const {
  if (config_.serves.empty() || socket < 0) return {};
  const std::string other = served_at(socket);
  if (other.empty()) return {};
  return config_.address.name() + " is already served by a urnic " + other +
         ": use another socket=";
}

void Control::watch(int fd) {
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.fd = fd;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &e);
}

std::uint64_t Control::deadline_ms() const {
  if (side_ != Side::kClient || peer_ != nullptr) return 0;
  return shaking_.empty() ? next_try_ms_ : shaking_[0]->give_up_ms;
}

unsigned Control::run() {
  calls_ = 0;
  check_fault();
  std::array<epoll_event, 16> events;
  const int n = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  ++calls_;
  const auto readable = [&](int fd) {
    return std::any_of(events.begin(), events.begin() + std::max(n, 0),
                       [&](const epoll_event& e) { return e.data.fd == fd; });
  };
  // Handle the connected peer first: if it has gone, its successor may connect in the same run.
  if (peer_ != nullptr && readable(peer_->socket.get()) && read_from(*peer_) == PeerStep::kDrop) {
    connected_ended();
  }
  for (std::size_t i = 0; i < shaking_.size();) {
    Peer& p = *shaking_[i];
    const PeerStep v = readable(p.socket.get()) ? read_from(p) : PeerStep::kGoOn;
    if (v == PeerStep::kGoOn) {
      ++i;
      continue;
    }
    if (v == PeerStep::kUp) {
      peer_ = std::move(shaking_[i]);
      link_ = peer_->link;
      retry_delay_ms_ = 0;
      reason_.clear();
    } else {
      drop(p);
    }
    shaking_.erase(shaking_.begin() + static_cast<std::ptrdiff_t>(i));
    if (v == PeerStep::kDrop && side_ == Side::kClient) retry_later();
  }
  if (listener_ && readable(listener_->fd())) accept_peers();
  if (side_ == Side::kClient && peer_ == nullptr) try_connect();
  return calls_;
}

void Control::check_fault() {
  if (link_ == nullptr) return;
  const char* fault = link_->fault.load(std::memory_order_acquire);
  if (fault == nullptr) return;
  refuse(*peer_, fault);
  connected_ended();
}

void Control::accept_peers() {
  for (unsigned i = 0; i < kMaxShaking; ++i) {
    ++calls_;
    auto peer = std::make_unique<Peer>();
    peer->socket.reset(accept4(listener_->fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!peer->socket) return;
    // Check this before any message is sent or trusted (E-44): not even our program name is
    // revealed.
    if (std::string wrong = config_.peer_user.refusal_of(peer->socket.get()); !wrong.empty()) {
      refuse(*peer, "Other user");
      reason_ = "rejected a client: " + wrong;
      continue;
    }
    Message m = make(MessageType::kHello);
    m.set_text(hello::kName, kNameSize,
               config_.serves.empty() ? "urnic" : std::string(kServesPrefix) + config_.serves);
    m.set_u16(hello::kMinVersion, kVersion);
    m.set_u16(hello::kMaxVersion, kVersion);
    m.set_u16(hello::kMaxRegion, kMaxRegions - 1);
    // HELLO carries the highest ring index, not the number of rings.
    m.set_u16(hello::kMaxM2s, static_cast<std::uint16_t>(config_.queues - 1));
    m.set_u16(hello::kMaxS2m, static_cast<std::uint16_t>(config_.queues - 1));
    m.set_u8(hello::kMaxLog2, kMaxLog2Ring);
    ++calls_;
    if (!send_message(peer->socket.get(), m)) continue;
    if (shaking_.size() == kMaxShaking) {
      drop(*shaking_.front());
      shaking_.erase(shaking_.begin());
    }
    watch(peer->socket.get());
    shaking_.push_back(std::move(peer));
  }
}

void Control::retry_later() {
  retry_delay_ms_ = std::clamp(retry_delay_ms_ * 2, kFirstRetryMs, kSlowestRetryMs);
  next_try_ms_ = monotonic_ms() + retry_delay_ms_;
}

void Control::try_connect() {
  const std::uint64_t now = monotonic_ms();
  if (!shaking_.empty()) {
    if (now < shaking_[0]->give_up_ms) return;
    reason_ = "no response from the server";
    drop(*shaking_[0]);
    shaking_.clear();
    retry_later();
    return;
  }
  if (now < next_try_ms_) return;
  ++calls_;
  begin(connect_to(config_.address, SOCK_SEQPACKET));
}

void Control::begin(ConnectAttempt a) {
  if (a.result != ConnectResult::kConnected) {
    reason_ = a.result == ConnectResult::kBusy ? "the server accepts no more connections"
                                               : "no server at " + config_.address.name();
    retry_later();
    return;
  }
  if (std::string wrong = config_.peer_user.refusal_of(a.fd.get()); !wrong.empty()) {
    reason_ = std::move(wrong);
    retry_later();
    return;
  }
  auto peer = std::make_unique<Peer>();
  peer->socket = std::move(a.fd);
  peer->give_up_ms = monotonic_ms() + kAnswerMs;
  watch(peer->socket.get());
  shaking_.push_back(std::move(peer));
}

Control::PeerStep Control::read_from(Peer& peer) {
  for (unsigned i = 0; i < kMessagesPerRun; ++i) {
    Message m;
    Fd fd;
    ++calls_;
    switch (receive_message(peer.socket.get(), &m, &fd)) {
      case Received::kNothing:
        return PeerStep::kGoOn;
      case Received::kEnd:
        reason_ = "the peer closed the connection";
        return PeerStep::kDrop;
      case Received::kMalformed:
        return refuse(peer, "Invalid message");
      case Received::kMessage:
        break;
    }
    if (m.type() == MessageType::kDisconnect) {
      reason_ = "the peer disconnected: " + printable(m.text(disconnect::kReason, kReasonSize));
      return PeerStep::kDrop;
    }
    const PeerStep v =
        side_ == Side::kServer ? take_as_server(peer, m, std::move(fd)) : take_as_client(peer, m);
    if (v != PeerStep::kGoOn) return v;
    peer.give_up_ms = monotonic_ms() + kAnswerMs;  // time for as many answers as we sent requests
  }
  return PeerStep::kGoOn;
}

Control::PeerStep Control::refuse(Peer& peer, const std::string& reason) {
  reason_ = "rejected the peer: " + reason;
  ++calls_;
  send_message(peer.socket.get(), disconnect_message(reason));
  return PeerStep::kDrop;
}

void Control::drop(Peer& peer) {
  if (peer.socket) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket.get(), nullptr);
  peer.socket.reset();
}

void Control::connected_ended() {
  drop(*peer_);
  peer_.reset();
  link_.reset();
  if (side_ == Side::kClient) retry_later();
}

void Control::shut_down() {
  if (peer_ != nullptr) send_message(peer_->socket.get(), disconnect_message("Closed"));
  for (auto& p : shaking_) send_message(p->socket.get(), disconnect_message("Closed"));
  if (listener_) listener_->remove_file();
}

}  // namespace urnic::port::memif
