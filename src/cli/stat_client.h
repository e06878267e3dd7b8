// Finding the running urnic processes of this user and asking them for their counters.
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

// All sockets in the folder (stats_directory()), by process id. Those of `pid` alone when it is not
// 0. Sockets left by processes that are gone are removed.
std::vector<StatSocket> find_stat_sockets(const std::string& folder, std::uint64_t pid = 0);
// The whole document. Errors: one line.
Result<std::string> read_stat_socket(const std::string& path, int timeout_ms = 2000);

// What a person reads about one engine.
std::string stat_table(const EngineStats& s);
// The Prometheus text format, all engines together (metrics must not be repeated).
std::string stat_prometheus(const std::vector<EngineStats>& engines);

}  // namespace urnic::cli
