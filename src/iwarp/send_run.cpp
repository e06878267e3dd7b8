// The fast path of sending: full segments from the middle of a large message, for which TCP and the
// stream's sender decide once. The frames equal those that send_segment() would make one by one.
#include <algorithm>

#include "iwarp/transmitter.h"
#include "tcp/run.h"

namespace urnic::iwarp {

unsigned Transmitter::send_run(Connection& c, unsigned most, Instant now) {
  if (c.loopback || c.stream == nullptr) return 0;
  ddp::Sender& sender = c.stream->sender;
  ddp::SendRun run;
  if (!sender.begin_run(c.tcb.snd.nxt, tcp::emss(c.tcb), &run)) return 0;
  most = std::min({most, run.left, tcp::run_length(c.tcb, run.wire, now)});
  if (most == 0) return 0;

  const tcp::RunHeader tcp_header(c.tcb, c.key.local_port, c.key.remote_port,
                                  c.header.pseudo_sum(0), run.wire, now);
  const std::uint32_t before = static_cast<std::uint32_t>(c.header.size());
  const std::uint32_t segment = tcp_header.size() + run.wire;
  port::TxBatch& tx = s_.wire.tx();
  unsigned n = 0;
  for (; n < most; ++n) {
    port::Frame* const slot = tx.next();
    if (slot == nullptr) break;
    std::uint8_t* const frame = slot->data[0];
    std::uint8_t* const at = frame + before;
    std::uint32_t sum;
    if (!sender.next_of_run(&run, at + tcp_header.size(), &sum)) break;
    tcp_header.write(c.tcb.snd.nxt, sum, at);
    c.header.emit(frame, segment, c.ip_id++, tcp_header.ect());
    tcp::run_segment_sent(c.tcb, run.wire, now);
    slot->len[0] = before + segment;
    slot->len[1] = 0;
    tx.keep();
  }
  if (n == 0) return 0;
  tcp::run_sent(c.tcb, now);
  c.counters.segments_out += n;
  return n;
}

}  // namespace urnic::iwarp
