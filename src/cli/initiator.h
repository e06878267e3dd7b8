// The client of a target: one connection over which files are put, fetched and listed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/channel.h"
#include "cli/file_mover.h"
#include "cli/local_file.h"
#include "cli/runtime.h"
#include "urnic/urnic.h"

namespace urnic::cli {

struct InitiatorOptions {
  std::uint32_t slots = 16, chunk = 256 << 10;  // window asked for
  int connect_timeout_ms = 10'000;
  double stall_limit = 30;  // seconds without any progress
  bool use_uring = true;
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

  ConnectionStats stats() { return channel_->qp().stats(); }
  Device& device() { return device_; }
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

  Config config_;
  InitiatorOptions options_;
  FileQueue files_;
  Device device_;
  ProtectionDomain pd_;
  CompletionQueue cq_;
  EventQueue events_;
  RdmaBuffer buffer_;
  std::unique_ptr<Channel> channel_;
  std::string endpoint_;

  // The target's window.
  Window window_;  // our own, of the same shape
  std::uint32_t rkey_ = 0;
  std::uint64_t remote_ = 0;
  bool read_only_ = false;

  // The transfer under way.
  std::uint32_t transfer_ = 0;
  std::unique_ptr<FileSource> source_;
  std::unique_ptr<FileSink> sink_;
  std::vector<std::uint8_t> write_pending_;  // per slot: our Write is not complete
  std::vector<std::uint8_t> take_pending_;   // per slot: the target has not taken it
  unsigned data_outstanding_ = 0;
  bool opened_ = false, commit_sent_ = false, commit_here_ = false, result_here_ = false;
  Message opened_message_, commit_, result_;
  std::vector<Message> early_chunks_;
  ProgressFunction progress_;

  std::string failure_;  // the connection is of no use any more
  bool disconnected_ = false;
  double last_progress_ = 0, next_check_ = 0, link_down_since_ = 0, next_bar_ = 0;
};

}  // namespace urnic::cli
