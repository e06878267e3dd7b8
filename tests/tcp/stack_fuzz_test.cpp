// Random input: nothing breaks, whatever arrives.
#include <gtest/gtest.h>

#include "tests/tcp/stack_fixture.h"

namespace urnic::tcp::test {
namespace {

TEST(StackFuzz, SurvivesAnyDatagram) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    StackConfig c;
    c.addresses = {ip("10.0.0.1")};
    c.verify_checksums = false;
    c.options.tcp.receive_buffer = 5000;
    Stack s(c);
    const Endpoint l = s.open();
    s.bind(l, {IpAddress::any_v4(), 80});
    s.listen(l, 4);
    Instant now = Instant::from_ns(1);
    std::uint32_t seq = 0, ack = 0;
    std::vector<Endpoint> open;
    for (int i = 0; i < 4000; ++i) {
      Bytes b(20 + 60 + rng.below(100));
      for (auto& x : b) x = static_cast<std::uint8_t>(rng.next());
      Segment g;
      g.src_port = static_cast<std::uint16_t>(1000 + rng.below(2));
      g.dst_port = 80;
      // Mostly near the expected values, so that it reaches deep into the code.
      g.seq = Seq(seq + static_cast<std::uint32_t>(rng.below(400)) - 200);
      g.ack = Seq(ack + static_cast<std::uint32_t>(rng.below(10)) - 5);
      g.flags = static_cast<std::uint16_t>(rng.chance(0.8) ? std::uint64_t{kAck} : rng.below(256));
      g.window = static_cast<std::uint16_t>(rng.below(65536));
      g.opts.has_ts = rng.chance(0.5);
      g.opts.tsval = static_cast<std::uint32_t>(rng.below(100));
      if (!g.has(kSyn)) {
        g.opts.sack_count = static_cast<std::uint8_t>(rng.below(4));
        for (auto& k : g.opts.sack) {
          k = {Seq(ack + static_cast<std::uint32_t>(rng.below(3000))),
               Seq(ack + static_cast<std::uint32_t>(rng.below(3000)))};
        }
      }
      const std::size_t header = emit_header(g, b.data() + 20);
      net::Ipv4Header h;
      h.total_len = static_cast<std::uint16_t>(20 + header + rng.below(60));
      b.resize(h.total_len);
      h.protocol = net::kProtoTcp;
      h.src = ip("10.0.0.2");
      h.dst = ip("10.0.0.1");
      net::emit_ipv4(h, b.data());
      if (rng.chance(0.1)) b[rng.below(b.size())] = static_cast<std::uint8_t>(rng.next());
      if (rng.chance(0.05)) b.resize(rng.below(b.size()));
      s.input(b, now);
      Datagram d;
      while (s.next_output(&d)) {
        const Seen out = look(d);
        if (out.s.has(kAck)) seq = out.s.ack.value();
        ack = out.s.seq.value() + static_cast<std::uint32_t>(out.payload.size()) +
              (out.s.has(kSyn) ? 1 : 0);
      }
      if (const Endpoint e = s.accept(l, nullptr, now); e != Endpoint::None) open.push_back(e);
      if (!open.empty()) {
        const Endpoint e = open[rng.below(open.size())];
        Bytes io(rng.below(3000));
        switch (rng.below(40)) {
          case 0:
            s.close(e, now);
            break;
          case 1:
            s.shutdown_write(e, now);
            break;
          case 2:
            s.shutdown_read(e, now);
            break;
          case 3:
            s.abort(e, now);
            break;
          default:
            s.write(e, io, now);
            s.read(e, io, now);
            break;
        }
      }
      now = now + Duration::us(static_cast<std::int64_t>(rng.below(20000)));
      if (rng.chance(0.01)) now = now + Duration::s(static_cast<std::int64_t>(rng.below(30)));
      s.run(now);
    }
  }
}

}  // namespace
}  // namespace urnic::tcp::test
