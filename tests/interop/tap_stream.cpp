// tap_stream urnic --port SPEC --address A/N... [options]   urnic's byte-stream TCP on a port
// tap_stream kernel [options]                               the kernel's sockets
//
// Both ends of tap_test, with the same conversations (stream_session.h).
//   --serve PORT            accept on that TCP port; prints "ready" when it does
//   --tcp NAME=VALUE[,...]  options of the byte-stream stack (tcp/stack_options.h); urnic only
//   --congestion NAME      congestion control of the kernel's sockets; kernel only
//   --rx-faults, --tx-faults PLAN, --capture FILE, --mtu N     urnic only; see docs/fault.md
// Commands on standard input, one a line; ends at its end:
//   connect ADDRESS:PORT source|sink BYTES
//   connect ADDRESS:PORT request-response ROUNDS
// Every conversation that ends prints one line of JSON. Exit 1 if one went wrong.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/driver.h"
#include "device/tcp_host.h"
#include "fault/capture_port.h"
#include "fault/fault_port.h"
#include "interop/tap_end.h"

namespace urnic::interop {
namespace {

const char* status_text(tcp::Status s) {
  switch (s) {
    case tcp::Status::Reset:
      return "reset";
    case tcp::Status::Refused:
      return "refused";
    case tcp::Status::TimedOut:
      return "timed out";
    case tcp::Status::Unreachable:
      return "unreachable";
    default:
      return "an error";
  }
}

class UrnicPeer {
 public:
  explicit UrnicPeer(const Options& o) : options_(o), host_(config(o), open_port(o)) {}

  int run() {
    const Instant start = monotonic_now();
    while (!input_.at_end() || !open_.empty()) {
      const Instant now = monotonic_now();
      bool any = host_.poll(now);
      if (!ready_) become_ready(start, now);
      if (ready_) {
        for (const Command& c : commands()) connect(c, now);
        any |= serve(now);
      }
      if (any) continue;
      pollfd in{0, POLLIN, 0};
      host_.wait(Instant::never(), {&in, input_.at_end() ? 0u : 1u});
      input_waits_ = in.revents != 0;
    }
    const device::TcpHostCounters& c = host_.counters();
    const tcp::StackCounters& t = host_.stack().counters();
    const port::Stats p = host_.port().stats();
    std::printf(
        "{\"summary\": \"urnic\", \"frames_in\": %llu, \"frames_out\": %llu, "
        "\"bad_checksum\": %llu, \"unreachable\": %llu, \"overflow\": %llu, "
        "\"dropped_ip\": %llu, \"dropped_header\": %llu, \"no_connection\": %llu, "
        "\"challenge_acks\": %llu, \"port_tx_dropped\": %llu, \"port_rx_bad\": %llu}\n",
        ull(c.frames_in), ull(c.frames_out), ull(c.bad_checksum), ull(c.unreachable),
        ull(c.overflow), ull(t.dropped_ip), ull(t.dropped_header), ull(t.no_connection),
        ull(t.challenge_acks), ull(p.tx_dropped), ull(p.rx_bad));
    return any_failed() ? 1 : 0;
  }

 private:
  struct Open {
    tcp::Endpoint endpoint;
    Session session;
    Watch watch;
    bool shut = false;
  };

  static unsigned long long ull(std::uint64_t v) { return v; }

  static fault::WireClock clock() {
    return {[](void*) { return static_cast<std::uint64_t>(monotonic_now().ns()); }, nullptr, true};
  }

  static device::TcpHostConfig config(const Options& o) {
    device::TcpHostConfig c;
    c.interface.addresses = o.addresses;
    c.interface.mtu = o.mtu;
    c.interface.duplicate_detection = true;
    c.interface.dad = net::DadTiming::quick();
    c.interface.seed = c.stack.seed = static_cast<std::uint64_t>(monotonic_now().ns());
    for (const auto& [option, value] : o.tcp) {
      if (!tcp::set_option(c.stack.options, option, value)) {
        die("value of " + std::string(tcp::option_name(option)));
      }
    }
    if (const std::string wrong = net::check(c.interface); !wrong.empty()) die(wrong);
    return c;
  }

  static port::Port open_port(const Options& o) {
    auto opened = port::Port::open(o.port);
    if (!opened) die(opened.error());
    port::Port p = std::move(*opened);
    if (!o.rx_faults.empty() || !o.tx_faults.empty()) {
      fault::FaultOptions f;
      const auto rx = fault::FaultPlan::parse(o.rx_faults);
      const auto tx = fault::FaultPlan::parse(o.tx_faults);
      if (!rx || !tx) die(!rx ? rx.error() : tx.error());
      f.rx = *rx;
      f.tx = *tx;
      f.clock = clock();
      f.log_capacity = 0;
      p = fault::wrap_faults(std::move(p), std::move(f)).port;
    }
    if (!o.capture.empty()) {
      auto file = fault::CaptureFile::create(o.capture);
      if (!file) die(file.error());
      timespec wall{};
      clock_gettime(CLOCK_REALTIME, &wall);
      const std::int64_t offset =
          std::int64_t{wall.tv_sec} * 1000000000 + wall.tv_nsec - monotonic_now().ns();
      p = fault::wrap_capture(std::move(p), std::move(*file), "urnic", clock(), offset);
    }
    return p;
  }

  // Waits until every configured address is usable.
  void become_ready(Instant start, Instant now) {
    for (const net::OwnAddress& a : host_.interface().addresses()) {
      if (a.state == net::AddressState::Duplicate) die(a.prefix.to_string() + " is taken");
      if (a.state == net::AddressState::Tentative) {
        if (now - start > Duration::s(10)) die("no usable address after 10 s");
        return;
      }
    }
    if (options_.serve != 0) {
      for (const IpAddress& any : {IpAddress::any_v4(), IpAddress::any_v6()}) {
        const tcp::Endpoint e = host_.stack().open();
        host_.stack().bind(e, {any, options_.serve});
        if (host_.stack().listen(e, 64) != tcp::Status::Ok) die("cannot listen");
        listeners_.push_back(e);
      }
    }
    ready_ = input_waits_ = true;
    std::puts("ready");
    std::fflush(stdout);
  }

  std::vector<Command> commands() {
    if (!input_waits_) return {};
    input_waits_ = false;
    return input_.take();
  }

  void connect(const Command& c, Instant now) {
    const tcp::Endpoint e = host_.stack().open();
    const tcp::Status s = host_.connect(e, c.to, now);
    open_.push_back({e, Session(c.job), {}});
    if (s != tcp::Status::InProgress) finish(open_.back(), now, "cannot connect");
  }

  bool serve(Instant now) {
    bool any = false;
    for (const tcp::Endpoint l : listeners_) {
      for (tcp::Endpoint e; (e = host_.stack().accept(l, nullptr, now)) != tcp::Endpoint::None;) {
        open_.push_back({e, {}, {}});
      }
    }
    for (Open& c : open_) any |= converse(c, now);
    std::erase_if(open_, [](const Open& c) { return c.endpoint == tcp::Endpoint::None; });
    return any;
  }

  // Reads and writes everything that is possible now.
  bool converse(Open& c, Instant now) {
    tcp::Stack& stack = host_.stack();
    bool any = false;
    for (;;) {
      const tcp::IoResult r = stack.read(c.endpoint, chunk_, now);
      if (r.status == tcp::Status::WouldBlock || r.status == tcp::Status::InProgress) break;
      if (r.status == tcp::Status::EndOfStream) {
        if (!ended(c)) any = true;
        break;
      }
      if (r.status != tcp::Status::Ok) {
        finish(c, now, status_text(r.status));
        return true;
      }
      any = true;
      if (!c.session.receive(ByteView(chunk_).first(r.bytes))) {
        finish(c, now, "");
        return true;
      }
    }
    for (std::size_t room; !c.shut && (room = stack.readiness(c.endpoint).writable) != 0;) {
      const std::size_t n = c.session.produce(MutBytes(chunk_).first(std::min(room, kChunk)));
      if (n == 0) break;
      any = true;
      if (stack.write(c.endpoint, ByteView(chunk_).first(n), now).bytes != n) {
        finish(c, now, "short write");
        return true;
      }
    }
    if (!c.shut && c.session.finished_sending()) {
      c.shut = any = true;
      stack.shutdown_write(c.endpoint, now);
    }
    c.watch.progress(c.session.content(), now);
    if (c.session.done() || !c.session.error().empty()) finish(c, now, "");
    return any;
  }

  bool ended(Open& c) {
    if (std::find(over_.begin(), over_.end(), c.endpoint) != over_.end()) return true;
    over_.push_back(c.endpoint);
    c.session.end_of_stream();
    return false;
  }

  void finish(Open& c, Instant now, const char* error) {
    const auto s = host_.stack().snapshot(c.endpoint, now);
    report(options_, c.session, c.watch, s ? s->retransmissions : 0, error);
    if (c.session.done()) {
      host_.stack().close(c.endpoint, now);
    } else {
      host_.stack().abort(c.endpoint, now);
    }
    std::erase(over_, c.endpoint);
    c.endpoint = tcp::Endpoint::None;
  }

  Options options_;
  device::TcpHost host_;
  Input input_;
  bool ready_ = false, input_waits_ = false;
  std::vector<tcp::Endpoint> listeners_, over_;
  std::vector<Open> open_;
  std::vector<std::uint8_t> chunk_ = std::vector<std::uint8_t>(kChunk);
};

// Parses "sack=0,congestion-control=2".
void parse_tcp(const std::string& text, Options* o) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    const std::size_t eq = item.find('=');
    const auto option = tcp::option_from_name(item.substr(0, eq));
    if (!option || eq == std::string::npos) die("not an option: " + item);
    o->tcp.emplace_back(*option, std::atoll(item.c_str() + eq + 1));
    at = end + 1;
  }
}

Options parse(int argc, char** argv) {
  Options o;
  if (argc < 2) die("urnic or kernel?");
  const std::string side = argv[1];
  if (side != "urnic" && side != "kernel") die("urnic or kernel, not " + side);
  o.kernel = side == "kernel";
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--serve") {
      o.serve = static_cast<std::uint16_t>(std::atoi(value.c_str()));
    } else if (key == "--mtu") {
      o.mtu = static_cast<std::uint32_t>(std::atoi(value.c_str()));
    } else if (key == "--congestion") {
      o.congestion = value;
    } else if (key == "--tcp") {
      parse_tcp(value, &o);
    } else if (key == "--port") {
      o.port = value;
    } else if (key == "--rx-faults") {
      o.rx_faults = value;
    } else if (key == "--tx-faults") {
      o.tx_faults = value;
    } else if (key == "--capture") {
      o.capture = value;
    } else if (key == "--address") {
      const auto a = IpPrefix::parse(value);
      if (!a) die("not an address: " + value);
      o.addresses.push_back(*a);
    } else {
      die("unknown option " + key);
    }
  }
  if (argc % 2 != 0) die(std::string("no value for ") + argv[argc - 1]);
  if (!o.kernel && (o.port.empty() || o.addresses.empty())) die("--port and --address are needed");
  return o;
}

}  // namespace
}  // namespace urnic::interop

int main(int argc, char** argv) {
  using namespace urnic::interop;
  const Options o = parse(argc, argv);
  if (o.kernel) return run_kernel_end(o);
  return UrnicPeer(o).run();
}
