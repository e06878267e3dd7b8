#include "cli/initiator.h"

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
    : config_(config), options_(options), files_(64, options.use_uring) {}

Initiator::~Initiator() {
  if (source_ || sink_) settle();
}

Result<std::unique_ptr<Initiator>> Initiator::connect(const Config& config,
                                                      const std::string& endpoint,
                                                      const InitiatorOptions& options) {
  std::unique_ptr<Initiator> i(new Initiator(config, options));
  if (auto ok = i->start(endpoint); !ok) return ok.error();
  if (auto ok = i->say_hello(); !ok) return ok.error();
  return i;
}

Result<void> Initiator::start(const std::string& endpoint) {
  endpoint_ = endpoint;
  auto device = Device::open(config_);
  if (!device) return device.error();
  device_ = std::move(*device);
  if (auto ok = wait_ready(device_, config_.get("port"), "the target", options_.connect_timeout_ms);
      !ok) {
    return ok;
  }
  if (auto ok = not_ourselves(device_, endpoint); !ok) return ok;
  auto pd = device_.alloc_pd();
  if (!pd) return pd.error();
  pd_ = std::move(*pd);
  auto cq = device_.create_cq(Channel::kCompletions);
  if (!cq) return cq.error();
  cq_ = std::move(*cq);
  auto events = device_.create_event_queue();
  if (!events) return events.error();
  events_ = std::move(*events);
  auto channel = Channel::make(device_, pd_, cq_, events_, nullptr);
  if (!channel) return channel.error();
  channel_ = std::move(*channel);

  const auto greeting = storage_greeting();
  ConnectionOptions connect;
  connect.private_data = greeting;
  connect.timeout_ms = options_.connect_timeout_ms;
  if (auto ok = channel_->qp().connect_start(endpoint, connect); !ok) return ok.error();
  while (true) {
    Event e;
    if (!events_.wait(&e, 100)) {
      if (stop_requested()) return Error{Errc::closed, "stopped"};
      continue;
    }
    if (e.kind == EventKind::established) break;
    std::string why = e.error.message;
    if (e.error.code == Errc::rejected && !e.private_data.empty()) {
      why = "the target refuses: ";
      for (const char c : e.private_data) why += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
    return Error{e.error.code, endpoint + ": " + why};
  }
  const std::string answer = channel_->qp().peer_private_data();
  if (!check_greeting({reinterpret_cast<const std::uint8_t*>(answer.data()), answer.size()})
           .empty()) {
    return Error{Errc::protocol, endpoint + ": the other end is not a target this version knows"};
  }
  return {};
}

Result<void> Initiator::say_hello() {
  Message hello;
  hello.kind = MessageKind::Hello;
  hello.slots = std::min(options_.slots, Channel::kMaxSlots);
  hello.chunk = options_.chunk;
  send(hello);
  if (!run([] { return false; }, [&] { return window_.slots != 0 || result_here_; })) {
    return Error{Errc::reset, endpoint_ + ": " + failure_};
  }
  if (result_here_) {
    return Error{code_of(result_.status), endpoint_ + ": the target refuses: " + result_.text};
  }
  auto buffer = RdmaBuffer::make(device_, pd_, std::size_t{window_.slots} * window_.chunk,
                                 access_local_write);
  if (!buffer) return buffer.error();
  buffer_ = std::move(*buffer);
  window_.base = buffer_.data();
  write_pending_.assign(window_.slots, 0);
  take_pending_.assign(window_.slots, 0);
  return {};
}

void Initiator::fail_with(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

void Initiator::send(const Message& m) {
  if (!failure_.empty()) return;
  if (auto ok = channel_->send(m); !ok) fail_with(ok.error().message);
}

Message Initiator::request(MessageKind kind) const {
  Message m;
  m.kind = kind;
  m.transfer = transfer_;
  return m;
}

// ---- the loop

bool Initiator::run(const std::function<bool()>& work, const std::function<bool()>& done) {
  Idle idle(config_.get_int("spin_us"));
  last_progress_ = now_seconds();
  while (failure_.empty()) {
    if (done()) return true;
    const bool worked = step() || work();
    if (worked) {
      idle.reset();
      last_progress_ = now_seconds();
    } else if (idle.ripe()) {
      cq_.wait(files_.outstanding() != 0 ? 1 : 50);
      idle.reset();
    }
    check_time();
  }
  return false;
}

bool Initiator::step() {
  bool worked = false;
  std::array<Completion, kBatch> batch;
  const int n = cq_.poll(batch);
  for (int i = 0; i < n; ++i) on_completion(batch[static_cast<std::size_t>(i)]);
  worked = n > 0;
  Event event;
  while (events_.poll(&event)) {
    on_event(event);
    event = {};
    worked = true;
  }
  FileQueue::Done done;
  while (files_.poll(&done)) {
    worked = true;
    const auto slot = static_cast<std::uint32_t>(done.tag);
    if (source_) {
      source_->file_done(slot, done.result);
    } else if (sink_) {
      sink_->file_done(slot, done.result);
    }
  }
  if (source_) worked = source_->step() || worked;
  if (sink_) worked = sink_->step() || worked;
  return worked;
}

void Initiator::check_time() {
  const double now = now_seconds();
  if (progress_ && now >= next_bar_) {
    next_bar_ = now + kBarEvery;
    if (source_) progress_(source_->sent(), source_->size());
    if (sink_) progress_(sink_->stored(), sink_->size());
  }
  if (now < next_check_) return;
  next_check_ = now + kCheckEvery;
  if (stop_requested()) return fail_with("stopped");
  if (now - last_progress_ > options_.stall_limit) {
    return fail_with("the target has not answered for " +
                     std::to_string(static_cast<int>(options_.stall_limit)) + " s");
  }
  if (device_.info().link_up) {
    link_down_since_ = 0;
  } else if (link_down_since_ == 0) {
    link_down_since_ = now;
  } else if (now - link_down_since_ > kLinkDownLimit) {
    fail_with("the other end of the wire is gone");
  }
}

void Initiator::on_event(const Event& e) {
  if (e.kind == EventKind::disconnected) {
    disconnected_ = true;
    fail_with("the target has ended the connection");
  } else if (e.kind == EventKind::failed) {
    disconnected_ = true;
    fail_with(e.error.message);
  }
}

void Initiator::on_completion(const Completion& c) {
  const Channel::Incoming in = channel_->take(c);
  switch (in.what) {
    case Channel::What::Nothing:
      return;
    case Channel::What::Received:
      return on_message(in.message);
    case Channel::What::Failed: {
      // The reason follows as an event, and is the better line of the two.
      Event e;
      if (c.status == WcStatus::flushed || c.status == WcStatus::fatal_transport) {
        if (events_.wait(&e, 200)) on_event(e);
      }
      return fail_with(in.error);
    }
    case Channel::What::DataDone:
      if (data_outstanding_ != 0) --data_outstanding_;
      if (sink_) {
        sink_->arrived(in.slot);
      } else if (source_ && in.slot < write_pending_.size()) {
        write_pending_[in.slot] = 0;
        if (take_pending_[in.slot] == 0) source_->slot_free(in.slot);
      }
      return;
  }
}

void Initiator::on_message(const Message& m) {
  if (m.kind == MessageKind::Welcome) {
    if (window_.slots != 0 || m.slots == 0 || m.slots > Channel::kMaxSlots || m.chunk == 0 ||
        m.chunk > options_.chunk) {
      return fail_with("the target offers a window that was not asked for");
    }
    window_.slots = m.slots;
    window_.chunk = m.chunk;
    rkey_ = m.rkey;
    remote_ = m.address;
    read_only_ = m.read_only;
    return;
  }
  if (m.transfer != transfer_) {
    if (m.kind == MessageKind::Result && m.transfer == 0) return fail_with(m.text);
    return;  // of a transfer given up
  }
  switch (m.kind) {
    case MessageKind::Opened:
      opened_ = true;
      opened_message_ = m;
      return;
    case MessageKind::Result:
      result_here_ = true;
      result_ = m;
      return;
    case MessageKind::Commit:
      commit_here_ = true;
      commit_ = m;
      return;
    case MessageKind::Taken:
      if (!source_) return;
      if (m.slot >= take_pending_.size() || take_pending_[m.slot] == 0) {
        return fail_with("the target gave back a slot it had not been given");
      }
      take_pending_[m.slot] = 0;
      if (write_pending_[m.slot] == 0) source_->slot_free(m.slot);
      return;
    case MessageKind::Chunk:
      if (sink_) return on_chunk(m);
      if (early_chunks_.size() < Channel::kMaxSlots) early_chunks_.push_back(m);
      return;
    default:
      return fail_with("the target sent a message that only an initiator sends");
  }
}

void Initiator::on_chunk(const Message& m) {
  if (m.slot >= window_.slots || !sink_->announce({m.slot, m.length, m.offset})) {
    return fail_with("the target sent a chunk out of order or of a wrong size");
  }
  const std::size_t at = std::size_t{m.slot} * window_.chunk;
  if (auto ok = channel_->read(m.slot, buffer_.sge(at, m.length), remote_ + at, rkey_); !ok) {
    return fail_with(ok.error().message);
  }
  ++data_outstanding_;
}

void Initiator::take_early_chunks() {
  for (const Message& m : std::exchange(early_chunks_, {})) on_chunk(m);
}

bool Initiator::open(OpenMode mode, const std::string& name, std::uint64_t size,
                     std::uint32_t permissions) {
  ++transfer_;
  opened_ = commit_sent_ = commit_here_ = result_here_ = false;
  early_chunks_.clear();
  next_bar_ = 0;
  Message m = request(MessageKind::Open);
  m.mode = mode;
  m.text = name;
  m.size = size;
  m.permissions = permissions;
  send(m);
  return run([] { return false; }, [&] { return opened_ || result_here_; }) && opened_;
}

Error Initiator::ended(const std::string& what) const {
  if (!failure_.empty()) return {Errc::reset, what + ": " + failure_};
  const std::string text = result_.text.empty() ? describe(result_.status) : result_.text;
  return {code_of(result_.status), "target: " + text};
}

// After a failure: nothing may touch the window when the next transfer, or nobody, owns it.
void Initiator::settle() {
  const double until = now_seconds() + 5;
  while (now_seconds() < until) {
    const unsigned files = (source_ ? source_->in_flight() : 0) + (sink_ ? sink_->in_flight() : 0);
    if (files == 0 && (data_outstanding_ == 0 || !failure_.empty())) break;
    if (!step()) usleep(200);
  }
  source_.reset();
  sink_.reset();
  std::fill(write_pending_.begin(), write_pending_.end(), 0);
  std::fill(take_pending_.begin(), take_pending_.end(), 0);
}

void Initiator::disconnect() {
  if (!failure_.empty() || disconnected_) return;
  channel_->qp().disconnect();
  const double until = now_seconds() + 1;
  Event e;
  while (!disconnected_ && now_seconds() < until) {
    if (events_.wait(&e, 50)) on_event(e);
  }
}

}  // namespace urnic::cli
