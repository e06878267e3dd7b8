// The traffic of the soak test over the C++ API.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "urnic/urnic.h"

#include "need.h"
#include "verbs.h"

namespace urnic::soak {
namespace {

constexpr std::uint32_t kRights = access_local_write | access_remote_write | access_remote_read |
                                  access_remote_atomic | access_bind_window;

class ApiVerbs;

class ApiWire : public Wire {
 public:
  ApiWire(ApiVerbs& verbs, std::span<std::uint8_t> memory);
  ~ApiWire() override { qp_.discard(); }
  ApiWire(const ApiWire&) = delete;
  ApiWire& operator=(const ApiWire&) = delete;
  std::uint32_t number() const override { return qp_.number(); }
  std::uint32_t key() const override { return region_.rkey(); }
  bool post(const Request& r) override;
  bool receive(std::uint64_t id, std::uint8_t* at, std::uint32_t length) override {
    const Sge sge{reinterpret_cast<std::uintptr_t>(at), length, region_.lkey()};
    return qp_.post_receive({id, {&sge, 1}}).ok();
  }
  std::uint32_t window_key(unsigned window) override;
  bool begin() override {
    ConnectionOptions o;
    o.ird = 8;
    o.ord = 9;
    return qp_.connect_start(to, o).ok();
  }
  bool accept(std::span<const std::uint8_t> private_data) override {
    ConnectionOptions o;
    o.ird = 10;
    o.ord = 7;
    o.private_data = private_data;
    return request.accept(qp_, o).ok();
  }
  void disconnect() override { qp_.disconnect(); }
  void abort() override { qp_.abort(); }

  std::string to;
  ConnectRequest request;

 private:
  ApiVerbs& verbs_;
  MemoryRegion region_;
  std::array<MemoryWindow, kWindows> windows_;
  QueuePair qp_;
};

class ApiVerbs : public Verbs {
 public:
  explicit ApiVerbs(const std::string& transport) : roce(transport == "roce") {
    device = need(Device::open(need(Config::load(), "configuration")), "device");
    if (!device.wait_link(30000)) std::fputs("soak: the link is not up yet\n", stderr);
    pd = need(device.alloc_pd(), "protection domain");
    cq = need(device.create_cq(2 * kDepth * kMostConnections), "completion queue");
    events = need(device.create_event_queue(), "event queue");
  }
  bool listen(const std::string& address, std::uint16_t port) override {
    BindOptions o;
    o.transport = roce ? Transport::roce : Transport::iwarp;
    auto at = device.bind(address + ":" + std::to_string(port), o);
    if (!at) return false;
    auto listener = device.listen(*at, 64, events);
    if (!listener) return false;
    listener_ = std::move(*listener);
    return true;
  }
  std::unique_ptr<Wire> open(const std::string& address, std::uint16_t port,
                             std::span<std::uint8_t> memory, std::string*) override {
    auto wire = std::make_unique<ApiWire>(*this, memory);
    wire->to = address + ":" + std::to_string(port);
    return wire;
  }
  std::unique_ptr<Wire> take(std::span<std::uint8_t> memory, std::string*) override {
    auto wire = std::make_unique<ApiWire>(*this, memory);
    wire->request = std::move(asked_);
    return wire;
  }
  bool next(Happening* out) override {
    Event e;
    while (events.poll(&e)) {
      *out = {};
      out->qp = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(e.context));
      out->why = e.error.message;
      out->private_data.assign(e.private_data.begin(), e.private_data.end());
      switch (e.kind) {
        case EventKind::connect_request:
          asked_ = std::move(e.request);
          out->kind = Happening::Kind::Asked;
          return true;
        case EventKind::established:
          out->kind = Happening::Kind::Up;
          return true;
        case EventKind::connect_failed:
          out->kind = Happening::Kind::Failed;
          return true;
        case EventKind::disconnected:
        case EventKind::failed:
          out->kind = Happening::Kind::Ended;
          return true;
        default:
          break;
      }
    }
    return false;
  }
  void fetch(std::vector<Done>* out) override {
    std::array<Completion, 32> c;
    const int n = cq.poll(c);
    if (n < 0) {
      std::puts("VIOLATION the completion queue has overrun");
      std::exit(3);
    }
    for (int i = 0; i < n; ++i) {
      const Completion& from = c[static_cast<std::size_t>(i)];
      const bool ok = from.status == WcStatus::success;
      out->push_back({from.wr_id, from.qp_number, ok, from.byte_len, from.with_immediate,
                      static_cast<std::uint32_t>(roce ? from.immediate : from.immediate >> 32),
                      from.invalidated, from.invalidated_rkey, ok ? "" : to_string(from.status)});
    }
  }
  // The same value as in the C libraries: over iWARP, their four bytes are the first of the eight,
  // and the others give the length of the Write.
  std::uint64_t immediate(std::uint32_t value, std::uint32_t written) const {
    return roce ? value : std::uint64_t{value} << 32 | written;
  }
  void arm() override { cq.arm(); }
  void sleep(int ms) override {
    pollfd fds[] = {{cq.fd(), POLLIN, 0}, {events.fd(), POLLIN, 0}};
    std::uint64_t count = 0;
    if (::poll(fds, 2, ms) > 0 && (fds[0].revents & POLLIN) != 0) {
      [[maybe_unused]] const auto n = read(fds[0].fd, &count, sizeof count);
    }
  }

  bool roce;
  Device device;
  ProtectionDomain pd;
  CompletionQueue cq;
  EventQueue events;

 private:
  Listener listener_;
  ConnectRequest asked_;
};

ApiWire::ApiWire(ApiVerbs& verbs, std::span<std::uint8_t> memory) : verbs_(verbs) {
  region_ = need(verbs.device.register_memory(verbs.pd, memory.data(), memory.size(), kRights),
                 "memory region");
  QpOptions o;
  o.send_cq = o.receive_cq = verbs.cq;
  o.max_send = o.max_receive = kDepth;
  o.transport = verbs.roce ? Transport::roce : Transport::iwarp;
  qp_ = need(verbs.device.create_qp(verbs.pd, o), "queue pair");
  if (!qp_.deliver_events(verbs.events, reinterpret_cast<void*>(std::uintptr_t{qp_.number()}))
           .ok()) {
    std::exit(2);
  }
  if (verbs.roce) {
    QpAttributes a;
    a.access = access_remote_write | access_remote_read | access_remote_atomic;
    if (!qp_.modify(QpState::init, a).ok()) std::exit(2);
  }
}

std::uint32_t ApiWire::window_key(unsigned window) {
  MemoryWindow& w = windows_[window];
  if (!w) w = need(verbs_.device.create_window(verbs_.pd, WindowType::type2), "memory window");
  return w.next_rkey();
}

bool ApiWire::post(const Request& r) {
  const Sge sge{reinterpret_cast<std::uintptr_t>(r.data), r.length, region_.lkey()};
  WindowBind bind;
  SendRequest s;
  s.wr_id = r.id;
  if (r.data != nullptr) s.sges = {&sge, 1};
  s.remote_address = r.remote;
  s.rkey = r.key;
  switch (r.op) {
    case Op::Send:
      s.opcode = Opcode::send;
      break;
    case Op::SendImmediate:
      s.opcode = Opcode::send_with_immediate;
      s.immediate = verbs_.immediate(r.immediate, 0);
      break;
    case Op::SendInvalidate:
      s.opcode = Opcode::send_with_invalidate;
      s.invalidate_rkey = r.key;
      break;
    case Op::Write:
      s.opcode = Opcode::write;
      break;
    case Op::WriteImmediate:
      s.opcode = Opcode::write_with_immediate;
      s.immediate = verbs_.immediate(r.immediate, r.length);
      break;
    case Op::Read:
      s.opcode = Opcode::read;
      break;
    case Op::FetchAdd:
      s.opcode = Opcode::fetch_add;
      s.atomic.data = r.add_or_swap;
      break;
    case Op::CompareSwap:
      s.opcode = Opcode::compare_swap;
      s.atomic.data = r.add_or_swap;
      s.atomic.compare = r.compare;
      break;
    case Op::Bind:
      s.opcode = Opcode::bind_window;
      bind = {r.remote, r.length, region_.lkey(), r.key, access_remote_write | access_remote_read};
      s.bind = &bind;
      s.sges = {};
      break;
    case Op::LocalInvalidate:
      s.opcode = Opcode::local_invalidate;
      s.invalidate_rkey = r.key;
      break;
  }
  return qp_.post_send(s).ok();
}

}  // namespace

std::unique_ptr<Verbs> open_verbs(const std::string& transport) {
  return std::make_unique<ApiVerbs>(transport);
}

}  // namespace urnic::soak
