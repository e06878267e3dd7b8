#include "peer.h"

#include <errno.h>
#include <getopt.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace urnic::interop {
namespace {

std::uint32_t number(const char* text, std::uint32_t lo, std::uint32_t hi, char option) {
  const std::string_view view = text;
  std::uint32_t value = 0;
  const auto [end, bad] = std::from_chars(view.data(), view.data() + view.size(), value);
  if (bad != std::errc() || end != view.data() + view.size() || value < lo || value > hi) {
    die("-" + std::string(1, option) + " expects a whole number from " + std::to_string(lo) +
        " to " + std::to_string(hi));
  }
  return value;
}

}  // namespace

void die(const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, what.c_str());
  std::_Exit(1);  // not exit: the engine's thread may be in the middle of some work
}

Command parse_command(int argc, char** argv, Command defaults) {
  Command c = std::move(defaults);
  for (int option; (option = getopt(argc, argv, "c:p:m:C:n:S:s:d:t:o:")) != -1;) {
    switch (option) {
      case 'c':
        c.client = true;
        c.address = optarg;
        break;
      case 'p':
        c.port = static_cast<std::uint16_t>(number(optarg, 1, 65535, 'p'));
        break;
      case 'm':
        c.mode = optarg;
        break;
      case 'd':
        c.private_bytes = number(optarg, 0, 512, 'd');
        break;
      case 'C':
      case 'n':
        c.count = number(optarg, 1, 10'000'000, static_cast<char>(option));
        break;
      case 'S':
      case 's':
        c.size = number(optarg, 1, 1u << 30, static_cast<char>(option));
        break;
      case 't':
        c.timeout_s = static_cast<int>(number(optarg, 1, 3600, 't'));
        break;
      case 'o': {
        const std::string_view setting = optarg;
        const std::size_t equals = setting.find('=');
        if (equals == std::string_view::npos) die("-o expects name=value");
        const auto set = c.config.set(setting.substr(0, equals), setting.substr(equals + 1));
        if (!set) die(set.error().message);
        break;
      }
      default:
        die("usage: [-c ADDRESS] [-p PORT] [-m MODE] [-C COUNT] [-S SIZE] [-d BYTES] [-t SECONDS] "
            "[-o name=value]...");
    }
  }
  if (optind != argc) die(std::string("not an option: ") + argv[optind]);
  return c;
}

Buffer::Buffer(Device& device, const ProtectionDomain& pd, std::size_t length, std::uint32_t access)
    : bytes_(length) {
  auto region = device.register_memory(pd, bytes_.data(), bytes_.size(), access);
  if (!region) die("register_memory: " + region.error().message);
  region_ = std::move(*region);
}

Sge Buffer::sge(std::size_t offset, std::size_t length) const {
  return {reinterpret_cast<std::uint64_t>(bytes_.data()) + offset,
          static_cast<std::uint32_t>(length), region_.lkey()};
}

Host::Host(const Command& command)
    : until_(std::chrono::steady_clock::now() + std::chrono::seconds(command.timeout_s)) {
  auto device = Device::open(command.config);
  if (!device) die("open: " + device.error().message);
  device_ = std::move(*device);
  auto pd = device_.alloc_pd();
  if (!pd) die("alloc_pd: " + pd.error().message);
  pd_ = std::move(*pd);
  if (!device_.wait_link(left("the link"))) die("the link did not come up");
}

int Host::left(const char* what) const {
  using namespace std::chrono;
  const auto ms = duration_cast<milliseconds>(until_ - steady_clock::now()).count();
  if (ms <= 0) die(std::string("timed out waiting for ") + what);
  return static_cast<int>(ms);
}

void Host::settle() {
  for (int i = 0; i < 200 && !device_.stats().connections.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

Connection::Connection(Host& host, std::uint32_t max_receive) : host_(host) {
  const auto queue = [&] {
    auto cq = host.device().create_cq(std::max(512u, 2 * max_receive));
    if (!cq) die("create_cq: " + cq.error().message);
    return std::move(*cq);
  };
  sends_ = queue();
  receives_ = queue();
  auto events = host.device().create_event_queue();
  if (!events) die("create_event_queue: " + events.error().message);
  events_ = std::move(*events);
  QpOptions options;
  options.send_cq = sends_;
  options.receive_cq = receives_;
  options.events = events_;
  options.max_receive = max_receive;
  auto qp = host.device().create_qp(host.pd(), options);
  if (!qp) die("create_qp: " + qp.error().message);
  qp_ = std::move(*qp);
  if (qp_.state() != QpState::reset) return;
  QpAttributes rights;  // for RoCE: from now on receives can be posted
  rights.access = access_remote_write | access_remote_read;
  if (auto ok = qp_.modify(QpState::init, rights); !ok) die("modify: " + ok.error().message);
}

Event Connection::next_event(const char* what) {
  Event event;
  if (!events_.wait(&event, host_.left(what))) host_.left(what), die(std::string("no ") + what);
  return event;
}

Event Connection::try_connect(const std::string& address, const ConnectionOptions& options) {
  if (auto ok = qp_.connect_start(address, options); !ok) die("connect: " + ok.error().message);
  return next_event("the connection");
}

bool Connection::connect(const std::string& address) {
  const Event event = try_connect(address);
  if (event.kind == EventKind::established) return true;
  if (event.kind == EventKind::connect_failed && event.error.code == Errc::refused) return false;
  die("connect: " + event.error.message);
}

void Connection::accept(ConnectRequest& request, const ConnectionOptions& options) {
  if (auto ok = request.accept(qp_, options); !ok) die("accept: " + ok.error().message);
  const Event event = next_event("the connection");
  if (event.kind != EventKind::established) die("accept: " + event.error.message);
}

void Connection::post_receive(const Sge& sge) {
  ReceiveRequest request;
  request.sges = {&sge, 1};
  if (auto ok = qp_.post_receive(request); !ok) die("post_receive: " + ok.error().message);
}

std::optional<Completion> Connection::receive() {
  Completion c;
  for (;;) {
    const int n = receives_.poll({&c, 1});
    if (n < 0) die("the receive completion queue has overrun");
    if (n == 1) break;
    receives_.wait(host_.left("a message"));
  }
  if (c.status == WcStatus::flushed) return std::nullopt;
  if (c.status != WcStatus::success) die(std::string("receive: ") + to_string(c.status));
  return c;
}

std::uint32_t Connection::receive_some() {
  Completion c[32];
  const int n = receives_.poll(c);
  if (n < 0) die("the receive completion queue has overrun");
  for (int i = 0; i < n; ++i) {
    if (c[i].status != WcStatus::success) die(std::string("receive: ") + to_string(c[i].status));
  }
  return static_cast<std::uint32_t>(n);
}

void Connection::post(const SendRequest& request) {
  if (auto ok = qp_.post_send(request); !ok) die("post_send: " + ok.error().message);
}

Completion Connection::complete_any() {
  Completion c;
  for (;;) {
    const int n = sends_.poll({&c, 1});
    if (n < 0) die("the send completion queue has overrun");
    if (n == 1) return c;
    sends_.wait(host_.left("a completion"));
  }
}

Completion Connection::complete() {
  const Completion c = complete_any();
  if (c.status != WcStatus::success) {
    Event event;  // gives more detail than the status
    const std::string why = events_.wait(&event, 100) ? event.error.message : "";
    die(std::string("send queue: ") + to_string(c.status) + (why.empty() ? "" : " (" + why + ")"));
  }
  return c;
}

void Connection::run(const SendRequest& request) {
  post(request);
  complete();
}

void Connection::close() {
  qp_.disconnect();
  await_close();
}

void Connection::await_close() {
  const Event event = next_event("the end of the connection");
  if (event.kind != EventKind::disconnected) die("not an orderly end: " + event.error.message);
}

void report(const std::string& peer, const std::string& own_members, const ConnectionStats& s) {
  const auto n = [](const char* name, std::uint64_t value) {
    return ", \"" + std::string(name) + "\": " + std::to_string(value);
  };
  std::string line = "{\"peer\": \"" + peer + "\"";
  if (!own_members.empty()) line += ", " + own_members;
  line += ", \"transport\": \"" + s.transport + "\"";
  line += n("requests_repeated", s.roce.requests_repeated);
  line += std::string(", \"fast\": ") + (s.iwarp.fast ? "true" : "false");
  line += std::string(", \"crc\": ") + (s.iwarp.mpa.crc ? "true" : "false");
  line += ", \"slow_reason\": \"" + s.iwarp.slow_reason + "\"";
  line += n("downgrades", s.iwarp.downgrades) + n("recovery_attempts", s.iwarp.recovery_attempts) +
          n("bytes_fast", s.iwarp.bytes_fast) + n("bytes_slow", s.iwarp.bytes_slow) +
          n("bytes_copied", s.iwarp.bytes_copied) + n("payload_placed", s.verbs.payload_placed) +
          n("sends_sent", s.verbs.sends_sent) + n("sends_received", s.verbs.sends_received) +
          n("write_bytes_sent", s.verbs.write_bytes_sent) +
          n("write_bytes_received", s.verbs.write_bytes_received) +
          n("reads_sent", s.verbs.reads_sent) +
          n("read_requests_received", s.verbs.read_requests_received) +
          n("read_response_bytes_sent", s.verbs.read_response_bytes_sent) +
          n("read_response_bytes_received", s.verbs.read_response_bytes_received) +
          n("terminates_sent", s.iwarp.ddp.terminates_sent) +
          n("terminates_received", s.iwarp.ddp.terminates_received) +
          n("segments_in", s.iwarp.tcp.segments_in) + n("segments_out", s.iwarp.tcp.segments_out) +
          n("retransmits", s.iwarp.tcp.retransmits) +
          n("rto_expirations", s.iwarp.tcp.rto_expirations) +
          n("dup_acks_out", s.iwarp.tcp.dup_acks_out) + n("srtt_us", s.iwarp.tcp.srtt_us) +
          n("mss", s.iwarp.tcp.mss);
  std::printf("%s}\n", line.c_str());
  std::fflush(stdout);
}

void put_be32(std::uint8_t* at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
}
void put_be64(std::uint8_t* at, std::uint64_t value) {
  put_be32(at, static_cast<std::uint32_t>(value >> 32));
  put_be32(at + 4, static_cast<std::uint32_t>(value));
}
std::uint32_t get_be32(const std::uint8_t* at) {
  return static_cast<std::uint32_t>(at[0]) << 24 | static_cast<std::uint32_t>(at[1]) << 16 |
         static_cast<std::uint32_t>(at[2]) << 8 | at[3];
}
std::uint64_t get_be64(const std::uint8_t* at) {
  return static_cast<std::uint64_t>(get_be32(at)) << 32 | get_be32(at + 4);
}

}  // namespace urnic::interop
