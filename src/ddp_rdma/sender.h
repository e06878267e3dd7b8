// The sending side of a stream: turns work requests and read responses into FPDUs, remembers which
// FPDU lies where in the stream until it is acknowledged, and rebuilds or copies it for
// retransmission (D5, E-20..E-25). To TCP it is a byte source.
//
//   cut(begin, limit, ...)   how many octets the segment at `begin` shall have: whole FPDUs
//   fill(begin, len, dst)    writes them (copy + CRC + checksum in one pass), returns the sum
//   acked(una, sink)         forget, and complete work requests in posting order
//
// Messages are never interleaved: a started message is finished before another begins (siw kills
// connections otherwise). Read Responses and the send queue take turns by message.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/ring.h"
#include "base/stream_offset.h"
#include "ddp_rdma/memory.h"
#include "ddp_rdma/read_queue.h"
#include "ddp_rdma/work.h"

namespace urnic::ddp {

struct SenderConfig;  // sender_state.h

class Sender {
 public:
  enum class Post : std::uint8_t { Ok, Full, TooManySges, TooLong, InlineTooLong, BadOp };
  // Queue a work request; `wr.sges` is copied. Inline payload is copied now. Local keys are checked
  // when the request is processed: an error completes it with LocalProtection and ends the stream.
  Post post(const SendWr& wr);

  // Bytes that are not FPDUs (MPA Request/Reply) or a ready ULPDU (Terminate, RTR): kept copies.
  void queue_raw(ByteView bytes);
  void queue_ulpdu(ByteView ulpdu);

  // Full operation begins: CRC on or off; FPDUs may now be cut.
  void start(bool crc);
  // No new messages any more (a Terminate was queued, or the stream is closing).
  void stop();

  // End of what may be asked for now, as an estimate for TCP (never too small by a whole segment;
  // equal to the next octet when nothing can be sent).
  StreamOffset available() const;
  bool idle() const;  // nothing queued, nothing unacknowledged, no read outstanding

  struct Cut {
    std::uint32_t len = 0;
    bool push = false;  // the last message ends here and nothing follows: PSH (E-7)
  };
  // Octets of the segment at `begin` (the next new octet, or one sent before): as many whole FPDUs as
  // fit `limit`; a single FPDU is sized by mulpdu(emss). With must_cut, a part of one FPDU when
  // none fits. 0: nothing can be sent now.
  Cut cut(StreamOffset begin, std::uint32_t limit, std::uint32_t emss, bool must_cut);
  // Writes octets [begin, begin+len), which a cut returned (now or earlier). Returns the unfolded
  // Internet sum. False in `*ok` when a source region has vanished: the stream must end.
  std::uint32_t fill(StreamOffset begin, std::uint32_t len, std::uint8_t* dst, bool* ok);

  // All octets below `una` are acknowledged.
  template <class Sink>
  void acked(StreamOffset una, Sink&& on_completion);
  // `n` oldest outstanding Reads are complete.
  template <class Sink>
  void reads_done(std::uint32_t n, Sink&& on_completion);
};

}  // namespace urnic::ddp
