// A port behind a faulty wire.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "fault/fault_port.h"
#include "port/memory_port.h"
#include "tcp_frames.h"

namespace urnic::fault {

// A faulty port `a` connected to a plain port `b`, with a clock that the test advances.
struct FaultPortTest : ::testing::Test {
  using Bytes = test::Bytes;
  static FaultPlan plan(const char* text) { return *FaultPlan::parse(text); }
  void open(const char* rx, const char* tx, port::MemoryPairOptions options = {}) {
    auto [inner, other] = port::make_memory_pair(options);
    b = std::move(other);
    FaultOptions o;
    o.rx = plan(rx);
    o.tx = plan(tx);
    o.clock = {[](void* p) { return *static_cast<std::uint64_t*>(p); }, &now_ns, false};
    auto made = wrap_faults(std::move(inner), o);
    a = std::move(made.port);
    control = made.control;
  }
  static bool send(port::Port& p, const Bytes& bytes, bool two_spans = false) {
    port::Frame f;
    if (p.tx_reserve(0, static_cast<std::uint32_t>(bytes.size()), &f, 1) != 1) return false;
    const std::size_t head = two_spans ? 54 : bytes.size();
    std::memcpy(f.data[0], bytes.data(), head);
    f.len[0] = static_cast<std::uint32_t>(head);
    f.data[1] = const_cast<std::uint8_t*>(bytes.data()) + head;
    f.len[1] = static_cast<std::uint32_t>(bytes.size() - head);
    p.tx_commit(0, &f, 1);
    return true;
  }
  static std::vector<Bytes> receive(port::Port& p) {
    std::vector<Bytes> out;
    std::array<port::Frame, 8> f;
    while (const unsigned n = p.rx_burst(0, f.data(), 8)) {
      for (unsigned i = 0; i < n; ++i) {
        Bytes bytes(f[i].data[0], f[i].data[0] + f[i].len[0]);
        bytes.insert(bytes.end(), f[i].data[1], f[i].data[1] + f[i].len[1]);
        out.push_back(std::move(bytes));
      }
      p.rx_release(0, f.data(), n);
    }
    p.rx_release(0, f.data(), 0);
    return out;
  }
  static Bytes segment(std::uint32_t i) {
    return test::tcp_frame({.seq = 1 + 100 * i, .payload = 100});
  }

  std::uint64_t now_ns = 1000;
  port::Port a, b;
  std::shared_ptr<FaultControl> control;
};

}  // namespace urnic::fault
