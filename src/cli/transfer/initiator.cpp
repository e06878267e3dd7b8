#include "cli/transfer/initiator.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace urnic::cli {
namespace {

constexpr double kCheckEvery = 0.25, kBarEvery = 0.1, kLinkDownLimit = 1.0;
constexpr std::size_t kBatch = 32;

Errc code_of(Status s) {
  switch (s) {
    case Status::Permission:
    case Status::ReadOnly:
      return Errc::permission;
    case Status::BadName:
    case Status::BadRequest:
      return Errc::invalid_argument;
    default:
      return Errc::io;
  }
}

}  // namespace

Initiator::Initiator(const Config& config, const InitiatorOptions& options)
    : config_(config), options_(options), files_(64, options.use_uring), pace_(options.limit) {}

Initiator::~Initiator() {
  if (file_.source || file_.sink) settle();
}

Result<std::unique_ptr<Initiator>> Initiator::connect(const Config& config,
                                                      const std::vector<std::string>& places,
                                                      const InitiatorOptions& options) {
  std::unique_ptr<Initiator> i(new Initiator(config, options));
  if (auto ok = i->start(); !ok) return ok.error();
  const auto tried = reachable(i->rdma_.device, places);
  Result<void> reached = Error{Errc::invalid_argument, "no address to connect to"};
  for (const std::string& place : tried) {
    reached = i->reach(place, options.connect_timeout_ms / static_cast<int>(tried.size()));
    if (reached || stop_requested()) break;
  }
  if (!reached) return reached.error();
  if (auto ok = i->say_hello(); !ok) return ok.error();
  return i;
}

Result<void> Initiator::start() {
  auto device = Device::open(config_);
  if (!device) return device.error();
  rdma_.device = std::move(*device);
  if (auto ok =
          wait_ready(rdma_.device, config_.get("port"), "the target", options_.connect_timeout_ms);
      !ok) {
    return ok;
  }
  auto pd = rdma_.device.alloc_pd();
  if (!pd) return pd.error();
  rdma_.pd = std::move(*pd);
  auto cq = rdma_.device.create_cq(Channel::kCompletions);
  if (!cq) return cq.error();
  rdma_.cq = std::move(*cq);
  auto events = rdma_.device.create_event_queue();
  if (!events) return events.error();
  rdma_.events = std::move(*events);
  return {};
}

Result<void> Initiator::reach(const std::string& place, int timeout_ms) {
  endpoint_ = place;
  if (auto ok = not_ourselves(rdma_.device, place); !ok) return ok;
  auto channel = Channel::make(rdma_.device, rdma_.pd, rdma_.cq, rdma_.events, nullptr);
  if (!channel) return channel.error();
  rdma_.channel = std::move(*channel);

  const auto greeting = storage_greeting(options_.token ? &options_.token->digest() : nullptr);
  ConnectionOptions connect;
  connect.private_data = greeting;
  connect.timeout_ms = std::max(timeout_ms, 1);
  if (auto ok = rdma_.channel->qp().connect_start(place, connect); !ok) {
    return Error{ok.error().code, place + ": " + ok.error().message};
  }
  while (true) {
    Event e;
    if (!rdma_.events.wait(&e, 100)) {
      if (stop_requested()) return Error{Errc::closed, "stopped"};
      continue;
    }
    if (e.kind == EventKind::established) break;
    std::string why = e.error.message;
    const std::string said = error_text_in(e.private_data);
    if (e.error.code == Errc::rejected && !said.empty()) why = "the target refuses: " + said;
    return Error{e.error.code, place + ": " + why};
  }
  const std::string answer = rdma_.channel->qp().peer_private_data();
  if (!check_greeting({reinterpret_cast<const std::uint8_t*>(answer.data()), answer.size()})
           .empty()) {
    return Error{Errc::protocol,
                 place + ": the peer is not urnic target, or an incompatible version"};
  }
  return {};
}

Result<void> Initiator::say_hello() {
  Message hello;
  hello.kind = MessageKind::Hello;
  hello.slots = std::min(options_.slots, Channel::kMaxSlots);
  hello.chunk = options_.chunk;
  send(hello);
  if (!run([] { return false; }, [&] { return offer_.window.slots != 0 || file_.result; })) {
    return Error{Errc::reset, endpoint_ + ": " + failure_};
  }
  if (file_.result) {
    return Error{code_of(file_.result->status),
                 endpoint_ + ": the target refuses: " + file_.result->text};
  }
  auto buffer =
      RdmaBuffer::make(rdma_.device, rdma_.pd,
                       std::size_t{offer_.window.slots} * offer_.window.chunk, access_local_write);
  if (!buffer) return buffer.error();
  rdma_.buffer = std::move(*buffer);
  offer_.window.base = rdma_.buffer.data();
  slots_.reset(offer_.window.slots);
  return {};
}

void Initiator::fail_with(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

void Initiator::send(const Message& m) {
  if (!failure_.empty()) return;
  if (auto ok = rdma_.channel->send(m); !ok) fail_with(ok.error().message);
}

Message Initiator::request(MessageKind kind) const {
  Message m;
  m.kind = kind;
  m.transfer = file_.transfer;
  return m;
}

// ---- the loop

bool Initiator::run(const std::function<bool()>& work, const std::function<bool()>& done) {
  Idle idle(config_.get_int("spin_us")), idle_beside_files(kFileSpinUs);
  watch_.last_progress = now_seconds();
  while (failure_.empty()) {
    if (done()) return true;
    const bool worked = step() || work();
    const double pause = pace_.wait(now_seconds());
    if (worked || pause > 0) watch_.last_progress = now_seconds();
    const bool files = files_.outstanding() != 0;
    if (!worked && files) sched_yield();  // if there is one core, io_uring's worker waits for it
    if (worked) {
      idle.reset();
      idle_beside_files.reset();
    } else if (files ? idle_beside_files.ripe() : idle.ripe()) {
      const int longest = pause > 0 ? std::clamp(static_cast<int>(pause * 1000), 1, 50) : 50;
      rdma_.cq.wait(files ? 1 : longest);
      idle.reset();
      idle_beside_files.reset();
    }
    check_time();
  }
  return false;
}

bool Initiator::step() {
  bool worked = false;
  std::array<Completion, kBatch> batch;
  const int n = rdma_.cq.poll(batch);
  for (int i = 0; i < n; ++i) on_completion(batch[static_cast<std::size_t>(i)]);
  worked = n > 0;
  Event event;
  while (rdma_.events.poll(&event)) {
    on_event(event);
    event = {};
    worked = true;
  }
  FileQueue::Done done;
  while (files_.poll(&done)) {
    worked = true;
    const auto slot = static_cast<std::uint32_t>(done.tag);
    if (file_.source) {
      file_.source->file_done(slot, done.result);
    } else if (file_.sink) {
      file_.sink->file_done(slot, done.result);
    }
  }
  if (file_.source) worked = file_.source->step() || worked;
  if (file_.sink) worked = file_.sink->step() || worked;
  return worked;
}

void Initiator::check_time() {
  const double now = now_seconds();
  if (file_.progress && now >= file_.next_bar) {
    file_.next_bar = now + kBarEvery;
    if (file_.source) file_.progress(file_.source->sent(), file_.source->size());
    if (file_.sink) file_.progress(file_.sink->stored(), file_.sink->size());
  }
  if (now < watch_.next_check) return;
  watch_.next_check = now + kCheckEvery;
  if (stop_requested()) return fail_with("stopped");
  if (now - watch_.last_progress > options_.stall_limit) {
    return fail_with("no response from the target for " +
                     std::to_string(static_cast<int>(options_.stall_limit)) + " s");
  }
  if (rdma_.device.info().link_up) {
    watch_.link_down_since = 0;
  } else if (watch_.link_down_since == 0) {
    watch_.link_down_since = now;
  } else if (now - watch_.link_down_since > kLinkDownLimit) {
    fail_with("the link to the peer is down");
  }
}

void Initiator::on_event(const Event& e) {
  if (e.kind == EventKind::disconnected) {
    disconnected_ = true;
    fail_with("the target closed the connection");
  } else if (e.kind == EventKind::failed) {
    disconnected_ = true;
    fail_with(e.error.message);
  }
}

void Initiator::on_completion(const Completion& c) {
  const Channel::Incoming in = rdma_.channel->take(c);
  switch (in.what) {
    case Channel::What::Nothing:
      return;
    case Channel::What::Received:
      return on_message(in.message);
    case Channel::What::Failed: {
      // The reason follows as an event and is the better message. It arrives once, however many
      // requests are flushed.
      Event e;
      if (failure_.empty() &&
          (c.status == WcStatus::flushed || c.status == WcStatus::fatal_transport)) {
        if (rdma_.events.wait(&e, 200)) on_event(e);
      }
      return fail_with(in.error);
    }
    case Channel::What::DataDone:
      if (data_outstanding_ != 0) --data_outstanding_;
      if (file_.sink) {
        file_.sink->arrived(in.slot);
      } else if (file_.source && slots_.written(in.slot)) {
        file_.source->slot_free(in.slot);
      }
      return;
  }
}

void Initiator::on_message(const Message& m) {
  if (m.kind == MessageKind::Welcome) {
    if (offer_.window.slots != 0 || m.slots == 0 || m.slots > Channel::kMaxSlots || m.chunk == 0 ||
        m.chunk > options_.chunk) {
      return fail_with("protocol error: the target offered an unrequested window");
    }
    offer_.window.slots = m.slots;
    offer_.window.chunk = m.chunk;
    offer_.rkey = m.rkey;
    offer_.remote = m.address;
    offer_.read_only = m.read_only;
    return;
  }
  if (m.transfer != file_.transfer) {
    if (m.kind == MessageKind::Result && m.transfer == 0) return fail_with(m.text);
    return;  // for an abandoned transfer
  }
  switch (m.kind) {
    case MessageKind::Opened:
      file_.opened = m;
      return;
    case MessageKind::Result:
      file_.result = m;
      return;
    case MessageKind::Commit:
      file_.commit = m;
      return;
    case MessageKind::Taken:
      if (!file_.source) return;
      if (!slots_.given(m.slot)) {
        return fail_with("protocol error: the target returned a slot that was not in use");
      }
      if (slots_.taken(m.slot)) file_.source->slot_free(m.slot);
      return;
    case MessageKind::Have:
      if (file_.haves.size() >= Channel::kMaxSlots)
        return fail_with("protocol error: too many ranges from the target");
      file_.haves.push_back(m);
      return;
    case MessageKind::Chunk:
      if (file_.sink) return on_chunk(m);
      if (file_.early_chunks.size() < Channel::kMaxSlots) file_.early_chunks.push_back(m);
      return;
    default:
      return fail_with("protocol error: the target sent a client message");
  }
}

void Initiator::on_chunk(const Message& m) {
  if (m.slot >= offer_.window.slots ||
      !file_.sink->announce({m.slot, m.length, m.offset, m.hole})) {
    return fail_with("protocol error: the target sent a chunk out of order or with a wrong size");
  }
  if (m.hole) return file_.sink->arrived(m.slot);
  if (!pace_.limits()) return fetch(m);
  file_.announced.push_back(m);  // at most one for each slot
}

void Initiator::fetch(const Message& m) {
  const std::size_t at = std::size_t{m.slot} * offer_.window.chunk;
  if (auto ok = rdma_.channel->read(m.slot, rdma_.buffer.sge(at, m.length), offer_.remote + at,
                                    offer_.rkey);
      !ok) {
    return fail_with(ok.error().message);
  }
  ++data_outstanding_;
}

void Initiator::take_early_chunks() {
  for (const Message& m : std::exchange(file_.early_chunks, {})) on_chunk(m);
}

bool Initiator::open(Message m) {
  ++file_.transfer;
  file_.commit_sent = false;
  file_.opened = file_.commit = file_.result = std::nullopt;
  file_.early_chunks.clear();
  file_.announced.clear();
  file_.haves.clear();
  file_.next_bar = 0;
  m.kind = MessageKind::Open;
  m.transfer = file_.transfer;
  send(m);
  return run([] { return false; }, [&] { return file_.opened || file_.result; }) && file_.opened;
}

Error Initiator::ended(const std::string& what) const {
  if (!failure_.empty()) return {Errc::reset, what + ": " + failure_};
  const Message said = file_.result.value_or(Message{});
  return {code_of(said.status),
          "target: " + (said.text.empty() ? describe(said.status) : said.text)};
}

// After a failure: nothing may touch the window once it belongs to the next transfer or is freed.
void Initiator::settle() {
  const double until = now_seconds() + 5;
  while (now_seconds() < until) {
    const unsigned files =
        (file_.source ? file_.source->in_flight() : 0) + (file_.sink ? file_.sink->in_flight() : 0);
    if (files == 0 && (data_outstanding_ == 0 || !failure_.empty())) break;
    if (!step()) usleep(200);
  }
  file_.source.reset();
  file_.sink.reset();
  file_.announced.clear();
  slots_.reset(offer_.window.slots);
}

void Initiator::disconnect() {
  if (!failure_.empty() || disconnected_) return;
  rdma_.channel->qp().disconnect();
  const double until = now_seconds() + 1;
  Event e;
  while (!disconnected_ && now_seconds() < until) {
    if (rdma_.events.wait(&e, 50)) on_event(e);
  }
}

}  // namespace urnic::cli
