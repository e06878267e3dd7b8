// A port opened by name: RAII around the C table. A call inlines to one indirect call per burst.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "port/port_abi.h"

namespace urnic::port {

using Frame = urnic_frame;
using Info = urnic_port_info;
using Stats = urnic_port_stats;

inline constexpr unsigned kBurst = 32;

// The total length of a frame in bytes.
inline std::uint32_t frame_len(const Frame& f) {
  return f.len[0] + f.len[1];
}

class Port {
 public:
  // `spec` is "kind:key=value,..." (E-34), e.g. "memif:socket=/run/user/1000/u.sock,role=server".
  // Kinds: mem, memif, tap, dgram, udp, dpdk (shared object). tcp has no frames and is not opened
  // here. The error is one line for the user.
  static Outcome<Port, std::string> open(std::string_view spec);
  // Checks a spec as far as possible without opening it: the kind, and the keys and values of
  // compiled-in kinds. Returns one line of error; empty if the spec is valid.
  static std::string check(std::string_view spec);
  // Wraps a port created elsewhere (memory pairs, fault and capture wrappers).
  Port(const urnic_port_ops* ops, urnic_port* p) : ops_(ops), p_(p) {}
  Port() = default;
  ~Port() { reset(); }
  Port(Port&& o) noexcept : ops_(o.ops_), p_(o.p_) { o.p_ = nullptr; }
  Port& operator=(Port&& o) noexcept {
    if (this != &o) {
      reset();
      ops_ = o.ops_;
      p_ = o.p_;
      o.p_ = nullptr;
    }
    return *this;
  }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  explicit operator bool() const { return p_ != nullptr; }
  const char* kind() const { return ops_->kind; }
  Info info() const {
    Info i{};
    ops_->info(p_, &i);
    return i;
  }
  Stats stats() const {
    Stats s{};
    ops_->stats(p_, &s);
    return s;
  }
  // Why there is no link, or which peer was rejected last; empty if there is nothing to report.
  std::string why() const {
    char text[256] = "";
    if (ops_->why != nullptr) ops_->why(p_, text, sizeof text);
    return text;
  }
  unsigned rx_burst(unsigned q, Frame* f, unsigned n) { return ops_->rx_burst(p_, q, f, n); }
  void rx_release(unsigned q, const Frame* f, unsigned n) { ops_->rx_release(p_, q, f, n); }
  unsigned tx_reserve(unsigned q, std::uint32_t len, Frame* f, unsigned n) {
    return ops_->tx_reserve(p_, q, len, f, n);
  }
  void tx_commit(unsigned q, Frame* f, unsigned n) { ops_->tx_commit(p_, q, f, n); }
  unsigned wait_fds(unsigned q, int* fds, unsigned max) { return ops_->wait_fds(p_, q, fds, max); }
  bool arm(unsigned q) { return ops_->arm(p_, q) != 0; }
  void disarm(unsigned q) { ops_->disarm(p_, q); }

 private:
  void reset() {
    if (p_ != nullptr) ops_->close(p_);
    p_ = nullptr;
  }
  const urnic_port_ops* ops_ = nullptr;
  urnic_port* p_ = nullptr;
};

// Parses "key=value,key=value", with errors that help the user. `finish` rejects unknown and
// repeated keys.
class Args {
 public:
  explicit Args(std::string_view text);
  // The value of `key`, or `otherwise` if absent; marks the key as known.
  std::string str(std::string_view key, std::string_view otherwise = "");
  bool has(std::string_view key) const;
  // An integer in [lo, hi]; `finish` reports an invalid value.
  std::uint64_t num(std::string_view key, std::uint64_t otherwise, std::uint64_t lo,
                    std::uint64_t hi);
  // on/yes/1/true or off/no/0/false; `finish` reports anything else.
  bool on_off(std::string_view key, bool otherwise);
  // Empty if all arguments are valid, else one line about the first invalid key. Query every key
  // before calling it.
  std::string finish() const;

 private:
  struct Item {
    std::string key, value;
    bool used = false;
  };
  std::vector<Item> items_;
  std::vector<std::string> known_;
  std::string error_;
};

}  // namespace urnic::port
