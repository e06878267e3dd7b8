#include "sim/rd/rd_wire.h"

#include <vector>

#include "fault/plan.h"
#include "ib/check.h"
#include "net/classify.h"
#include "port/memory_port.h"

namespace urnic::sim {
namespace {

MacAddress mac_of(int which) {
  const std::uint8_t bytes[6] = {2, 0, 0, 0, 0, static_cast<std::uint8_t>(which + 1)};
  return MacAddress::from_bytes(bytes);
}

roce::FrameHeaders headers_of(int which) {
  roce::FrameConfig config;
  config.source = mac_of(which);
  config.destination = mac_of(1 - which);
  config.av.local = RdWire::address_of(which);
  config.av.remote = RdWire::address_of(1 - which);
  return roce::FrameHeaders(config);
}

}  // namespace

IpAddress RdWire::address_of(int which) {
  return IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(which + 1));
}

RdWire::End RdWire::make_end(port::Port inner, const Setup& setup, int which, std::uint64_t seed) {
  fault::FaultOptions options;
  const Phase& first = setup.phases.front();
  if (const auto p = fault::FaultPlan::parse(which == 0 ? first.to_right : first.to_left)) {
    options.tx = *p;
  }
  options.tx.seed = seed * 2 + 3 + static_cast<unsigned>(which);
  options.log_capacity = 0;
  options.clock.now_ns = [](void* clock) {
    return static_cast<std::uint64_t>(static_cast<const Instant*>(clock)->ns());
  };
  options.clock.context = const_cast<Instant*>(&clock_);
  return {fault::wrap_faults(std::move(inner), options), headers_of(which)};
}

RdWire::RdWire(const Setup& setup, std::uint64_t seed, const Instant& clock) : clock_(clock) {
  port::MemoryPairOptions ports;
  ports.max_frame = setup.mtu + 18;
  auto [left, right] = port::make_memory_pair(ports);
  ends_[0] = make_end(std::move(left), setup, 0, seed);
  ends_[1] = make_end(std::move(right), setup, 1, seed);
}

bool RdWire::send(int from, const ib::PacketHeader& header, std::span<const ByteView> pieces,
                  std::uint32_t payload) {
  End& end = ends_[from];
  const std::size_t bytes = end.headers.size() + ib::packet_bytes(header.bth.opcode, payload);
  port::Frame frame{};
  if (end.line.port.tx_reserve(0, static_cast<std::uint32_t>(bytes), &frame, 1) != 1) {
    return false;
  }
  frame.len[0] =
      static_cast<std::uint32_t>(end.headers.write(frame.data[0], header, pieces, payload));
  end.line.port.tx_commit(0, &frame, 1);
  return true;
}

bool RdWire::receive(int at, const std::function<void(const ib::ParsedPacket&)>& take) {
  port::Frame frames[port::kBurst];
  const unsigned n = ends_[at].line.port.rx_burst(0, frames, port::kBurst);
  std::vector<std::uint8_t> whole;
  for (unsigned i = 0; i != n; ++i) {
    const port::Frame& f = frames[i];
    whole.assign(f.data[0], f.data[0] + f.len[0]);
    whole.insert(whole.end(), f.data[1], f.data[1] + f.len[1]);
    const auto c = net::classify(whole, static_cast<std::uint32_t>(whole.size()));
    if (!roce::is_ours(c, whole)) continue;
    const auto found = roce::find_packet(c, whole);
    if (!found) continue;
    const ByteView datagram = ByteView(whole).subspan(found->offset, found->bytes);
    const auto packet = ib::open_packet(found->ip_udp, datagram);
    if (packet.ok()) {
      take(*packet);
    } else if (packet.error() == ib::Drop::BadIcrc) {
      ++bad_icrc_;
    }
  }
  if (n != 0) ends_[at].line.port.rx_release(0, frames, n);
  return n != 0;
}

Instant RdWire::next_release() const {
  return earlier(ends_[0].line.control->next_release(), ends_[1].line.control->next_release());
}

fault::FaultCounters RdWire::counters(int from) const {
  return ends_[from].line.control->counters(fault::Direction::Tx);
}

}  // namespace urnic::sim
