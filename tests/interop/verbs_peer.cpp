// Operations that the unmodified programs do not use, over urnic; siw/verbs_peer.c is the same in C
// for the guest. Either end may be client or server.
//
//   mode        client                                    server
//   echo        -C messages of 1 to -S bytes              sends each back
//   invalidate  announces a region, then once more        Writes into it, Send with Invalidate of
//                                                         its STag; the second Write must be
//                                                         refused
//   bad-write   announces a region, Writes with an        announces a region that must not change
//               unassigned STag
//   bad-read    the same with a Read                      as above
//   reject      must be rejected                          rejects
//   abort       three echoes, then aborts                 three echoes, then detects the end
//
// Each MPA start-up frame carries -d bytes of private data. An announcement is a Send of 16 bytes
// {be64 address, be32 STag, be32 length}; every message, region and private data is compared with
// the pattern that both ends know.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "peer.h"

namespace urnic::interop {
namespace {

constexpr std::size_t kInfo = 16, kSlots = 4;
constexpr std::uint32_t kRequestPattern = 100, kReplyPattern = 200;
constexpr std::chrono::milliseconds kPause{200};  // meanwhile the server's last Send completes
constexpr std::uint32_t kOtherStag = 77u << 8;    // its index is not in use

std::uint8_t pattern(std::uint32_t n, std::size_t k) {
  return static_cast<std::uint8_t>(n * 37 + k * 11 + (k >> 8) + 1);
}
void fill(std::span<std::uint8_t> out, std::uint32_t n) {
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = pattern(n, k);
}
void check(std::span<const std::uint8_t> got, std::uint32_t n, const std::string& what) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    if (got[k] != pattern(n, k)) {
      die(what + " " + std::to_string(n) + ": byte " + std::to_string(k) + " of " +
          std::to_string(got.size()) + " is wrong");
    }
  }
}

struct Info {
  std::uint64_t address = 0;
  std::uint32_t stag = 0, length = 0;
};

class Peer {
 public:
  Peer(Host& host, const Command& command)
      : host_(host),
        command_(command),
        connection_(host),
        out_(host.device(), host.pd(), command.size, 0),
        in_(host.device(), host.pd(), kSlots * command.size, access_local_write),
        private_(command.private_bytes) {
    for (std::size_t i = 0; i < kSlots; ++i) post_slot(i);
  }

  void connect();
  void accept();
  void echo(std::uint32_t count);
  void end_orderly();
  void invalidate();
  void bad_stag(Opcode op);
  void go_away();
  // Records the end of the connection for the report.
  void tell(const Event& end) { end_ = end.error.message; }
  void report_all();

 private:
  void check_private(std::span<const std::uint8_t> got, std::uint32_t n) const;
  void post_slot(std::size_t slot) {
    connection_.post_receive(in_.sge(slot * command_.size, command_.size));
  }
  // The next message, which stays in place until its slot is posted again. Receives complete in the
  // order of posting.
  std::span<std::uint8_t> receive(Completion* completion = nullptr) {
    const auto c = connection_.receive();
    if (!c) die("the connection ended instead of a message");
    if (completion != nullptr) *completion = *c;
    return {in_.data() + slot_ * command_.size, c->byte_len};
  }
  void repost() {
    post_slot(slot_);
    slot_ = (slot_ + 1) % kSlots;
  }
  // Runs one work request on `length` bytes of `buffer`; returns its status.
  WcStatus run(Opcode op, Buffer& buffer, std::size_t length, const Info& there = {}) {
    const Sge sge = buffer.sge(0, length);
    SendRequest r;
    r.opcode = op;
    r.sges = {&sge, 1};
    r.remote_address = there.address;
    r.rkey = there.stag;
    r.invalidate_rkey = op == Opcode::send_with_invalidate ? there.stag : 0;
    connection_.post(r);
    return connection_.complete_any().status;
  }
  void must(WcStatus status, const char* what) {
    if (status != WcStatus::success) die(std::string(what) + ": " + to_string(status));
  }
  void announce(const Buffer& region) {
    put_be64(out_.data(), region.remote_address());
    put_be32(out_.data() + 8, region.rkey());
    put_be32(out_.data() + 12, command_.size);
    must(run(Opcode::send, out_, kInfo), "send");
  }
  Info announced() {
    const auto at = receive();
    if (at.size() != kInfo) die("an announcement of " + std::to_string(at.size()) + " bytes");
    const Info i{get_be64(at.data()), get_be32(at.data() + 8), get_be32(at.data() + 12)};
    if (i.length > command_.size) die("more bytes announced than expected");
    repost();
    return i;
  }
  void refused_in_the_end() {
    const Event end = connection_.await_end();
    if (end.kind == EventKind::connect_failed || end.error.message.empty()) {
      die("an orderly end instead of an error");
    }
    tell(end);
  }

  Host& host_;
  const Command& command_;
  Connection connection_;
  Buffer out_, in_;
  std::size_t slot_ = 0;
  std::vector<std::uint8_t> private_;
  std::string status_ = "success", end_;
};

void Peer::check_private(std::span<const std::uint8_t> got, std::uint32_t n) const {
  if (got.size() != private_.size()) {
    die(std::to_string(got.size()) + " bytes of private data instead of " +
        std::to_string(private_.size()));
  }
  check(got, n, "private data");
}

void Peer::connect() {
  ConnectionOptions options;
  fill(private_, kRequestPattern);
  options.private_data = private_;
  const Event event =
      connection_.try_connect(command_.address + ":" + std::to_string(command_.port), options);
  const std::span got(reinterpret_cast<const std::uint8_t*>(event.private_data.data()),
                      event.private_data.size());
  if (command_.mode == "reject") {
    if (event.kind != EventKind::connect_failed || event.error.code != Errc::rejected) {
      die("connected, or failed otherwise, although the server rejects: " + event.error.message);
    }
    tell(event);
  } else if (event.kind != EventKind::established) {
    die("connect: " + event.error.message);
  }
  check_private(got, kReplyPattern);
}

void Peer::accept() {
  auto listener = host_.device().listen(command_.port);
  if (!listener) die("listen: " + listener.error().message);
  std::printf("listening %u\n", unsigned{listener->port()});
  std::fflush(stdout);
  auto request = listener->next(host_.left("a client"));
  if (!request) die("listen: " + request.error().message);
  check_private(request->private_data(), kRequestPattern);
  fill(private_, kReplyPattern);
  if (command_.mode == "reject") {
    request->reject(private_);
    return;
  }
  ConnectionOptions options;
  options.private_data = private_;
  connection_.accept(*request, options);
}

void Peer::echo(std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t expected = 1 + i * 7919 % command_.size;
    if (command_.client) {
      fill(out_.bytes().first(expected), i);
      must(run(Opcode::send, out_, expected), "send");
    }
    const auto got = receive();
    if (got.size() != expected) {
      die("message " + std::to_string(i) + " has " + std::to_string(got.size()) + " bytes");
    }
    check(got, i, "message");
    if (!command_.client) std::memcpy(out_.data(), got.data(), got.size());
    repost();
    if (!command_.client) must(run(Opcode::send, out_, expected), "send");
  }
}

void Peer::end_orderly() {
  if (!command_.client) return connection_.await_close();
  // siw flushes its last Send if our FIN arrives before its completion.
  std::this_thread::sleep_for(kPause);
  connection_.close();
}

void Peer::invalidate() {
  if (command_.client) {
    Buffer region(host_.device(), host_.pd(), command_.size,
                  access_local_write | access_remote_write | access_remote_read);
    announce(region);
    Completion c;
    receive(&c);
    if (!c.invalidated || c.invalidated_rkey != region.rkey()) die("no STag was invalidated");
    check(region.bytes(), 1, "region");
    repost();
    announce(region);
    refused_in_the_end();
    check(region.bytes(), 1, "region, after a Write with an STag that was invalidated:");
    return;
  }
  Buffer source(host_.device(), host_.pd(), command_.size, 0);
  Info there = announced();
  fill(source.bytes().first(there.length), 1);
  must(run(Opcode::write, source, there.length, there), "write");
  must(run(Opcode::send_with_invalidate, source, kInfo, there), "send with invalidate");
  there = announced();
  fill(source.bytes().first(there.length), 2);
  status_ = to_string(run(Opcode::write, source, there.length, there));
  refused_in_the_end();
}

void Peer::bad_stag(Opcode op) {
  Buffer region(host_.device(), host_.pd(), command_.size,
                access_local_write | access_remote_write | access_remote_read);
  if (command_.client) {
    fill(region.bytes(), 2);
    announce(region);  // the client sends first (docs/interop.md: messages that arrive too early)
    Info there = announced();
    there.stag += kOtherStag;
    const WcStatus status = run(op, region, there.length, there);
    status_ = to_string(status);
    if (op == Opcode::read && status == WcStatus::success)
      die("a Read of an unknown STag succeeded");
    refused_in_the_end();
    check(region.bytes(), 2, "source or sink");
  } else {
    fill(region.bytes(), 1);
    announced();
    announce(region);
    refused_in_the_end();
    check(region.bytes(), 1, "region");
  }
}

void Peer::go_away() {
  echo(3);
  if (command_.client) {
    std::this_thread::sleep_for(kPause);
    connection_.qp().abort();
  } else {
    tell(connection_.await_end());
  }
}

void Peer::report_all() {
  const ConnectionStats stats = connection_.stats();
  host_.settle();
  report("verbs " + command_.mode, "\"status\": \"" + status_ + "\", \"end\": \"" + end_ + "\"",
         stats);
}

}  // namespace
}  // namespace urnic::interop

int main(int argc, char** argv) {
  using namespace urnic::interop;
  Command defaults;
  defaults.port = 7180;
  defaults.count = 20;
  defaults.size = 16384;
  const Command command = parse_command(argc, argv, defaults);
  if (command.size < kInfo) die("-S expects 16 or more");
  Host host(command);
  Peer peer(host, command);
  command.client ? peer.connect() : peer.accept();
  if (command.mode == "echo") {
    peer.echo(command.count);
    peer.end_orderly();
  } else if (command.mode == "invalidate") {
    peer.invalidate();
  } else if (command.mode == "bad-write") {
    peer.bad_stag(urnic::Opcode::write);
  } else if (command.mode == "bad-read") {
    peer.bad_stag(urnic::Opcode::read);
  } else if (command.mode == "abort") {
    peer.go_away();
  } else if (command.mode != "reject") {
    die("no mode '" + command.mode + "'");
  }
  peer.report_all();
  return 0;
}
