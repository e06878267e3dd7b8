// Finds the running urnic processes of this user and requests their counters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "urnic/stats.h"

namespace urnic::cli {

struct StatSocket {
  std::string path;
  std::uint64_t pid = 0;
};

// All sockets in the folder (stats_directory()), sorted by process id; only those of `pid` if it is
// not 0. Removes sockets of processes that no longer exist.
std::vector<StatSocket> find_stat_sockets(const std::string& folder, std::uint64_t pid = 0);
// The whole document. The error is one line.
Result<std::string> read_stat_socket(const std::string& path, int timeout_ms = 2000);

// The counters of one engine as text for people.
std::string stat_table(const EngineStats& s);
// The Prometheus text format for all engines together (a metric must not be repeated).
std::string stat_prometheus(const std::vector<EngineStats>& engines);

}  // namespace urnic::cli
