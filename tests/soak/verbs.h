// The verbs functions that the soak test needs. The C++ API (api_verbs.cpp) and the C libraries
// (c_verbs.cpp) implement the same interface. One thread; addresses are virtual, keys are those of
// the library.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace urnic::soak {

enum class Op : std::uint8_t {
  Send,
  SendImmediate,
  SendInvalidate,  // key: of the peer's window
  Write,
  WriteImmediate,
  Read,
  FetchAdd,
  CompareSwap,
  Bind,             // `window` gives access to [remote, remote+length) by `key`
  LocalInvalidate,  // key
};

struct Request {
  std::uint64_t id = 0;
  Op op = Op::Send;
  std::uint8_t* data = nullptr;  // in the own memory
  std::uint32_t length = 0;
  std::uint64_t remote = 0;
  std::uint32_t key = 0;
  std::uint32_t immediate = 0;
  std::uint64_t add_or_swap = 0, compare = 0;
  unsigned window = 0;
};

struct Done {
  std::uint64_t id = 0;
  std::uint32_t qp = 0;
  bool ok = false;
  std::uint32_t length = 0;  // received length
  bool with_immediate = false;
  std::uint32_t immediate = 0;
  bool invalidated = false;
  std::uint32_t invalidated_key = 0;
  std::string why;  // when it is not ok
};

inline constexpr unsigned kWindows = 8, kDepth = 128, kMostConnections = 64;

// One end of a connection; its memory is registered with all access rights. Destruction ends the
// connection.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual std::uint32_t number() const = 0;
  virtual std::uint32_t key() const = 0;  // of its memory, for both ends
  virtual bool post(const Request& r) = 0;
  virtual bool receive(std::uint64_t id, std::uint8_t* at, std::uint32_t length) = 0;
  // The key that the next Bind of this window must use.
  virtual std::uint32_t window_key(unsigned window) = 0;
  // Begins to connect; Up or Failed follows. Receives may be posted before.
  virtual bool begin() = 0;
  virtual bool accept(std::span<const std::uint8_t> private_data) = 0;
  virtual void disconnect() = 0;
  virtual void abort() = 0;
};

struct Happening {
  enum class Kind : std::uint8_t { Asked, Up, Ended, Failed } kind = Kind::Failed;
  std::uint32_t qp = 0;  // all except Asked
  std::vector<std::uint8_t> private_data;
  std::string why;
};

class Verbs {
 public:
  virtual ~Verbs() = default;
  virtual bool listen(const std::string& address, std::uint16_t port) = 0;
  // A client's end; null on failure, with the reason in `why`.
  virtual std::unique_ptr<Wire> open(const std::string& address, std::uint16_t port,
                                     std::span<std::uint8_t> memory, std::string* why) = 0;
  // The server's end for the request of the last Asked.
  virtual std::unique_ptr<Wire> take(std::span<std::uint8_t> memory, std::string* why) = 0;
  virtual bool next(Happening* out) = 0;
  // The next completion.
  bool poll(Done* out) {
    if (at_ == done_.size()) {
      done_.clear();
      at_ = 0;
      fetch(&done_);
      if (done_.empty()) return false;
    }
    *out = std::move(done_[at_++]);
    return true;
  }
  // Waits for an event in the order that verbs require: arm, check once more, sleep.
  void wait(int ms) {
    if (at_ != done_.size()) return;
    arm();
    fetch(&done_);
    if (done_.empty()) sleep(ms);
  }

 private:
  // Some completions, in order.
  virtual void fetch(std::vector<Done>* out) = 0;
  virtual void arm() = 0;
  virtual void sleep(int ms) = 0;

  std::vector<Done> done_;
  std::size_t at_ = 0;
};

// `transport`: "iwarp" or "roce". Ends the process with one line if there is no device.
std::unique_ptr<Verbs> open_verbs(const std::string& transport);

}  // namespace urnic::soak
