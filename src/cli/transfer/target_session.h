// One initiator's connection at a target: a window of memory and at most one file under way.
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
  std::uint32_t slots = 16, chunk = 256 << 10;  // largest window given to one client
  double stall_limit = 60;                      // seconds without progress, with a file or without
  double idle_grace = 1;                        // ... after which one without a file may give way
  // Gets a line for each file: its name, how it went, with whom.
  std::function<void(const std::string&)> report = [](const std::string&) {};
};

// What a target counts; for its last line and for tests.
struct TargetTotals {
  std::uint64_t files_in = 0, files_out = 0, bytes_in = 0, bytes_out = 0;
  std::uint64_t listings = 0;
  std::uint64_t failed = 0;  // puts, gets and listings that were asked for and did not end well
};

class TargetSession;

// What all sessions of a target share, and the server has.
struct TargetHost {
  Device* device;
  ProtectionDomain pd;
  FileQueue* files;
  const TargetOptions* options;
  TargetTotals* totals;
  WindowBudget* budget;
  // Ends an idle session with a window other than that, if there is one; of the same client alone
  // where the share is its own.
  std::function<bool(const TargetSession& for_it, bool own_share)> make_room;
  Quota* quota = nullptr;  // of what is put; null: there is none
};

class TargetSession {
 public:
  // Takes window memory from `host.budget` and gives it back at its end. Its time begins at `now`.
  TargetSession(std::uint32_t id, TargetHost host, std::unique_ptr<Channel> channel,
                std::string peer, double now);
  ~TargetSession();
  TargetSession(const TargetSession&) = delete;
  TargetSession& operator=(const TargetSession&) = delete;

  std::uint32_t id() const { return id_; }
  Channel& channel() { return *channel_; }
  const std::string& peer() const { return peer_; }
  // Quotas and shares know the client by this: its address, whatever its port.
  std::string client() const { return client_of(peer_); }
  static std::string client_of(const std::string& peer) { return peer.substr(0, peer.rfind(':')); }

  void on_completion(const Completion& c, double now);
  void on_file(std::uint32_t slot, std::int64_t result, double now);
  // Connection ended (by the peer, the wire, or us). The file under way is dropped.
  void on_end();
  // Whatever can go on without an event. True if anything was done.
  bool step(double now);
  // Too long without progress: ends the connection.
  void check_time(double now);
  // For how long it has made no progress and has no file under way; negative: it has one, or ends.
  double idle_for(double now) const;
  bool has_window() const { return window_.slots != 0; }
  // Ends the connection: somebody else has its place.
  void give_way();

  // Ended, and nothing of it is in use any more: may be destroyed.
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
  // Of a file of which a part is there: tells what that is, until the initiator says where to go
  // on.
  void check_what_is_there(int fd, std::uint64_t length);
  bool step_check();
  void on_begin(const Message& m);
  bool step_source();
  bool step_sink();
  void finish_put();
  // What was asked for did not end well: counts and reports it.
  void note_failure(const std::string& why);
  // The same, and the initiator is told.
  void refuse(Status status, std::string text);
  void result(Status status, std::string text, const Digest& digest = {}, std::uint64_t size = 0);
  // Ends the file under way; reads and writes still in the kernel are waited for first.
  void drop_file();
  void send(const Message& m);
  // The peer broke the protocol: say so and end the connection.
  void violation(const std::string& what);
  unsigned in_flight() const;
  std::uint64_t tag_base() const { return std::uint64_t{id_} << 32; }

  // One file on its way between the folder and the window.
  struct Moving {
    std::unique_ptr<FileSource> source;
    std::unique_ptr<FileSink> sink;
    IncomingFile incoming;
    std::optional<OpenedFile> outgoing;   // until its source has it
    std::unique_ptr<PrefixTeller> check;  // until the initiator says where to begin
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
  // What was asked for last.
  struct Request {
    std::uint32_t transfer = 0;
    bool open = false;  // it is under way
    OpenMode mode = OpenMode::Put;
    std::string name;
    FileAttributes is;              // what a put has announced
    std::optional<Message> commit;  // all of a put has been announced
  };

  std::uint32_t id_;
  TargetHost host_;
  std::string peer_;
  RdmaBuffer buffer_;  // of the window
  std::unique_ptr<Channel> channel_;
  Window window_;
  bool ended_ = false;
  bool closing_ = false;  // a last message is on its way, then the connection ends
  double last_progress_;
  Request request_;
  Moving file_;
  // Dropped, but with operations in the kernel that still use the window and the descriptor.
  Moving old_;
  std::unique_ptr<Message> waiting_open_;  // arrived meanwhile
};

}  // namespace urnic::cli
