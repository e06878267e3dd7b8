// Limits what a target stores: bytes and files of the whole export, and of each client (AC-6,
// AC-7).
//
// The export's usage is everything in the folder, whichever program wrote it. The folder is scanned
// again before a put if the last scan is old enough. A client is an address. Its usage is what it
// has put since the target started and what still exists. A put reserves its space at the
// beginning, so that concurrent puts together cannot exceed a limit.
//
// Thread safe: the servers of several ports share one quota.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cli/transfer/folder.h"

namespace urnic::cli {

// 0: no limit.
struct QuotaLimits {
  // bound: bytes and files of an export; limit: `--quota`, `--quota-files`; beyond: the put is
  // refused, names the quota and leaves nothing; test:
  // QuotaTest.ConcurrentPutsShareTheRemainingQuota,
  // QuotaTest.AReplacedFileMakesRoomForItsReplacement,
  // TargetServerTest.APutOverTheQuotaFailsWithOneLineAndLeavesNothing
  std::uint64_t bytes = 0, files = 0;
  // bound: bytes and files that a client has put; limit: `--client-quota`, `--client-quota-files`;
  // beyond: the put is refused, names the quota and leaves nothing; test:
  // QuotaTest.EachClientHasItsOwnQuotaWithoutPreexistingFiles, QuotaTest.DeletedFilesNoLongerCount
  std::uint64_t client_bytes = 0, client_files = 0;
  bool of_whole() const { return bytes != 0 || files != 0; }
  bool of_clients() const { return client_bytes != 0 || client_files != 0; }
};

class Quota {
 public:
  // `folder`: a descriptor that outlives the quota.
  Quota(int folder, const QuotaLimits& limits) : folder_(folder), limits_(limits) {}
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  // The reservation of one put. It is released at destruction unless keep() was called.
  class Share {
   public:
    Share() = default;
    Share(Share&& o) noexcept { *this = std::move(o); }
    Share& operator=(Share&& o) noexcept {
      give_back();
      quota_ = std::exchange(o.quota_, nullptr);
      client_ = std::move(o.client_);
      name_ = std::move(o.name_);
      size_ = o.size_;
      of_whole_ = o.of_whole_;
      of_client_ = o.of_client_;
      return *this;
    }
    ~Share() { give_back(); }
    // The file now has its name. `replaced`: the size of the file that had the name before.
    void keep(std::optional<std::uint64_t> replaced);
    void give_back();

   private:
    friend class Quota;
    Quota* quota_ = nullptr;
    std::string client_, name_;
    std::uint64_t size_ = 0;
    Usage of_whole_, of_client_;
  };
  // Reserves space for a file of `size` bytes that will become `name`. On Status::NoSpace the text
  // names the exceeded quota. `now`: seconds.
  Outcome<Share, FileError> reserve(const std::string& client, const std::string& name,
                                    std::uint64_t size, double now);

 private:
  struct Owned {
    std::string client;
    std::uint64_t size = 0;
  };
  struct Client {
    Usage used, reserved;
  };
  void look_again(double now);
  void forget_gone(const std::string& client);
  void forget(const std::string& name);
  void forget_idle(const std::string& client);

  const int folder_;
  const QuotaLimits limits_;
  std::mutex mutex_;  // protects all members below
  Usage used_, reserved_;
  double look_at_ = 0;  // when the folder is scanned again
  std::map<std::string, Owned> owned_;
  std::map<std::string, Client> clients_;
};

}  // namespace urnic::cli
