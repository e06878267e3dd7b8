// Memory for the windows of a target's clients: how much is left, in total and per address.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

namespace urnic::cli {

class WindowBudget {
 public:
  // bound: memory for the windows of a target's clients from one address; limit: a quarter of
  // `--memory` (the share of the places); beyond: windows get smaller; without any memory an idle
  // client gives way, else the new one is refused as busy; test:
  // WindowBudget.OneAddressGetsOnlyItsShareOfTheMemory
  WindowBudget(std::uint64_t all, std::uint64_t of_peer) : left_(all), of_peer_(of_peer) {}

  // The part of `wanted` that a window of `peer` gets: later clients of an address get smaller
  // windows.
  std::uint64_t offer(const std::string& peer, std::uint64_t wanted) const {
    constexpr std::uint64_t kEnough = 1 << 20;
    const auto has = by_peer_.find(peer);
    const std::uint64_t taken = has == by_peer_.end() ? 0 : has->second;
    const std::uint64_t left = std::min(left_, of_peer_ - std::min(of_peer_, taken));
    return std::min(wanted, std::max(left / 4, std::min(left, kEnough)));
  }
  void take(const std::string& peer, std::uint64_t bytes) {
    by_peer_[peer] += bytes;
    left_ -= bytes;
  }
  void give_back(const std::string& peer, std::uint64_t bytes) {
    const auto has = by_peer_.find(peer);
    if (has == by_peer_.end()) return;
    left_ += bytes;
    if ((has->second -= bytes) == 0) by_peer_.erase(has);
  }
  std::uint64_t left() const { return left_; }
  // True if the share of `peer` is used up, however much is left in total.
  bool is_used_up_by(const std::string& peer) const {
    const auto has = by_peer_.find(peer);
    return has != by_peer_.end() && has->second + kLeast > of_peer_;
  }

  static constexpr std::uint64_t kLeast = 4096;  // the smallest useful window

 private:
  std::uint64_t left_, of_peer_;
  std::map<std::string, std::uint64_t> by_peer_;
};

}  // namespace urnic::cli
