#include "net/wire.h"

#include <utility>

namespace urnic::net {

net::HeaderTemplate Wire::make_header(const MacAddress& to, const IpAddress& from,
                                      const IpAddress& dst) const {
  net::HeaderTemplateConfig h;
  h.src_mac = interface_.mac();
  h.dst_mac = to;
  h.vlan = interface_.vlan();
  h.src = from;
  h.dst = dst;
  return net::HeaderTemplate(h);
}

Wire::Bytes Wire::next_looped() {
  Bytes first = std::move(loop_.front());
  loop_.pop_front();
  return first;
}

void Wire::send_control_frames() {
  while (interface_.output_size() != 0) {
    port::Frame* slot = tx_.next();
    if (slot == nullptr) return;
    const std::size_t n = interface_.next_output({slot->data[0], tx_.frame_size()});
    if (n == 0) return;
    slot->len[0] = static_cast<std::uint32_t>(n);
    slot->len[1] = 0;
    tx_.keep();
  }
}

void Wire::finish_sending() {
  send_control_frames();  // resolving a next hop may have queued an ARP or ND request
  if (tx_.full()) ++times_full_;
  tx_.flush();
}

}  // namespace urnic::net
