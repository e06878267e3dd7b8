// RoCEv2 datagrams (UD): one queue pair receives from any peer and answers each datagram.
// Usage: datagrams                       prints its queue pair number, answers until stopped
//        datagrams ADDRESS NUMBER TEXT   sends TEXT to that queue pair and prints the answer
#include <urnic/urnic.h>

#include <arpa/inet.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr std::uint32_t kQkey = 0x11111111;  // both ends must use the same value; it is not secret
constexpr std::size_t kGrh = 40;             // precedes the received data and identifies the sender
constexpr std::size_t kMost = 1024;

[[noreturn]] void stop(const char* what, const std::string& why) {
  std::fprintf(stderr, "datagrams: %s: %s\n", what, why.c_str());
  std::exit(1);
}
template <class T>
T need(urnic::Result<T> result, const char* what) {
  if (!result.ok()) stop(what, result.error().message);
  return std::move(*result);
}
void need(const urnic::Result<void>& result, const char* what) {
  if (!result.ok()) stop(what, result.error().message);
}

// Takes the queue pair from reset to RTS. There is no connection and no peer.
void make_ready(urnic::QueuePair& qp) {
  urnic::QpAttributes init, rts;
  init.qkey = kQkey;
  rts.sq_psn = 0;
  need(qp.modify(urnic::QpState::init, init), "init");
  need(qp.modify(urnic::QpState::rtr, {}), "ready to receive");
  need(qp.modify(urnic::QpState::rts, rts), "ready to send");
}

urnic::Completion next(urnic::CompletionQueue& cq) {
  urnic::Completion c;
  while (cq.poll({&c, 1}) == 0) cq.wait(1000);
  if (c.status != urnic::WcStatus::success) stop("completion", urnic::to_string(c.status));
  return c;
}

// Reads the sender from the IP header: the last 20 of the 40 bytes for IPv4, all of them for IPv6.
std::string sender_in(const char* grh) {
  char text[INET6_ADDRSTRLEN] = "";
  const bool v4 = static_cast<unsigned char>(grh[20]) >> 4 == 4;
  inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? grh + 32 : grh + 8, text, sizeof text);
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  urnic::Config config = need(urnic::Config::load(), "configuration");
  need(config.set("transport", "roce"), "transport");
  urnic::Device device = need(urnic::Device::open(config), "device");
  urnic::ProtectionDomain pd = need(device.alloc_pd(), "protection domain");
  urnic::CompletionQueue sent = need(device.create_cq(16), "completion queue");
  urnic::CompletionQueue came = need(device.create_cq(16), "completion queue");
  urnic::QpOptions options;
  options.transport = urnic::Transport::roce;
  options.service = urnic::Service::ud;
  options.send_cq = sent;
  options.receive_cq = came;
  urnic::QueuePair qp = need(device.create_qp(pd, options), "queue pair");
  make_ready(qp);

  char in[kGrh + kMost], out[kMost];
  urnic::MemoryRegion inbox =
      need(device.register_memory(pd, in, sizeof in, urnic::access_local_write), "memory");
  urnic::MemoryRegion outbox = need(device.register_memory(pd, out, sizeof out, 0), "memory");
  const urnic::Sge into{reinterpret_cast<std::uint64_t>(in), sizeof in, inbox.lkey()};
  const auto send = [&](const std::string& address, std::uint32_t number, std::uint32_t length) {
    urnic::QpPath path;
    path.remote = address;
    const auto handle = need(device.create_address_handle(pd, path), "address handle");
    const urnic::Sge from{reinterpret_cast<std::uint64_t>(out), length, outbox.lkey()};
    urnic::SendRequest request{2, urnic::Opcode::send, urnic::send_signaled, {&from, 1}};
    request.address_handle = &handle;
    request.remote_qp = number;
    request.remote_qkey = kQkey;
    need(qp.post_send(request), "send");
    next(sent);  // it has been sent; its arrival is not reported
  };
  need(qp.post_receive({1, {&into, 1}}), "receive");

  if (argc > 3) {
    if (!device.wait_link(10000)) stop("link", "nobody is at the other end");
    const auto length = static_cast<std::uint32_t>(std::min(std::strlen(argv[3]), kMost));
    std::memcpy(out, argv[3], length);
    send(argv[1], static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 0)), length);
    const urnic::Completion c = next(came);
    std::printf("answer: %.*s\n", static_cast<int>(c.byte_len - kGrh), in + kGrh);
    return 0;
  }
  std::printf("queue pair %u, addresses %s\n", qp.number(), device.info().addresses.c_str());
  std::fflush(stdout);
  for (;;) {
    const urnic::Completion c = next(came);
    const auto length = static_cast<std::uint32_t>(c.byte_len - kGrh);
    std::printf("%u bytes from %s, queue pair %u\n", length, sender_in(in).c_str(), c.source_qp);
    std::fflush(stdout);
    for (std::uint32_t i = 0; i < length; ++i) out[i] = in[kGrh + length - 1 - i];  // backwards
    const std::string sender = sender_in(in);
    need(qp.post_receive({1, {&into, 1}}), "receive");
    send(sender, c.source_qp, length);
  }
}
