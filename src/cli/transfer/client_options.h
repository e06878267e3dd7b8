// What put, get and ls have in common on the command line, and how they end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/transfer/initiator.h"

namespace urnic::cli {

// Options of every command that talks to a target.
struct ClientOptions {
  SettingsOptions settings;
  std::string chunk = "256K";
  std::uint32_t slots = 16;
  std::string timeout = "30s", connect_timeout = "10s", token_file;
  int cpu = -1;
  bool no_uring = false;
  bool json = false;

  void add_to(CLI::App* app);
  Result<InitiatorOptions> parsed() const;
};

// Options of put and get.
struct TransferOptions {
  std::uint64_t times = 1;
  std::string for_time, limit;
  std::string bar = "auto";
  bool recursive = false, resume = false, dry_run = false, no_times = false;

  void add_to(CLI::App* app);
  // One line on what is wrong with them; empty when nothing is. Sets what a client must know.
  std::string check(bool chunk_given, InitiatorOptions* options) const;
  bool repeated() const { return times != 1 || !for_time.empty(); }
  FileOptions of_file() const { return {resume, !no_times}; }
};

int usage_error(const std::string& command, const std::string& message);
int failed(const std::string& command, const std::string& message);
// The exit code of one that went well, but for a capture that lacks frames: that is a failure,
// though the files moved.
int captured(const std::string& command, Device& device);

// What stands behind the last slash.
std::string leaf_of(const std::string& path);

// Connects, or says why not: an exit code. `limits`: what put and get ask for besides.
int connect_client(const std::string& command, const ClientOptions& o,
                   const TransferOptions* transfer, const StorageAddress& to,
                   std::unique_ptr<Initiator>* out);

}  // namespace urnic::cli
