// Two processes with one connection between them or several, iWARP or RoCE, over memif, the
// kernel's TCP or its UDP. All end-to-end measurements use this setup. Each end grants the other
// access to one region.
#pragma once

#include <unistd.h>
#include <urnic/urnic.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace urnic::bench {

// The place of the peer's region; sent as private data of the connection.
struct Offer {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t rkey = 0;
};

struct EndOptions {
  std::string socket;
  std::uint32_t mtu = 1500;
  std::string progress = "poll";  // the measuring thread drives; no other runs
  bool fast = true;
  // Over loopback instead of memif: the kernel's TCP, or RoCE over its UDP.
  bool kernel_tcp = false, kernel_udp = false;
  bool roce = false;
  std::uint32_t connections = 1;  // all with one completion queue
  std::uint32_t depth = 256;      // sends, and receives, that a queue pair may have outstanding
  // Selects two addresses of 127/8, because each address has only one port 4791. Set before the
  // fork.
  std::uint32_t of_process = static_cast<std::uint32_t>(getpid());
  std::string faults;  // of the wire at this end's port (docs/fault.md); empty: none
};

struct End {
  Device device;
  ProtectionDomain pd;
  CompletionQueue cq;
  MemoryRegion region;
  QueuePair qp;
  std::vector<QueuePair> more;  // of the other connections
  Offer peer;

  QueuePair& connection(std::size_t i) { return i == 0 ? qp : more[i - 1]; }
  // Posts one Write of `length` bytes from `offset` of our region to `to` of the peer's.
  void write(std::uint64_t wr_id, std::uint64_t offset, std::uint32_t length, std::uint64_t to,
             std::uint32_t flags, std::size_t over = 0);
};

// On failure each ends the process with a line on standard error. `memory` is registered for Writes
// and Reads by the peer.
End open_server(const EndOptions& options, std::span<std::uint8_t> memory);
End open_client(const EndOptions& options, std::span<std::uint8_t> memory);

// A directory for the socket; removed with its content.
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

// The bytes that the sender writes to a region and the receiver expects, different in each pass.
void fill_pattern(std::span<std::uint8_t> memory, std::uint32_t pass = 0);
bool has_pattern(std::span<const std::uint8_t> memory, std::uint32_t pass = 0);

}  // namespace urnic::bench
