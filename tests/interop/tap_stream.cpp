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
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "device/driver.h"
#include "device/stream_host.h"
#include "fault/capture_port.h"
#include "fault/fault_port.h"
#include "interop/stream_session.h"

namespace urnic::interop {
namespace {

using engine::monotonic_now;

constexpr std::size_t kChunk = 64 * 1024;

struct Options {
  bool kernel = false;
  std::string port, rx_faults, tx_faults, capture, congestion;
  std::vector<IpPrefix> addresses;
  std::uint16_t serve = 0;
  std::uint32_t mtu = 65535;
  std::vector<std::pair<tcp::Option, std::int64_t>> tcp;
};

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "tap_stream: %s\n", why.c_str());
  std::exit(2);
}

// What a connection is measured by.
struct Watch {
  Instant begin = monotonic_now(), first, last_progress;
  Duration longest_pause;
  std::uint64_t content = 0;

  void progress(std::uint64_t now_content, Instant now) {
    if (now_content == content) return;
    if (content == 0) first = now;
    if (content != 0) longest_pause = std::max(longest_pause, now - last_progress);
    content = now_content;
    last_progress = now;
  }
};

bool failed = false;

void report(const Options& o, const Session& s, const Watch& w, std::uint64_t retransmissions,
            std::string error) {
  if (error.empty()) error = s.error();
  if (error.empty() && !s.done()) error = "ended early";
  if (!error.empty()) failed = true;
  const double seconds = static_cast<double>((monotonic_now() - w.begin).count_ns()) / 1e9;
  std::printf(
      "{\"side\": \"%s\", \"client\": %s, \"role\": \"%s\", \"content\": %llu, "
      "\"rounds\": %u, \"seconds\": %.4f, \"retransmissions\": %llu, "
      "\"longest_pause_ms\": %.1f, \"error\": \"%s\"}\n",
      o.kernel ? "kernel" : "urnic", s.is_client() ? "true" : "false",
      std::string(role_name(s.job().role)).c_str(), static_cast<unsigned long long>(s.content()),
      s.rounds_done(), seconds, static_cast<unsigned long long>(retransmissions),
      static_cast<double>(w.longest_pause.count_ns()) / 1e6, error.c_str());
  std::fflush(stdout);
}

// ---- commands
// ---------------------------------------------------------------------------------------

struct Command {
  SocketAddress to;
  Job job;
};

std::optional<Command> parse_command(const std::string& line) {
  char address[80], role[40];
  unsigned long long n = 0;
  if (std::sscanf(line.c_str(), "connect %79s %39s %llu", address, role, &n) != 3) {
    return std::nullopt;
  }
  const auto to = SocketAddress::parse(address);
  const auto r = role_from_name(role);
  if (!to || !r || n == 0) return std::nullopt;
  Command c{*to, {}};
  c.job.role = *r;
  c.job.seed = n * 2654435761u + to->port;
  if (*r == Role::Echo) {
    c.job.rounds = static_cast<std::uint32_t>(n);
  } else {
    c.job.bytes = n;
  }
  return c;
}

class Input {
 public:
  Input() { fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK); }
  bool at_end() const { return end_; }

  std::vector<Command> take() {
    std::vector<Command> out;
    char part[512];
    for (;;) {
      const ssize_t n = ::read(0, part, sizeof part);
      if (n == 0) end_ = true;
      if (n <= 0) break;
      text_.append(part, static_cast<std::size_t>(n));
    }
    for (std::size_t e; (e = text_.find('\n')) != text_.npos; text_.erase(0, e + 1)) {
      const auto c = parse_command(text_.substr(0, e));
      if (!c) die("not a command: " + text_.substr(0, e));
      out.push_back(*c);
    }
    return out;
  }

 private:
  std::string text_;
  bool end_ = false;
};

// ---- urnic
// ------------------------------------------------------------------------------------------

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
    const engine::StreamHostCounters& c = host_.counters();
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
    return failed ? 1 : 0;
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

  static engine::StreamHostConfig config(const Options& o) {
    engine::StreamHostConfig c;
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

  // When every configured address is usable.
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

  // Everything that can be read and written now.
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
  engine::StreamHost host_;
  Input input_;
  bool ready_ = false, input_waits_ = false;
  std::vector<tcp::Endpoint> listeners_, over_;
  std::vector<Open> open_;
  std::vector<std::uint8_t> chunk_ = std::vector<std::uint8_t>(kChunk);
};

// ---- kernel
// -----------------------------------------------------------------------------------------

sockaddr_storage socket_address(const SocketAddress& a, socklen_t* length) {
  sockaddr_storage out{};
  if (a.ip.is_v6()) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&out);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(a.port);
    std::memcpy(&v6->sin6_addr, a.ip.bytes().data(), 16);
    *length = sizeof *v6;
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&out);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(a.port);
    std::memcpy(&v4->sin_addr, a.ip.bytes().data(), 4);
    *length = sizeof *v4;
  }
  return out;
}

class KernelPeer {
 public:
  explicit KernelPeer(const Options& o) : options_(o) {
    if (o.serve == 0) return;
    listener_ = port::Fd(socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    set_congestion(listener_.get());
    socklen_t length = 0;
    const sockaddr_storage a = socket_address({IpAddress::any_v6(), o.serve}, &length);
    if (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&a), length) != 0 ||
        listen(listener_.get(), 64) != 0) {
      die(std::string("cannot listen: ") + std::strerror(errno));
    }
  }

  int run() {
    std::puts("ready");
    std::fflush(stdout);
    for (;;) {
      for (const Command& c : input_.take()) connect(c);
      if (input_.at_end() && open_.empty()) break;
      std::vector<pollfd> fds;
      fds.push_back({input_.at_end() ? -1 : 0, POLLIN, 0});
      fds.push_back({listener_.get(), POLLIN, 0});
      for (Open& c : open_) {
        const bool out = c.begin < c.end || !c.shut;
        fds.push_back(
            {c.fd.get(), static_cast<short>(POLLIN | (out && c.hungry ? POLLOUT : 0)), 0});
      }
      ::poll(fds.data(), fds.size(), -1);
      for (Open& c : open_) converse(c);
      std::erase_if(open_, [](const Open& c) { return !c.fd; });
      accept_all();
    }
    return failed ? 1 : 0;
  }

 private:
  struct Open {
    port::Fd fd;
    Session session;
    Watch watch;
    std::vector<std::uint8_t> out = std::vector<std::uint8_t>(kChunk);
    std::size_t begin = 0, end = 0;  // of what is in `out`
    bool hungry = true;              // there is something to write
    bool shut = false, over = false;
  };

  void accept_all() {
    if (!listener_) return;
    for (;;) {
      port::Fd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd) return;
      open_.push_back({std::move(fd), {}, {}});
    }
  }

  // Accepted sockets have their listener's.
  void set_congestion(int fd) const {
    const std::string& name = options_.congestion;
    if (!name.empty() && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(),
                                    static_cast<socklen_t>(name.size())) != 0) {
      die(name + ": " + std::strerror(errno));
    }
  }

  void connect(const Command& c) {
    socklen_t length = 0;
    const sockaddr_storage a = socket_address(c.to, &length);
    port::Fd fd(socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    set_congestion(fd.get());
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&a), length) != 0 &&
        errno != EINPROGRESS) {
      die(std::string("connect: ") + std::strerror(errno));
    }
    open_.push_back({std::move(fd), Session(c.job), {}});
  }

  void converse(Open& c) {
    while (!c.over) {
      const ssize_t n = recv(c.fd.get(), chunk_.data(), chunk_.size(), 0);
      if (n < 0 && (errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN)) break;
      if (n < 0) return finish(c, std::strerror(errno));
      if (n == 0) {
        c.over = true;
        c.session.end_of_stream();
      } else if (!c.session.receive(ByteView(chunk_).first(static_cast<std::size_t>(n)))) {
        return finish(c, "");
      }
    }
    for (;;) {
      if (c.begin == c.end) {
        c.begin = 0;
        c.end = c.session.produce(c.out);
        if (c.end == 0) break;
      }
      const ssize_t n = ::send(c.fd.get(), c.out.data() + c.begin, c.end - c.begin, MSG_NOSIGNAL);
      if (n < 0 && (errno == EAGAIN || errno == EINPROGRESS || errno == ENOTCONN)) break;
      if (n < 0) return finish(c, std::strerror(errno));
      c.begin += static_cast<std::size_t>(n);
    }
    c.hungry = c.begin < c.end;
    if (!c.shut && !c.hungry && c.session.finished_sending()) {
      c.shut = true;
      shutdown(c.fd.get(), SHUT_WR);
    }
    c.watch.progress(c.session.content(), monotonic_now());
    if (c.session.done() || !c.session.error().empty()) finish(c, "");
  }

  void finish(Open& c, const char* error) {
    tcp_info info{};
    socklen_t length = sizeof info;
    getsockopt(c.fd.get(), IPPROTO_TCP, TCP_INFO, &info, &length);
    report(options_, c.session, c.watch, info.tcpi_total_retrans, error);
    c.fd = port::Fd();
  }

  Options options_;
  Input input_;
  port::Fd listener_;
  std::vector<Open> open_;
  std::vector<std::uint8_t> chunk_ = std::vector<std::uint8_t>(kChunk);
};

// "sack=0,congestion-control=2"
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
  if (o.kernel) return KernelPeer(o).run();
  return UrnicPeer(o).run();
}
