// Counters of the engine and its connections as the plain values of the public header (D10).
#include "engine/engine.h"
#include "iwarp/connection_stats.h"
#include "roce/control_stats.h"

namespace urnic {

namespace engine {
namespace {

// This many empty places are checked in the time that one connection takes.
constexpr std::size_t kEmptyPlaces = 16;

}  // namespace

EngineTables Engine::tables() const {
  const iwarp::SideState& side = iwarp_.state();
  EngineTables t;
  t.time_wait = side.time_wait.size();
  t.connections = side.connections.size() + t.time_wait;
  t.flows = side.connections.flows() + t.time_wait;
  side.listeners.for_each([&](const Listener& l) {
    t.pending += l.pending();
    t.half_open += l.backlog.half_open;
  });
  t.queue_pairs = qps_.size();
  t.kept_stats = side.ended.kept();
  t.timers = side.timers.size();
  t.waiting_to_send = side.sending.size();
  t.waiting_to_drain = side.draining.size();
  t.looped = wire_.looped();
  t.regions = memory_.in_use();
  t.neighbours = interface().neighbours().size();
  t.reassembly_bytes = side.pool.in_use();
  t.roce_connections = roce_.connections().size();
  t.cm_connections = roce_.connections().handles();
  t.numbers_in_time_wait = roce_.side().contexts().resting();
  return t;
}

std::string Engine::addresses_text() const {
  if (const KernelTcp* kernel = iwarp_.state().kernel.get()) {
    return kernel->options.bind.is_any() ? "this host's" : kernel->options.bind.to_string();
  }
  std::string out;
  for (const net::OwnAddress& a : interface().addresses()) {
    if (!out.empty()) out += ' ';
    out += a.prefix.to_string();
    if (a.state == net::AddressState::Tentative) out += " (tentative)";
    if (a.state == net::AddressState::Duplicate) out += " (duplicate)";
  }
  return out;
}

void Engine::fill_stats(EngineStats* out, bool with_connections) const {
  const iwarp::SideState& side = iwarp_.state();
  const iwarp::SideCounters& n = side.counters;
  out->port.rx_frames = counters_.rx_frames;
  out->port.rx_bytes = counters_.rx_bytes;
  out->port.tx_frames = wire_.tx().frames_sent();
  out->port.tx_bytes = wire_.tx().bytes_sent();
  const port::Stats p = port_->stats();
  if (over_kernel_tcp_) {
    out->port.rx_bytes = p.rx_bytes;
    out->port.tx_bytes = p.tx_bytes;
  }
  out->port.rx_bad_port = p.rx_bad;
  out->port.syscalls = p.syscalls;
  out->net.rx_bad_ip = 0;
  for (const net::DropReason r : {net::DropReason::IpVersion, net::DropReason::IpHeader,
                                  net::DropReason::IpChecksum, net::DropReason::Ipv6Extension}) {
    out->net.rx_bad_ip += interface().counters().dropped_by(r);
  }
  out->iwarp.rx_bad_tcp_checksum = n.bad_checksum;
  out->net.rx_fragments = interface().counters().dropped_by(net::DropReason::Fragment);
  const tcp::HostCounters& host = n.tcp;
  out->iwarp.rx_no_connection = host.no_connection;
  out->iwarp.rx_tcp_dropped = n.dropped + host.dropped_backlog;
  out->iwarp.cookies_sent = host.cookies_sent;
  out->iwarp.cookies_accepted = host.cookies_accepted;
  out->iwarp.challenge_acks = host.challenge_acks;
  out->iwarp.challenge_acks_withheld = host.challenge_acks_withheld;
  out->iwarp.rst_sent = n.rst_sent;
  out->iwarp.connections_refused = over_kernel_tcp_ ? side.kernel->connections_refused : 0;
  out->net.address_conflicts = interface().counters().address_conflicts;
  out->port.tx_full = wire_.times_full();
  out->polls = counters_.polls;
  out->connections_opened = n.opened;
  out->connections_closed = n.closed;
  out->connections_failed = n.failed;
  out->peers_denied = n.denied;
  out->peers_over_limit = n.over_limit;
  out->iwarp.reassembly_bytes = side.pool.in_use();
  out->verbs.regions = memory_.in_use();
  out->ended = side.ended.totals();
  out->connections.clear();
  roce::fill_totals(roce_, out);
  if (!with_connections) return;
  const std::size_t all = iwarp_.state().connections.places() + roce_.side().contexts().places();
  for (StatsPlace place; add_connections(*this, &place, all + 1, &out->connections);) {
  }
}

bool add_connections(const Engine& engine, StatsPlace* place, std::size_t most,
                     std::vector<ConnectionStats>* out) {
  const iwarp::ConnectionTable& all = engine.iwarp().state().connections;
  const roce::ControlPath& roce = engine.roce_control();
  std::size_t looks = kEmptyPlaces * most;  // an empty place costs time, too
  std::size_t found = 0;
  for (; place->iwarp < all.places(); ++place->iwarp) {
    if (found == most || looks-- == 0) return true;
    if (const Connection* c = all.in(place->iwarp); c != nullptr) {
      out->push_back(iwarp::stats_of(*c));
      ++found;
    }
  }
  for (; place->roce < roce.side().contexts().places(); ++place->roce) {
    if (found == most || looks-- == 0) return true;
    if (roce::add_connection(roce, place->roce, out)) ++found;
  }
  return false;
}

}  // namespace engine
}  // namespace urnic
