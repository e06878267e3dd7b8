// A run: segments of new data of one size, sent back to back on a connection without losses. Makes
// once the decisions that plan_send(), write_header() and sent() would make for each segment:
//
//   n = run_length(tcb, bytes, now)             how many may be sent; 0: send them one by one
//   RunHeader header(tcb, ports, pseudo, bytes, now)
//   for each: header.write(tcb.snd.nxt, sum, dst); run_segment_sent(tcb, bytes, now)
//   run_sent(tcb, now)                           if there was at least one
//
// The connection must not be changed in between.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "base/inet_checksum.h"
#include "tcp/tcb_state.h"

namespace urnic::tcp {

// Number of segments of `bytes` payload that plan_send() would now send one after another, without
// FIN, PSH or SACK blocks. The source must hold more than that many, and `bytes` must be the size
// the source makes from emss().
std::uint32_t run_length(const Tcb&, std::uint32_t bytes, Instant now);

// The TCP header that the segments share.
class RunHeader {
 public:
  // `pseudo_sum` as for write_header().
  RunHeader(const Tcb&, std::uint16_t src_port, std::uint16_t dst_port, std::uint32_t pseudo_sum,
            std::uint32_t bytes, Instant now);

  std::uint32_t size() const { return size_; }
  // ECN codepoint for the IP header.
  std::uint8_t ect() const { return ect_; }
  // Writes size() bytes for the segment that begins at `begin`, whose payload has the unfolded
  // Internet sum `payload_sum`.
  void write(StreamOffset begin, std::uint32_t payload_sum, std::uint8_t* dst) const {
    const std::uint32_t seq = first_ + static_cast<std::uint32_t>(begin.value());
    // 20 or 32 bytes: two copies of constant length, and no call.
    std::memcpy(dst, bytes_.data(), 20);
    if (size_ == 32) std::memcpy(dst + 20, bytes_.data() + 20, 12);
    store_be32(dst + 4, seq);
    store_be16(dst + 16, inet_checksum(sum_ + seq + payload_sum));
  }

 private:
  std::array<std::uint8_t, 32> bytes_;
  std::uint32_t first_;  // sequence number of offset 0
  std::uint32_t size_ = 20;
  std::uint64_t sum_ = 0;  // sum of all fields that do not change
  std::uint8_t ect_ = 0;
};

inline void run_segment_sent(Tcb& t, std::uint32_t bytes, Instant now) {
  t.sent_segments.push(t.snd.nxt, bytes, false, now);
  t.snd.nxt += bytes;
}
void run_sent(Tcb&, Instant now);

}  // namespace urnic::tcp
