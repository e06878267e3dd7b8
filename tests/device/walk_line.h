// The line of an end of a walk over the verbs: a port in front of the device's own, whose link the
// walk takes down, and which can also drop everything while the link is up.
#pragma once

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "port/port.h"
#include "tests/support/engine_of.h"

namespace urnic::test {

class WalkLine {
 public:
  // Exists as long as the device's port.
  static WalkLine& before(Device& device) {
    auto* const line = new WalkLine(std::exchange(part_of(device)->port, {}));
    part_of(device)->port = port::Port(ops(), reinterpret_cast<urnic_port*>(line));
    return *line;
  }
  void take_down() { up_ = false; }
  void bring_up() {
    up_ = true;
    ++risen_;
  }
  // Traffic classes of the packets sent since the last check, for one IP protocol.
  std::set<std::uint8_t> classes(bool udp) { return std::exchange(udp ? of_udp_ : of_tcp_, {}); }
  // Enables or disables transport of frames in both directions.
  void carry(bool on) { carries_ = on; }

 private:
  explicit WalkLine(port::Port inner) : inner_(std::move(inner)) {}
  static WalkLine& of(urnic_port* p) { return *reinterpret_cast<WalkLine*>(p); }
  unsigned receive(unsigned q, port::Frame* frames, unsigned n) {
    const unsigned got = inner_.rx_burst(q, frames, n);
    if (got == 0 || (up_ && carries_)) return got;
    inner_.rx_release(q, frames, got);
    return 0;
  }
  void note(const std::uint8_t* frame) {
    constexpr std::uint8_t kTcp = 6, kUdp = 17;
    const std::uint8_t* const ip = frame + 14;
    const bool v6 = ip[0] >> 4 == 6;
    const auto tos = static_cast<std::uint8_t>(v6 ? ip[0] << 4 | ip[1] >> 4 : ip[1]);
    const std::uint8_t protocol = frame[12] == 8 && frame[13] == 6 ? 0 : ip[v6 ? 6 : 9];
    if (protocol == kTcp) of_tcp_.insert(tos & 0xfc);
    if (protocol == kUdp) of_udp_.insert(tos & 0xfc);
  }
  void send(unsigned q, port::Frame* frames, unsigned n) {
    for (unsigned i = 0; i < n; ++i) {
      if (frames[i].len[0] >= 54) note(frames[i].data[0]);
    }
    if (!carries_) {
      for (unsigned i = 0; i < n; ++i) frames[i].len[0] = 0;  // returned without sending
    }
    inner_.tx_commit(q, frames, n);
  }
  void info(urnic_port_info* i) const {
    *i = inner_.info();
    i->link_up = i->link_up != 0 && up_ ? 1 : 0;
    i->link_epoch += risen_;
  }
  static const urnic_port_ops* ops() {
    static const urnic_port_ops table = [] {
      urnic_port_ops o{};
      o.abi_version = URNIC_PORT_ABI_VERSION;
      o.size = sizeof o;
      o.kind = "mem";
      o.close = [](urnic_port* p) { delete &of(p); };
      o.info = [](urnic_port* p, urnic_port_info* i) { of(p).info(i); };
      o.stats = [](urnic_port* p, urnic_port_stats* s) { *s = of(p).inner_.stats(); };
      o.rx_burst = [](urnic_port* p, unsigned q, urnic_frame* f, unsigned n) {
        return of(p).receive(q, f, n);
      };
      o.rx_release = [](urnic_port* p, unsigned q, const urnic_frame* f, unsigned n) {
        of(p).inner_.rx_release(q, f, n);
      };
      o.tx_reserve = [](urnic_port* p, unsigned q, std::uint32_t len, urnic_frame* f, unsigned n) {
        return of(p).up_ ? of(p).inner_.tx_reserve(q, len, f, n) : 0u;
      };
      o.tx_commit = [](urnic_port* p, unsigned q, urnic_frame* f, unsigned n) {
        of(p).send(q, f, n);
      };
      o.wait_fds = [](urnic_port* p, unsigned q, int* fds, unsigned most) {
        return of(p).inner_.wait_fds(q, fds, most);
      };
      o.arm = [](urnic_port* p, unsigned q) { return of(p).inner_.arm(q) ? 1 : 0; };
      o.disarm = [](urnic_port* p, unsigned q) { of(p).inner_.disarm(q); };
      o.why = [](urnic_port* p, char* text, std::size_t n) {
        std::strncpy(text, of(p).up_ ? "" : "unplugged", n);
      };
      return o;
    }();
    return &table;
  }

  port::Port inner_;
  bool up_ = true, carries_ = true;
  std::uint32_t risen_ = 0;
  std::set<std::uint8_t> of_tcp_, of_udp_;
};

}  // namespace urnic::test
