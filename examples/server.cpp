// The passive side: offers 64 KiB of memory, waits for the client's Send and prints the text that
// the client has written. The client uses RDMA Write and RDMA Read, which run no code here. Start
// this first, then `client`.
#include <urnic/urnic.h>

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

struct Offer {  // sent as private data of the connection
  std::uint64_t address;
  std::uint32_t rkey;
  std::uint32_t length;
};

// Every call returns a value, or an error with one line for the user.
template <class T>
T need(urnic::Result<T> result, const char* what) {
  if (result.ok()) return std::move(*result);
  std::fprintf(stderr, "server: %s: %s\n", what, result.error().message.c_str());
  std::exit(1);
}
void need(const urnic::Result<void>& result, const char* what) {
  if (result.ok()) return;
  std::fprintf(stderr, "server: %s: %s\n", what, result.error().message.c_str());
  std::exit(1);
}

}  // namespace

int main() {
  // urnic.toml and URNIC_* in the environment; for example URNIC_PORT=memif:socket=/tmp/x.sock
  const urnic::Config config = need(urnic::Config::load(), "configuration");
  urnic::Device device = need(urnic::Device::open(config), "device");
  urnic::ProtectionDomain pd = need(device.alloc_pd(), "protection domain");
  urnic::CompletionQueue cq = need(device.create_cq(16), "completion queue");
  urnic::Listener listener = need(device.listen(18517), "listen");
  std::printf("listening on %s, addresses %s\n", device.info().port.c_str(),
              device.info().addresses.c_str());
  std::fflush(stdout);

  std::vector<char> memory(65536);
  urnic::MemoryRegion region =
      need(device.register_memory(
               pd, memory.data(), memory.size(),
               urnic::access_local_write | urnic::access_remote_write | urnic::access_remote_read),
           "memory");

  urnic::ConnectRequest request = need(listener.next(-1), "connection request");
  urnic::QpOptions options;
  options.send_cq = options.receive_cq = cq;
  urnic::QueuePair qp = need(device.create_qp(pd, options), "queue pair");

  // Receives the client's Send: the length of the text.
  std::uint32_t written = 0;
  urnic::MemoryRegion inbox = need(
      device.register_memory(pd, &written, sizeof written, urnic::access_local_write), "inbox");
  const urnic::Sge sge{reinterpret_cast<std::uint64_t>(&written), sizeof written, inbox.lkey()};
  need(qp.post_receive({1, {&sge, 1}}), "receive");

  const Offer offer{region.remote_address(), region.rkey(),
                    static_cast<std::uint32_t>(memory.size())};
  urnic::ConnectionOptions accept;
  accept.private_data = {reinterpret_cast<const std::uint8_t*>(&offer), sizeof offer};
  need(request.accept(qp, accept), "accept");

  urnic::Completion done;
  while (cq.poll({&done, 1}) == 0) cq.wait(1000);
  if (done.status != urnic::WcStatus::success || written > memory.size()) {
    std::fprintf(stderr, "server: %s\n", urnic::to_string(done.status));
    return 1;
  }
  std::printf("client %s wrote: %.*s\n", request.peer().c_str(), static_cast<int>(written),
              memory.data());

  // The client reads it back and disconnects; that flushes our pending receive.
  need(qp.post_receive({2, {&sge, 1}}), "receive");
  while (cq.poll({&done, 1}) == 0) cq.wait(1000);
  const urnic::ConnectionStats stats = qp.stats();
  std::printf("%llu bytes on the FAST path, %llu on the SLOW path\n",
              static_cast<unsigned long long>(stats.iwarp.bytes_fast),
              static_cast<unsigned long long>(stats.iwarp.bytes_slow));
  return 0;
}
