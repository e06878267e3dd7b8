#include "port/dgram_port.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "port/kinds.h"

namespace urnic::port {
namespace {

constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint32_t kVlanTag = 4;
// The peer's queue holds few datagrams (net.unix.max_dgram_qlen), and no event reports when it has
// room again.
constexpr std::uint32_t kRoomFirstUs = 100;
constexpr std::uint32_t kRoomMostUs = 10000;
// Intervals for looking for a missing peer: they double up to once a second (E-39).
constexpr std::uint64_t kFirstLookMs = 100;
constexpr std::uint64_t kSlowestLookMs = 1000;
constexpr std::uint32_t kLookEvery = 1024;  // receive calls between two reads of the clock

std::uint64_t now_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 +
         static_cast<std::uint64_t>(t.tv_nsec) / 1000000;
}

struct DgramArgs {
  UnixAddress path, peer;
  PeerUser user;
  std::uint32_t mtu = 0;
};

Outcome<DgramArgs, std::string> read_args(Args& args) {
  DgramArgs a;
  const std::string path = args.str("path");
  const std::string peer = args.str("peer");
  a.mtu = static_cast<std::uint32_t>(args.num("mtu", 1500, 68, 65535 - kEthernetHeader));
  const std::string peer_user = args.str("peer_user");
  if (std::string wrong = args.finish(); !wrong.empty()) return fail(wrong);
  auto own = UnixAddress::parse(path, "path");
  if (!own.ok()) return fail(own.error());
  auto theirs = UnixAddress::parse(peer, "peer");
  if (!theirs.ok()) return fail(theirs.error());
  if (path == peer) return fail(std::string("path= and peer= must differ"));
  auto user = PeerUser::parse(peer_user);
  if (!user.ok()) return fail(user.error());
  for (const UnixAddress* one : {&own.value(), &theirs.value()}) {
    if (one->abstract() && !user->any()) {
      return fail(one->name() +
                  ": cannot check the owner of an abstract socket; use a path, or peer_user=any to "
                  "allow every user");
    }
  }
  a.path = own.value();
  a.peer = theirs.value();
  a.user = user.value();
  return a;
}

}  // namespace

std::string check_dgram_args(Args& args) {
  auto read = read_args(args);
  return read.ok() ? std::string() : read.error();
}

Outcome<std::unique_ptr<DgramPort>, std::string> DgramPort::make(Args& args) {
  auto read = read_args(args);
  if (!read.ok()) return fail(read.error());
  for (const UnixAddress* a : {&read->path, &read->peer}) {
    if (a->abstract()) continue;
    make_fallback_folder(a->name());
    // A datagram goes to any process that owns the path when it is sent, so a sticky folder is not
    // safe enough.
    if (const std::string fault = folder_fault(a->name(), read->user, false); !fault.empty()) {
      return fail(a->name() + ": " + fault);
    }
  }
  auto socket =
      BoundSocket::open(read->path, SOCK_DGRAM,
                        read->path.name() + " is in use by another program; use another path=",
                        read->user.lets_others() ? 0666 : 0600);
  if (!socket.ok()) return fail(socket.error());
  Fd timer(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  if (!timer) return fail(std::string("cannot create a timer: ") + std::strerror(errno));
  return std::unique_ptr<DgramPort>(new DgramPort(std::move(socket.value()), std::move(timer),
                                                  read->peer, read->user,
                                                  read->mtu + kEthernetHeader));
}

DgramPort::DgramPort(BoundSocket socket, Fd timer, UnixAddress peer, PeerUser user,
                     std::uint32_t max_frame)
    : socket_(std::move(socket)),
      timer_(std::move(timer)),
      user_(user),
      max_frame_(max_frame),
      stride_((((max_frame + kVlanTag + 63) / 64) | 1) * std::size_t{64}),
      owner_(getpid()),
      rx_memory_(new std::uint8_t[kSlots * stride_]),
      tx_(stride_) {
  peer_.address = std::move(peer);
  const int size = 1 << 20;  // a hint; the system limits it
  setsockopt(socket_.fd(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  if (user_.lets_others() && !user_.any()) {  // the kernel identifies each sender
    const int on = 1;
    setsockopt(socket_.fd(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  }
  look_for_peer();
}

DgramPort::~DgramPort() {
  if (getpid() == owner_) socket_.remove_file();
}

void DgramPort::info(urnic_port_info* i) const {
  *i = {};
  i->link_up = peer_.there ? 1 : 0;
  i->max_frame = max_frame_;
  i->queues = 1;
  i->link_epoch = peer_.epoch;
}

void DgramPort::stats(urnic_port_stats* s) const {
  *s = {};
  counters_.add_to(s);
}

void DgramPort::set_peer_present(bool there) {
  if (there == peer_.there) return;
  peer_.there = there;
  if (there) {
    ++peer_.epoch;
    peer_.look_delay_ms = 0;
    return;
  }
  drop_waiting();
  peer_.next_look_ms = now_ms() + kFirstLookMs;
  peer_.look_delay_ms = kFirstLookMs;
}

// Checks whether a process receives at the peer's address, without sending anything.
void DgramPort::look_for_peer() {
  const std::uint64_t now = now_ms();
  if (peer_.there || now < peer_.next_look_ms) return;
  peer_.look_delay_ms = std::clamp(peer_.look_delay_ms * 2, kFirstLookMs, kSlowestLookMs);
  peer_.next_look_ms = now + peer_.look_delay_ms;
  ask_for_peer();
}

void DgramPort::ask_for_peer() {
  counters_.syscalls.add(4);
  const ConnectResult r =
      is_owner_allowed() ? connect_to(peer_.address, SOCK_DGRAM).result : ConnectResult::kRefused;
  if (r == ConnectResult::kNobody) why_ = "no peer at " + peer_.address.name();
  set_peer_present(r == ConnectResult::kConnected || r == ConnectResult::kBusy);
}

// True if the owner of the socket at the peer's path is allowed as a peer.
bool DgramPort::is_owner_allowed() {
  why_.clear();
  if (peer_.address.abstract()) return true;
  struct stat st {};
  if (lstat(peer_.address.name().c_str(), &st) != 0) {
    why_ = "no peer at " + peer_.address.name();
    return false;
  }
  why_ = user_.refusal_of(st.st_uid, "the socket " + peer_.address.name());
  return why_.empty();
}

bool DgramPort::sender_allowed(const msghdr& m) const {
  for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(const_cast<msghdr*>(&m), c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(c), sizeof sender);
    return user_.allows(sender.uid);
  }
  return false;
}

// ---- receive ----

unsigned DgramPort::rx_burst(unsigned, urnic_frame* frames, unsigned n) {
  if (tx_.waiting() != 0) flush();
  if (!peer_.there && ++calls_ % kLookEvery == 0) look_for_peer();
  n = std::min(n, kSlots);
  std::array<mmsghdr, kSlots> messages{};
  std::array<iovec, kSlots> parts;
  const bool ask_who = user_.lets_others() && !user_.any();
  alignas(cmsghdr) std::array<std::array<char, CMSG_SPACE(sizeof(ucred))>, kSlots> who;
  for (unsigned i = 0; ask_who && i < n; ++i) {
    messages[i].msg_hdr.msg_control = who[i].data();
    messages[i].msg_hdr.msg_controllen = who[i].size();
  }
  for (unsigned i = 0; i < n; ++i) {
    parts[i] = {rx_memory_.get() + i * stride_, max_frame_ + kVlanTag};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  counters_.syscalls.add();
  const int came = recvmmsg(socket_.fd(), messages.data(), n, MSG_DONTWAIT, nullptr);
  if (came <= 0) return 0;
  if (slept_) counters_.wakeups.add();
  slept_ = false;
  unsigned got = 0;
  std::uint64_t bytes = 0;
  for (unsigned i = 0; i < static_cast<unsigned>(came); ++i) {
    const bool cut = (messages[i].msg_hdr.msg_flags & MSG_TRUNC) != 0;
    if (cut || messages[i].msg_len < kEthernetHeader ||
        (ask_who && !sender_allowed(messages[i].msg_hdr))) {
      counters_.rx_bad.add();
      continue;
    }
    urnic_frame& f = frames[got++];
    f = {};
    f.data[0] = static_cast<std::uint8_t*>(parts[i].iov_base);
    f.len[0] = messages[i].msg_len;
    bytes += messages[i].msg_len;
  }
  if (got != 0) set_peer_present(true);
  counters_.rx_frames.add(got);
  counters_.rx_bytes.add(bytes);
  return got;
}

// ---- transmit ----

unsigned DgramPort::tx_reserve(unsigned, std::uint32_t len, urnic_frame* frames, unsigned n) {
  if (tx_.waiting() != 0) flush();
  return tx_.lend(len, max_frame_, frames, n, counters_);
}

void DgramPort::tx_commit(unsigned, urnic_frame* frames, unsigned n) {
  tx_.take_back(frames, n, max_frame_, counters_, [](ByteView frame) {
    return std::optional(static_cast<std::uint32_t>(frame.size()));
  });
  flush();
}

void DgramPort::drop_waiting() {
  counters_.tx_dropped.add(tx_.waiting());
  tx_.drop(tx_.waiting());
}

void DgramPort::flush() {
  while (tx_.waiting() != 0) {
    std::array<mmsghdr, kSlots> messages{};
    std::array<iovec, kSlots> parts;
    const unsigned n = tx_.waiting();
    for (unsigned i = 0; i < n; ++i) {
      parts[i] = {tx_.frame(i), tx_.note(i)};
      messages[i].msg_hdr.msg_iov = &parts[i];
      messages[i].msg_hdr.msg_iovlen = 1;
      // Use an unconnected socket: if a connected peer restarted, we would receive nothing until we
      // send.
      messages[i].msg_hdr.msg_name = const_cast<sockaddr*>(peer_.address.get());
      messages[i].msg_hdr.msg_namelen = peer_.address.size();
    }
    counters_.syscalls.add();
    const int done = sendmmsg(socket_.fd(), messages.data(), n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done > 0) {
      for (int i = 0; i < done; ++i)
        counters_.tx_bytes.add(parts[static_cast<unsigned>(i)].iov_len);
      counters_.tx_frames.add(static_cast<unsigned>(done));
      tx_.drop(static_cast<unsigned>(done));
      room_wait_us_ = 0;
      set_peer_present(true);
      continue;
    }
    if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) return;  // retry later
    if (errno == EMSGSIZE) {                                            // drop only this frame
      counters_.tx_dropped.add();
      tx_.drop(1);
      continue;
    }
    // ENOENT, ECONNREFUSED: the peer is missing. EPERM, EACCES: we have no right. All waiting
    // frames are dropped.
    drop_waiting();
    set_peer_present(false);
  }
}

// ---- sleeping ----

void DgramPort::set_timer(std::uint64_t us) {
  itimerspec t{};
  t.it_value.tv_sec = static_cast<time_t>(us / 1000000);
  t.it_value.tv_nsec = static_cast<long>(us % 1000000) * 1000;
  counters_.syscalls.add();
  timerfd_settime(timer_.get(), 0, &t, nullptr);
  timer_set_ = us != 0;
  look_timer_ = false;
}

unsigned DgramPort::wait_fds(unsigned, int* fds, unsigned max) {
  const int all[] = {socket_.fd(), timer_.get()};
  const unsigned n = std::min(max, 2u);
  std::copy_n(all, n, fds);
  return n;
}

int DgramPort::arm(unsigned) {
  if (tx_.waiting() != 0) {
    room_wait_us_ = std::clamp(room_wait_us_ * 2, kRoomFirstUs, kRoomMostUs);
    set_timer(room_wait_us_);
  } else if (!peer_.there) {
    const std::uint64_t now = now_ms();
    set_timer(peer_.next_look_ms > now ? (peer_.next_look_ms - now) * 1000 : 1);
  } else if (!timer_set_) {
    // No event reports that the peer is gone (E-43): check once per second of sleep.
    peer_.next_look_ms = now_ms() + kSlowestLookMs;
    set_timer(kSlowestLookMs * 1000);
    look_timer_ = true;
  }
  slept_ = true;
  return 0;
}

void DgramPort::disarm(unsigned) {
  if (!timer_set_) return;
  if (look_timer_ && peer_.there && tx_.waiting() == 0 && now_ms() < peer_.next_look_ms) return;
  const bool due = look_timer_ && peer_.there && now_ms() >= peer_.next_look_ms;
  set_timer(0);  // also clears a timer that has fired
  if (due) ask_for_peer();
  if (!peer_.there) look_for_peer();
}

constinit const urnic_port_ops kDgramPortOps = Adapter<DgramPort>::table("dgram");

}  // namespace urnic::port
