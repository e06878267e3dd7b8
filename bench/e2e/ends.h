// Two processes with one connection between them, iWARP or RoCE, over memif, the kernel's TCP or
// its UDP: the set-up that the end-to-end measurements share. Each end offers one region to the
// other.
#pragma once

#include <unistd.h>
#include <urnic/urnic.h>

#include <cstdint>
#include <span>
#include <string>

namespace urnic::bench {

// Where the peer's region is; travels as private data of the connection.
struct Offer {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t rkey = 0;
};

struct EndOptions {
  std::string socket;
  std::uint32_t mtu = 1500;
  std::string progress = "poll";  // the measuring thread drives; nothing else runs
  bool fast = true;
  // Over loopback instead of memif: the kernel's TCP, or RoCE over its UDP.
  bool kernel_tcp = false, kernel_udp = false;
  bool roce = false;
  // Which two addresses of 127/8, since port 4791 has one user at each: made before the fork.
  std::uint32_t of_process = static_cast<std::uint32_t>(getpid());
  std::string faults;  // of the wire behind this end's port (docs/fault.md); empty: none
};

struct End {
  Device device;
  ProtectionDomain pd;
  CompletionQueue cq;
  MemoryRegion region;
  QueuePair qp;
  Offer peer;

  // Post one Write of `length` bytes from `offset` of our region to `to` of the peer's.
  void write(std::uint64_t wr_id, std::uint64_t offset, std::uint32_t length, std::uint64_t to,
             std::uint32_t flags);
};

// Each ends the process with a line on standard error when something fails. `memory` is registered
// for the peer to write.
End open_server(const EndOptions& options, std::span<std::uint8_t> memory);
End open_client(const EndOptions& options, std::span<std::uint8_t> memory);

// A directory for the socket; removed with what is in it.
class SocketDirectory {
 public:
  SocketDirectory();
  ~SocketDirectory();
  SocketDirectory(const SocketDirectory&) = delete;
  SocketDirectory& operator=(const SocketDirectory&) = delete;
  const std::string& socket() const { return socket_; }

 private:
  std::string directory_, socket_;
};

// The bytes of a region that the sender fills and the receiver expects, others in each pass.
void fill_pattern(std::span<std::uint8_t> memory, std::uint32_t pass = 0);
bool has_pattern(std::span<const std::uint8_t> memory, std::uint32_t pass = 0);

}  // namespace urnic::bench
