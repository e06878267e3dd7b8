// The untouched connection of two devices (spared.h is the counterpart for two engines): whatever
// calls are made beside it, its data arrives once, in order and intact.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/input.h"
#include "urnic/urnic.h"

namespace urnic::fuzz {

class SparedConnection {
 public:
  // From a to b, at that address of b.
  SparedConnection(Device& a, Device& b, Transport transport, const std::string& address) {
    Device* const devices[] = {&a, &b};
    for (int i = 0; i < 2; ++i) sides_[i].make(*devices[i], transport);
    for (Side& s : sides_) {
      while (s.receives < kSlots) s.post_receive();
    }
    BindOptions o;
    o.transport = transport;
    const std::uint16_t port = transport == Transport::roce ? 7001 : 7002;
    const std::string at = address + ":" + std::to_string(port);
    auto bound = b.bind(at, o);
    require(bound.ok(), "the spared connection cannot bind");
    auto listener = b.listen(*bound, 4, sides_[1].events, nullptr);
    require(listener.ok(), "the spared connection cannot listen");
    require(sides_[0].qp.connect_start(at).ok(), "the spared connection cannot begin");
    for (int i = 0; i < 4000 && !(sides_[0].up && sides_[1].up); ++i) {
      a.progress();
      b.progress();
      for (Side& s : sides_) s.take_events();
      if (i > 100) usleep(200);  // if other threads drive the devices
    }
    require(sides_[0].up && sides_[1].up, "the spared connection does not come about");
  }

  // Sends one more message from that end, if fewer than half of the slots are in use.
  void say(unsigned from) {
    Side &s = sides_[from], &to = sides_[1 - from];
    if (is_over_ || s.sent - to.heard >= kSlots / 2) return;
    const std::uint64_t slot = s.sent % kSlots;
    const std::uint32_t length = length_of(s.sent);
    for (std::uint32_t i = 0; i < length; ++i) {
      s.memory[slot * kSlot + i] = byte(from, s.sent, i);
    }
    const Sge sge = s.sge(slot * kSlot, length);
    SendRequest r;
    r.wr_id = s.sent;
    r.sges = {&sge, 1};
    r.opcode = Opcode::write;
    r.flags = 0;
    r.rkey = to.mr.rkey();
    r.remote_address = to.at(kArea + slot * kSlot);
    SendRequest tell = r;
    tell.opcode = Opcode::send;
    tell.flags = send_signaled;
    const SendRequest both[] = {r, tell};
    Error why;
    const std::size_t taken = s.qp.post_send(both, &why);
    if (taken != 2 && end("the spared connection takes nothing: " + why.message)) return;
    ++s.sent;
  }
  // Received messages must be those sent.
  void listen() {
    for (unsigned i = 0; i < 2 && !is_over_; ++i) {
      Completion c[8];
      for (int n; !is_over_ && (n = sides_[i].cq.poll(c)) > 0;) {
        for (int k = 0; k < n && !is_over_; ++k) take(i, c[k]);
      }
      sides_[i].take_events();
    }
  }
  bool all_heard() const {
    return is_over_ || (sides_[0].sent == sides_[1].heard && sides_[1].sent == sides_[0].heard);
  }
  // From now on it may end: there was no memory.
  void allow_end() { may_end_ = true; }
  bool is_over() const { return is_over_; }
  std::uint64_t heard() const { return sides_[0].heard + sides_[1].heard; }
  void check() const {
    for (const Side& s : sides_) {
      require(s.memory[3 * kArea] == 0x5a, "memory beside the spared connection was written");
    }
  }

 private:
  static constexpr std::uint32_t kSlots = 16, kSlot = 3000, kArea = kSlots * kSlot;

  struct Side {
    void make(Device& d, Transport transport) {
      device = &d;
      events = *d.create_event_queue();
      pd = *d.alloc_pd();
      cq = *d.create_cq(256);
      memory.assign(3 * kArea + 1, 0x5a);
      mr = *d.register_memory(pd, memory.data(), 3 * kArea,
                              access_local_write | access_remote_write);
      QpOptions o;
      o.send_cq = o.receive_cq = cq;
      o.events = events;
      o.transport = transport;
      auto made = d.create_qp(pd, o);
      require(made.ok(), "the spared queue pair cannot be made");
      qp = std::move(*made);
      if (transport == Transport::roce) {
        QpAttributes init;
        init.access = access_remote_write;
        require(qp.modify(QpState::init, init).ok(), "the spared queue pair is not init");
      }
    }
    std::uint64_t at(std::uint64_t offset) const { return mr.remote_address() + offset; }
    Sge sge(std::uint64_t offset, std::uint32_t length) const {
      return {at(offset), length, mr.lkey()};
    }
    void post_receive() {
      const Sge into = sge(2 * kArea + receives % kSlots * kSlot, kSlot);
      if (qp.post_receive({receives, {&into, 1}}).ok()) ++receives;
    }
    void take_events() {
      Event e;
      while (events.poll(&e)) {
        if (e.kind == EventKind::connect_request) {
          require(e.request.accept(qp).ok(), "the spared connection is not accepted");
        }
        up = up || e.kind == EventKind::established;
      }
    }

    Device* device = nullptr;
    EventQueue events;
    ProtectionDomain pd;
    CompletionQueue cq;
    std::vector<std::uint8_t> memory;
    MemoryRegion mr;
    QueuePair qp;
    bool up = false;
    std::uint64_t sent = 0, heard = 0, receives = 0;
  };

  static std::uint32_t length_of(std::uint64_t n) {
    return 1 + static_cast<std::uint32_t>(n * 977 % kSlot);
  }
  static std::uint8_t byte(unsigned from, std::uint64_t n, std::uint32_t i) {
    return static_cast<std::uint8_t>(n * 31 + i * 7 + (i >> 8) + from);
  }
  bool end(const std::string& why) {
    if (!may_end_) fail(why);
    return is_over_ = true;
  }
  void take(unsigned at, const Completion& c) {
    Side& s = sides_[at];
    if (c.status != WcStatus::success) {
      end(std::string("the spared connection ended: ") + to_string(c.status));
      return;
    }
    if (c.opcode != Opcode::receive) return;
    Side& from = sides_[1 - at];
    require(s.heard < from.sent, "a message arrived that was never sent");
    require(c.wr_id == s.heard, "a receive completed out of turn");
    require(c.byte_len == length_of(s.heard), "a message arrived with another length");
    const std::uint64_t slot = s.heard % kSlots * kSlot;
    for (std::uint32_t i = 0; i < c.byte_len; ++i) {
      const std::uint8_t wanted = byte(1 - at, s.heard, i);
      require(s.memory[2 * kArea + slot + i] == wanted, "a Send arrived with other bytes");
      require(s.memory[kArea + slot + i] == wanted, "a Write arrived with other bytes");
    }
    ++s.heard;
    s.post_receive();
  }

  std::array<Side, 2> sides_;
  bool may_end_ = false, is_over_ = false;
};

}  // namespace urnic::fuzz
