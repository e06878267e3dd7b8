#include "ib_cm/manager.h"

namespace urnic::ib_cm {

void Manager::take(const AddressPair& addresses, ByteView mad, Instant now) {
  core_.make_room();
  ++core_.counters.received;
  const auto h = read_header(mad);
  if (!h.ok()) return core_.counters.count(static_cast<Drop>(h.error()));
  switch (h->attribute) {
    case Attribute::Req:
      return connections_.take_req(addresses, *h, read_req(mad), now);
    case Attribute::Mra:
      return connections_.take_mra(addresses, *h, read_mra(mad), now);
    case Attribute::Rej:
      return connections_.take_rej(addresses, *h, read_rej(mad), now);
    case Attribute::Rep:
      return connections_.take_rep(addresses, *h, read_rep(mad), now);
    case Attribute::Rtu:
      return connections_.take_rtu(addresses, read_rtu(mad));
    case Attribute::Dreq:
      return connections_.take_dreq(addresses, *h, read_dreq(mad), now);
    case Attribute::Drep:
      return connections_.take_drep(addresses, *h, read_rtu(mad), now);
    case Attribute::SidrReq:
      return sidr_.take_req(addresses, *h, read_sidr_req(mad), now);
    case Attribute::SidrRep:
      return sidr_.take_rep(addresses, *h, read_sidr_rep(mad));
    case Attribute::Lap:
      return connections_.take_lap(addresses, *h, read_lap(mad));
    case Attribute::Apr:  // we never load a path
      return core_.counters.count(Drop::Unexpected);
  }
}

void Manager::on_time(Instant now) {
  while (core_.deadlines.next() <= now) {
    core_.make_room();
    Connection& c = *core_.deadlines.take();
    if (c.state >= State::SidrSent) {
      sidr_.on_time(c, now);
    } else {
      connections_.on_time(c, now);
    }
  }
}

bool Manager::next_mad(Outgoing* out) {
  if (core_.outgoing.empty()) return false;
  *out = core_.outgoing.front();
  core_.outgoing.pop_front();
  return true;
}

bool Manager::next_event(Event* event) {
  if (core_.events.empty()) return false;
  *event = core_.events.front();
  core_.events.pop_front();
  return true;
}

Refusal Manager::abandon(Handle h, Instant now) {
  const Connection* const c = core_.table.find(h);
  if (c != nullptr && c->state >= State::SidrSent) return sidr_.abandon(h, now);
  return connections_.abandon(h, now);
}

}  // namespace urnic::ib_cm
