// A pump between two wires, and the frames that enter and leave at their ends.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <tuple>
#include <vector>

#include "fault/pump.h"
#include "port/memory_port.h"
#include "tcp_frames.h"

namespace urnic::fault {

// left == a ~~pump~~ b == right
struct PumpTest : ::testing::Test {
  using Bytes = test::Bytes;
  void open(port::MemoryPairOptions l = {}, port::MemoryPairOptions r = {}) {
    std::tie(left, a) = port::make_memory_pair(l);
    std::tie(b, right) = port::make_memory_pair(r);
  }
  static bool send(port::Port& p, const Bytes& b, unsigned q = 0) {
    port::Frame f;
    if (p.tx_reserve(q, static_cast<std::uint32_t>(b.size()), &f, 1) != 1) return false;
    std::memcpy(f.data[0], b.data(), b.size());
    p.tx_commit(q, &f, 1);
    return true;
  }
  static std::vector<Bytes> receive(port::Port& p, unsigned q = 0) {
    std::vector<Bytes> out;
    std::array<port::Frame, 32> f;
    while (const unsigned n = p.rx_burst(q, f.data(), 32)) {
      for (unsigned i = 0; i < n; ++i) out.emplace_back(f[i].data[0], f[i].data[0] + f[i].len[0]);
      p.rx_release(q, f.data(), n);
    }
    return out;
  }
  static Bytes segment(std::uint32_t i, std::size_t size = 100) {
    return test::tcp_frame({.seq = 1 + i * static_cast<std::uint32_t>(size), .payload = size});
  }
  port::Port left, a, b, right;
};

}  // namespace urnic::fault
