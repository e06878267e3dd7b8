#include "engine/options.h"

namespace urnic::engine {

void settle_by_port_kind(Options* options, std::string_view kind) {
  const bool shared_memory = kind == "memif" || kind == "mem";
  if (options->rto_auto) {
    if (shared_memory) options->tcp.rto_min = Duration::ms(20);
    options->rto_auto = false;
  }
  if (kind == "udp") options->socket_port = roce::kUdpPort;
  // A burst costs these two less than single frames, and no network behind them has to queue it.
  if (kind == "memif" || kind == "udp") options->roce.turn = 64;
  if (options->out_of_order == Options::OutOfOrder::Auto) {
    // E-12: trusted on wires between processes, not on networks with unknown middleboxes.
    options->out_of_order =
        shared_memory || kind == "dgram" ? Options::OutOfOrder::Place : Options::OutOfOrder::Store;
  }
}

}  // namespace urnic::engine
