// One end of a connection of the soak test: the posted work, its results, and the requirements.
//
// A client runs jobs. Each uses several work requests and one of kSlots slots in both memories; the
// server verifies received data and answers with one Send. All bytes are a function of a number
// that is sent with them. An error ends the process with one line that begins with VIOLATION.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "pattern.h"
#include "verbs.h"

namespace urnic::soak {

inline constexpr unsigned kSlots = kWindows, kMessages = 32;
inline constexpr std::uint32_t kMessage = 2048, kBulk = 16384;

// The memory layout of either end.
inline constexpr std::uint32_t kOut = 0, kIn = kOut + kMessages * kMessage,
                               kBulkOut = kIn + kMessages * kMessage,
                               kBulkIn = kBulkOut + kSlots * kBulk,
                               kRemote = kBulkIn + kSlots * kBulk,  // the peer writes here
    kAtomic = kRemote + kSlots * kBulk,                             // results
    kCounter = kAtomic + kSlots * 8, kArena = kCounter + 64;

// Private data of the accepting end. The MPA start-up frames have no CRC (RFC 5044, 7.1), so faults
// that change bytes but keep a right TCP checksum can change these too.
struct Offer {
  std::uint64_t address = 0;
  std::uint32_t key = 0, check = 0;
  std::uint32_t sum() const { return static_cast<std::uint32_t>(mix(address ^ mix(key))); }
};

enum class JobKind : std::uint8_t { Echo, WriteRead, WriteImmediate, Add, Swap, Grant, ReadMe };
inline constexpr unsigned kJobKinds = 7;

// The header of a Send, or of a Write that reports itself; the pattern of `seed` follows.
struct Header {
  std::uint32_t magic = 0x736f616b, kind = 0;  // a JobKind; kAnswer or kGranted
  std::uint64_t number = 0;                    // counts messages that use receives of the peer
  std::uint64_t seed = 0, address = 0;
  std::uint32_t length = 0, slot = 0, key = 0, unused = 0;
};
inline constexpr std::uint32_t kAnswer = 100, kGranted = 101;

struct Counts {
  std::uint64_t connections = 0, failed = 0, jobs = 0, bytes = 0, completions = 0, flushed = 0;
  std::uint64_t by_kind[kJobKinds] = {};
  double longest_flush = 0;  // seconds from the end of a connection to its last completion
  double longest_job = 0;    // seconds, of successful jobs
};

class Session {
 public:
  // Server if `to` is empty: takes the request of the last Asked.
  Session(Verbs& verbs, Counts& counts, std::uint64_t seed);
  bool connect(const std::string& address, std::uint16_t port, std::string* why);
  bool accept(std::string* why);

  std::uint32_t qp() const { return wire_ ? wire_->number() : 0; }
  void happened(const Happening& h);
  void completed(const Done& d);
  // Handles time: new jobs, ends, time limits.
  void turn(bool start_jobs);
  // True if ended and everything has completed.
  bool over() const { return ended_ && sends_.empty() && receives_.empty(); }
  bool idle() const;  // a client without a job in progress
  bool up() const { return up_; }
  void end(bool orderly);
  const std::string& why() const { return why_; }

 private:
  enum class Step : std::uint8_t { Free, Answer, Read, Atomic, Granting, Invalidate };
  struct Job {
    JobKind kind = JobKind::Echo;
    Step step = Step::Free;
    std::uint64_t seed = 0, expected = 0;
    std::uint32_t length = 0, key = 0;
    double since = 0;
  };
  std::uint8_t* at(std::uint32_t offset) { return arena_.data() + offset; }
  std::uint64_t address(std::uint32_t offset) {
    return reinterpret_cast<std::uintptr_t>(arena_.data()) + offset;
  }
  bool post(Request r, unsigned what);
  void post_receive(unsigned slot);
  bool send(Header h, Op op = Op::Send, std::uint32_t key = 0);
  void begin_job(unsigned slot);
  void send_job(unsigned slot, Job& j);
  void finish(Job& j);
  void received(const Done& d, unsigned slot);
  void serve(const Header& h, const Done& d);
  void answered(const Header& h);
  void sent(std::uint64_t id);
  void broken(const std::string& why);
  void answer(unsigned slot);
  void check(const std::uint8_t* bytes, std::uint32_t length, std::uint64_t seed, const char* what);

  Verbs& verbs_;
  Counts& counts_;
  std::mt19937_64 rng_;
  std::vector<std::uint8_t> arena_ = std::vector<std::uint8_t>(kArena);
  bool client_ = false, up_ = false, ended_ = false, flushing_ = false, said_end_ = false;
  bool send_failed_ = false, receive_failed_ = false;
  std::array<Job, kSlots> jobs_;
  std::deque<std::uint64_t> sends_, receives_;  // posted and not complete, in order
  std::deque<Header> waiting_;                  // answers that wait for a free send slot
  // Messages that arrived before `established`: RoCE's third message may be lost.
  std::deque<std::pair<Header, Done>> early_;
  std::vector<unsigned> free_out_;
  std::uint64_t next_id_ = 1, out_number_ = 0, in_number_ = 0, counter_ = 0;
  std::uint64_t peer_memory_ = 0;
  std::uint32_t peer_key_ = 0;
  double ended_at_ = 0, heard_ = 0;
  std::string why_;
  std::unique_ptr<Wire> wire_;  // destroyed first: then nothing can access the memory
};

}  // namespace urnic::soak
