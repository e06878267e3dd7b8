// The command-line options that put, get and ls share, and their exit codes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/transfer/initiator.h"

namespace urnic::cli {

// Options of every command that connects to a target.
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
  // One line that describes an error in the options; empty if they are valid. Sets the client's
  // options.
  std::string check(bool chunk_given, InitiatorOptions* options) const;
  bool repeated() const { return times != 1 || !for_time.empty(); }
  FileOptions of_file() const { return {resume, !no_times}; }
};

int usage_error(const std::string& command, const std::string& message);
int failed(const std::string& command, const std::string& message);
// The exit code after a successful transfer. If the capture lacks frames, that counts as a failure,
// although the files were transferred.
int captured(const std::string& command, Device& device);

// The part of the path after the last slash.
std::string leaf_of(const std::string& path);

// Connects; on failure prints the reason and returns an exit code. `transfer`: the additional
// options of put and get.
int connect_client(const std::string& command, const ClientOptions& o,
                   const TransferOptions* transfer, const StorageAddress& to,
                   std::unique_ptr<Initiator>* out);

}  // namespace urnic::cli
