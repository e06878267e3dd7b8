// A port that provides frames as fast as they are taken and discards sent frames.
#pragma once

#include <cstdint>
#include <vector>

#include "port/port.h"

namespace urnic::bench {

struct ReplayPort {
  // Provides the next frames, ready for use: up to `n`, which are available. Called once per burst.
  void (*next)(void* set, urnic_frame* frames, unsigned n) = nullptr;
  void* set = nullptr;
  std::uint64_t left = 0;  // frames still to be provided
  std::uint64_t sent = 0;  // frames sent by the engine
  std::vector<std::uint8_t> sink = std::vector<std::uint8_t>(64 * 65536);

  port::Port port() { return {ops(), reinterpret_cast<urnic_port*>(this)}; }

 private:
  static ReplayPort* of(urnic_port* p) { return reinterpret_cast<ReplayPort*>(p); }
  static const urnic_port_ops* ops() {
    static const urnic_port_ops table = [] {
      urnic_port_ops o{};
      o.abi_version = URNIC_PORT_ABI_VERSION;
      o.size = sizeof o;
      o.kind = "mem";
      o.close = [](urnic_port*) {};
      o.info = [](urnic_port*, urnic_port_info* i) {
        *i = {};
        i->link_up = 1;
        i->queues = 1;
        i->max_frame = 65535;
        i->link_epoch = 1;
      };
      o.stats = [](urnic_port*, urnic_port_stats* s) { *s = {}; };
      o.rx_burst = [](urnic_port* p, unsigned, urnic_frame* f, unsigned n) -> unsigned {
        ReplayPort& r = *of(p);
        const unsigned now = r.left < n ? static_cast<unsigned>(r.left) : n;
        if (now != 0) r.next(r.set, f, now);
        r.left -= now;
        return now;
      };
      o.rx_release = [](urnic_port*, unsigned, const urnic_frame*, unsigned) {};
      o.tx_reserve = [](urnic_port* p, unsigned, std::uint32_t, urnic_frame* f, unsigned n) {
        for (unsigned i = 0; i < n; ++i) {
          f[i] = {};
          f[i].data[0] = of(p)->sink.data() + i * 65536;
        }
        return n;
      };
      o.tx_commit = [](urnic_port* p, unsigned, urnic_frame*, unsigned n) { of(p)->sent += n; };
      o.wait_fds = [](urnic_port*, unsigned, int*, unsigned) { return 0u; };
      o.arm = [](urnic_port*, unsigned) { return 1; };
      o.disarm = [](urnic_port*, unsigned) {};
      return o;
    }();
    return &table;
  }
};

}  // namespace urnic::bench
