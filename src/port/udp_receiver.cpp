#include "port/udp_receiver.h"

#include <algorithm>
#include <cstring>

namespace urnic::port {

UdpReceiver::UdpReceiver(const Fd* socket, bool v6, const std::uint8_t (*mac)[6],
                         std::uint32_t max_frame)
    : socket_(*socket),
      v6_(v6),
      mac_(*mac),
      max_frame_(max_frame),
      memory_(new std::uint8_t[kMessages * kRegion]) {
  for (unsigned i = 0; i < kMessages; ++i) {
    single_[i] = {region(i) + kHeadroom, kRegion - kHeadroom};
  }
}

// Prepares `scattered_` for segments of that size. spread() moves messages with another size.
void UdpReceiver::aim(std::uint32_t segment) {
  aimed_ = segment;
  // The last place that fits a region takes the rest of a message.
  const std::size_t step = place(segment, 1) - place(segment, 0);
  places_ = static_cast<unsigned>(std::clamp<std::size_t>(kRegion / step, 1, kMostPlaces));
  for (unsigned i = 0; i < kJoined; ++i) {
    iovec* const v = &scattered_[std::size_t{i} * kMostPlaces];
    for (unsigned k = 0; k < places_; ++k) v[k] = {region(i) + place(segment, k), segment};
    v[places_ - 1].iov_len = kRegion - place(segment, places_ - 1);
  }
}

void UdpReceiver::receive(QueueCounters& counters) {
  std::array<mmsghdr, kMessages> all;
  std::array<KernelAddress, kMessages> senders;
  std::array<UdpControl, kMessages> control;
  const bool joined = expected_ != 0;
  const unsigned n = joined ? kJoined : kMessages;
  if (joined && aimed_ != expected_) aim(expected_);
  for (unsigned i = 0; i < n; ++i) {
    msghdr& m = all[i].msg_hdr;
    m = {};
    m.msg_iov = joined ? &scattered_[std::size_t{i} * kMostPlaces] : &single_[i];
    m.msg_iovlen = joined ? places_ : 1;
    m.msg_name = &senders[i];
    m.msg_namelen = sizeof senders[i];
    m.msg_control = control[i].bytes;
    m.msg_controllen = sizeof control[i].bytes;
  }
  counters.syscalls.add();
  const int came = recvmmsg(socket_.get(), all.data(), n, MSG_DONTWAIT, nullptr);
  message_ = segment_ = 0;
  received_ = came > 0 ? static_cast<unsigned>(came) : 0;
  landed_ = expected_;
  if (came > 0) expected_ = 0;
  for (unsigned i = 0; i < received_; ++i) {
    Message& m = messages_[i];
    if (!read(all[i].msg_hdr, all[i].msg_len, &m)) {
      counters.rx_bad.add();
      m.segment = 0;
    } else if (m.segment < m.length) {
      expected_ = m.segment;
    }
  }
}

// Returns false if no frame can be made of the message.
bool UdpReceiver::read(msghdr& m, std::uint32_t length, Message* message) const {
  message->headers = {};
  message->length = length;
  const std::uint32_t segment = read_udp_message(m, v6_, &message->headers);
  message->segment = segment != 0 && segment < length ? segment : std::max(length, 1u);
  return (m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0 &&
         message->headers.destination.is_v6() == v6_ &&
         length <= std::uint64_t{kMostSegments} * message->segment;
}

// Moves the segments of a message to their places, unless the kernel has written them there.
void UdpReceiver::spread(unsigned message) {
  const Message& m = messages_[message];
  std::uint8_t* const at = region(message);
  const unsigned count = (m.length + m.segment - 1) / m.segment;
  if (landed_ == m.segment && count <= places_) return;
  if (landed_ != 0) {  // first brings them together
    for (unsigned k = 1; k < places_ && std::uint64_t{k} * landed_ < m.length; ++k) {
      const std::uint32_t from = k * landed_, left = m.length - from;
      const std::uint32_t n = k + 1 < places_ ? std::min(landed_, left) : left;
      std::memmove(at + kHeadroom + from, at + place(landed_, k), n);
    }
  }
  for (unsigned k = count; k-- > 1;) {  // the last first: each moves to a higher address
    const std::uint32_t from = k * m.segment;
    std::memmove(at + place(m.segment, k), at + kHeadroom + from,
                 std::min(m.segment, m.length - from));
  }
}

// Makes a frame of the next segment. Returns false if the segment is dropped.
bool UdpReceiver::next_frame(urnic_frame* frame, QueueCounters& counters) {
  const unsigned message = message_;
  Message& m = messages_[message];
  if (m.segment == 0) {  // refused
    ++message_;
    return false;
  }
  if (segment_ == 0) spread(message);
  const unsigned k = segment_++;
  const std::uint32_t from = k * m.segment;
  m.headers.length = std::min(m.segment, m.length - from);
  if (from + m.headers.length == m.length) {
    ++message_;
    segment_ = 0;
  }
  std::uint8_t* const payload = region(message) + place(m.segment, k);
  if (m.headers.length > max_frame_) {
    counters.rx_bad.add();
    return false;
  }
  const std::size_t headers = write_udp_headers(m.headers, mac_, payload);
  if (headers + m.headers.length > max_frame_) {
    counters.rx_bad.add();
    return false;
  }
  // Linux numbers the segments of a message from 0 on, so moving the ICRC to identification 0 saves
  // the engine a search. If another sender numbers them differently, the engine still finds the
  // identification, as it does for single datagrams.
  if (k != 0 && !v6_ && m.headers.length >= 4) {
    patch_.apply(payload, m.headers.length, static_cast<std::uint8_t>(k), 0);
  }
  *frame = {};
  frame->data[0] = payload - headers;
  frame->len[0] = static_cast<std::uint32_t>(headers + m.headers.length);
  frame->csum = URNIC_CSUM_SOCKET;
  counters.rx_bytes.add(frame->len[0]);
  return true;
}

unsigned UdpReceiver::burst(urnic_frame* frames, unsigned n, QueueCounters& counters) {
  if (!has_more()) receive(counters);
  unsigned got = 0;
  while (got < n && has_more()) {
    if (next_frame(&frames[got], counters)) ++got;
  }
  return got;
}

}  // namespace urnic::port
