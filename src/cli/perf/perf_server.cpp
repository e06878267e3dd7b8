#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/perf/perf_run.h"

namespace urnic::cli {
namespace {

// Seconds between two Progress messages: several per interval, because the client cuts the
// intervals from them, and often enough that the client does not time out.
double tell_every(const PerfRun& run) {
  return run.interval_ms == 0 ? 1 : std::min(run.interval_ms / 4000.0, 1.0);
}

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

Result<void> PerfServer::listen(Transport transport, std::uint16_t port) {
  BindOptions options;
  options.transport = transport;
  auto at = s_.device.bind("[::]:" + std::to_string(port), options);
  if (!at) return at.error();
  Listener& l = listeners_[static_cast<int>(transport)];
  auto listener = s_.device.listen(*at, 64, s_.events, &l);
  if (!listener) return listener.error();
  l = std::move(*listener);
  return {};
}

Result<std::unique_ptr<PerfServer>> PerfServer::open(const Config& config, std::uint16_t port,
                                                     std::uint64_t memory_limit) {
  auto server = std::make_unique<PerfServer>();
  server->config_ = config;
  server->memory_limit_ = memory_limit;
  PerfSession& s = server->s_;
  auto own = serving(config, "perf");
  if (!own) return own.error();
  // Listen for the other transport too, so that its clients are refused instead of timing out.
  const std::string wire = own->get("port"), kind = wire.substr(0, wire.find(':'));
  const bool iwarp = kind != "udp", roce = kind != "tcp";
  if (iwarp && roce) {
    if (auto ok = own->set("transport", "both"); !ok) return ok.error();
  }
  auto device = Device::open(*own);
  if (!device) return device.error();
  s.device = std::move(*device);
  auto pd = s.device.alloc_pd();
  if (!pd) return pd.error();
  s.pd = std::move(*pd);
  auto events = s.device.create_event_queue();
  if (!events) return events.error();
  s.events = std::move(*events);
  // Also deliver link events: a client may be killed and replaced between two checks of the link.
  if (auto ok = s.device.deliver_events(s.events); !ok) return ok.error();
  if (iwarp) {
    if (auto ok = server->listen(Transport::iwarp, port); !ok) return ok.error();
  }
  if (roce) {
    if (auto ok = server->listen(Transport::roce, port); !ok) return ok.error();
  }
  return server;
}

void PerfServer::forget_client() {
  s_.qps.clear();
  s_.control.reset();
  s_.memory = RdmaBuffer();
  s_.cq = CompletionQueue();
  Event e;
  while (s_.events.poll(&e)) {  // drains events of closed connections
    s_.on_event(e);
    e = {};
  }
  s_.failure.clear();
  s_.ended = false;
}

// Returns an empty text if it is a client's request for a transport that is measured.
std::string PerfServer::refusal_of(const ConnectRequest& request, Transport transport) const {
  auto greeting = decode_greeting(request.private_data());
  if (!greeting.ok()) return greeting.error();
  if (!greeting->control) return "this session has ended";
  const std::string named = config_.get("transport");
  if (named == "both" || configured_transport(config_) == transport) return "";
  return std::string("it serves ") + name_of(configured_transport(config_)) + ", the client uses " +
         name_of(transport) + " (set --transport alike)";
}

// The client may send only after this.
Result<void> PerfServer::await_control() {
  const double until = now_seconds() + 20;
  for (;;) {
    Event e;
    if (!s_.events.wait(&e, 100)) {
      if (stop_requested()) return Error{Errc::closed, "stopped"};
      if (now_seconds() > until)
        return Error{Errc::timed_out, "timeout: the client did not connect"};
    } else if (e.kind == EventKind::connect_request) {
      s_.on_event(e);
    } else if (e.context == this) {
      if (e.kind == EventKind::established) return {};
      return e.error;
    }
  }
}

// Waits for a client and refuses other connect requests.
Result<void> PerfServer::accept_control(std::string* peer) {
  for (;;) {
    Event e;
    if (s_.waiting) {
      e.kind = EventKind::connect_request;
      e.request = std::exchange(s_.waiting, {});
      e.context = s_.waiting_at;
    } else if (!s_.events.wait(&e, 1)) {
      // wait() has handed the engine over to its thread; now sleep as long as necessary.
      if (stop_requested()) return Error{Errc::closed, "stopped"};
      if (config_.get("progress") == "poll") continue;  // no thread would drive the engine
      pollfd fds[2] = {{s_.events.fd(), POLLIN, 0}, {stop_fd(), POLLIN, 0}};
      ::poll(fds, 2, -1);
      continue;
    }
    if (e.kind != EventKind::connect_request) continue;
    s_.transport = e.context == &listeners_[static_cast<int>(Transport::roce)] ? Transport::roce
                                                                               : Transport::iwarp;
    const std::string refusal = refusal_of(e.request, s_.transport);
    if (!refusal.empty()) {
      e.request.reject(bytes_of(refusal));
      continue;
    }
    auto control = PerfControl::make(s_.device, s_.pd, s_.transport, s_.events, this);
    if (!control) {
      e.request.reject(bytes_of(control.error().message));
      continue;
    }
    *peer = e.request.peer();
    if (auto ok = e.request.accept((*control)->qp()); !ok) continue;
    s_.control = std::move(*control);
    if (auto up = await_control(); up) return {};
    forget_client();
  }
}

Result<void> PerfServer::accept_data(const PerfMessage& hello) {
  PerfMessage welcome;
  welcome.kind = PerfKind::Welcome;
  welcome.session = ++session_;
  s_.layout = {hello.connections, hello.buffer};
  const auto refuse = [&](const std::string& why) {
    PerfMessage m;
    m.kind = PerfKind::Error;
    m.text = why;
    if (s_.control->send(m)) s_.control->wait(200);
    return Error{Errc::invalid_argument, why};
  };
  if (hello.connections == 0 || hello.connections > 1024 || hello.buffer > memory_limit_ ||
      s_.layout.size() > memory_limit_) {
    return refuse("too many connections or too much memory requested (server option --memory)");
  }
  auto cq = s_.device.create_cq(hello.connections * (3 * kPerfMaxDepth + 256));
  if (!cq) return refuse(cq.error().message);
  s_.cq = std::move(*cq);
  auto memory = RdmaBuffer::make(s_.device, s_.pd, s_.layout.size(),
                                 access_local_write | access_remote_write | access_remote_read);
  if (!memory) return refuse(memory.error().message);
  s_.memory = std::move(*memory);
  s_.remote_address = hello.address;
  s_.remote_rkey = hello.rkey;
  welcome.rkey = s_.memory.region().rkey();
  welcome.address = s_.memory.region().remote_address();
  welcome.connections = hello.connections;
  welcome.buffer = hello.buffer;
  if (auto ok = s_.control->send(welcome); !ok) return ok;

  std::uint32_t established = 0;
  const double until = now_seconds() + 20;
  while (established < hello.connections) {
    Event e;
    if (!s_.events.wait(&e, 100)) {
      if (stop_requested()) return Error{Errc::closed, "stopped"};
      if (now_seconds() > until)
        return Error{Errc::timed_out, "timeout: the client did not connect"};
      continue;
    }
    if (e.kind == EventKind::established) {
      if (e.context != this) ++established;
      continue;
    }
    if (e.kind != EventKind::connect_request) {
      s_.on_event(e);
      if (s_.failure.empty() && !s_.ended) continue;
      return Error{Errc::reset, "the client disconnected"};
    }
    auto greeting = decode_greeting(e.request.private_data());
    if (!greeting.ok() || greeting->control || greeting->session != session_ ||
        greeting->index != s_.qps.size()) {
      s_.on_event(e);
      continue;
    }
    auto qp = s_.make_qp(nullptr);
    if (!qp) {
      e.request.reject(bytes_of(qp.error().message));
      return qp.error();
    }
    s_.qps.push_back(std::move(*qp));
    if (auto ok = e.request.accept(s_.qps.back()); !ok) return ok;
  }
  return {};
}

Result<void> PerfServer::serve_one(bool* served) {
  std::string peer;
  *served = false;
  if (auto ok = accept_control(&peer); !ok) return ok;
  *served = true;
  Idle idle(config_.get_int("spin_us"));
  bool greeted = false;
  const auto failed = [&](Error why) -> Result<void> {
    s_.alive(now_seconds());  // the event gives the better reason
    if (!s_.failure.empty()) why.message = s_.failure;
    why.message = "client " + peer + ": " + why.message;
    forget_client();
    return why;
  };
  double last_sign = now_seconds(), next_check = 0;
  for (;;) {
    auto m = s_.control->receive();
    if (!m) {
      // Wait for the client's orderly disconnect.
      Event e;
      while (!s_.ended && s_.failure.empty() && s_.events.wait(&e, 100)) {
        s_.on_event(e);
        e = {};
      }
      if (!s_.ended) return failed(m.error());
      forget_client();
      return {};
    }
    if (*m) {
      last_sign = now_seconds();
      idle.reset();
      if ((*m)->kind == PerfKind::Hello && !greeted) {
        if (auto ok = accept_data(**m); !ok) return failed(ok.error());
        greeted = true;
      } else if ((*m)->kind == PerfKind::Run && greeted) {
        if (auto ok = run_one((*m)->run, peer); !ok) return failed(ok.error());
        last_sign = now_seconds();
      } else {
        return failed({Errc::protocol, "protocol error: unexpected message"});
      }
      continue;
    }
    if (const double now = now_seconds(); now >= next_check) {
      next_check = now + 0.1;
      const bool well = s_.alive(last_sign);
      if (s_.ended) {
        forget_client();
        return {};
      }
      if (!well) return failed({Errc::reset, s_.failure});
    }
    if (idle.ripe()) s_.control->wait(20);
  }
}

Result<void> PerfServer::run_one(const PerfRun& run, const std::string& peer) {
  if (run.size > s_.layout.buffer || run.depth > kPerfMaxDepth ||
      (run.test == PerfTest::Latency && 2 * std::uint64_t{perf_stride(run)} > s_.layout.buffer)) {
    return Error{Errc::invalid_argument, "the measurement does not fit into --memory"};
  }
  PerfMessage report, done;
  auto ok =
      run.test == PerfTest::Latency ? run_latency(run, &done) : run_bandwidth(run, &report, &done);
  if (!ok) return ok;
  report.kind = PerfKind::Report;
  s_.add_stats(&report);
  if (auto sent = s_.control->send(report); !sent) return sent;
  if (!on_result) return {};
  PerfResult r;
  r.run = run;
  r.latency = from_nanoseconds(done.latency);
  // For both directions, if there are two.
  for (const PerfMessage* end : {&done, &report}) {
    if (end == &report && !run.bidirectional && !run.reverse) break;
    const double seconds = std::max(static_cast<double>(end->nanoseconds) / 1e9, 1e-9);
    r.seconds = std::max(r.seconds, seconds);
    r.messages += end->messages;
    r.message_rate += static_cast<double>(end->messages) / seconds;
    r.peak_rate += static_cast<double>(end->peak);
  }
  r.average_rate = r.message_rate * run.size;
  r.peak_rate = std::max(r.peak_rate, r.average_rate);
  on_result(peer, r);
  return {};
}

Result<void> PerfServer::run_latency(const PerfRun& run, PerfMessage* done) {
  LatencyLoop loop(&s_, run, false);
  if (auto ok = loop.prepare(); !ok) return ok;
  PerfMessage ready;
  ready.kind = PerfKind::Ready;
  if (auto ok = s_.control->send(ready); !ok) return ok;
  if (!loop.run()) return Error{Errc::reset, s_.failure};
  *done = loop.done();
  return {};
}

bool PerfServer::over(const PerfRun& run, const std::optional<PerfMessage>& done,
                      const BandwidthSender& sender, const SendReceiver& receiver) {
  if (run.reverse) return sender.finished();
  const bool all_in = done && (run.op != PerfOp::Send || receiver.messages() >= done->messages);
  return all_in && (!run.bidirectional || sender.finished());
}

Result<void> PerfServer::run_bandwidth(const PerfRun& run, PerfMessage* report, PerfMessage* done) {
  const bool sends = run.bidirectional || run.reverse;
  const bool receives = run.op == PerfOp::Send && !run.reverse;
  for (std::uint32_t i = 0; i < s_.layout.connections; ++i) {
    std::fill_n(s_.memory.data() + s_.layout.credit(i), 64, std::uint8_t{0});
    // Senders hold the pattern, receivers zeros. With both directions each end is both.
    if (run.op == PerfOp::Read || sends) {
      fill_pattern(run.seed, 0, {s_.data(i), s_.layout.buffer});
    } else {
      std::fill_n(s_.data(i), s_.layout.buffer, std::uint8_t{0});
    }
  }
  SendReceiver receiver(&s_, run);
  BandwidthSender sender(&s_, run);
  PerfMessage ready;
  ready.kind = PerfKind::Ready;
  if (auto ok = s_.control->send(ready); !ok) return ok;
  if (receives) {
    if (auto ok = receiver.start(); !ok) return ok;
  }
  std::optional<PerfMessage> announced;
  const double began = now_seconds();
  double last_progress = began, next_check = 0, next_told = began + tell_every(run);
  std::array<Completion, 64> batch;
  Idle idle(config_.get_int("spin_us"));
  while (!over(run, announced, sender, receiver)) {
    bool worked = sends && sender.step();
    const int n = s_.cq.poll(batch);
    for (int i = 0; i < n; ++i) {
      const Completion& c = batch[static_cast<std::size_t>(i)];
      worked = true;
      if (c.status != WcStatus::success) {
        s_.alive(now_seconds());
        return Error{Errc::reset, s_.failure.empty() ? to_string(c.status) : s_.failure};
      }
      if (static_cast<PerfTag>(c.wr_id >> 56) == PerfTag::Sender) {
        sender.on_completion(c);
      } else {
        receiver.on_completion(c);
      }
    }
    if (!receiver.failure().empty()) return Error{Errc::io, receiver.failure()};
    auto m = s_.control->receive();
    if (!m) return m.error();
    if (*m) {
      if ((*m)->kind != PerfKind::Done || run.reverse)
        return Error{Errc::protocol, "protocol error: unexpected message"};
      announced = std::move(**m);
      worked = true;
    }
    const double now = now_seconds();
    if (worked) {
      last_progress = now;
      idle.reset();
    }
    // Otherwise the client learns nothing about the operations of this side.
    if (run.reverse && now >= next_told) {
      next_told = now + tell_every(run);
      PerfMessage told;
      told.kind = PerfKind::Progress;
      told.messages = sender.messages();
      told.nanoseconds = static_cast<std::uint64_t>(sender.elapsed(now) * 1e9);
      if (auto ok = s_.control->send(told); !ok) return ok;
    }
    if (now >= next_check) {
      next_check = now + 0.1;
      // One-sided operations of the client are invisible here: then only the client's timeout
      // counts.
      const bool ours = run.op == PerfOp::Send || run.reverse || announced;
      if (!s_.alive(ours ? last_progress : now)) return Error{Errc::reset, s_.failure};
    }
    if (!worked && !sends && run.op != PerfOp::Send && idle.ripe()) s_.device.progress();
  }
  report->messages = sends ? sender.messages() : receiver.messages();
  report->nanoseconds = static_cast<std::uint64_t>(std::max(sender.seconds(), 0.0) * 1e9);
  report->peak = static_cast<std::uint64_t>(sender.peak_rate());
  report->errors = receiver.errors();
  if (announced) *done = *announced;
  if (run.verify && run.op == PerfOp::Write) count_differences(run, done->messages, report);
  return {};
}

void PerfServer::count_differences(const PerfRun& run, std::uint64_t messages,
                                   PerfMessage* report) {
  const std::uint64_t slots = perf_slots(run, s_.layout.buffer);
  const std::uint64_t each = messages / s_.layout.connections;
  for (std::uint32_t i = 0; i < s_.layout.connections; ++i) {
    for (std::uint64_t k = 0; k < std::min(slots, each); ++k) {
      const std::uint64_t at = k * perf_stride(run);
      if (!matches_pattern(run.seed, at, {s_.data(i) + at, run.size})) ++report->errors;
    }
  }
}

}  // namespace urnic::cli
