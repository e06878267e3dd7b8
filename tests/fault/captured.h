// Ports whose frames are captured to a file, with a clock that does not advance.
#pragma once

#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "fault/capture_port.h"
#include "port/memory_port.h"
#include "tcp_frames.h"

namespace urnic::fault::captured {

struct TempDir {
  TempDir() {
    std::string t = (std::filesystem::temp_directory_path() / "urnic-capture-XXXXXX").string();
    path = mkdtemp(t.data());
  }
  ~TempDir() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return path + "/" + name; }
  std::string path;
};

inline test::Bytes read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::uint64_t fixed_time(void*) {
  return 5000000123;
}
inline const WireClock kClock{fixed_time, nullptr, false};

inline bool send(port::Port& p, const test::Bytes& b, std::size_t head) {
  port::Frame f;
  if (p.tx_reserve(0, static_cast<std::uint32_t>(b.size()), &f, 1) != 1) return false;
  std::memcpy(f.data[0], b.data(), head);
  f.len[0] = static_cast<std::uint32_t>(head);
  f.data[1] = const_cast<std::uint8_t*>(b.data()) + head;
  f.len[1] = static_cast<std::uint32_t>(b.size() - head);
  p.tx_commit(0, &f, 1);
  return true;
}
inline unsigned drain(port::Port& p) {
  std::array<port::Frame, 32> f;
  const unsigned n = p.rx_burst(0, f.data(), 32);
  p.rx_release(0, f.data(), n);
  return n;
}

}  // namespace urnic::fault::captured
