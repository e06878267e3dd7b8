#include "port/tap_port.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "port/kinds.h"

namespace urnic::port {
namespace {

constexpr std::uint32_t kEthernetHeader = 14;
constexpr std::uint32_t kVlanTag = 4;
// Receive calls between two checks of an interface that was down.
constexpr std::uint32_t kLookEvery = 4096;

Outcome<TapOptions, std::string> read_args(Args& args) {
  TapOptions o;
  o.name = args.str("name");
  o.mtu = static_cast<std::uint32_t>(args.num("mtu", 0, 68, 65521));
  o.offload = args.on_off("offload", true);
  if (args.has("fd")) o.fd = static_cast<int>(args.num("fd", 0, 0, INT32_MAX));
  if (std::string wrong = args.finish(); !wrong.empty()) return fail(wrong);
  if (o.fd >= 0 && !o.name.empty()) return fail(std::string("set either name= or fd=, not both"));
  return o;
}

}  // namespace

std::string check_tap_args(Args& args) {
  auto read = read_args(args);
  return read.ok() ? std::string() : read.error();
}

Outcome<std::unique_ptr<TapPort>, std::string> TapPort::make(Args& args) {
  auto read = read_args(args);
  if (!read.ok()) return fail(read.error());
  auto device = open_tap(*read);
  if (!device.ok()) return fail(device.error());
  return std::unique_ptr<TapPort>(new TapPort(std::move(device.value())));
}

TapPort::TapPort(TapDevice device)
    : device_(std::move(device)),
      max_frame_(device_.mtu + kEthernetHeader),
      rx_memory_(new std::uint8_t[kArena]),
      rx_headers_(new std::uint8_t[kMost * kMaxHeaders]),
      tx_stride_((((max_frame_ + 63) / 64) | 1) * std::size_t{64}) {
  tx_memory_.reset(new std::uint8_t[kMost * tx_stride_]);
  // If the descriptor was passed to us, the interface may be in another network namespace.
  if (!device_.taken_over) device_.news.watch(device_.name);
}

void TapPort::info(urnic_port_info* i) const {
  *i = {};
  i->link_up = up_ && !gone_ ? 1 : 0;
  i->max_frame = max_frame_;
  i->queues = 1;
  i->link_epoch = epoch_;
}

void TapPort::stats(urnic_port_stats* s) const {
  *s = {};
  counters_.add_to(s);
}

// Handles an interface that went down or up, or lost its carrier (E-43).
void TapPort::take_news() {
  const std::optional<bool> up = device_.news.take();
  if (!up || *up == up_) return;
  up_ = *up;
  if (up_) ++epoch_;
}

// ---- receive ----

// At the start of a burst the whole arena is free, except for a super-segment that is still being
// split.
void TapPort::make_room() {
  next_read_ = 0;
  read_limit_ = kArena;
  if (!splitting_) return;
  if (super_begin_ >= kReadStep) {
    read_limit_ = super_begin_;
  } else {
    next_read_ = super_end_;
  }
}

TapPort::Read TapPort::read_one(urnic_frame* f) {
  if (next_read_ + kReadStep > read_limit_) return Read::kNothing;
  std::uint8_t* buffer = rx_memory_.get() + next_read_;
  counters_.syscalls.add();
  const ssize_t n = read(device_.fd.get(), buffer, kReadSize);
  const std::size_t header = device_.has_header ? VnetHeader::kSize : 0;
  if (n <= 0) {
    if (n < 0 && errno == EBADFD) gone_ = true;
    return Read::kNothing;
  }
  const std::size_t end = next_read_ + (static_cast<std::size_t>(n) + 63) / 64 * 64;
  if (static_cast<std::size_t>(n) < header + kEthernetHeader) {
    counters_.rx_bad.add();
    return Read::kSkip;
  }
  VnetHeader v;
  if (device_.has_header) v = VnetHeader::load(buffer);
  const std::size_t length = static_cast<std::size_t>(n) - header;
  if (v.gso_kind() != VnetHeader::kGsoNone) {
    const bool tcp = v.gso_kind() == VnetHeader::kGsoTcp4 || v.gso_kind() == VnetHeader::kGsoTcp6;
    if (tcp && splitter_.start({buffer + header, length}, v.gso_size)) {
      super_begin_ = next_read_;
      super_end_ = next_read_ = end;
      return Read::kSuper;
    }
    counters_.rx_bad.add();
    return Read::kSkip;
  }
  if (length > max_frame_ + kVlanTag) {
    counters_.rx_bad.add();
    return Read::kSkip;
  }
  *f = {};
  f->data[0] = buffer + header;
  f->len[0] = static_cast<std::uint32_t>(length);
  if ((v.flags & VnetHeader::kNeedsChecksum) != 0) {
    f->csum = URNIC_CSUM_PARTIAL;
  } else if ((v.flags & VnetHeader::kDataValid) != 0) {
    f->csum = URNIC_CSUM_GOOD;
  }
  next_read_ = end;
  return Read::kFrame;
}

unsigned TapPort::rx_burst(unsigned, urnic_frame* frames, unsigned n) {
  make_room();
  n = static_cast<unsigned>(std::min<std::size_t>(n, kMost));
  if (++calls_ % kLookEvery == 0) {  // a polling caller is not woken by reports
    take_news();
    if (!up_ && device_.news.fd() < 0 && tap_is_up(device_)) {
      up_ = true;
      ++epoch_;
    }
  }
  unsigned got = 0;
  std::uint64_t bytes = 0;
  unsigned reads = 0;
  while (got < n) {
    if (splitting_) {
      splitter_.next(rx_headers_.get() + got * kMaxHeaders, &frames[got]);
      bytes += frame_len(frames[got++]);
      splitting_ = !splitter_.done();
      continue;
    }
    if (reads++ == 2 * kMost) break;  // limits the work for a flood of frames that are too large
    const Read r = read_one(&frames[got]);
    if (r == Read::kNothing) break;
    if (r == Read::kSuper) splitting_ = true;
    if (r == Read::kFrame) bytes += frame_len(frames[got++]);
  }
  if (got != 0) {
    counters_.rx_frames.add(got);
    counters_.rx_bytes.add(bytes);
    if (slept_) counters_.wakeups.add();
    if (!up_) ++epoch_;
    up_ = true;
  }
  slept_ = false;
  return got;
}

// ---- transmit ----

unsigned TapPort::tx_reserve(unsigned, std::uint32_t len, urnic_frame* frames, unsigned n) {
  const unsigned got =
      len > max_frame_ ? 0 : static_cast<unsigned>(std::min<std::size_t>(n, kMost));
  for (unsigned i = 0; i < got; ++i) {
    frames[i] = {};
    frames[i].data[0] = tx_memory_.get() + i * tx_stride_;
    frames[i].len[0] = len;
  }
  promised_ = got;
  if (got < n) counters_.tx_full.add();
  return got;
}

void TapPort::write_all(const iovec* iov, unsigned n, std::size_t bytes, unsigned frames) {
  counters_.syscalls.add();
  const ssize_t done = writev(device_.fd.get(), iov, static_cast<int>(n));
  if (done < 0) {
    counters_.tx_dropped.add(frames);
    // EIO: the interface is down.
    if (errno == EIO && up_ && !tap_is_up(device_)) up_ = false;
    return;
  }
  counters_.tx_frames.add(frames);
  counters_.tx_bytes.add(bytes);
}

// Sends a run of one frame unchanged, with its checksum; a longer run as a super-segment.
void TapPort::write_run(const urnic_frame* const* frames, unsigned n) {
  std::array<iovec, 2 + 2 * kMost> iov;
  std::array<std::uint8_t, VnetHeader::kSize> header;
  std::array<std::uint8_t, kMaxHeaders> headers;
  unsigned parts = 0;
  const auto add = [&](const void* p, std::size_t size) {
    if (size != 0) iov[parts++] = {const_cast<void*>(p), size};
  };
  VnetHeader v;
  std::uint32_t skip = 0;
  if (n > 1) {
    skip = joiner_.header_length();
    const std::size_t size = joiner_.finish(headers.data(), &v);
    v.store(header.data());
    add(header.data(), header.size());
    add(headers.data(), size);
  } else {
    v.store(header.data());
    add(header.data(), device_.has_header ? header.size() : 0);
  }
  std::size_t bytes = 0;
  for (unsigned i = 0; i < n; ++i) {
    const urnic_frame& f = *frames[i];
    bytes += frame_len(f);
    add(f.data[0] + skip, f.len[0] - skip);
    add(f.data[1], f.len[1]);
  }
  write_all(iov.data(), parts, bytes, n);
}

void TapPort::tx_commit(unsigned, urnic_frame* frames, unsigned n) {
  std::array<const urnic_frame*, kMost> run;
  unsigned length = 0;
  joiner_.restart();
  n = std::min(n, promised_);
  promised_ -= n;
  for (unsigned i = 0; i < n; ++i) {
    const urnic_frame& f = frames[i];
    if (f.len[0] == 0) continue;
    if (std::uint64_t{f.len[0]} + f.len[1] > max_frame_) {
      counters_.tx_dropped.add();
      continue;
    }
    // Without the virtio-net header, the kernel cannot be given a super-segment.
    if (length != 0 && (!device_.has_header || !joiner_.add(f))) {
      write_run(run.data(), length);
      length = 0;
      joiner_.restart();
    }
    if (length == 0 && device_.has_header) joiner_.add(f);
    run[length++] = &f;
  }
  if (length != 0) write_run(run.data(), length);
}

// ---- sleeping on the descriptor itself ----

unsigned TapPort::wait_fds(unsigned, int* fds, unsigned max) {
  // The descriptor of a deleted interface is always readable; polling it would spin.
  if (max == 0 || gone_) return 0;
  fds[0] = device_.fd.get();
  if (max == 1 || device_.news.fd() < 0) return 1;
  fds[1] = device_.news.fd();
  return 2;
}

int TapPort::arm(unsigned) {
  if (splitting_) return 1;
  slept_ = true;
  return 0;
}

void TapPort::disarm(unsigned) {
  if (slept_) take_news();
}

constinit const urnic_port_ops kTapPortOps = Adapter<TapPort>::table("tap");

}  // namespace urnic::port
