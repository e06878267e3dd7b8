// The client of a target: one connection over which files are put, fetched and listed.
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
  std::uint32_t slots = 16, chunk = 256 << 10;  // window asked for
  int connect_timeout_ms = 10'000;
  double stall_limit = 30;  // seconds without any progress
  bool use_uring = true;
  std::optional<StorageToken> token;  // said to the target
  std::uint64_t limit = 0;            // bytes a second; 0: none
};

// How one file is to go.
struct FileOptions {
  // What an interrupted one has left is gone on with as far as it is the same, and what is left
  // when this one is interrupted stays for the next.
  bool resume = false;
  bool times = true;  // the time of change is kept
};

// How one file went.
struct Transfer {
  std::uint64_t size = 0;
  double seconds = 0;
  Digest sha256{};
  std::uint64_t began_at = 0;  // what was before that was there already
  // Receive side of the data: the target's for put, ours for get; of this connection so far.
  std::uint64_t bytes_fast = 0, bytes_slow = 0;
  std::uint64_t downgrades = 0, upgrades = 0, recoveries = 0;
};

// `done` of `size` bytes.
using ProgressFunction = std::function<void(std::uint64_t done, std::uint64_t size)>;

// Slots of the window with data for the target: a slot is free when our Write is complete and the
// target has taken what was in it.
class SlotLedger {
 public:
  void reset(std::uint32_t slots) {
    write_pending_.assign(slots, 0);
    take_pending_.assign(slots, 0);
  }
  // `written`: by a Write, whose completion counts as well.
  void give(std::uint32_t slot, bool written) {
    write_pending_[slot] = written ? 1 : 0;
    take_pending_[slot] = 1;
  }
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
  // Opens the device and connects to the first of `places` ("10.77.0.1:18700") where that succeeds;
  // the error is the last one's. Errors are one line; a wire without a peer, a refusal and a target
  // of another version each have their own.
  static Result<std::unique_ptr<Initiator>> connect(const Config& config,
                                                    const std::vector<std::string>& places,
                                                    const InitiatorOptions& options);
  ~Initiator();

  // `from` becomes `name` at the target.
  Result<Transfer> put(const LocalSource& from, const std::string& name, const FileOptions& how,
                       const ProgressFunction& progress);
  // `name` goes to `to`: to a file complete or not at all, to a stream as it comes.
  Result<Transfer> get(const std::string& name, const LocalDestination& to, const FileOptions& how,
                       const ProgressFunction& progress);
  // A folder that is there already is fine.
  Result<void> make_folder(const std::string& name, std::uint32_t permissions);
  // `name` and what is below it; "" is all. Files and folders.
  Result<std::vector<ListEntry>> list(const std::string& name = "");
  const std::string& endpoint() const { return endpoint_; }
  bool read_only() const { return offer_.read_only; }
  // Whether the next file may go well though one has failed.
  bool usable() const { return failure_.empty(); }

  // Orderly end: waits until the target has it, at most a second.
  void disconnect();

  Device& device() { return rdma_.device; }
  const std::string& file_backend() const { return files_.backend(); }

 private:
  Initiator(const Config& config, const InitiatorOptions& options);
  Result<void> start();
  Result<void> reach(const std::string& place, int timeout_ms);
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
  // Opens at the target; false with failure_ or result set. `m`: all but its kind.
  bool open(Message m);
  // Compares the beginning of `fd`, which has `there` bytes, with what the target says of its own;
  // where to go on.
  // `whole_only`: with all of it or none.
  Result<Point> begin(int fd, std::uint64_t there, bool whole_only, const std::string& what);
  // A bare request, answered by a Result.
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
  // Chunks that arrived together with Opened, before there was a sink for them.
  void take_early_chunks();
  // Lets what is still in the kernel or on the wire end after a failed transfer.
  void settle();
  Error ended(const std::string& what) const;
  Result<std::vector<std::uint8_t>> fetch_listing(const std::string& name);

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
    std::deque<Message> announced;  // chunks that wait for their turn (a limit)
    std::deque<Message> haves;      // what the target says of its beginning, to be compared
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
  Pace pace_;
};

}  // namespace urnic::cli
