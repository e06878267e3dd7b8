// One initiator's connection at a target: a window of memory and at most one file in progress.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/transfer/channel.h"
#include "cli/transfer/file_mover.h"
#include "cli/transfer/incoming_file.h"
#include "cli/transfer/prefix_check.h"
#include "cli/transfer/quota.h"
#include "cli/transfer/window_budget.h"

namespace urnic::cli {

struct TargetOptions {
  int folder = -1;
  bool read_only = false;
  bool durable = false;                         // fsync before a file gets its name
  std::uint32_t slots = 16, chunk = 256 << 10;  // largest window for one client
  double stall_limit = 60;                      // seconds without progress, with or without a file
  double idle_grace = 1;                        // then a client without a file may be replaced
  // Called with one line for each file: its name, the outcome, the peer.
  std::function<void(const std::string&)> report = [](const std::string&) {};
};

// Counters of a target, for its final line and for tests.
struct TargetTotals {
  std::uint64_t files_in = 0, files_out = 0, bytes_in = 0, bytes_out = 0;
  std::uint64_t listings = 0;
  std::uint64_t failed = 0;  // failed puts, gets and listings
};

class TargetSession;

// Objects that all sessions of a target share; the server owns them.
struct TargetHost {
  Device* device;
  ProtectionDomain pd;
  FileQueue* files;
  const TargetOptions* options;
  TargetTotals* totals;
  WindowBudget* budget;
  // Ends an idle session with a window, other than `for_it`, if there is one. With `own_share`
  // considers only sessions of the same client.
  std::function<bool(const TargetSession& for_it, bool own_share)> make_room;
  Quota* quota = nullptr;  // for puts; null: no quota
};

class TargetSession {
 public:
  // Takes window memory from `host.budget` and returns it at destruction. `now` starts the timeout.
  TargetSession(std::uint32_t id, TargetHost host, std::unique_ptr<Channel> channel,
                std::string peer, double now);
  ~TargetSession();
  TargetSession(const TargetSession&) = delete;
  TargetSession& operator=(const TargetSession&) = delete;

  std::uint32_t id() const { return id_; }
  Channel& channel() { return *channel_; }
  const std::string& peer() const { return peer_; }
  // Identifies the client for quotas and shares: its address without the port.
  std::string client() const { return client_of(peer_); }
  static std::string client_of(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

  void on_completion(const Completion& c, double now);
  void on_file(std::uint32_t slot, std::int64_t result, double now);
  // The connection has ended (by the peer, the wire, or us). Drops the current file.
  void on_end();
  // Does everything that needs no event. True if there was any work.
  bool step(double now);
  // Ends the connection after too long without progress.
  void check_time(double now);
  // How long it has been without progress and without a file; negative if it has a file or is
  // ending.
  double idle_for(double now) const;
  bool has_window() const { return window_.slots != 0; }
  // Ends the connection to make room for another client.
  void give_way();

  // True when it has ended and none of its resources are in use: it may be destroyed.
  bool gone() const { return ended_ && in_flight() == 0; }

 private:
  void on_message(const Message& m);
  bool is_progress(const Channel::Incoming& in) const;
  void on_hello(const Message& m);
  void on_open(const Message& m);
  void open_put(const Message& m);
  void open_get(const Message& m);
  void open_list(const std::string& name);
  void open_folder(const Message& m);
  void open_source(std::unique_ptr<FileSource> source);
  void opened(const FileAttributes& is, std::uint64_t there, bool whole_only = false);
  // A part of the file exists: sends its digests until the initiator chooses where to continue.
  void check_what_is_there(int fd, std::uint64_t length);
  bool step_check();
  void on_begin(const Message& m);
  bool step_source();
  bool step_sink();
  void finish_put();
  // A request has failed: counts and reports it.
  void note_failure(const std::string& why);
  // The same, and notifies the initiator.
  void refuse(Status status, std::string text);
  void result(Status status, std::string text, const Digest& digest = {}, std::uint64_t size = 0);
  // Ends the current file. Reads and writes that are still in the kernel are completed first.
  void drop_file();
  void send(const Message& m);
  // The peer violated the protocol: reports it and ends the connection.
  void violation(const std::string& what);
  unsigned in_flight() const;
  std::uint64_t tag_base() const { return std::uint64_t{id_} << 32; }

  // One file being moved between the folder and the window.
  struct Moving {
    std::unique_ptr<FileSource> source;
    std::unique_ptr<FileSink> sink;
    IncomingFile incoming;
    std::optional<OpenedFile> outgoing;   // until its source takes it
    std::unique_ptr<PrefixTeller> check;  // until the initiator chooses where to begin
    Quota::Share share;

    bool any() const { return source != nullptr || sink != nullptr; }
    void drop_check() {
      check.reset();
      outgoing.reset();
    }
    unsigned in_flight() const {
      return (source ? source->in_flight() : 0) + (sink ? sink->in_flight() : 0);
    }
    void drop() {
      source.reset();
      sink.reset();
      drop_check();
      incoming.leave();
      share.give_back();
    }
  };
  // The last request.
  struct Request {
    std::uint32_t transfer = 0;
    bool open = false;  // the transfer is in progress
    OpenMode mode = OpenMode::Put;
    std::string name;
    FileAttributes is;              // the attributes that a put has announced
    std::optional<Message> commit;  // a put has announced all of its chunks
  };

  std::uint32_t id_;
  TargetHost host_;
  std::string peer_;
  RdmaBuffer buffer_;  // the window's memory
  std::unique_ptr<Channel> channel_;
  Window window_;
  bool ended_ = false;
  bool closing_ = false;  // a last message is in flight; then the connection ends
  double last_progress_;
  Request request_;
  Moving file_;
  // Dropped, but operations in the kernel still use its window and descriptor.
  Moving old_;
  std::unique_ptr<Message> waiting_open_;  // an Open that arrived meanwhile
};

}  // namespace urnic::cli
