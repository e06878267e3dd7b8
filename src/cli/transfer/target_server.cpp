#include "cli/transfer/target_server.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "cli/transfer/old_parts.h"

namespace urnic::cli {
namespace {

constexpr double kCheckEvery = 0.25;
// If the link is down for this long, its clients are considered gone.
constexpr double kLinkDownLimit = 1.0;
constexpr int kSleepingCheckMs = 2000, kLinkDownCheckMs = 250;
constexpr std::size_t kBatch = 32;

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

constexpr const char* kOfPeer = "peer_connections";

// The number of `places` that one address may use: the setting `peer_connections`, or a quarter.
unsigned share_of_peer(const Config& config, unsigned places) {
  for (const Setting& s : config.settings()) {
    if (s.name != kOfPeer || s.origin == Origin::standard) continue;
    const auto most = static_cast<std::uint64_t>(config.get_int(s.name));
    return most == 0 || most > places ? places : static_cast<unsigned>(most);
  }
  return std::max(places / 4, 1u);
}

}  // namespace

TargetServer::TargetServer(const Config& config, const Options& options)
    : config_(config),
      options_(options),
      most_of_peer_(share_of_peer(config, options.max_clients)),
      files_(64, options.use_uring),
      budget_(options.memory, options.memory * most_of_peer_ / options.max_clients) {
  options_.session.report = [this](const std::string& line) { say(line); };
}

Result<std::unique_ptr<TargetServer>> TargetServer::open(const Config& config,
                                                         const Options& options) {
  std::unique_ptr<TargetServer> server(new TargetServer(config, options));
  if (auto ok = server->start(); !ok) return ok.error();
  return server;
}

Result<void> TargetServer::start() {
  auto config = serving(config_, "target");
  if (!config) return config.error();
  // The listener itself refuses only far above a client's share: find_place() can instead replace
  // an idle client, and it tells the client why it is refused.
  if (config->get_int(kOfPeer) != 0) {
    if (auto ok = config->set(kOfPeer, std::to_string(2 * most_of_peer_)); !ok) return ok.error();
  }
  auto device = Device::open(*config);
  if (!device) return device.error();
  device_ = std::move(*device);
  auto pd = device_.alloc_pd();
  if (!pd) return pd.error();
  pd_ = std::move(*pd);
  auto cq = device_.create_cq((options_.max_clients + 1) * Channel::kCompletions);
  if (!cq) return cq.error();
  cq_ = std::move(*cq);
  auto events = device_.create_event_queue();
  if (!events) return events.error();
  events_ = std::move(*events);
  auto listener = device_.listen(options_.tcp_port, 64, events_);
  if (!listener) return listener.error();
  listener_ = std::move(*listener);
  remove_parts();
  return {};
}

// Deletes old parts. No other process does.
void TargetServer::remove_parts() {
  const double now = now_seconds();
  if (options_.session.read_only || now < next_parts_) return;
  next_parts_ = now + options_.parts_every;
  const std::size_t gone = remove_old_parts(options_.session.folder, std::time(nullptr), true);
  if (gone == 0) return;
  say("removed " + std::to_string(gone) + (gone == 1 ? " partial file" : " partial files") +
      " not resumed for " + std::to_string(kDaysOfAPart) + " days");
}

std::string TargetServer::listens_on() const {
  const bool roce = configured_transport(config_) == Transport::roce;
  return (roce ? "RoCE port " : "TCP port ") + std::to_string(listener_.port());
}

TargetServer::~TargetServer() {
  // No queue pair may use the windows when they are freed.
  for (auto& [id, session] : sessions_) {
    session->channel().qp().abort();
    session->on_end();
  }
  FileQueue::Done done;
  const double until = now_seconds() + 10;
  while (files_.outstanding() != 0 && now_seconds() < until) {
    if (!files_.poll(&done)) {
      usleep(1000);
      continue;
    }
    const auto it = sessions_.find(static_cast<std::uint32_t>(done.tag >> 32));
    if (it != sessions_.end()) {
      it->second->on_file(static_cast<std::uint32_t>(done.tag), done.result, now_seconds());
    }
  }
  by_qp_.clear();
  sessions_.clear();
}

void TargetServer::say(const std::string& line) {
  if (!options_.verbose) return;
  std::fprintf(stdout, "%s\n", printable(line).c_str());
  std::fflush(stdout);
}

TargetSession* TargetServer::find(void* context) {
  const auto id = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(context));
  const auto it = sessions_.find(id);
  return it == sessions_.end() ? nullptr : it->second.get();
}

// Why a client with this greeting is refused; empty if it is accepted.
std::string TargetServer::refusal_of(std::span<const std::uint8_t> greeting) const {
  if (std::string wrong = check_greeting(greeting); !wrong.empty()) return wrong;
  if (!options_.token) return {};
  const TokenDigest said = token_said(greeting);
  if (options_.token->is(said)) return {};
  return said == TokenDigest{} ? "a token is required (--token-file)"
                               : "wrong token (--token-file)";
}

std::string TargetServer::find_place(const std::string& client) {
  const auto of_client = std::count_if(sessions_.begin(), sessions_.end(),
                                       [&](const auto& s) { return s.second->client() == client; });
  if (static_cast<std::size_t>(of_client) >= most_of_peer_) {
    if (make_room(For::place, client, true, nullptr)) return {};
    return "too many connections from this address (--peer-connections)";
  }
  while (sessions_.size() >= options_.max_clients) {
    if (!make_room(For::place, client, false, nullptr)) return describe(Status::Busy);
  }
  while (budget_.left() < WindowBudget::kLeast) {
    if (!make_room(For::memory, client, false, nullptr)) return describe(Status::Busy);
  }
  return {};
}

bool TargetServer::make_room(For what, const std::string& client, bool own_share,
                             const TargetSession* for_it) {
  const double now = now_seconds();
  auto longest = sessions_.end();
  for (auto it = sessions_.begin(); it != sessions_.end(); ++it) {
    const double idle = it->second->idle_for(now);
    if (it->second.get() == for_it || idle < options_.session.idle_grace) continue;
    if (own_share && it->second->client() != client) continue;
    if (what == For::memory && !it->second->has_window()) continue;
    if (longest == sessions_.end() || idle > longest->second->idle_for(now)) longest = it;
  }
  if (longest == sessions_.end()) return false;
  say("client " + longest->second->peer() + " disconnected: idle, its place is needed");
  longest->second->give_way();
  remove(longest);  // it has no file in progress
  return true;
}

void TargetServer::on_request(ConnectRequest& request) {
  std::string refusal = refusal_of(request.private_data());
  if (refusal.empty()) refusal = find_place(TargetSession::client_of(request.peer()));
  if (!refusal.empty()) {
    say("refused " + request.peer() + ": " + refusal);
    return request.reject(bytes_of(refusal));
  }
  const std::uint32_t id = ++last_id_;
  auto channel = Channel::make(device_, pd_, cq_, events_,
                               reinterpret_cast<void*>(static_cast<std::uintptr_t>(id)));
  if (!channel) return request.reject(bytes_of(channel.error().message));
  const auto greeting = storage_greeting();
  ConnectionOptions accept;
  accept.private_data = greeting;
  if (auto ok = request.accept((*channel)->qp(), accept); !ok) {
    return say("cannot accept " + request.peer() + ": " + ok.error().message);
  }
  const std::uint32_t qp = (*channel)->qp().number();
  auto session = std::make_unique<TargetSession>(
      id,
      TargetHost{&device_, pd_, &files_, &options_.session, &totals_, &budget_,
                 [this](const TargetSession& it, bool own_share) {
                   return make_room(For::memory, it.client(), own_share, &it);
                 },
                 options_.quota.get()},
      std::move(*channel), request.peer(), now_seconds());
  by_qp_[qp] = session.get();
  sessions_[id] = std::move(session);
  say("client " + request.peer() + " connected");
  remove_parts();
}

void TargetServer::on_event(Event& e) {
  if (e.kind == EventKind::connect_request) return on_request(e.request);
  TargetSession* session = find(e.context);
  if (session == nullptr || e.kind == EventKind::established) return;
  if (e.kind != EventKind::disconnected && !session->gone()) {
    say("client " + session->peer() + ": " + e.error.message);
  }
  session->on_end();
}

bool TargetServer::step() {
  bool worked = false;
  const double now = now_seconds();
  std::array<Completion, kBatch> batch;
  const int n = cq_.poll(batch);
  for (int i = 0; i < n; ++i) {
    worked = true;
    const Completion& c = batch[static_cast<std::size_t>(i)];
    if (const auto it = by_qp_.find(c.qp_number); it != by_qp_.end()) {
      it->second->on_completion(c, now);
    }
  }
  Event event;
  while (events_.poll(&event)) {
    worked = true;
    on_event(event);
    event = {};
  }
  FileQueue::Done done;
  while (files_.poll(&done)) {
    worked = true;
    const auto it = sessions_.find(static_cast<std::uint32_t>(done.tag >> 32));
    if (it != sessions_.end()) {
      it->second->on_file(static_cast<std::uint32_t>(done.tag), done.result, now);
    }
  }
  for (auto& [id, session] : sessions_) worked = session->step(now) || worked;
  if (now >= next_check_) {
    next_check_ = now + kCheckEvery;
    check_clients(now);
  }
  reap();
  return worked;
}

TargetServer::InUse TargetServer::in_use() const {
  return {sessions_.size(), by_qp_.size(), budget_.left(), device_.stats().verbs.regions,
          files_.outstanding()};
}

void TargetServer::check_clients(double now) {
  if (!sessions_.empty() && !device_.info().link_up) {
    if (link_down_since_ == 0) link_down_since_ = now;
  } else {
    link_down_since_ = 0;
  }
  for (auto& [id, session] : sessions_) {
    session->check_time(now);
    if (link_down_since_ != 0 && now - link_down_since_ > kLinkDownLimit) {
      session->channel().qp().abort();
      session->on_end();
    }
  }
}

void TargetServer::reap() {
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    if (!it->second->gone()) {
      ++it;
      continue;
    }
    it = remove(it);
  }
}

TargetServer::Sessions::iterator TargetServer::remove(Sessions::iterator gone) {
  say("client " + gone->second->peer() + " disconnected");
  by_qp_.erase(gone->second->channel().qp().number());
  ++clients_served_;
  return sessions_.erase(gone);
}

// First hand the engine over to its thread, then sleep until any event.
void TargetServer::sleep() {
  if (cq_.wait(1)) return;
  if (config_.get("progress") == "poll") return;  // no thread would drive the engine
  files_.clear_event();
  pollfd fds[4] = {{cq_.fd(), POLLIN, 0},
                   {events_.fd(), POLLIN, 0},
                   {stop_fd(), POLLIN, 0},
                   {files_.event_fd(), POLLIN, 0}};
  cq_.arm();
  if (step()) return;  // arm, check once more, sleep
  // Clients are checked without touching the engine, so that a silent client costs only one wake-up
  // in two seconds (E-39).
  const nfds_t n = files_.event_fd() < 0 ? 3 : 4;
  for (;;) {
    const int longest = sessions_.empty()       ? -1
                        : link_down_since_ != 0 ? kLinkDownCheckMs
                                                : kSleepingCheckMs;
    if (::poll(fds, n, longest) != 0) return;
    check_clients(now_seconds());
    reap();
    if (sessions_.empty()) return;  // --once: it may have been the last client
  }
}

void TargetServer::stop() {
  stopped_ = true;
  events_.wake();
}

void TargetServer::run() {
  Idle idle(config_.get_int("spin_us")), idle_beside_files(kFileSpinUs);
  while (!stop_requested() && !stopped_ &&
         !(options_.once && clients_served_ != 0 && sessions_.empty())) {
    if (step()) {
      idle.reset();
      idle_beside_files.reset();
      continue;
    }
    const bool files = files_.outstanding() != 0;
    if (files) sched_yield();  // if there is one core, io_uring's worker waits for it
    if (files ? idle_beside_files.ripe() : idle.ripe()) {
      sleep();
      idle.reset();
      idle_beside_files.reset();
    }
  }
}

}  // namespace urnic::cli
