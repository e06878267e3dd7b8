// Both ends of the protocol of `ib_write_bw -R`, `ib_read_bw`, `ib_send_bw` and `ib_write_lat` of
// perftest 4.5 (protocol version 6.06), over urnic: -m write, read, send, write-lat.
//
// Two connections to one port. On the first ("control") the sides exchange pairs of Sends of equal
// length, the client's first:
//
//   version          16 bytes of text, NUL-padded
//   page size         4 bytes, big endian      the larger one is used by both
//   cache line        4 bytes, big endian      likewise
//   MTU               2 bytes of text          an ibv_mtu enumerator
//   destination      56 bytes (Destination)    all zero: before the data connection is established
//   destination      56 bytes                  all zero: after it was established
//   destination      56 bytes, three times     own keys; the third only synchronizes both sides
//                    (send, write-lat: four)    (send and write-lat have another one)
//   write, read      56 bytes                  the client has posted everything
//                    5 times 8 bytes, big endian: size, iterations, then peak and average MB/s
//                    and messages per second (10^6) as doubles
//   destination      56 bytes                  final message; not with write-lat
//
// The second connection carries the data, between the last destination before it and the next:
//
//   write      the client Writes, all to one address if the size is above half a page. The last
//              "destination" may overtake data, because it uses another connection: our server
//              sends the final message only when all bytes have been placed.
//   read       the client Reads, likewise.
//   send       the client Sends. On iWARP the server Writes how many it has received (host order, 4
//              bytes) to the address the client gave as its own, at every third of its receives.
//   write-lat  both Write alternately, the server first; the last byte of a message is its number,
//              counted from 1, and the receiver polls that byte until it changes.
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "peer.h"

namespace urnic::interop {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kDestination = 56, kVersion = 16, kPage = 4096;
constexpr std::uint32_t kCacheLine = 64, kDepth = 128;
constexpr char kOurVersion[kVersion] = "6.06";
constexpr int kConnectTries = 50;  // perftest listens again for the data connection: try repeatedly

// The layout of perftest's structure on a 64-bit machine, fields big endian.
struct Destination {
  std::uint32_t lid = 0, out_reads = 0, qpn = 0, psn = 0, rkey = 0;
  std::uint64_t address = 0;

  void write(std::uint8_t* out) const {
    std::memset(out, 0, kDestination);  // gid, shared receive queue and gid index stay 0
    put_be32(out + 0, lid);
    put_be32(out + 4, out_reads);
    put_be32(out + 8, qpn);
    put_be32(out + 12, psn);
    put_be32(out + 16, rkey);
    put_be64(out + 24, address);
  }
  static Destination read(const std::uint8_t* in) {
    return {get_be32(in),      get_be32(in + 4),  get_be32(in + 8),
            get_be32(in + 12), get_be32(in + 16), get_be64(in + 24)};
  }
};

struct Result {
  std::uint64_t size = 0, iterations = 0;
  double peak = 0, average = 0, rate = 0;
};

// The control connection.
class Control {
 public:
  Control(Host& host, bool client)
      : connection_(host),
        client_(client),
        out_(host.device(), host.pd(), kDestination, 0),
        in_(host.device(), host.pd(), kDestination, access_local_write) {
    connection_.post_receive(in_.sge(0, kDestination));
  }
  Connection& connection() { return connection_; }

  // Exchanges one pair of Sends: ours is `message`, which then receives the peer's.
  void exchange(std::span<std::uint8_t> message) {
    if (client_) send(message);
    const auto completion = connection_.receive();
    if (!completion) die("the peer ended the control connection");
    if (completion->byte_len != message.size()) {
      die("a message of " + std::to_string(completion->byte_len) + " bytes instead of " +
          std::to_string(message.size()));
    }
    const std::vector<std::uint8_t> theirs(in_.data(), in_.data() + message.size());
    connection_.post_receive(in_.sge(0, kDestination));
    if (!client_) send(message);
    std::copy(theirs.begin(), theirs.end(), message.begin());
  }
  Destination exchange(const Destination& ours) {
    std::uint8_t message[kDestination];
    ours.write(message);
    exchange(message);
    return Destination::read(message);
  }
  std::uint32_t exchange(std::uint32_t ours) {
    std::uint8_t message[4];
    put_be32(message, ours);
    exchange(message);
    return get_be32(message);
  }
  Result exchange(const Result& ours) {
    std::uint64_t values[] = {ours.size, ours.iterations, std::bit_cast<std::uint64_t>(ours.peak),
                              std::bit_cast<std::uint64_t>(ours.average),
                              std::bit_cast<std::uint64_t>(ours.rate)};
    for (std::uint64_t& v : values) {
      std::uint8_t message[8];
      put_be64(message, v);
      exchange(message);
      v = get_be64(message);
    }
    return {values[0], values[1], std::bit_cast<double>(values[2]),
            std::bit_cast<double>(values[3]), std::bit_cast<double>(values[4])};
  }

  // The exchange before the data connection is established.
  void greet() {
    std::uint8_t version[kVersion];
    std::memcpy(version, kOurVersion, kVersion);
    exchange(version);
    version[kVersion - 1] = 0;
    if (std::atof(reinterpret_cast<const char*>(version)) < 5.70) {
      die("the peer speaks a perftest protocol before 5.70");
    }
    if (const std::uint32_t page = exchange(std::uint32_t{kPage}); page > kPage) {
      die("the peer's pages have " + std::to_string(page) + " bytes");
    }
    exchange(kCacheLine);
    std::uint8_t mtu[2] = {'3', 0};  // IBV_MTU_1024
    exchange(mtu);
  }

 private:
  void send(std::span<const std::uint8_t> message) {
    std::copy(message.begin(), message.end(), out_.data());
    const Sge sge = out_.sge(0, message.size());
    SendRequest request;
    request.sges = {&sge, 1};
    connection_.run(request);
  }

  Connection connection_;
  bool client_;
  Buffer out_, in_;
};

// Room for one message, or for the window of a page in which small messages are placed.
std::size_t window(std::uint32_t size) {
  return std::max<std::size_t>(size, kPage);
}

std::uint64_t fnv1a(std::span<const std::uint8_t> bytes) {
  std::uint64_t h = 0xcbf29ce484222325;
  for (const std::uint8_t b : bytes) h = (h ^ b) * 0x100000001b3;
  return h;
}

Result measure(const Command& command, Clock::duration took) {
  Result r{command.size, command.count, 0, 0, 0};
  const double s = std::chrono::duration<double>(took).count();
  r.average = static_cast<double>(r.size) * static_cast<double>(r.iterations) / s / (1 << 20);
  r.rate = static_cast<double>(r.iterations) / s / 1e6;
  r.peak = r.average;
  return r;
}

void finish(Host& host, const char* role, const Result& result, std::uint64_t hash,
            Connection& control, const ConnectionStats& stats) {
  host.settle();
  char text[256];
  std::snprintf(text, sizeof text,
                "\"size\": %llu, \"iterations\": %llu, \"mb_per_s\": %.2f, \"fnv1a\": \"%016llx\", "
                "\"control_retransmits\": %llu",
                static_cast<unsigned long long>(result.size),
                static_cast<unsigned long long>(result.iterations), result.average,
                static_cast<unsigned long long>(hash),
                static_cast<unsigned long long>(control.stats().iwarp.tcp.retransmits));
  report(role, text, stats);
}

// The direction and kind of the data transfer.
enum class Op : std::uint8_t { write, read, send, write_lat };

Op op_of(const Command& command) {
  if (command.mode.empty() || command.mode == "write") return Op::write;
  if (command.mode == "read") return Op::read;
  if (command.mode == "send") return Op::send;
  if (command.mode == "write-lat") return Op::write_lat;
  die("-m expects write, read, send or write-lat");
}
// The number of "destination" exchanges with keys before the data.
int key_exchanges(Op op) {
  return op == Op::send || op == Op::write_lat ? 4 : 3;
}

// The receives that perftest's server posts in advance, and how many of them make one credit.
std::uint32_t receive_depth(const Command& command) {
  return std::min(512u, command.count + command.count % 2);
}

void fill(Buffer& buffer) {
  for (std::size_t i = 0; i < buffer.bytes().size(); ++i) {
    buffer.data()[i] = static_cast<std::uint8_t>(i * 131 + (i >> 8));
  }
}

// Alternating Writes. The last byte of `in` shows what has arrived.
void ping_pong(Host& host, Connection& data, const Command& command, Buffer& out, Buffer& in,
               const SendRequest& write) {
  const std::atomic_ref<std::uint8_t> arrived(in.data()[command.size - 1]);
  for (std::uint32_t i = 1; i <= command.count; ++i) {
    const auto number = static_cast<std::uint8_t>(i);
    const auto await = [&] {
      for (std::uint32_t spins = 0; arrived.load(std::memory_order_acquire) != number; ++spins) {
        host.device().progress();
        if (spins % 1024 == 0) host.left("a Write");
      }
    };
    if (command.client) await();
    out.data()[command.size - 1] = number;
    data.run(write);
    if (!command.client) await();
  }
}

// Posts `count` work requests like `request`, at most `depth` outstanding; `may_post(n)` returns
// whether the n-th may be posted yet.
template <typename MayPost>
void post_all(Connection& data, const Command& command, const SendRequest& request,
              std::uint32_t depth, MayPost may_post) {
  std::uint32_t posted = 0;
  for (std::uint32_t done = 0; done < command.count; ++done) {
    for (; posted < command.count && posted - done < depth && may_post(posted); ++posted) {
      data.post(request);
    }
    data.complete();
  }
}

// The number that the receiver of `send` Writes: how many of our Sends it has received.
std::uint32_t credit(Buffer& buffer) {
  std::uint32_t value;
  std::memcpy(&value, buffer.data(), sizeof value);
  return value;
}

struct Ends {
  Destination mine, theirs;
};

// Exchanges keys in both directions as often as the program does.
Ends exchange_keys(Control& control, const Command& command, Connection& data,
                   const Buffer& buffer) {
  Ends e;
  e.mine.qpn = data.qp().number();
  e.mine.psn = 0x123456;
  e.mine.rkey = buffer.rkey();
  e.mine.address = buffer.remote_address();
  e.theirs = control.exchange(e.mine);
  for (int i = 1; i < key_exchanges(op_of(command)); ++i) control.exchange(e.mine);
  return e;
}

void run_client(Host& host, const Command& command) {
  const Op op = op_of(command);
  const std::string to = command.address + ":" + std::to_string(command.port);
  Control control(host, true);
  if (!control.connection().connect(to)) die("connect: refused");
  control.greet();
  control.exchange(Destination{});

  // The server starts to listen for the data connection at about the time its answer arrives here.
  auto data = std::make_unique<Connection>(host);
  int refused = 0;
  while (!data->connect(to)) {
    if (++refused == kConnectTries) die("connect: refused");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    data = std::make_unique<Connection>(host);
  }
  Buffer buffer(host.device(), host.pd(), window(command.size), access_local_write);
  // The destination of the peer's Writes: its messages, or its receive count.
  Buffer back(host.device(), host.pd(), window(command.size),
              access_local_write | access_remote_write);
  fill(buffer);
  control.exchange(Destination{});
  const Ends ends = exchange_keys(control, command, *data, op == Op::write ? buffer : back);

  const Sge sge = buffer.sge(0, command.size);
  SendRequest request;
  request.opcode = op == Op::read ? Opcode::read : op == Op::send ? Opcode::send : Opcode::write;
  request.sges = {&sge, 1};
  if (op != Op::send) {
    request.remote_address = ends.theirs.address;
    request.rkey = ends.theirs.rkey;
  }
  const auto start = Clock::now();
  if (op == Op::write_lat) {
    ping_pong(host, *data, command, buffer, back, request);
  } else {
    post_all(*data, command, request, kDepth, [&](std::uint32_t n) {
      while (op == Op::send && n - credit(back) >= receive_depth(command)) {
        host.device().progress();
        host.left("room at the server");
      }
      return true;
    });
  }
  const Result result = measure(command, Clock::now() - start);
  if (op == Op::write || op == Op::read) {
    control.exchange(ends.mine);
    control.exchange(result);
  }
  // ib_write_bw destroys its end as soon as we send the final message. Data that has reached that
  // machine's TCP but not siw turns its close into a RST (RFC 1122, 4.2.2.13). ib_write_lat has no
  // final message: our FIN may arrive before siw completes its last Write, which siw then flushes.
  if (op == Op::write || op == Op::write_lat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (op != Op::write_lat) control.exchange(ends.mine);
  const ConnectionStats stats = data->stats();
  data->close();
  control.connection().close();
  finish(host, "perftest client", result, fnv1a(buffer.bytes().first(command.size)),
         control.connection(), stats);
}

// The server's part while the client Sends.
void take_sends(Host& host, Connection& data, const Command& command, const Buffer& into,
                const Destination& client) {
  const std::uint32_t depth = receive_depth(command), step = std::max(depth / 3, 1u);
  Buffer number(host.device(), host.pd(), sizeof(std::uint32_t), 0);
  const Sge sge = number.sge(0, sizeof(std::uint32_t));
  SendRequest tell;
  tell.opcode = Opcode::write;
  tell.sges = {&sge, 1};
  tell.remote_address = client.address;
  tell.rkey = client.rkey;
  std::uint32_t posted = depth;
  for (std::uint32_t received = 0; received < command.count;) {
    host.left("the client's Sends");
    for (std::uint32_t n = data.receive_some(); n > 0; --n) {
      if (posted < command.count) data.post_receive(into.sge(0, command.size)), ++posted;
      if (++received % depth % step != 0) continue;
      std::memcpy(number.data(), &received, sizeof received);
      data.run(tell);
    }
  }
}

void run_server(Host& host, const Command& command) {
  const Op op = op_of(command);
  auto listener = host.device().listen(command.port);
  if (!listener) die("listen: " + listener.error().message);
  std::printf("listening %u\n", unsigned{listener->port()});
  std::fflush(stdout);
  const auto next = [&] {
    auto request = listener->next(host.left("a client"));
    if (!request) die("listen: " + request.error().message);
    return std::move(*request);
  };
  Control control(host, false);
  {
    ConnectRequest request = next();
    control.connection().accept(request);
  }
  control.greet();
  control.exchange(Destination{});
  Connection data(host, op == Op::send ? receive_depth(command) : 1);
  {
    ConnectRequest request = next();
    data.accept(request);
  }
  control.exchange(Destination{});
  Buffer buffer(host.device(), host.pd(), window(command.size),
                access_local_write | access_remote_write | access_remote_read);
  Buffer back(host.device(), host.pd(), window(command.size), 0);
  if (op == Op::read) fill(buffer);
  if (op == Op::send) {
    for (std::uint32_t i = 0; i < receive_depth(command); ++i) {
      data.post_receive(buffer.sge(0, command.size));
    }
  }
  const Ends ends = exchange_keys(control, command, data, buffer);
  Result result{command.size, command.count, 0, 0, 0};
  if (op == Op::write_lat) {
    fill(back);
    const Sge sge = back.sge(0, command.size);
    SendRequest write;
    write.opcode = Opcode::write;
    write.sges = {&sge, 1};
    write.remote_address = ends.theirs.address;
    write.rkey = ends.theirs.rkey;
    ping_pong(host, data, command, back, buffer, write);
  } else if (op == Op::send) {
    take_sends(host, data, command, buffer, ends.theirs);
  } else {
    control.exchange(ends.mine);  // the client has posted everything
    result = control.exchange(Result{});
  }
  if (result.size != command.size || result.iterations != command.count) {
    die("the client says it moved " + std::to_string(result.iterations) + " messages of " +
        std::to_string(result.size) + " bytes");
  }
  const std::uint64_t expected = result.size * result.iterations;
  const bool written = op == Op::write || op == Op::write_lat;
  while (written && data.stats().verbs.write_bytes_received < expected) {
    host.left("the data");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const ConnectionStats stats = data.stats();
  if (written && stats.verbs.write_bytes_received != expected) {
    die("more bytes written than the client says");
  }
  if (op != Op::write_lat) control.exchange(ends.mine);
  data.await_close();
  control.connection().await_close();
  finish(host, "perftest server", result, fnv1a(buffer.bytes().first(command.size)),
         control.connection(), stats);
}

}  // namespace
}  // namespace urnic::interop

int main(int argc, char** argv) {
  using namespace urnic::interop;
  Command defaults;
  defaults.port = 18515;
  defaults.count = 200;
  defaults.size = 65536;
  const Command command = parse_command(argc, argv, defaults);
  if (op_of(command) == Op::write && command.size <= kPage / 2) {
    die("-s expects more than 2048: all messages to one address");
  }
  Host host(command);
  command.client ? run_client(host, command) : run_server(host, command);
  return 0;
}
