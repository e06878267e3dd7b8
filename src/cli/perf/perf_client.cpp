#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/endpoint.h"
#include "cli/perf/perf_run.h"

namespace urnic::cli {

namespace {

void take_counts(const PerfMessage& receiver, const PerfMessage& sender, PerfResult* r) {
  r->bytes_fast = receiver.bytes_fast;
  r->bytes_slow = receiver.bytes_slow;
  r->downgrades = receiver.downgrades;
  r->upgrades = receiver.upgrades;
  r->recoveries = receiver.recoveries;
  r->retransmits = sender.retransmits;
}

}  // namespace

Result<std::unique_ptr<PerfClient>> PerfClient::connect(const Config& config,
                                                        const std::vector<std::string>& places,
                                                        std::uint32_t connections,
                                                        std::uint64_t buffer) {
  auto client = std::make_unique<PerfClient>();
  client->config_ = config;
  PerfSession& s = client->s_;
  s.transport = configured_transport(config);
  auto device = Device::open(config);
  if (!device) return device.error();
  s.device = std::move(*device);
  if (auto ok = wait_ready(s.device, config.get("port"), "urnic perf", 10'000); !ok) {
    return ok.error();
  }
  auto pd = s.device.alloc_pd();
  if (!pd) return pd.error();
  s.pd = std::move(*pd);
  auto cq = s.device.create_cq(connections * (3 * kPerfMaxDepth + 256));
  if (!cq) return cq.error();
  s.cq = std::move(*cq);
  auto events = s.device.create_event_queue();
  if (!events) return events.error();
  s.events = std::move(*events);
  s.layout = {connections, buffer};
  auto memory = RdmaBuffer::make(s.device, s.pd, s.layout.size(),
                                 access_local_write | access_remote_write | access_remote_read);
  if (!memory) return memory.error();
  s.memory = std::move(*memory);
  Result<void> reached = Error{Errc::invalid_argument, "no address to connect to"};
  for (const std::string& place : reachable(s.device, places)) {
    reached = client->reach(place);
    if (reached || stop_requested()) break;
  }
  if (!reached) return reached.error();

  PerfMessage hello;
  hello.kind = PerfKind::Hello;
  hello.connections = connections;
  hello.buffer = buffer;
  hello.rkey = s.memory.region().rkey();
  hello.address = s.memory.region().remote_address();
  if (auto ok = s.control->send(hello); !ok) return ok.error();
  auto welcome = client->await(PerfKind::Welcome, [] {});
  if (!welcome) return welcome.error();
  s.remote_address = welcome->address;
  s.remote_rkey = welcome->rkey;
  for (std::uint32_t i = 0; i < connections; ++i) {
    auto qp = s.make_qp(nullptr);
    if (!qp) return qp.error();
    s.qps.push_back(std::move(*qp));
    if (auto ok = client->connect_one(s.qps.back(), {false, welcome->session, i}); !ok) {
      return ok.error();
    }
  }
  return client;
}

Result<void> PerfClient::reach(const std::string& place) {
  endpoint_ = place;
  if (auto ok = not_ourselves(s_.device, place); !ok) return ok;
  auto control = PerfControl::make(s_.device, s_.pd, s_.transport, s_.events, nullptr);
  if (!control) return control.error();
  s_.control = std::move(*control);
  return connect_one(s_.control->qp(), {true, 0, 0});
}

Result<void> PerfClient::connect_one(QueuePair& qp, const PerfGreeting& greeting) {
  const auto private_data = encode(greeting);
  ConnectionOptions options;
  options.private_data = private_data;
  if (auto ok = qp.connect_start(endpoint_, options); !ok) return ok;
  Event e;
  while (!s_.events.wait(&e, 100)) {
    if (stop_requested()) return Error{Errc::closed, "stopped"};
  }
  if (e.kind == EventKind::established) return {};
  std::string why = e.error.message;
  const std::string said = error_text_in(e.private_data);
  if (e.error.code == Errc::rejected && !said.empty()) why = "the server refuses: " + said;
  return Error{e.error.code, endpoint_ + ": " + why};
}

Error PerfClient::failed() const {
  return {Errc::reset, endpoint_ + ": " + s_.failure};
}

Result<PerfMessage> PerfClient::await(PerfKind kind, const std::function<void()>& meanwhile,
                                      std::optional<PerfKind> also) {
  const double began = now_seconds();
  Idle idle(config_.get_int("spin_us"));
  double next_check = 0;
  for (;;) {
    auto m = s_.control->receive();
    if (!m) {
      s_.alive(now_seconds());  // the event gives the better reason
      return Error{m.error().code,
                   endpoint_ + ": " + (s_.failure.empty() ? m.error().message : s_.failure)};
    }
    if (*m) {
      if ((*m)->kind == kind || (also && (*m)->kind == *also)) return std::move(**m);
      return Error{Errc::protocol,
                   endpoint_ + ": protocol error: unexpected message from the server"};
    }
    meanwhile();
    if (const double now = now_seconds(); now >= next_check) {
      next_check = now + 0.1;
      if (!s_.alive(began)) return failed();
    }
    if (idle.ripe()) s_.control->wait(1);
  }
}

void PerfClient::dispatch(BandwidthSender* sender, SendReceiver* receiver) {
  std::array<Completion, 64> batch;
  const int n = s_.cq.poll(batch);
  for (int i = 0; i < n; ++i) {
    const Completion& c = batch[static_cast<std::size_t>(i)];
    if (c.status != WcStatus::success) {
      if (s_.failure.empty()) s_.alive(now_seconds());
      if (s_.failure.empty()) s_.failure = to_string(c.status);
      return;
    }
    if (static_cast<PerfTag>(c.wr_id >> 56) == PerfTag::Sender) {
      sender->on_completion(c);
    } else if (receiver != nullptr) {
      receiver->on_completion(c);
    }
  }
}

void PerfClient::note(std::optional<PerfInterval> over) {
  if (!over) return;
  if (keeps_) intervals_.push_back(*over);
  if (tell_ != nullptr && *tell_) (*tell_)(*over);
}

Result<PerfResult> PerfClient::measure(const PerfRun& run, const Tell& tell) {
  tell_ = &tell;
  keeps_ = run.duration_ms != kPerfNoEnd;
  intervals_.clear();
  auto result = measure(run);
  tell_ = nullptr;
  if (result) result->intervals = std::move(intervals_);
  return result;
}

Result<PerfResult> PerfClient::measure(const PerfRun& run) {
  if (run.reverse) return reversed(run);
  if (run.test == PerfTest::Latency) return latency(run);
  // Sends are compared one by one as they arrive.
  return run.verify && run.op != PerfOp::Send ? verified(run) : bandwidth(run);
}

// Runs pass by pass over the data area. Each pass has its own bytes, and all of them are compared
// before the next pass overwrites them. Every byte of every message is verified.
Result<PerfResult> PerfClient::verified(const PerfRun& run) {
  const std::uint64_t slots = perf_slots(run, s_.layout.buffer);
  PerfResult sum;
  std::uint64_t left = run.iterations;
  for (std::uint64_t pass = 0;; ++pass) {
    PerfRun one = run;
    one.seed = run.seed + pass;
    one.iterations = run.iterations != 0 ? std::min(left, slots) : slots;
    one.duration_ms = 0;
    auto r = bandwidth(one);
    if (!r) return r;
    r->messages += sum.messages;
    r->seconds += sum.seconds;
    r->errors += sum.errors;
    r->peak_rate = std::max(r->peak_rate, sum.peak_rate);
    sum = *r;  // the counters of the connections continue from pass to pass
    left -= std::min(left, one.iterations);
    const bool over = run.iterations != 0 ? left == 0 : sum.seconds * 1000 >= run.duration_ms;
    if (over) break;
  }
  sum.run = run;
  sum.message_rate = static_cast<double>(sum.messages) / std::max(sum.seconds, 1e-9);
  sum.average_rate = sum.message_rate * run.size;
  return sum;
}

// Over the kernel's TCP a Write completes once the kernel has it, and Done uses another connection:
// Done could arrive first. A Read after the Writes completes only after they are placed.
Result<void> PerfClient::see_writes_placed() {
  for (std::uint32_t i = 0; i < s_.layout.connections; ++i) {
    const Sge sink = s_.memory.sge(s_.layout.credit(i), 8);
    SendRequest read;
    read.opcode = Opcode::read;
    read.sges = {&sink, 1};
    read.remote_address = s_.remote_address + s_.layout.data(i);
    read.rkey = s_.remote_rkey;
    if (auto ok = s_.qps[i].post_send(read); !ok) return ok;
  }
  const double began = now_seconds();
  std::array<Completion, 64> batch;
  for (std::uint32_t left = s_.layout.connections; left > 0;) {
    const int n = s_.cq.poll(batch);
    for (int i = 0; i < n; ++i, --left) {
      if (batch[static_cast<std::size_t>(i)].status == WcStatus::success) continue;
      s_.alive(began);
      if (s_.failure.empty()) s_.failure = to_string(batch[static_cast<std::size_t>(i)].status);
      return failed();
    }
    if (n == 0 && !s_.alive(began)) return failed();
  }
  return {};
}

Result<PerfResult> PerfClient::bandwidth(const PerfRun& run) {
  for (std::uint32_t i = 0; i < s_.layout.connections; ++i) {
    std::fill_n(s_.memory.data() + s_.layout.credit(i), 64, std::uint8_t{0});
    const bool source = run.op != PerfOp::Read;
    if (source) {
      fill_pattern(run.seed, 0, {s_.data(i), s_.layout.buffer});
    } else {
      std::fill_n(s_.data(i), s_.layout.buffer, std::uint8_t{0});
    }
  }
  BandwidthSender sender(&s_, run);
  // In both directions the server sends too. It writes to memory that we do not send from. For
  // Write and Read that is the same place with the same bytes.
  SendReceiver receiver(&s_, run);
  const bool receiving = run.op == PerfOp::Send && run.bidirectional;
  if (auto ok = begin(run, receiving, &receiver); !ok) return ok.error();
  IntervalMeter meter(run.interval_ms);
  double last_progress = now_seconds(), next_check = 0;
  while (!sender.finished()) {
    const std::uint64_t before = sender.messages();
    sender.step();
    dispatch(&sender, receiving ? &receiver : nullptr);
    const double now = now_seconds();
    if (sender.messages() != before || run.limit != 0) last_progress = now;
    note(meter.at(sender.elapsed(now), sender.messages()));
    if (now >= next_check) {
      next_check = now + 0.1;
      s_.alive(last_progress);
    }
    if (!s_.failure.empty()) return failed();
  }
  note(meter.rest(sender.seconds(), sender.messages()));
  if (run.verify && run.op == PerfOp::Write) {
    if (auto placed = see_writes_placed(); !placed) return placed.error();
  }
  PerfMessage m;
  m.kind = PerfKind::Done;
  m.messages = sender.messages();
  m.nanoseconds = static_cast<std::uint64_t>(sender.seconds() * 1e9);
  m.peak = static_cast<std::uint64_t>(sender.peak_rate());
  if (auto ok = s_.control->send(m); !ok) return ok.error();
  auto report =
      await(PerfKind::Report, [&] { dispatch(&sender, receiving ? &receiver : nullptr); });
  if (!report) return report.error();

  PerfResult r;
  r.run = run;
  r.seconds = sender.seconds();
  r.messages = sender.messages();
  r.message_rate = static_cast<double>(r.messages) / std::max(r.seconds, 1e-9);
  r.peak_rate = sender.peak_rate();
  r.errors = report->errors + receiver.errors();
  if (run.bidirectional) {
    const double seconds = static_cast<double>(report->nanoseconds) / 1e9;
    const double rate = static_cast<double>(report->messages) / std::max(seconds, 1e-9);
    r.messages += report->messages;
    r.message_rate += rate;
    r.peak_rate += rate * run.size;
  }
  r.average_rate = r.message_rate * run.size;
  r.peak_rate = std::max(r.peak_rate, r.average_rate);
  if (run.verify && run.op == PerfOp::Read) {
    const std::uint64_t slots = perf_slots(run, s_.layout.buffer);
    const std::uint64_t each = sender.messages() / s_.layout.connections;
    for (std::uint32_t i = 0; i < s_.layout.connections; ++i) {
      for (std::uint64_t k = 0; k < std::min(slots, each); ++k) {
        const std::uint64_t at = k * perf_stride(run);
        if (!matches_pattern(run.seed, at, {s_.data(i) + at, run.size})) ++r.errors;
      }
    }
  }
  PerfMessage here;
  s_.add_stats(&here);
  const bool we_receive = run.op == PerfOp::Read;
  take_counts(we_receive ? here : *report, we_receive ? *report : here, &r);
  return r;
}

// Announces the run to the server and receives its sends, if there are any.
Result<void> PerfClient::begin(const PerfRun& run, bool receives, SendReceiver* receiver) {
  PerfMessage m;
  m.kind = PerfKind::Run;
  m.run = run;
  if (auto ok = s_.control->send(m); !ok) return ok;
  auto ready = await(PerfKind::Ready, [] {});
  if (!ready) return ready.error();
  return receives ? receiver->start() : Result<void>();
}

// The server writes, reads or sends, and reports its progress.
Result<PerfResult> PerfClient::reversed(const PerfRun& run) {
  for (std::uint32_t i = 0; i < s_.layout.connections; ++i) {
    std::fill_n(s_.memory.data() + s_.layout.credit(i), 64, std::uint8_t{0});
    std::fill_n(s_.data(i), s_.layout.buffer, std::uint8_t{0});
  }
  SendReceiver receiver(&s_, run);
  const bool receives = run.op == PerfOp::Send;
  if (auto ok = begin(run, receives, &receiver); !ok) return ok.error();
  BandwidthSender idle_sender(&s_, run);
  const auto meanwhile = [&] { dispatch(&idle_sender, receives ? &receiver : nullptr); };
  IntervalMeter meter(run.interval_ms);
  PerfMessage last;
  while (last.kind != PerfKind::Report) {
    auto m = await(PerfKind::Report, meanwhile, PerfKind::Progress);
    if (!m) return m.error();
    last = *m;
    const double seconds = static_cast<double>(last.nanoseconds) / 1e9;
    note(last.kind == PerfKind::Report ? meter.rest(seconds, last.messages)
                                       : meter.at(seconds, last.messages));
  }
  // The last report uses another connection than the messages, so some may still arrive.
  const double until = now_seconds() + 5;
  while (receives && receiver.messages() < last.messages) {
    meanwhile();
    if (now_seconds() > until) s_.failure = "some messages did not arrive";
    if (!receiver.failure().empty()) s_.failure = receiver.failure();
    if (!s_.failure.empty()) return failed();
  }
  PerfResult r;
  r.run = run;
  r.messages = last.messages;
  r.seconds = static_cast<double>(last.nanoseconds) / 1e9;
  r.message_rate = static_cast<double>(r.messages) / std::max(r.seconds, 1e-9);
  r.average_rate = r.message_rate * run.size;
  r.peak_rate = std::max(static_cast<double>(last.peak), r.average_rate);
  PerfMessage here;
  s_.add_stats(&here);
  take_counts(run.op == PerfOp::Read ? last : here, run.op == PerfOp::Read ? here : last, &r);
  return r;
}

Result<PerfResult> PerfClient::latency(const PerfRun& run) {
  LatencyLoop loop(&s_, run, true);
  if (auto ok = loop.prepare(); !ok) return ok.error();
  PerfMessage m;
  m.kind = PerfKind::Run;
  m.run = run;
  if (auto ok = s_.control->send(m); !ok) return ok.error();
  auto ready = await(PerfKind::Ready, [] {});
  if (!ready) return ready.error();
  if (!loop.run()) return failed();
  m.kind = PerfKind::Done;
  PerfResult r;
  r.run = run;
  r.messages = m.messages = loop.messages();
  r.seconds = loop.seconds();
  r.message_rate = static_cast<double>(r.messages) / std::max(r.seconds, 1e-9);
  r.latency = summarise(&loop.samples());
  m.nanoseconds = static_cast<std::uint64_t>(r.seconds * 1e9);
  m.latency = to_nanoseconds(r.latency);
  if (auto ok = s_.control->send(m); !ok) return ok.error();
  auto report = await(PerfKind::Report, [] {});
  if (!report) return report.error();
  PerfMessage here;
  s_.add_stats(&here);
  take_counts(here, here, &r);
  return r;
}

void PerfClient::disconnect() {
  for (QueuePair& qp : s_.qps) qp.disconnect();
  s_.control->qp().disconnect();
  std::size_t gone = 0;
  const double until = now_seconds() + 1;
  Event e;
  while (gone < s_.qps.size() + 1 && now_seconds() < until) {
    if (s_.events.wait(&e, 50)) ++gone;
  }
}

}  // namespace urnic::cli
