// Both ends of the protocol of rping (rdma-core), over urnic.
//
// One ping: the client advertises its source buffer in a Send of 16 bytes {be64 address, be32 STag,
// be32 length}. The server RDMA-Reads it and answers with a Send of 16 bytes with arbitrary
// content. The client advertises its sink. The server RDMA-Writes there the data it has read, up to
// and including the first NUL, and sends again. The client ends the connection.
//
// Ping n of size s is "rdma-ping-n: ", then a sequence of the characters 65 to 122 that begins one
// later with each ping, and a NUL at s-1. Both roles check every byte of that, so the server
// verifies what rping itself only prints.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "peer.h"

namespace urnic::interop {
namespace {

constexpr std::size_t kInfo = 16;
constexpr std::uint32_t kMaxSize = 64 * 1024;  // rping's own limit is one byte less
constexpr int kFirst = 'A', kLast = 'z', kLetters = kLast - kFirst + 1;

void fill_ping(std::span<std::uint8_t> out, std::uint32_t ping) {
  const std::string head = "rdma-ping-" + std::to_string(ping) + ": ";
  const std::size_t text = std::min(head.size(), out.size());
  std::copy_n(head.begin(), text, out.begin());
  std::uint32_t letter = ping % kLetters;
  for (std::size_t i = text; i < out.size(); ++i) {
    out[i] = static_cast<std::uint8_t>(kFirst + letter);
    letter = (letter + 1) % kLetters;
  }
  out.back() = 0;
}

void check_ping(std::span<const std::uint8_t> got, std::uint32_t ping) {
  std::vector<std::uint8_t> want(got.size());
  fill_ping(want, ping);
  const auto differ = std::mismatch(got.begin(), got.end(), want.begin());
  if (differ.first == got.end()) return;
  die("ping " + std::to_string(ping) + ": byte " + std::to_string(differ.first - got.begin()) +
      " of " + std::to_string(got.size()) + " is " + std::to_string(*differ.first) + ", not " +
      std::to_string(*differ.second));
}

struct Info {
  std::uint64_t address = 0;
  std::uint32_t stag = 0, length = 0;
};

// The 16-byte messages of one connection.
class Messages {
 public:
  Messages(Host& host, Connection& connection)
      : connection_(connection),
        out_(host.device(), host.pd(), kInfo, 0),
        in_(host.device(), host.pd(), kInfo, access_local_write) {
    connection_.post_receive(in_.sge(0, kInfo));
  }
  void send(const Info& info) {
    put_be64(out_.data(), info.address);
    put_be32(out_.data() + 8, info.stag);
    put_be32(out_.data() + 12, info.length);
    const Sge sge = out_.sge(0, kInfo);
    SendRequest request;
    request.sges = {&sge, 1};
    connection_.run(request);
  }
  // Empty if the peer has ended the connection. Posts the next receive before it returns, because
  // the peer may answer our next message immediately.
  std::optional<Info> receive() {
    const auto completion = connection_.receive();
    if (!completion) return std::nullopt;
    if (completion->byte_len != kInfo) {
      die("a message of " + std::to_string(completion->byte_len) + " bytes instead of 16");
    }
    const Info info{get_be64(in_.data()), get_be32(in_.data() + 8), get_be32(in_.data() + 12)};
    connection_.post_receive(in_.sge(0, kInfo));
    return info;
  }

 private:
  Connection& connection_;
  Buffer out_, in_;
};

void run_client(Host& host, const Command& command) {
  Connection connection(host);
  Messages messages(host, connection);
  Buffer source(host.device(), host.pd(), command.size, access_local_write | access_remote_read);
  Buffer sink(host.device(), host.pd(), command.size, access_local_write | access_remote_write);
  if (!connection.connect(command.address + ":" + std::to_string(command.port))) {
    die("connect: refused");
  }
  for (std::uint32_t ping = 0; ping < command.count; ++ping) {
    fill_ping(source.bytes(), ping);
    std::fill(sink.bytes().begin(), sink.bytes().end(), 0xee);
    for (Buffer* buffer : {&source, &sink}) {
      messages.send({buffer->remote_address(), buffer->rkey(), command.size});
      if (!messages.receive()) die("the server ended the connection");
    }
    check_ping(sink.bytes(), ping);
  }
  const ConnectionStats stats = connection.stats();
  connection.close();
  host.settle();
  report("rping client", "\"pings\": " + std::to_string(command.count), stats);
}

void run_server(Host& host, const Command& command) {
  auto listener = host.device().listen(command.port);
  if (!listener) die("listen: " + listener.error().message);
  std::printf("listening %u\n", unsigned{listener->port()});
  std::fflush(stdout);
  auto request = listener->next(host.left("a client"));
  if (!request) die("listen: " + request.error().message);

  Connection connection(host);
  Messages messages(host, connection);
  Buffer buffer(host.device(), host.pd(), kMaxSize, access_local_write);
  connection.accept(*request);
  std::uint32_t pings = 0;
  ConnectionStats stats = connection.stats();
  for (; const auto source = messages.receive(); ++pings) {
    if (source->length == 0 || source->length > kMaxSize) die("a length rping does not have");
    std::fill(buffer.bytes().begin(), buffer.bytes().end(), 0xee);
    Sge sge = buffer.sge(0, source->length);
    SendRequest read;
    read.opcode = Opcode::read;
    read.sges = {&sge, 1};
    read.remote_address = source->address;
    read.rkey = source->stag;
    connection.run(read);
    check_ping(buffer.bytes().first(source->length), pings);
    messages.send({});

    const auto sink = messages.receive();
    if (!sink) die("the client ended the connection in the middle of a ping");
    sge.length = static_cast<std::uint32_t>(
        strnlen(reinterpret_cast<const char*>(buffer.data()), source->length - 1) + 1);
    if (sink->length < sge.length) die("the sink is smaller than the source");
    SendRequest write;
    write.opcode = Opcode::write;
    write.sges = {&sge, 1};
    write.remote_address = sink->address;
    write.rkey = sink->stag;
    connection.run(write);
    messages.send({});
    stats = connection.stats();
  }
  connection.await_close();
  host.settle();
  if (pings != command.count) {
    die(std::to_string(pings) + " pings instead of " + std::to_string(command.count));
  }
  report("rping server", "\"pings\": " + std::to_string(pings), stats);
}

}  // namespace
}  // namespace urnic::interop

int main(int argc, char** argv) {
  using namespace urnic::interop;
  Command defaults;
  defaults.port = 7174;
  const Command command = parse_command(argc, argv, defaults);
  if (command.size < 32 || command.size > kMaxSize) die("-S expects 32 to 65536");
  Host host(command);
  command.client ? run_client(host, command) : run_server(host, command);
  return 0;
}
