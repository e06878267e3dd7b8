// How much a target keeps: bytes and files of the whole export, and of each client (AC-6, AC-7).
//
// The whole counts what is in the folder, whoever put it there: it is looked through again before
// a put when that was some time ago. A client, which is an address, counts what it has put since
// the target began, as long as it is there. A put has what it needs reserved from its beginning, so
// that several at once do not exceed what each of them alone would not.
//
// Thread safe: the servers of several ports share one.
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
  // refused, names the quota and leaves nothing; test: QuotaTest.SeveralAtOnceShareWhatIsLeft,
  // QuotaTest.WhatIsReplacedMakesRoomForWhatReplacesIt,
  // TargetServerTest.APutOverTheQuotaIsOneLineAndLeavesNothing
  std::uint64_t bytes = 0, files = 0;
  // bound: bytes and files that a client has put; limit: `--client-quota`, `--client-quota-files`;
  // beyond: the put is refused, names the quota and leaves nothing; test:
  // QuotaTest.EachClientHasItsOwnAndWhatWasThereIsNobodys, QuotaTest.WhatIsTakenAwayCountsNoMore
  std::uint64_t client_bytes = 0, client_files = 0;
  bool of_whole() const { return bytes != 0 || files != 0; }
  bool of_clients() const { return client_bytes != 0 || client_files != 0; }
};

class Quota {
 public:
  // `folder`: a descriptor that outlives it.
  Quota(int folder, const QuotaLimits& limits) : folder_(folder), limits_(limits) {}
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  // What one put has reserved. Gives it back when it goes, unless it was kept.
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
    // The file has its name now; `replaced`: the size of the one that had it.
    void keep(std::optional<std::uint64_t> replaced);
    void give_back();

   private:
    friend class Quota;
    Quota* quota_ = nullptr;
    std::string client_, name_;
    std::uint64_t size_ = 0;
    Usage of_whole_, of_client_;
  };
  // For a file of `size` bytes that is to become `name`. Status::NoSpace: over a quota, which the
  // text names. `now`: seconds.
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
  std::mutex mutex_;  // of all below
  Usage used_, reserved_;
  double look_at_ = 0;  // when the folder is looked through again
  std::map<std::string, Owned> owned_;
  std::map<std::string, Client> clients_;
};

}  // namespace urnic::cli
