// One end of connection management in virtual time, and values for the other end.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ib_cm/manager.h"

namespace urnic::ib_cm::test {

using Bytes = std::vector<std::uint8_t>;

inline IpAddress host(int which) {
  return IpAddress::v4(10, 77, 0, static_cast<std::uint8_t>(which));
}
inline constexpr std::uint16_t kPort = 7174;
inline constexpr std::uint64_t kService = service_of(PortSpace::Tcp, kPort);
inline constexpr std::uint64_t kUdService = service_of(PortSpace::Udp, kPort);

inline Options keyed(std::uint64_t key) {
  Options o;
  o.key = {key, 77};
  o.ca_guid = 0x0200000000000000 + key;
  return o;
}

struct End {
  explicit End(int which, const Options& o) : me(host(which)), manager(o) {}
  explicit End(int which) : End(which, keyed(static_cast<std::uint64_t>(which))) {}

  AddressPair to(const IpAddress& peer) const { return {me, peer}; }
  std::vector<Outgoing> mads() {
    std::vector<Outgoing> all;
    for (Outgoing o; manager.next_mad(&o);) all.push_back(o);
    return all;
  }
  std::vector<Event> events() {
    std::vector<Event> all;
    for (Event e; manager.next_event(&e);) all.push_back(e);
    return all;
  }
  Connect connect_to(const IpAddress& peer, std::uint32_t qpn = 0x11) const {
    Connect c;
    c.addresses = to(peer);
    c.service = kService;
    c.source_port = 40000;
    c.qp = {qpn, ib::Psn(0x86ec4b), 1, 1, 7, false, false};
    return c;
  }

  IpAddress me;
  Manager manager;
};

inline Attribute attribute_of(const Mad& mad) {
  return read_header(mad)->attribute;
}
inline std::vector<EventKind> kinds_of(const std::vector<Event>& events) {
  std::vector<EventKind> all;
  for (const Event& e : events) all.push_back(e.kind);
  return all;
}
inline std::vector<Attribute> attributes_of(const std::vector<Outgoing>& mads) {
  std::vector<Attribute> all;
  for (const Outgoing& o : mads) all.push_back(attribute_of(o.mad));
  return all;
}
inline ByteView bytes_of(const char* text) {
  return {reinterpret_cast<const std::uint8_t*>(text), std::strlen(text)};
}
// The first bytes of the data are `text`, and the rest is zero.
inline bool begins_with(const PrivateData& data, const char* text, std::size_t room) {
  const ByteView v = data.view(), wanted = bytes_of(text);
  return v.size() == room && std::equal(wanted.begin(), wanted.end(), v.begin()) &&
         std::all_of(v.begin() + static_cast<std::ptrdiff_t>(wanted.size()), v.end(),
                     [](std::uint8_t b) { return b == 0; });
}

// Two ends, and a wire between them that a test can watch and change.
class Couple : public ::testing::Test {
 protected:
  // Delivers the messages of `from` to the other end, and returns their kinds.
  std::vector<Attribute> carry(End& from) {
    std::vector<Attribute> all;
    for (const Outgoing& o : from.mads()) {
      deliver(from, o);
      all.push_back(attribute_of(o.mad));
    }
    return all;
  }
  void deliver(End& from, const Outgoing& o) {
    EXPECT_EQ(o.addresses.local, from.me);
    End& to = &from == &a ? b : a;
    EXPECT_EQ(o.addresses.remote, to.me);
    to.manager.take({o.addresses.remote, o.addresses.local}, o.mad, now);
  }
  // Runs until neither end has anything to send.
  void settle() {
    while (a.manager.wants_to_send() || b.manager.wants_to_send()) {
      carry(a);
      carry(b);
    }
  }
  // Advances to the next deadline of either end.
  void wait() {
    now = earlier(a.manager.due(), b.manager.due());
    ASSERT_FALSE(now.is_never());
    a.manager.on_time(now);
    b.manager.on_time(now);
  }
  void wait(End& e) {
    now = e.manager.due();
    ASSERT_FALSE(now.is_never());
    e.manager.on_time(now);
  }

  Handle listen_and_ask(ByteView data = {}) {
    listener = b.manager.listen({kService, {}, Transport::Rc, 16});
    active = *a.manager.connections().connect(a.connect_to(b.me), data, now);
    return active;
  }
  // The event of a REQ that has arrived at b.
  Event request() {
    for (const Event& e : b.events()) {
      if (e.kind == EventKind::ConnectRequest) {
        passive = e.handle;
        return e;
      }
    }
    ADD_FAILURE() << "nobody asks";
    return {};
  }
  static QpValues values(std::uint32_t qpn = 0x22) {
    return {qpn, ib::Psn(0xb77b34), 1, 1, 7, false, false};
  }
  // Brings both ends to the named state.
  void connect_up_to_rep() {
    listen_and_ask();
    carry(a);
    request();
    EXPECT_EQ(b.manager.connections().accept(passive, values(), {}, now), Refusal::None);
  }
  void connect() {
    connect_up_to_rep();
    carry(b);
    EXPECT_EQ(a.manager.connections().confirm(active, {}), Refusal::None);
    carry(a);
    a.events();
    b.events();
  }
  State state_of(End& e, Handle h) {
    const Connection* const c = e.manager.find(h);
    return c == nullptr ? State{0xff} : c->state;
  }
  std::uint64_t drops(End& e, Drop d) { return e.manager.counters().of(d); }

  Instant now = Instant::from_ns(1'000'000);
  End a{2}, b{3};
  ListenerId listener = 0;
  Handle active = 0, passive = 0;
};

}  // namespace urnic::ib_cm::test
