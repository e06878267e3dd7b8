// Connection management: messages of arbitrary bytes are parsed, written and parsed again. One end
// receives arbitrary packets, mostly MADs that match its state, while its owner makes arbitrary
// calls. Memory is bounded, a handle has no events after its release, and every exchange ends.
#include <algorithm>
#include <map>

#include "ib_cm/manager.h"
#include "tests/fuzz/input.h"

namespace urnic::fuzz {
namespace {

using namespace ib_cm;
using Bytes = std::vector<std::uint8_t>;

Mad again(const MadHeader& h, const Mad& m) {
  switch (h.attribute) {
    case Attribute::Req:
      return write(h.transaction, read_req(m), h.modifier);
    case Attribute::Mra:
      return write(h.transaction, read_mra(m));
    case Attribute::Rej:
      return write(h.transaction, read_rej(m));
    case Attribute::Rep:
      return write(h.transaction, read_rep(m), h.modifier);
    case Attribute::Rtu:
      return write_rtu(h.transaction, read_rtu(m));
    case Attribute::Dreq:
      return write(h.transaction, read_dreq(m));
    case Attribute::Drep:
      return write_drep(h.transaction, read_rtu(m));
    case Attribute::SidrReq:
      return write(h.transaction, read_sidr_req(m));
    case Attribute::SidrRep:
      return write(h.transaction, read_sidr_rep(m));
    default:
      return m;
  }
}

// Writing a parsed message gives the same bytes except reserved ones, and the same again.
void message(const Bytes& b) {
  const auto h = read_header(b);
  if (!h.ok()) {
    require(b.size() != kMadBytes || b[0] != 1 || b[1] != 7 || b[2] != 2 || b[3] != 3 ||
                b[16] != 0 || b[17] < 0x10 || b[17] > 0x1a,
            "a MAD of ours is none");
    return;
  }
  Mad m;
  std::copy(b.begin(), b.end(), m.begin());
  const Mad once = again(*h, m);
  require(again(*read_header(once), once) == once, "what was written is not what was read");
}

IpAddress host(std::uint32_t n) {
  return IpAddress::v4(10, 0, 0, static_cast<std::uint8_t>(n));
}

class Owner {
 public:
  explicit Owner(Input& in) : in_(in), manager_(options(in)) {
    manager_.listen({kTcp, {}, Transport::Rc, 1 + in.below(8)});
    manager_.listen({kUdp, {}, Transport::Rc, 1 + in.below(8)});
  }

  void run() {
    while (!in_.empty()) {
      step();
      fetch();
      require(manager_.size() <= 40 && manager_.half_open() <= 16, "more than may be");
    }
    for (const auto& [h, released] : handles_) {
      if (!released) manager_.abandon(h, now_);
    }
    fetch();
    for (int i = 0; !manager_.due().is_never(); ++i) {
      manager_.on_time(now_ = manager_.due());
      fetch();
      require(i < 100'000, "time without end");
    }
    require(manager_.size() == 0, "something is left that nobody waits for");
    for (const auto& [h, released] : handles_) require(released, "a handle without a release");
  }

 private:
  static constexpr std::uint64_t kTcp = service_of(PortSpace::Tcp, 1);
  static constexpr std::uint64_t kUdp = service_of(PortSpace::Udp, 1);

  static Options options(Input& in) {
    Options o;
    o.key = {in.u32(), 1};
    o.most = 40;
    o.most_half_open = 16;
    return o;
  }

  void step() {
    switch (in_.below(8)) {
      case 0:
        return begin();
      case 1:
        return act(any_handle());
      case 2:
        if (!manager_.due().is_never()) manager_.on_time(now_ = std::max(now_, manager_.due()));
        return;
      default:
        return arrive();
    }
  }

  void begin() {
    AddressPair addresses{host(1), host(2 + in_.below(3))};
    if (in_.often(64)) {
      if (const auto h = manager_.sidr().resolve({addresses, kUdp, 1}, {}, now_); h.ok()) own(*h);
      return;
    }
    Connect c;
    c.addresses = addresses;
    c.service = kTcp;
    c.qp.qpn = 2 + in_.below(8);
    c.response_timeout = static_cast<std::uint8_t>(in_.below(32));
    c.max_cm_retries = static_cast<std::uint8_t>(in_.below(4));
    if (const auto h = manager_.connections().connect(c, {}, now_); h.ok()) own(*h);
  }
  void own(Handle h) {
    require(h != 0 && (!handles_.contains(h) || handles_[h]), "a handle that is somebody's");
    handles_[h] = false;
  }
  Handle any_handle() {
    if (handles_.empty() || in_.often(16)) return in_.u32();
    auto it = handles_.begin();
    std::advance(it, in_.below(static_cast<std::uint32_t>(handles_.size())));
    return it->first;
  }

  void act(Handle h) {
    Connections& c = manager_.connections();
    const Bytes data(in_.below(256));
    switch (in_.below(8)) {
      case 0:
        c.confirm(h, data);
        return;
      case 1:
        c.accept(h, {in_.below(20), ib::Psn(1)}, data, now_);
        return;
      case 2:
        c.reject(h, Reason::Consumer, data, now_);
        return;
      case 3:
        c.established(h);
        return;
      case 4:
        c.disconnect(h, data, now_);
        return;
      case 5:
        manager_.sidr().answer(h, {SidrStatus::Valid, in_.below(20), 1}, data, now_);
        return;
      case 6:
        manager_.abandon(h, now_);
        return;
      default:
        c.accept(h, {2 + in_.below(20), ib::Psn(1)}, {}, now_);
    }
  }

  // A matching message, possibly with some bytes changed or truncated.
  void arrive() {
    const IpAddress from = host(2 + in_.below(3));
    const Handle h = any_handle();
    const Connection* const c = manager_.find(h);
    const std::uint32_t theirs = c != nullptr && c->remote_id != 0 ? c->remote_id : 1 + in_.u8();
    const std::uint64_t exchange = c != nullptr ? c->transaction : in_.u8();
    Mad m = fitting(from, h, theirs, exchange, c != nullptr ? c->qpn : 0);
    for (std::uint32_t n = in_.often(128) ? 0 : in_.below(4); n != 0; --n) {
      m[in_.below(kMadBytes)] = in_.u8();
    }
    const std::size_t bytes = in_.often(250) ? m.size() : in_.below(kMadBytes);
    const Bytes exact(m.begin(), m.begin() + static_cast<std::ptrdiff_t>(bytes));
    manager_.take({host(1), c != nullptr && in_.often(200) ? c->addresses.remote : from}, exact,
                  now_);
  }
  Mad fitting(const IpAddress& from, Handle h, std::uint32_t theirs, std::uint64_t exchange,
              std::uint32_t qpn) {
    std::array<std::uint8_t, kIpHeaderBytes> ip;
    write_ip_header({from, host(1), 9}, ip.data());
    switch (in_.below(10)) {
      case 0:
      case 1: {
        Req r;
        r.local_id = theirs;
        r.service = kTcp;
        r.qpn = 2 + in_.below(8);
        r.pkey = 0xffff;
        r.path_mtu = 3;
        r.remote_timeout = in_.u8();
        r.local_timeout = in_.u8();
        r.max_cm_retries = static_cast<std::uint8_t>(in_.below(4));
        r.primary.local = gid_of(from);
        r.primary.remote = gid_of(host(1));
        r.primary.ack_timeout = in_.u8();
        r.private_data = ip;
        return write(exchange, r);
      }
      case 2: {
        Rep r;
        r.local_id = theirs;
        r.remote_id = h;
        r.qpn = 2 + in_.below(8);
        return write(exchange, r);
      }
      case 3:
        return write_rtu(exchange, {theirs, h, {}});
      case 4:
        return write(exchange, Mra{theirs, h, static_cast<Which>(in_.below(3)), in_.u8(), {}});
      case 5:
        return write(exchange, Rej{theirs, in_.often(32) ? 0 : h, Which::Req, Reason::Consumer});
      case 6:
        return write(exchange, Dreq{theirs, h, qpn, {}});
      case 7:
        return write_drep(exchange, {theirs, h, {}});
      case 8:
        return write(exchange, SidrReq{theirs, 0xffff, kUdp, ip});
      default: {
        SidrRep r;
        r.request_id = h;
        return write(exchange, r);
      }
    }
  }

  void fetch() {
    std::size_t n = 0;
    for (Outgoing o; manager_.next_mad(&o); ++n) {
      require(read_header(o.mad).ok(), "what is sent is no MAD");
    }
    require(n <= 100, "more is sent than anybody asked for");
    for (Event e; manager_.next_event(&e);) {
      const bool begins =
          e.kind == EventKind::ConnectRequest || e.kind == EventKind::ServiceRequest;
      if (begins) own(e.handle);
      const auto it = handles_.find(e.handle);
      require(it != handles_.end() && !it->second, "something behind the release, or of nobody");
      it->second = e.kind == EventKind::Released;
    }
  }

  Input& in_;
  Manager manager_;
  Instant now_ = Instant::from_ns(1);
  std::map<Handle, bool> handles_;  // true if released
};

}  // namespace
}  // namespace urnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace urnic::fuzz;
  Input in(data, size);
  if (in.often(64)) {
    Bytes b = in.rest();
    if (b.size() >= urnic::ib_cm::kMadBytes) {
      b.resize(urnic::ib_cm::kMadBytes);
      const std::uint8_t head[] = {1, 7, 2, 3};
      std::copy(std::begin(head), std::end(head), b.begin());
      b[16] = 0;
      b[17] = static_cast<std::uint8_t>(0x10 + b[17] % 11);
    }
    message(b);
  } else {
    Owner(in).run();
  }
  return 0;
}
