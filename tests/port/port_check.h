// Shared by the tests of all ports: send and receive whole frames with verifiable content.
#pragma once

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "port/port.h"

namespace urnic::port::check {

using Bytes = std::vector<std::uint8_t>;

inline std::uint64_t monotonic_ms() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000 +
         static_cast<std::uint64_t>(t.tv_nsec) / 1000000;
}

// `len` bytes that depend on the seed and on their position.
inline void fill_pattern(std::uint8_t* p, std::size_t len, std::uint32_t seed) {
  std::uint32_t x = seed * 2654435761u + 12345u;
  for (std::size_t i = 0; i < len; ++i) {
    x = x * 1664525u + 1013904223u;
    p[i] = static_cast<std::uint8_t>(x >> 24);
  }
}
inline Bytes pattern(std::size_t len, std::uint32_t seed) {
  Bytes b(len);
  fill_pattern(b.data(), len, seed);
  return b;
}

inline bool send_one(Port& p, unsigned q, const Bytes& bytes) {
  Frame f;
  if (p.tx_reserve(q, static_cast<std::uint32_t>(bytes.size()), &f, 1) != 1) return false;
  std::memcpy(f.data[0], bytes.data(), bytes.size());
  f.len[0] = static_cast<std::uint32_t>(bytes.size());
  p.tx_commit(q, &f, 1);
  return true;
}

inline Bytes joined(const Frame& f) {
  Bytes b(f.data[0], f.data[0] + f.len[0]);
  if (f.len[1] != 0) b.insert(b.end(), f.data[1], f.data[1] + f.len[1]);
  return b;
}

// Events that are immediate on an idle machine take seconds on a busy one: only a failing test
// waits that long.
inline constexpr unsigned kSoonMs = 20'000;

// The next frame, or nothing if none arrives within `ms`.
inline Bytes receive_one(Port& p, unsigned q, unsigned ms = kSoonMs) {
  const std::uint64_t end = monotonic_ms() + ms;
  do {
    Frame f;
    if (p.rx_burst(q, &f, 1) == 1) {
      Bytes b = joined(f);
      p.rx_release(q, &f, 1);
      return b;
    }
  } while (monotonic_ms() < end);
  return {};
}

// Sleeps like an engine. False if there was no wake-up for `ms`.
inline bool sleep_on(Port& p, unsigned q, int ms) {
  if (p.arm(q)) return true;
  std::array<int, 8> fds{};
  const unsigned n = p.wait_fds(q, fds.data(), fds.size());
  std::array<pollfd, 8> polled{};
  for (unsigned i = 0; i < n; ++i) polled[i] = {fds[i], POLLIN, 0};
  const int woken = poll(polled.data(), n, ms);
  p.disarm(q);
  return woken > 0;
}

// Sends frames with their number in the first four bytes, followed by a pattern.
inline bool send_numbered(Port& p, unsigned q, std::uint32_t count, std::uint32_t len,
                          unsigned give_up_ms = kSoonMs) {
  const std::uint64_t end = monotonic_ms() + give_up_ms;
  for (std::uint32_t next = 0; next < count;) {
    std::array<Frame, kBurst> f;
    const unsigned got =
        p.tx_reserve(q, len, f.data(), std::min<std::uint32_t>(kBurst, count - next));
    if (got == 0) {
      if (monotonic_ms() > end) return false;
      // The receiver may need this call to detect that the link is up.
      Frame none;
      if (p.rx_burst(q, &none, 1) == 1) p.rx_release(q, &none, 1);
      sleep_on(p, q, 100);
      continue;
    }
    for (unsigned i = 0; i < got; ++i) {
      fill_pattern(f[i].data[0], len, next);
      store_be32(f[i].data[0], next++);
      f[i].len[0] = len;
    }
    p.tx_commit(q, f.data(), got);
  }
  return true;
}

// Empty if `count` numbered frames arrived in order and complete; otherwise the error.
inline std::string receive_numbered(Port& p, unsigned q, std::uint32_t count, std::uint32_t len,
                                    unsigned give_up_ms = kSoonMs) {
  const std::uint64_t end = monotonic_ms() + give_up_ms;
  Bytes want(len);
  for (std::uint32_t next = 0; next < count;) {
    std::array<Frame, kBurst> f;
    const unsigned got = p.rx_burst(q, f.data(), kBurst);
    std::string wrong;
    for (unsigned i = 0; i < got && wrong.empty(); ++i) {
      const Bytes b = joined(f[i]);
      fill_pattern(want.data(), len, next);
      store_be32(want.data(), next);
      if (b != want) {
        wrong = "frame " + std::to_string(next) + " of " + std::to_string(len) + " bytes: got " +
                std::to_string(b.size()) + " bytes, number " +
                (b.size() >= 4 ? std::to_string(load_be32(b.data())) : "none");
      }
      ++next;
    }
    p.rx_release(q, f.data(), got);
    if (!wrong.empty()) return wrong;
    if (got == 0) {
      if (monotonic_ms() > end) return "only " + std::to_string(next) + " frames came";
      sleep_on(p, q, 100);
    }
  }
  return "";
}

}  // namespace urnic::port::check
