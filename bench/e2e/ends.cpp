#include "bench/e2e/ends.h"

#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace urnic::bench {
namespace {

constexpr std::uint16_t kPort = 18519;

[[noreturn]] void die(const char* what, const std::string& why) {
  std::fprintf(stderr, "bench: %s: %s\n", what, why.c_str());
  std::_Exit(1);
}

template <class T>
T need(Result<T> r, const char* what) {
  if (!r.ok()) die(what, r.error().message);
  return std::move(*r);
}
void need(const Result<void>& r, const char* what) {
  if (!r.ok()) die(what, r.error().message);
}

std::string loopback_of(const EndOptions& o, bool server) {
  const std::uint32_t n = o.of_process;
  return "127." + std::to_string(1 + (n >> 14 & 0x7f)) + "." + std::to_string(n >> 7 & 0x7f) + "." +
         std::to_string(2 * (n & 0x7f) + (server ? 0 : 1));
}

std::string port_of(const EndOptions& o, const std::string& role) {
  const std::string mtu = ",mtu=" + std::to_string(o.mtu);
  if (o.kernel_udp) return "udp:bind=" + loopback_of(o, role == "server") + mtu;
  if (o.kernel_tcp) return "tcp:bind=127.0.0.1";
  return "memif:socket=" + o.socket + ",role=" + role + mtu;
}

QueuePair new_queue_pair(const EndOptions& o, End& e) {
  QpOptions q;
  q.send_cq = q.receive_cq = e.cq;
  q.max_send = q.max_receive = o.depth;
  return need(e.device.create_qp(e.pd, q), "queue pair");
}

// The environment and configuration files must not affect a measurement.
End open_end(const EndOptions& o, const char* role, std::span<std::uint8_t> memory) {
  Config config;
  need(config.set("port", port_of(o, role)), "port");
  need(config.set("mtu", std::to_string(o.mtu)), "mtu");
  if (o.roce) need(config.set("transport", "roce"), "transport");
  need(config.set("progress", o.progress), "progress");
  need(config.set("connection_type", o.fast && !o.kernel_tcp ? "fast" : "slow"), "connection_type");
  need(config.set("stat", "off"), "stat");
  if (!o.faults.empty()) need(config.set("faults", o.faults), "faults");
  End e;
  e.device = need(Device::open(config), "device");
  e.pd = need(e.device.alloc_pd(), "protection domain");
  e.cq = need(e.device.create_cq(2 * o.depth * o.connections), "completion queue");
  e.region =
      need(e.device.register_memory(e.pd, memory.data(), memory.size(),
                                    access_local_write | access_remote_write | access_remote_read),
           "memory");
  e.qp = new_queue_pair(o, e);
  while (e.more.size() + 1 < o.connections) e.more.push_back(new_queue_pair(o, e));
  return e;
}

Offer offer_of(const End& e) {
  return {e.region.remote_address(), e.region.length(), e.region.rkey()};
}

Offer read_offer(const void* data, std::size_t length) {
  Offer o;
  if (length < sizeof o) die("peer", "sent no offer");
  std::memcpy(&o, data, sizeof o);
  return o;
}

std::span<const std::uint8_t> bytes_of(const Offer& o) {
  return {reinterpret_cast<const std::uint8_t*>(&o), sizeof o};
}

}  // namespace

void End::write(std::uint64_t wr_id, std::uint64_t offset, std::uint32_t length, std::uint64_t to,
                std::uint32_t flags, std::size_t over) {
  const Sge sge{reinterpret_cast<std::uint64_t>(region.address()) + offset, length, region.lkey()};
  SendRequest r;
  r.wr_id = wr_id;
  r.opcode = Opcode::write;
  r.flags = flags;
  r.sges = {&sge, 1};
  r.remote_address = peer.address + to;
  r.rkey = peer.rkey;
  need(connection(over).post_send(r), "post");
}

End open_server(const EndOptions& options, std::span<std::uint8_t> memory) {
  End e = open_end(options, "server", memory);
  Listener listener = need(e.device.listen(kPort), "listen");
  const Offer ours = offer_of(e);
  ConnectionOptions c;
  c.private_data = bytes_of(ours);
  for (std::uint32_t i = 0; i < options.connections; ++i) {
    ConnectRequest request = need(listener.next(20000), "connection request");
    const auto pd = request.private_data();
    e.peer = read_offer(pd.data(), pd.size());
    need(request.accept(e.connection(i), c), "accept");
  }
  return e;
}

End open_client(const EndOptions& options, std::span<std::uint8_t> memory) {
  End e = open_end(options, "client", memory);
  if (!e.device.wait_link(10000)) die("link", "nobody is at the other end");
  const Offer ours = offer_of(e);
  ConnectionOptions c;
  c.private_data = bytes_of(ours);
  const bool no_link = options.kernel_tcp || options.kernel_udp;
  const std::string at = options.kernel_udp   ? loopback_of(options, true)
                         : options.kernel_tcp ? "127.0.0.1"
                                              : "10.77.0.1";
  const std::string server = at + ":" + std::to_string(kPort);
  for (std::uint32_t n = 0; n < options.connections; ++n) {
    auto connected = e.connection(n).connect(server, c);
    // The link does not show whether the other end listens yet, so retry for a moment.
    for (int i = 0; i < 1000 && !connected && no_link; ++i) {
      usleep(10000);
      e.connection(n) = new_queue_pair(options, e);
      connected = e.connection(n).connect(server, c);
    }
    need(connected, "connect");
  }
  const std::string pd = e.qp.peer_private_data();
  e.peer = read_offer(pd.data(), pd.size());
  return e;
}

SocketDirectory::SocketDirectory() {
  char name[] = "/tmp/urnic-bench-XXXXXX";
  if (mkdtemp(name) == nullptr) die("directory", std::strerror(errno));
  directory_ = name;
  socket_ = directory_ + "/wire.sock";
}

SocketDirectory::~SocketDirectory() {
  unlink(socket_.c_str());
  rmdir(directory_.c_str());
}

void fill_pattern(std::span<std::uint8_t> memory, std::uint32_t pass) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    memory[i] = static_cast<std::uint8_t>((i + 40503u * pass) * 2654435761u >> 24);
  }
}

bool has_pattern(std::span<const std::uint8_t> memory, std::uint32_t pass) {
  std::vector<std::uint8_t> want(memory.size());
  fill_pattern(want, pass);
  return std::memcmp(want.data(), memory.data(), memory.size()) == 0;
}

}  // namespace urnic::bench
