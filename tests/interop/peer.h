// Shared by the test peers: command line, a device, and connections whose waits all have a time
// limit.
//
// A peer implements the protocol of an unmodified program (rping, perftest) with urnic's public
// interface, so that the program itself can run at the other end of the wire. Every failure gives
// one line on standard error and exit status 1. A successful peer prints its counters as one line
// of JSON.
#pragma once

#include <urnic/urnic.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace urnic::interop {

// Prints "program: what" and ends the process with status 1.
[[noreturn]] void die(const std::string& what);

struct Command {
  Config config;                    // defaults, then every -o name=value
  std::string mode;                 // -m
  bool client = false;              // -c ADDRESS
  std::string address;              // of the server, without port
  std::uint16_t port = 0;           // -p
  std::uint32_t count = 1;          // -C or -n
  std::uint32_t size = 64;          // -S or -s
  std::uint32_t private_bytes = 0;  // -d
  int timeout_s = 60;               // -t: limit for the whole run
};

// Options as in Command; `defaults` provides missing values. Unknown options end the process.
Command parse_command(int argc, char** argv, Command defaults);

// Registered memory of the peer.
class Buffer {
 public:
  Buffer(Device& device, const ProtectionDomain& pd, std::size_t length, std::uint32_t access);
  std::uint8_t* data() { return bytes_.data(); }
  std::span<std::uint8_t> bytes() { return bytes_; }
  std::uint64_t remote_address() const { return region_.remote_address(); }
  std::uint32_t rkey() const { return region_.rkey(); }
  Sge sge(std::size_t offset, std::size_t length) const;

 private:
  std::vector<std::uint8_t> bytes_;
  MemoryRegion region_;  // after bytes_, so that it is deregistered first
};

// A device with one protection domain, and the deadline of the whole run.
class Host {
 public:
  explicit Host(const Command& command);
  Device& device() { return device_; }
  const ProtectionDomain& pd() const { return pd_; }
  // Milliseconds left; if there are none, ends the process with the name of the wait.
  int left(const char* what) const;
  // Waits until no connection is left, at most two seconds, so that FINs and their ACKs are sent.
  void settle();

 private:
  Device device_;
  ProtectionDomain pd_;
  std::chrono::steady_clock::time_point until_;
};

// One queue pair with its queues; every wait ends at the host's deadline.
class Connection {
 public:
  explicit Connection(Host& host, std::uint32_t max_receive = 128);

  // False if the peer refused the connection (RST to the SYN); other failures end the process.
  bool connect(const std::string& address);
  // The result of the attempt: established or connect_failed, with the peer's private data.
  Event try_connect(const std::string& address, const ConnectionOptions& options = {});
  // Accepts a connection request and waits until it is established.
  void accept(ConnectRequest& request, const ConnectionOptions& options = {});

  void post_receive(const Sge& sge);
  // The next receive completion; empty if the connection has ended.
  std::optional<Completion> receive();
  // Takes the receive completions that are available; returns their number.
  std::uint32_t receive_some();
  void post(const SendRequest& request);
  // The next completion of the send queue; a failed one ends the process.
  Completion complete();
  // post + complete.
  void run(const SendRequest& request);

  // The next completion of the send queue, with any status.
  Completion complete_any();

  // Orderly end from this side, or wait for the peer's. Both require FIN, not RST.
  void close();
  void await_close();
  // The event that reports the end, of any kind.
  Event await_end() { return next_event("the end of the connection"); }

  QueuePair& qp() { return qp_; }
  ConnectionStats stats() const { return qp_.stats(); }

 private:
  Event next_event(const char* what);
  Host& host_;
  CompletionQueue sends_, receives_;
  EventQueue events_;
  QueuePair qp_;  // last member: destroyed first
};

// One line of JSON: the role, the peer's own members, and the counters of a connection.
void report(const std::string& peer, const std::string& own_members, const ConnectionStats& stats);

void put_be32(std::uint8_t* at, std::uint32_t value);
void put_be64(std::uint8_t* at, std::uint64_t value);
std::uint32_t get_be32(const std::uint8_t* at);
std::uint64_t get_be64(const std::uint8_t* at);

}  // namespace urnic::interop
