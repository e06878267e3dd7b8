// One initiator's connection at a target: a window of memory and at most one file under way.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/channel.h"
#include "cli/file_mover.h"

namespace urnic::cli {

struct TargetOptions {
  int folder = -1;
  bool read_only = false;
  bool durable = false;                         // fsync before a file gets its name
  std::uint32_t slots = 16, chunk = 256 << 10;  // largest window given to one client
  double idle_limit = 300;                      // seconds without any message
  double stall_limit = 60;                      // seconds without progress while a file is open
  // Gets a line for each file: its name, how it went, with whom.
  std::function<void(const std::string&)> report = [](const std::string&) {};
};

// What a target counts; for its last line and for tests.
struct TargetTotals {
  std::uint64_t files_in = 0, files_out = 0, bytes_in = 0, bytes_out = 0;
  std::uint64_t listings = 0;
  std::uint64_t failed = 0;  // puts, gets and listings that were asked for and did not end well
};

class TargetSession {
 public:
  // Takes window memory from `*budget` (octets) and gives it back at its end.
  TargetSession(std::uint32_t id, Device* device, ProtectionDomain pd, FileQueue* files,
                const TargetOptions* options, TargetTotals* totals, std::uint64_t* budget,
                std::unique_ptr<Channel> channel, std::string peer);
  ~TargetSession();
  TargetSession(const TargetSession&) = delete;
  TargetSession& operator=(const TargetSession&) = delete;

  std::uint32_t id() const { return id_; }
  Channel& channel() { return *channel_; }
  const std::string& peer() const { return peer_; }

  void on_completion(const Completion& c, double now);
  void on_file(std::uint32_t slot, std::int64_t result, double now);
  // Connection ended (by the peer, the wire, or us). The file under way is dropped.
  void on_end();
  // Whatever can go on without an event. True if anything was done.
  bool step(double now);
  // Too long without a sign of life: ends the connection.
  void check_time(double now);

  // Ended, and nothing of it is in use any more: may be destroyed.
  bool gone() const { return ended_ && in_flight() == 0; }
  bool transferring() const { return source_ != nullptr || sink_ != nullptr; }

 private:
  void on_message(const Message& m);
  void on_hello(const Message& m);
  void on_open(const Message& m);
  void open_put(const Message& m);
  void open_get(const Message& m);
  void open_list();
  void open_source(std::unique_ptr<FileSource> source, std::uint32_t permissions);
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
  Window window() const { return {buffer_.data(), slots_, chunk_}; }
  std::uint64_t tag_base() const { return std::uint64_t{id_} << 32; }

  std::uint32_t id_;
  Device* device_;
  ProtectionDomain pd_;
  FileQueue* files_;
  const TargetOptions* options_;
  TargetTotals* totals_;
  std::uint64_t* budget_;
  std::string peer_;
  RdmaBuffer buffer_;  // the window
  std::unique_ptr<Channel> channel_;
  std::uint32_t slots_ = 0, chunk_ = 0;

  bool ended_ = false;
  bool closing_ = false;  // a last message is on its way, then the connection ends
  double last_sign_ = 0;
  std::uint32_t transfer_ = 0;
  bool open_ = false;  // `transfer_` is under way
  OpenMode mode_ = OpenMode::Put;
  std::string name_;  // of the file last asked for
  bool commit_sent_ = false;
  std::unique_ptr<FileSource> source_;
  std::unique_ptr<FileSink> sink_;
  IncomingFile incoming_;
  bool commit_wanted_ = false;
  Message commit_;
  // Dropped, but with operations in the kernel that still use the window and the descriptor.
  std::unique_ptr<FileSource> old_source_;
  std::unique_ptr<FileSink> old_sink_;
  IncomingFile old_incoming_;
  std::unique_ptr<Message> waiting_open_;  // arrived meanwhile
};

}  // namespace urnic::cli
