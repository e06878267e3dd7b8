// P20 over urnic: requests and answers are Sends, and between them the target Writes or Reads the
// data. All queue pairs of an end have one completion queue.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "bench/e2e/ends.h"
#include "bench/e2e/storage.h"

namespace urnic::bench {
namespace {

constexpr std::uint32_t kBatch = 64;        // completions polled at once
constexpr std::uint32_t kSignalEvery = 32;  // Sends of a connection per completion

EndOptions end_options(const StorageOptions& o) {
  EndOptions e;
  e.socket = o.socket;
  e.of_process = o.of_process;
  e.connections = o.queue_pairs;
  // The target has two sends for each request, and the acknowledgment may arrive after the next
  // request.
  e.depth = std::max(256u, 4 * o.outstanding);
  e.kernel_tcp = o.side == "tcp";
  e.kernel_udp = e.roce = o.side == "udp";
  e.mtu = o.side == "memif" ? 65000 : 9000;
  return e;
}

// Any connection may have all outstanding requests, so each has a receive for all.
std::size_t receive_bytes(const StorageOptions& o) {
  return std::size_t{o.queue_pairs} * o.outstanding * sizeof(StorageRequest);
}

std::uint64_t address_of(const void* p) {
  return reinterpret_cast<std::uint64_t>(p);
}

// The connections of one end, always with the same number of receives.
class Connections {
 public:
  Connections(const StorageOptions& o, Slots& slots, bool server)
      : per_queue_(o.outstanding), slots_(slots), sent_(o.queue_pairs) {
    const EndOptions options = end_options(o);
    end_ = server ? open_server(options, slots.whole()) : open_client(options, slots.whole());
    for (std::uint32_t i = 0; i < o.queue_pairs * o.outstanding; ++i) post_receive(i);
  }

  // Calls arrived(connection, message) for each message, after posting its receive again, and
  // completed(wr_id) for each Read. Completions of Sends only make room.
  template <class Message, class Arrived, class Completed>
  void poll(Arrived arrived, Completed completed) {
    const int n = end_.cq.poll(got_);
    if (n < 0) fail_storage("the completion queue has overrun");
    for (const Completion& c : std::span(got_).first(static_cast<std::size_t>(n))) {
      if (c.status != WcStatus::success) fail_storage(to_string(c.status));
      if (c.opcode == Opcode::read) completed(c.wr_id);
      if (c.opcode != Opcode::receive) continue;
      if (c.byte_len != sizeof(Message)) fail_storage("a message has a wrong length");
      const auto receive = static_cast<std::uint32_t>(c.wr_id);
      Message message;
      std::memcpy(&message, bytes_of(receive), sizeof message);
      post_receive(receive);
      arrived(receive / per_queue_, message);
    }
  }

  // A Send of a message, which is copied at posting. Some have a completion, which also covers the
  // Sends before.
  SendRequest send_of(std::uint32_t connection, const Sge& message) {
    SendRequest r;
    r.flags = send_inline;
    if (++sent_[connection] % kSignalEvery == 0) r.flags |= send_signaled;
    r.sges = {&message, 1};
    return r;
  }
  void post(std::uint32_t connection, std::span<const SendRequest> requests) {
    Error why;
    if (end_.connection(connection).post_send(requests, &why) != requests.size()) {
      fail_storage("post: " + why.message);
    }
  }

  Sge slot(std::uint32_t tag) {
    const auto bytes = slots_.slot(tag);
    return {address_of(bytes.data()), static_cast<std::uint32_t>(bytes.size()), end_.region.lkey()};
  }
  std::uint64_t remote_address(std::uint32_t tag) {
    const auto offset = slots_.slot(tag).data() - slots_.whole().data();
    return end_.region.remote_address() + static_cast<std::uint64_t>(offset);
  }
  std::uint32_t rkey() const { return end_.region.rkey(); }
  void progress() { end_.device.progress(); }

 private:
  void post_receive(std::uint32_t receive) {
    const Sge sge{address_of(bytes_of(receive)), sizeof(StorageRequest), end_.region.lkey()};
    const auto posted = end_.connection(receive / per_queue_).post_receive({receive, {&sge, 1}});
    if (!posted.ok()) fail_storage("receive: " + posted.error().message);
  }
  std::uint8_t* bytes_of(std::uint32_t receive) {
    return slots_.more() + receive * sizeof(StorageRequest);
  }

  std::uint32_t per_queue_;
  Slots& slots_;
  std::vector<std::uint64_t> sent_;  // of each connection
  End end_;
  std::array<Completion, kBatch> got_;
};

class VerbsInitiator : public Initiator {
 public:
  VerbsInitiator(const StorageOptions& o, const Ready& ready)
      : Initiator(o, receive_bytes(o)), count_(o.queue_pairs), connections_(o, slots, false) {
    while (!ready.load(std::memory_order_acquire)) connections_.progress();
  }

  void request(std::uint32_t tag, bool check) override {
    StorageRequest request;
    request.address = connections_.remote_address(tag);
    request.rkey = connections_.rkey();
    request.tag = tag;
    request.check = check ? 1 : 0;
    const Sge sge{address_of(&request), sizeof request, 0};
    const SendRequest send = connections_.send_of(turn_, sge);
    connections_.post(turn_, {&send, 1});
    if (++turn_ == count_) turn_ = 0;
  }

  std::span<const StorageReply> poll() override {
    replies_.clear();
    connections_.poll<StorageReply>(
        [&](std::uint32_t, const StorageReply& reply) { replies_.push_back(reply); },
        [](std::uint64_t) {});
    return replies_;
  }

 private:
  std::uint32_t count_, turn_ = 0;
  Connections connections_;
  std::vector<StorageReply> replies_;
};

class VerbsTarget {
 public:
  explicit VerbsTarget(const StorageOptions& o)
      : is_read_(o.is_read),
        slots_(o, receive_bytes(o)),
        pending_(o.outstanding),
        connections_(o, slots_, true) {
    for (std::uint32_t tag = 0; o.is_read && tag < o.outstanding; ++tag) slots_.fill(tag);
  }

  void poll() {
    connections_.poll<StorageRequest>(
        [&](std::uint32_t connection, const StorageRequest& r) { take(connection, r); },
        [&](std::uint64_t tag) { answer(static_cast<std::uint32_t>(tag)); });
  }

 private:
  struct Pending {
    std::uint32_t connection;
    bool check;
  };

  void take(std::uint32_t connection, const StorageRequest& request) {
    if (request.tag >= pending_.size()) fail_storage("a request has a wrong tag");
    pending_[request.tag] = {connection, request.check != 0};
    const Sge data = connections_.slot(request.tag);
    SendRequest r;
    r.wr_id = request.tag;
    r.sges = {&data, 1};
    r.remote_address = request.address;
    r.rkey = request.rkey;
    if (is_read_) {
      r.opcode = Opcode::write;
      r.flags = 0;
      answer(request.tag, &r);
    } else {
      r.opcode = Opcode::read;
      connections_.post(connection, {&r, 1});
    }
  }

  // Together with the Write before it, if there is one.
  void answer(std::uint32_t tag, const SendRequest* write = nullptr) {
    const Pending& p = pending_[tag];
    StorageReply reply;
    reply.tag = tag;
    reply.wrong = !is_read_ && p.check && !slots_.is_right(tag) ? 1 : 0;
    const Sge sge{address_of(&reply), sizeof reply, 0};
    std::array<SendRequest, 2> both;
    if (write != nullptr) both[0] = *write;
    both[1] = connections_.send_of(p.connection, sge);
    connections_.post(p.connection, std::span(both).subspan(write != nullptr ? 0 : 1));
  }

  bool is_read_;
  Slots slots_;
  std::vector<Pending> pending_;  // of each tag
  Connections connections_;
};

}  // namespace

std::unique_ptr<Initiator> open_verbs_initiator(const StorageOptions& o, const Ready& ready) {
  return std::make_unique<VerbsInitiator>(o, ready);
}

void serve_verbs(const StorageOptions& o, Ready& ready) {
  VerbsTarget target(o);
  ready.store(true, std::memory_order_release);
  for (;;) target.poll();
}

}  // namespace urnic::bench
