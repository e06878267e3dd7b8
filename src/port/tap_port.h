// The TAP port: the other end is the kernel of this machine. Super-segments are split and joined
// here (E-33), so that one system call moves up to 64 KiB. Keys and rights: docs/ports.md.
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "port/adapter.h"
#include "port/counters.h"
#include "port/port.h"
#include "port/super_segment.h"
#include "port/tap_device.h"

namespace urnic::port {

class TapPort : public ReusesRxBuffers {
 public:
  static Outcome<std::unique_ptr<TapPort>, std::string> make(Args& args);

  void info(urnic_port_info* i) const;
  void stats(urnic_port_stats* s) const;
  unsigned rx_burst(unsigned q, urnic_frame* frames, unsigned n);
  unsigned tx_reserve(unsigned q, std::uint32_t len, urnic_frame* frames, unsigned n);
  void tx_commit(unsigned q, urnic_frame* frames, unsigned n);
  unsigned wait_fds(unsigned q, int* fds, unsigned max);
  int arm(unsigned q);
  void disarm(unsigned q);

 private:
  // bound: frames of a TAP device written or read at once; beyond: the rest waits in the transmit
  // ring, which does not lend a buffer that holds a waiting frame; test:
  // TransmitRing.NeverLendsABufferWithAWaitingFrame,
  // TransmitRing.FramesNotKeptAreLentAgainAndNotSent
  static constexpr std::size_t kMost = 64;  // frames per burst, each direction
  // The largest result of one read: Ethernet with tags and 64 KiB of IP.
  static constexpr std::size_t kReadSize = VnetHeader::kSize + 14 + 8 + 65536;
  static constexpr std::size_t kReadStep = (kReadSize + 63) / 64 * 64;
  // Small enough to stay in the cache. Reads are stored one after another. A super-segment that is
  // still being split at the end of a burst keeps its place and leaves room for another one before
  // or after it.
  static constexpr std::size_t kArena = 200 * 1024;

  explicit TapPort(TapDevice device);
  enum class Read : std::uint8_t { kFrame, kSuper, kSkip, kNothing };
  Read read_one(urnic_frame* f);
  void write_run(const urnic_frame* const* frames, unsigned n);
  void write_all(const iovec* iov, unsigned n, std::size_t bytes, unsigned frames);
  void make_room();
  void take_news();

  TapDevice device_;
  std::uint32_t max_frame_;
  QueueCounters counters_;
  // Receive. Frames of the last burst are borrowed, and so is the super-segment being split.
  std::unique_ptr<std::uint8_t[]> rx_memory_, rx_headers_;
  std::size_t next_read_ = 0, read_limit_ = kArena;  // where the next read may be stored
  std::size_t super_begin_ = 0, super_end_ = 0;      // the super-segment being split
  Splitter splitter_;
  bool splitting_ = false;
  bool slept_ = false;
  bool gone_ = false;  // the interface was deleted
  // Transmit.
  std::unique_ptr<std::uint8_t[]> tx_memory_;
  std::size_t tx_stride_;
  unsigned promised_ = 0;
  Joiner joiner_;
  bool up_ = true;
  std::uint32_t epoch_ = 1, calls_ = 0;
};

}  // namespace urnic::port
