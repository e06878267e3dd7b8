// The client of a target: one connection over which files are put, fetched and listed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/channel.h"
#include "cli/file_mover.h"
#include "cli/local_file.h"
#include "cli/runtime.h"
#include "cli/storage_token.h"
#include "urnic/urnic.h"

namespace urnic::cli {

struct InitiatorOptions {
  std::uint32_t slots = 16, chunk = 256 << 10;  // window asked for
  int connect_timeout_ms = 10'000;
  double stall_limit = 30;  // seconds without any progress
  bool use_uring = true;
  std::optional<StorageToken> token;  // said to the target
};

// How one file went.
struct Transfer {
  std::uint64_t size = 0;
  double seconds = 0;
  Digest sha256{};
  // Receive side of the data: the target's for put, ours for get; of this connection so far.
  std::uint64_t bytes_fast = 0, bytes_slow = 0;
  std::uint64_t downgrades = 0, upgrades = 0, recoveries = 0;
};

// `done` of `size` octets.
using ProgressFunction = std::function<void(std::uint64_t done, std::uint64_t size)>;

// Slots of the window with data for the target: a slot is free when our Write is complete and the
// target has taken what was in it.
class SlotLedger {
 public:
  void reset(std::uint32_t slots) {
    write_pending_.assign(slots, 0);
    take_pending_.assign(slots, 0);
  }
  void give(std::uint32_t slot) { write_pending_[slot] = take_pending_[slot] = 1; }
  bool given(std::uint32_t slot) const {
    return slot < take_pending_.size() && take_pending_[slot];
  }
  // The next two: true when the slot is free now.
  bool written(std::uint32_t slot) {
    if (slot >= write_pending_.size()) return false;
    write_pending_[slot] = 0;
    return take_pending_[slot] == 0;
  }
  bool taken(std::uint32_t slot) {
    take_pending_[slot] = 0;
    return write_pending_[slot] == 0;
  }

 private:
  std::vector<std::uint8_t> write_pending_, take_pending_;
};

class Initiator {
 public:
  // Opens the device and connects to `endpoint`. Errors are one line; a wire without a peer, a
  // refusal and a target of another version each have their own.
  static Result<std::unique_ptr<Initiator>> connect(const Config& config,
                                                    const std::string& endpoint,
                                                    const InitiatorOptions& options);
  ~Initiator();

  // `from` becomes `name` at the target.
  Result<Transfer> put(const LocalSource& from, const std::string& name,
                       const ProgressFunction& progress);
  // `name` goes to `to`: to a file complete or not at all, to a stream as it comes.
  Result<Transfer> get(const std::string& name, const LocalDestination& to,
                       const ProgressFunction& progress);
  Result<std::vector<ListEntry>> list();

  // Orderly end: waits until the target has it, at most a second.
  void disconnect();

  ConnectionStats stats() { return rdma_.channel->qp().stats(); }
  Device& device() { return rdma_.device; }
  const std::string& file_backend() const { return files_.backend(); }

 private:
  Initiator(const Config& config, const InitiatorOptions& options);
  Result<void> start(const std::string& endpoint);
  Result<void> say_hello();
  // Runs the connection until `done` says so. False when it failed; failure_ then says why.
  bool run(const std::function<bool()>& work, const std::function<bool()>& done);
  bool step();
  void on_completion(const Completion& c);
  void on_message(const Message& m);
  void on_event(const Event& e);
  void check_time();
  void fail_with(std::string why);
  void send(const Message& m);
  Message request(MessageKind kind) const;
  // Opens at the target; false with failure_ or refusal_ set.
  bool open(OpenMode mode, const std::string& name, std::uint64_t size, std::uint32_t permissions);
  bool pump_source();
  bool pump_sink();
  void give_up(Status status);
  void on_chunk(const Message& m);
  // Chunks that arrived together with Opened, before there was a sink for them.
  void take_early_chunks();
  // Lets what is still in the kernel or on the wire end after a failed transfer.
  void settle();
  Error ended(const std::string& what) const;
  Result<std::vector<std::uint8_t>> fetch_listing();

  // What the connection is made of.
  struct Attachment {
    Device device;
    ProtectionDomain pd;
    CompletionQueue cq;
    EventQueue events;
    RdmaBuffer buffer;  // our window
    std::unique_ptr<Channel> channel;
  };
  // What the target's Welcome says.
  struct Offer {
    Window window;  // our own, of the same shape
    std::uint32_t rkey = 0;
    std::uint64_t remote = 0;
    bool read_only = false;
  };
  // The file under way, and what the target has said of it.
  struct UnderWay {
    std::uint32_t transfer = 0;
    std::unique_ptr<FileSource> source;
    std::unique_ptr<FileSink> sink;
    bool commit_sent = false;
    std::optional<Message> opened, commit, result;
    std::vector<Message> early_chunks;
    ProgressFunction progress;
    double next_bar = 0;
  };
  // When to lose patience.
  struct Watch {
    double last_progress = 0, next_check = 0, link_down_since = 0;
  };

  Config config_;
  InitiatorOptions options_;
  FileQueue files_;
  Attachment rdma_;
  std::string endpoint_;
  Offer offer_;
  UnderWay file_;
  SlotLedger slots_;
  unsigned data_outstanding_ = 0;
  std::string failure_;  // the connection is of no use any more
  bool disconnected_ = false;
  Watch watch_;
};

}  // namespace urnic::cli
