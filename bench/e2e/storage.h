// P20: what both ends of the storage pattern have in common. An initiator sends requests of 64
// bytes; the target moves the data of each and answers with 16 bytes. Over urnic the target Writes
// or Reads the data, over the kernel's TCP it follows the answer or the request.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace urnic::bench {

struct StorageOptions {
  std::string side = "memif";
  bool is_read = true;  // the data goes to the initiator
  std::uint32_t size = 4096, outstanding = 32, queue_pairs = 1;
  double seconds = 1;
  bool json = false;
  std::string socket;          // of memif
  std::uint32_t of_process{};  // selects addresses on loopback (bench/e2e/ends.h)
};

struct StorageRequest {
  std::uint64_t address = 0;  // of the initiator's slot
  std::uint32_t rkey = 0;
  std::uint32_t tag = 0;    // number of the slot, at both ends
  std::uint32_t check = 0;  // 1: the target compares the data that it receives
  std::uint8_t unused[44] = {};
};
static_assert(sizeof(StorageRequest) == 64);

struct StorageReply {
  std::uint32_t tag = 0;
  std::uint32_t wrong = 0;  // 1: the target received wrong data
  std::uint64_t unused = 0;
};
static_assert(sizeof(StorageReply) == 16);

// The data of all tags, page-aligned, and `more` bytes after it.
class Slots {
 public:
  Slots(const StorageOptions& o, std::size_t more);
  ~Slots();
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  std::span<std::uint8_t> slot(std::uint32_t tag) {
    return {memory_ + std::size_t{tag} * size_, size_};
  }
  std::span<std::uint8_t> whole() { return {memory_, length_}; }
  std::uint8_t* more() { return memory_ + length_ - more_; }

  // Each tag has its own bytes, so that data in the slot of another tag is noticed.
  void fill(std::uint32_t tag);
  void clear(std::uint32_t tag);
  bool is_right(std::uint32_t tag);

 private:
  std::size_t size_, more_, length_;
  std::uint8_t* memory_;
};

// The initiator's end of one side. The measurement polls it continuously.
class Initiator {
 public:
  explicit Initiator(const StorageOptions& o, std::size_t more = 0) : slots(o, more) {}
  virtual ~Initiator() = default;
  // Connections take turns.
  virtual void request(std::uint32_t tag, bool check) = 0;
  // The replies that have arrived; valid until the next call.
  virtual std::span<const StorageReply> poll() = 0;

  Slots slots;
};

// In memory that both processes share: whether the target can receive requests.
using Ready = std::atomic<bool>;

std::unique_ptr<Initiator> open_verbs_initiator(const StorageOptions& o, const Ready& ready);
[[noreturn]] void serve_verbs(const StorageOptions& o, Ready& ready);

// A listening socket, made before the fork.
int listen_on_loopback();
std::unique_ptr<Initiator> open_sockets_initiator(const StorageOptions& o, int listener);
[[noreturn]] void serve_sockets(const StorageOptions& o, int listener);

[[noreturn]] void fail_storage(const std::string& why);

}  // namespace urnic::bench
