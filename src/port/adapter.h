// Adapts a C++ class to the C table of port_abi.h without virtual calls: one table per class, whose
// entries call the member functions directly.
//
// A port class P has: static Outcome<std::unique_ptr<P>, std::string> make(Args&) and the members
// info, stats, rx_burst, rx_release, tx_reserve, tx_commit, wait_fds, arm, disarm, with the names
// and types of the table. It may also have std::string why().
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "port/port.h"

namespace urnic::port {

inline void copy_error(const std::string& text, char* err, std::size_t err_len) {
  if (err == nullptr || err_len == 0) return;
  const std::size_t n = std::min(text.size(), err_len - 1);
  std::memcpy(err, text.data(), n);
  err[n] = '\0';
}

template <class P>
urnic_port* as_handle(P* p) {
  return reinterpret_cast<urnic_port*>(p);
}

// Base of a port whose receive buffers become free again with its next burst.
struct ReusesRxBuffers {
  void rx_release(unsigned, const urnic_frame*, unsigned) {}
};

template <class P>
struct Adapter {
  static P* self(urnic_port* p) { return reinterpret_cast<P*>(p); }

  static int open(const char* args, urnic_port** out, char* err, std::size_t err_len) {
    // A port allocates memory only here; no exception may cross the C boundary (D11).
    try {
      Args parsed(args == nullptr ? "" : args);
      auto made = P::make(parsed);
      if (!made.ok()) {
        copy_error(made.error(), err, err_len);
        return -1;
      }
      *out = as_handle(made.value().release());
      return 0;
    } catch (...) {
      copy_error("out of memory", err, err_len);
      return -1;
    }
  }

  static constexpr urnic_port_ops table(const char* kind) {
    urnic_port_ops ops{};
    ops.abi_version = URNIC_PORT_ABI_VERSION;
    ops.size = sizeof(urnic_port_ops);
    ops.kind = kind;
    ops.open = open;
    ops.close = [](urnic_port* p) { delete self(p); };
    ops.info = [](urnic_port* p, urnic_port_info* i) { self(p)->info(i); };
    ops.stats = [](urnic_port* p, urnic_port_stats* s) { self(p)->stats(s); };
    ops.rx_burst = [](urnic_port* p, unsigned q, urnic_frame* f, unsigned n) {
      return self(p)->rx_burst(q, f, n);
    };
    ops.rx_release = [](urnic_port* p, unsigned q, const urnic_frame* f, unsigned n) {
      self(p)->rx_release(q, f, n);
    };
    ops.tx_reserve = [](urnic_port* p, unsigned q, std::uint32_t len, urnic_frame* f, unsigned n) {
      return self(p)->tx_reserve(q, len, f, n);
    };
    ops.tx_commit = [](urnic_port* p, unsigned q, urnic_frame* f, unsigned n) {
      self(p)->tx_commit(q, f, n);
    };
    ops.wait_fds = [](urnic_port* p, unsigned q, int* fds, unsigned max) {
      return self(p)->wait_fds(q, fds, max);
    };
    ops.arm = [](urnic_port* p, unsigned q) { return self(p)->arm(q); };
    ops.disarm = [](urnic_port* p, unsigned q) { self(p)->disarm(q); };
    if constexpr (requires(P p) { p.why(); }) {
      ops.why = [](urnic_port* p, char* text, std::size_t len) {
        copy_error(self(p)->why(), text, len);
      };
    }
    return ops;
  }
};

}  // namespace urnic::port
