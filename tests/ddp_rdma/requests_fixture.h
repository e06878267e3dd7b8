// A send queue with requests, without a sender.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "ddp_rdma/send_requests.h"
#include "ddp_rdma/shared_state.h"

namespace urnic::ddp::test {

class RequestsFixture : public ::testing::Test {
 protected:
  static constexpr PdId kPd = 3;
  static constexpr StreamId kStream = 5;

  RequestsFixture() {
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i);
    key = memory.register_memory(kPd, source.data(), source.size(), kLocalWrite);
  }
  // Posts one request with one piece per length; each piece begins 100 bytes after the previous
  // one.
  void post(WrOp op, std::initializer_list<std::uint32_t> lengths, std::uint8_t flags = kSignaled) {
    std::array<Sge, 4> sges;
    std::size_t n = 0;
    for (const std::uint32_t len : lengths) {
      sges[n] = {reinterpret_cast<std::uintptr_t>(source.data()) + n * 100, len, key};
      ++n;
    }
    SendWr wr;
    wr.wr_id = queue.tail() + 10;
    wr.op = op;
    wr.flags = flags;
    wr.sges = {sges.data(), n};
    ASSERT_EQ(queue.post(wr), verbs::Post::Ok);
  }
  // Returns the completions reported now.
  std::vector<std::uint64_t> reported() {
    std::vector<std::uint64_t> ids;
    requests.report([&](const Completion& c) { ids.push_back(c.wr_id); });
    return ids;
  }

  std::array<std::uint8_t, 1000> source;
  MemoryTable memory;
  SharedState shared{&memory};
  SendQueue queue{16, 4, 64, sizeof(SendPart)};
  SendRequests requests{&queue, &memory, kPd};
  std::uint32_t key = 0;
};

}  // namespace urnic::ddp::test
