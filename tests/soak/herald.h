// The queue pair for unreliable datagrams. Two ends of the soak test use it to set up their
// unreliable connections and to send each other pings. A datagram arrives intact or not at all.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "pattern.h"
#include "urnic/urnic.h"

namespace urnic::soak {

// One datagram: this structure, and `length` bytes of the pattern of `seed`.
struct Call {
  enum Kind : std::uint32_t { Ping = 1, Pong, Open, Opened, Seen, Close };
  std::uint32_t magic = 0x75642121, kind = 0;
  std::uint64_t seed = 0;
  std::uint32_t length = 0;
  std::uint32_t qp = 0, psn = 0, key = 0;  // Open, Opened: at the sender's end
  std::uint64_t memory = 0;
  std::uint64_t session = 0, number = 0;
};

// The sender of a datagram, and the destination of the answer.
struct Caller {
  std::string address;
  std::uint32_t qp = 0;
};

class Herald {
 public:
  static constexpr unsigned kReceives = 64, kSends = 32;

  Herald(Device& device, const ProtectionDomain& pd, const CompletionQueue& cq);
  QueuePair& queue_pair() { return qp_; }
  // False: there is no room, or no route. A datagram may always be lost.
  bool send(const Caller& to, Call call);
  // Handles one of its completions. True: a datagram was received, in *call and *from.
  bool completed(const Completion& c, Call* call, Caller* from);
  std::uint64_t sent() const { return sent_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  static constexpr std::uint32_t kQkey = 0x11111111, kGrh = 40, kMost = 4096;
  std::uint8_t* in(unsigned slot) { return memory_.data() + slot * (kGrh + kMost); }
  std::uint8_t* out(unsigned slot) { return in(kReceives) + slot * kMost; }
  void receive(unsigned slot);
  void heard(std::uint32_t bytes, const std::uint8_t* from, Call* call);

  Device& device_;
  const ProtectionDomain& pd_;
  std::vector<std::uint8_t> memory_ =
      std::vector<std::uint8_t>(kReceives * (kGrh + kMost) + kSends * kMost);
  MemoryRegion region_;
  QueuePair qp_;
  std::vector<unsigned> free_;
  std::map<std::string, AddressHandle> ways_;
  std::uint64_t sent_ = 0, bytes_ = 0;
};

}  // namespace urnic::soak
