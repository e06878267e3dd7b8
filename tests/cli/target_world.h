// A target and its clients: two devices connected by a memory wire and driven alone in virtual
// time. Records the agreed state of each client and the expected files on the target's disk.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/runtime.h"
#include "cli/transfer/incoming_file.h"
#include "cli/transfer/target_server.h"
#include "support/virtual_time.h"
#include "support/walk.h"

namespace urnic::cli::model {

using test::agree;
using test::agree_on;
using test::Dice;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint32_t kMostSlots = 4, kMostChunk = 16384;
constexpr double kStall = 30, kGrace = 7, kSlack = 1.5;

struct Client {
  std::unique_ptr<Channel> channel;
  RdmaBuffer memory;
  bool connected = false, ended = false, greeted = false, violated = false;
  std::uint32_t slots = 0, chunk = 0;  // of the client's window
  Message welcome;
  bool may_end = false;
  std::string why;  // the reason that the client receives
  double ended_at = 0;
  bool is_expected_to_end(double now) const {
    return may_end || violated || now - moved_from >= kStall;
  }
  double moved_from = 0, moved_to = 0;  // its last relevant action was between these times
  std::vector<Message> heard;
  std::set<std::uint32_t> done;  // slots with a completed Write or Read

  // The current file.
  std::uint32_t transfer = 0;
  bool open = false;
  OpenMode mode = OpenMode::Put;
  std::string name;
  Bytes content, got;
  std::uint64_t at = 0, growth = 0;
  std::uint32_t next = 0;
  std::set<std::uint32_t> lent;
  bool resume = false, has_begun = false, whole_only = false;
  std::uint64_t opened_size = 0;
  std::uint32_t counted = 0;  // the last transfer that the target has counted
  bool is_busy() const { return open && counted != transfer; }  // from the target's point of view
};

struct Plan {
  std::uint64_t memory = 0, quota = 0;
  unsigned clients = 0, of_peer = 0;
  bool read_only = false, roce = false;
  std::optional<std::string> token;
};

class TargetWorld {
 public:
  explicit TargetWorld(Dice& d) : time_(3) {
    plan_.memory = d.one_in(2) ? 128 << 20 : 4096 * d.between(8, 40);
    plan_.quota = d.one_in(3) ? d.between(20, 90) * 1000 : 0;
    plan_.clients = d.between(2, 9);
    plan_.read_only = d.one_in(10);
    plan_.roce = d.one_in(3);
    if (d.one_in(4)) plan_.token = "0123456789abcdef";
    char name[] = "/tmp/urnic-walk-XXXXXX";
    root_ = mkdtemp(name);
    folder_ = std::move(*open_folder(root_));
    serve(d);
    device_ = std::move(*Device::open(config("10.77.0.2/24")));
    pd_ = std::move(*device_.alloc_pd());
    cq_ = std::move(*device_.create_cq(4096));
    events_ = std::move(*device_.create_event_queue());
    pass(5);
    idle_regions_ = server_->in_use().regions;
  }
  virtual ~TargetWorld() {
    clients_.clear();
    server_.reset();
    std::filesystem::remove_all(root_);
  }
  TargetWorld(const TargetWorld&) = delete;
  TargetWorld& operator=(const TargetWorld&) = delete;

 protected:
  Config config(const char* address) const {
    Config c;
    const std::pair<const char*, const char*> all[] = {{"port", "mem:name=walk,mtu=4000"},
                                                       {"transport", plan_.roce ? "roce" : "iwarp"},
                                                       {"progress", "poll"},
                                                       {"stat", "off"},
                                                       {"keepalive", "off"},
                                                       {"address", address}};
    for (const auto& [setting, value] : all) agree(c.set(setting, value).ok(), setting);
    return c;
  }
  void serve(Dice& d) {
    Config c = config("10.77.0.1/24");
    plan_.of_peer = std::max(plan_.clients / 4, 1u);
    if (d.one_in(2)) {
      const unsigned most = d.below(plan_.clients + 2);
      plan_.of_peer = most == 0 || most > plan_.clients ? plan_.clients : most;
      agree(c.set("peer_connections", std::to_string(most)).ok(), "peer_connections");
    }
    TargetServer::Options o;
    o.session.folder = folder_.get();
    o.session.read_only = plan_.read_only;
    o.session.slots = kMostSlots;
    o.session.chunk = kMostChunk;
    o.session.stall_limit = kStall;
    o.session.idle_grace = kGrace;
    o.memory = plan_.memory;
    o.max_clients = plan_.clients;
    o.use_uring = false;
    if (plan_.token) o.token = StorageToken::of(*plan_.token);
    if (plan_.quota != 0) {
      o.quota = std::make_shared<Quota>(folder_.get(), QuotaLimits{.bytes = plan_.quota});
    }
    auto opened = TargetServer::open(c, o);
    agree(opened.ok(), "the target does not open");
    server_ = std::move(*opened);
  }

  // ---- time

  void pass(double seconds) {
    const double until = now() + seconds;
    while (now() < until) {
      const bool busy = drive();
      if (!busy) test::VirtualTime::pass(now() + 1 < until ? 50'000'000 : 5'000'000);
    }
  }
  static double now() { return static_cast<double>(test::VirtualTime::now_ns()) / 1e9; }
  bool drive() {
    bool worked = server_->step();
    worked = device_.progress() || worked;
    return take() || worked;
  }
  // Runs until nothing has moved for longer than an acknowledgment may be delayed.
  void settle() {
    for (int quiet = 0; quiet < 30;) {
      quiet = drive() ? 0 : quiet + 1;
      test::VirtualTime::pass(quiet == 0 ? 20'000 : 10'000'000);
    }
  }
  bool take() {
    bool any = false;
    std::array<Completion, 16> batch;
    for (int n; (n = cq_.poll(batch)) > 0;) {
      any = true;
      for (int i = 0; i < n; ++i) take(batch[static_cast<std::size_t>(i)]);
    }
    Event e;
    while (events_.poll(&e)) {
      any = true;
      Client* const c = find(e.context);
      if (c != nullptr && e.kind == EventKind::established) c->connected = true;
      if (c != nullptr && e.kind != EventKind::established) end_of(*c, e);
      e = {};
    }
    return any;
  }
  void end_of(Client& c, const Event& e) {
    c.ended = true;
    c.why = e.error.message;
    c.ended_at = now();
    refusal_ = e.private_data.c_str();  // without padding
  }
  void take(const Completion& done) {
    for (auto& [id, c] : clients_) {
      if (c->channel->qp().number() != done.qp_number) continue;
      const Channel::Incoming in = c->channel->take(done);
      if (in.what == Channel::What::Received) c->heard.push_back(in.message);
      if (in.what == Channel::What::DataDone) c->done.insert(in.slot);
    }
  }
  Client* find(void* context) {
    const auto it = clients_.find(reinterpret_cast<std::uintptr_t>(context));
    return it == clients_.end() ? nullptr : it->second.get();
  }

  // ---- checks of the state

  void check() {
    const TargetServer::InUse is = server_->in_use();
    std::size_t sessions = 0, windows = 0;
    std::uint64_t memory = 0;
    for (const auto& [id, c] : clients_) {
      if (!c->connected || c->ended) continue;
      ++sessions;
      windows += c->greeted ? 1 : 0;
      memory += std::uint64_t{c->slots} * c->chunk;
    }
    agree_on(is.sessions, sessions, "sessions of the target");
    agree_on(is.queue_pairs, sessions, "queue pairs it knows");
    agree_on(is.memory, plan_.memory - memory, "memory free for windows");
    agree_on(is.regions - idle_regions_, sessions + windows, "regions of the target");
    agree_on(is.file_operations, 0u, "reads and writes under way");
    check_totals();
    check_disk();
  }
  void check_totals() {
    const TargetTotals is = server_->totals();
    agree_on(is.files_in, totals_.files_in, "files in");
    agree_on(is.bytes_in, totals_.bytes_in, "bytes in");
    agree_on(is.files_out, totals_.files_out, "files out");
    agree_on(is.bytes_out, totals_.bytes_out, "bytes out");
    agree_on(is.listings, totals_.listings, "listings");
    agree_on(is.failed, totals_.failed, "failures");
  }
  void check_disk() {
    std::set<std::string> temporary = parts_;
    for (const auto& [id, c] : clients_) {
      if (c->open && c->mode == OpenMode::Put) temporary.insert(temporary_name(c->name));
    }
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(root_)) {
      const std::string name = entry.path().filename();
      if (name.starts_with(kTemporaryPrefix)) {
        agree(temporary.count(name) != 0, "a part is left of what nobody goes on with");
        continue;
      }
      if (entry.is_directory()) {
        agree(folders_.count(name) != 0, "a folder nobody has made: " + name);
        continue;
      }
      ++files;
      const auto known = disk_.find(name);
      agree(known != disk_.end(), "a file nobody has put: " + name);
      std::ifstream in(entry.path(), std::ios::binary);
      const Bytes is((std::istreambuf_iterator<char>(in)), {});
      agree(is == known->second, "another content of " + name);
    }
    agree_on(files, disk_.size(), "files of the target");
  }

  test::VirtualTime time_;
  Plan plan_;
  std::string root_, refusal_;
  FileDescriptor folder_;
  std::unique_ptr<TargetServer> server_;
  std::uint64_t idle_regions_ = 0;
  Device device_;
  ProtectionDomain pd_;
  CompletionQueue cq_;
  EventQueue events_;
  std::map<std::uintptr_t, std::unique_ptr<Client>> clients_;
  std::uintptr_t last_ = 0;
  TargetTotals totals_;
  std::map<std::string, Bytes> disk_;
  std::set<std::string> parts_, folders_;
};

}  // namespace urnic::cli::model
