// Publishes the counters of one device of this process in a page (page.h). Not thread safe.
#pragma once

#include <cstdint>
#include <string>

#include "counters/page.h"
#include "urnic/stats.h"

namespace urnic::counters {

class Publisher {
 public:
  // `folder`: stats_directory().
  Publisher(std::string folder, std::string section, std::string port);
  // Adds the values to the totals of ended processes.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Creates the page, and keeps a descriptor from now on. Returns an errno value; ENAMETOOLONG: a
  // text of the device does not fit in a page.
  int open();
  // Raises the published values to the present ones; a value that has fallen, because a connection
  // ended between two looks, stays. Tries to open if that has failed. `s.ended` has the totals of
  // all connections. Returns an errno value.
  int publish(const EngineStats& s);

 private:
  int map(int fd, std::uint64_t id);

  const std::string folder_, section_, port_;
  const int owner_;  // process: a forked child leaves the file alone
  int fd_ = -1;      // locked as long as this process lives
  Page* page_ = nullptr;
};

}  // namespace urnic::counters
