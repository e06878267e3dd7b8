// The active side: writes a text into the server's memory by RDMA Write, announces it by a Send,
// reads the memory back by RDMA Read and compares it. Usage: client [ADDRESS:PORT] [TEXT]
#include <urnic/urnic.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Offer {
  std::uint64_t address;
  std::uint32_t rkey;
  std::uint32_t length;
};

template <class T>
T need(urnic::Result<T> result, const char* what) {
  if (result.ok()) return std::move(*result);
  std::fprintf(stderr, "client: %s: %s\n", what, result.error().message.c_str());
  std::exit(1);
}
void need(const urnic::Result<void>& result, const char* what) {
  if (result.ok()) return;
  std::fprintf(stderr, "client: %s: %s\n", what, result.error().message.c_str());
  std::exit(1);
}

// Waits for the next completion, which must be that of `wr_id` and successful.
void complete(urnic::CompletionQueue& cq, std::uint64_t wr_id) {
  urnic::Completion c;
  while (cq.poll({&c, 1}) == 0) {  // polling drives the engine
  }
  if (c.status == urnic::WcStatus::success && c.wr_id == wr_id) return;
  std::fprintf(stderr, "client: %s\n", urnic::to_string(c.status));
  std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  const char* server = argc > 1 ? argv[1] : "10.77.0.1:18517";
  const std::string text = argc > 2 ? argv[2] : "Hello over iWARP, without an RNIC.";

  urnic::Device device =
      need(urnic::Device::open(need(urnic::Config::load(), "configuration")), "device");
  if (!device.wait_link(10000)) {
    std::fprintf(stderr, "client: no peer is connected to %s\n", device.info().port.c_str());
    return 1;
  }
  urnic::ProtectionDomain pd = need(device.alloc_pd(), "protection domain");
  urnic::CompletionQueue cq = need(device.create_cq(16), "completion queue");
  urnic::QpOptions options;
  options.send_cq = options.receive_cq = cq;
  urnic::QueuePair qp = need(device.create_qp(pd, options), "queue pair");
  need(qp.connect(server), "connect");

  Offer offer{};
  const std::string data = qp.peer_private_data();
  std::memcpy(&offer, data.data(), std::min(data.size(), sizeof offer));

  std::string out = text;
  std::vector<char> back(text.size());
  std::uint32_t length = static_cast<std::uint32_t>(text.size());
  urnic::MemoryRegion source =
      need(device.register_memory(pd, out.data(), out.size(), 0), "memory");
  urnic::MemoryRegion sink = need(
      device.register_memory(pd, back.data(), back.size(), urnic::access_local_write), "memory");

  const urnic::Sge from{reinterpret_cast<std::uint64_t>(out.data()), length, source.lkey()};
  const urnic::Sge into{reinterpret_cast<std::uint64_t>(back.data()), length, sink.lkey()};
  const urnic::Sge note{reinterpret_cast<std::uint64_t>(&length), sizeof length, 0};
  using urnic::Opcode;
  need(
      qp.post_send({1, Opcode::write, urnic::send_signaled, {&from, 1}, offer.address, offer.rkey}),
      "write");
  complete(cq, 1);
  // The Send follows the Write on the same connection, so it arrives after it and may announce it.
  need(qp.post_send({2, Opcode::send, urnic::send_signaled | urnic::send_inline, {&note, 1}}),
       "send");
  complete(cq, 2);
  need(qp.post_send({3, Opcode::read, urnic::send_signaled, {&into, 1}, offer.address, offer.rkey}),
       "read");
  complete(cq, 3);

  const bool same = std::memcmp(back.data(), text.data(), text.size()) == 0;
  std::printf("wrote %u bytes by RDMA Write, read them back by RDMA Read: %s\n", length,
              same ? "the same" : "DIFFERENT");
  qp.disconnect();
  return same ? 0 : 1;
}
