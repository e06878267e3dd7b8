// The client of a target: puts, gets and lists files over one connection.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/pace.h"
#include "cli/runtime.h"
#include "cli/transfer/channel.h"
#include "cli/transfer/file_mover.h"
#include "cli/transfer/incoming_file.h"
#include "cli/transfer/local_file.h"
#include "cli/transfer/prefix_check.h"
#include "cli/transfer/storage_token.h"
#include "urnic/urnic.h"

namespace urnic::cli {

struct InitiatorOptions {
  std::uint32_t slots = 16, chunk = 256 << 10;  // requested window
  int connect_timeout_ms = 10'000;
  double stall_limit = 30;  // seconds without any progress
  bool use_uring = true;
  std::optional<StorageToken> token;  // sent to the target
  std::uint64_t limit = 0;            // bytes per second; 0: no limit
};

// Options for one file.
struct FileOptions {
  // Continues an interrupted transfer as far as both ends have the same bytes. If this transfer is
  // interrupted, its part remains for the next one.
  bool resume = false;
  bool times = true;  // keep the modification time
};

// The result of one transfer.
struct Transfer {
  std::uint64_t size = 0;
  double seconds = 0;
  Digest hash{};
  std::uint64_t began_at = 0;  // the bytes before this offset were there already
  // Counters of the data's receiver, for this connection so far: the target's for put, ours for
  // get.
  std::uint64_t bytes_fast = 0, bytes_slow = 0;
  std::uint64_t downgrades = 0, upgrades = 0, recoveries = 0;
};

// Reports `done` of `size` bytes.
using ProgressFunction = std::function<void(std::uint64_t done, std::uint64_t size)>;

// Slots of the window with data for the target. A slot is free when our Write is complete and the
// target has taken its data.
class SlotLedger {
 public:
  void reset(std::uint32_t slots) {
    write_pending_.assign(slots, 0);
    take_pending_.assign(slots, 0);
  }
  // `written`: the slot is filled by a Write, which must complete too.
  void give(std::uint32_t slot, bool written) {
    write_pending_[slot] = written ? 1 : 0;
    take_pending_[slot] = 1;
  }
  bool given(std::uint32_t slot) const {
    return slot < take_pending_.size() && take_pending_[slot];
  }
  // The next two functions return true if the slot is free now.
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
  // Opens the device and connects to the first of `places` ("10.77.0.1:18700") that accepts; on
  // failure returns the last error. Errors are one line. There are different errors for a wire
  // without a peer, a refusal, and a target of another version.
  static Result<std::unique_ptr<Initiator>> connect(const Config& config,
                                                    const std::vector<std::string>& places,
                                                    const InitiatorOptions& options);
  ~Initiator();

  // Copies `from` to `name` at the target.
  Result<Transfer> put(const LocalSource& from, const std::string& name, const FileOptions& how,
                       const ProgressFunction& progress);
  // Copies `name` to `to`. A file appears complete or not at all; a stream is written as bytes
  // arrive.
  Result<Transfer> get(const std::string& name, const LocalDestination& to, const FileOptions& how,
                       const ProgressFunction& progress);
  // Succeeds also if the folder exists already.
  Result<void> make_folder(const std::string& name, std::uint32_t permissions);
  // Lists `name` and everything below it, files and folders; "" is all.
  Result<std::vector<ListEntry>> list(const std::string& name = "");
  const std::string& endpoint() const { return endpoint_; }
  bool read_only() const { return offer_.read_only; }
  // True if another transfer can succeed although one has failed.
  bool usable() const { return failure_.empty(); }

  // Orderly end: waits until the target has received it, at most a second.
  void disconnect();

  Device& device() { return rdma_.device; }
  const std::string& file_backend() const { return files_.backend(); }

 private:
  Initiator(const Config& config, const InitiatorOptions& options);
  Result<void> start();
  Result<void> reach(const std::string& place, int timeout_ms);
  Result<void> say_hello();
  // Runs the connection until `done` returns true. False on failure; failure_ then holds the
  // reason.
  bool run(const std::function<bool()>& work, const std::function<bool()>& done);
  bool step();
  void on_completion(const Completion& c);
  void on_message(const Message& m);
  void on_event(const Event& e);
  void check_time();
  void fail_with(std::string why);
  void send(const Message& m);
  Message request(MessageKind kind) const;
  // Opens a file at the target. On false, failure_ or result is set. `m`: all fields but its kind.
  bool open(Message m);
  // Compares the beginning of `fd`, which has `there` bytes, with the target's digests of its own
  // bytes and returns where to continue. `whole_only`: either after all of the target's bytes or at
  // 0.
  Result<Point> begin(int fd, std::uint64_t there, bool whole_only, const std::string& what);
  // Waits for the Result of a request that transfers no data.
  bool answered() {
    return run([] { return false; }, [&] { return file_.result.has_value(); });
  }
  Result<void> prepare_source(OpenedFile file, const std::string& path, const std::string& name,
                              const FileOptions& how, Transfer* t);
  Result<void> prepare_sink(const LocalDestination& to, const FileOptions& how, IncomingFile* file,
                            Transfer* t);
  Result<void> fill_sink(const std::string& name, const LocalDestination& to,
                         const ProgressFunction& progress, Transfer* t);
  bool pump_source();
  bool pump_sink();
  // Fetches a chunk that the target has announced.
  void fetch(const Message& m);
  void give_up(Status status);
  void on_chunk(const Message& m);
  // Handles chunks that arrived together with Opened, before the sink existed.
  void take_early_chunks();
  // Waits for the end of operations that a failed transfer left in the kernel or on the wire.
  void settle();
  Error ended(const std::string& what) const;
  Result<std::vector<std::uint8_t>> fetch_listing(const std::string& name);

  // The objects of the connection.
  struct Attachment {
    Device device;
    ProtectionDomain pd;
    CompletionQueue cq;
    EventQueue events;
    RdmaBuffer buffer;  // our window
    std::unique_ptr<Channel> channel;
  };
  // The content of the target's Welcome.
  struct Offer {
    Window window;  // our own window, with the same layout
    std::uint32_t rkey = 0;
    std::uint64_t remote = 0;
    bool read_only = false;
  };
  // The current file, and what the target has reported about it.
  struct UnderWay {
    std::uint32_t transfer = 0;
    std::unique_ptr<FileSource> source;
    std::unique_ptr<FileSink> sink;
    bool commit_sent = false;
    std::optional<Message> opened, commit, result;
    std::vector<Message> early_chunks;
    std::deque<Message> announced;  // waiting chunks, at most one per slot
    std::deque<Message> haves;      // the target's digests, to be compared
    ProgressFunction progress;
    double next_bar = 0;
  };
  // Times for detecting a stalled connection.
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
  std::string failure_;  // not empty: the connection is unusable
  bool disconnected_ = false;
  Watch watch_;
  Pace pace_;
};

}  // namespace urnic::cli
