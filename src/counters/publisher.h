// Publishes the counters of one device of this process in a page (page.h). Not thread safe.
#pragma once

#include <cstdint>
#include <string>

#include "counters/page.h"
#include "urnic/stats.h"

namespace urnic::counters {

class Publisher {
 public:
  // `folder`: stats_directory(). Creates nothing yet.
  Publisher(std::string folder, std::string section, std::string port);
  // Adds the values to the totals of ended processes.
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  // Raises the published values to the present ones; a value that has fallen, because a connection
  // ended between two looks, stays. The first value that is not 0 creates the page. `s.ended` has
  // the totals of all connections. Returns an errno value; ENAMETOOLONG: a text of the device does
  // not fit in a page. After an error it tries again at the next call.
  int publish(const EngineStats& s);

 private:
  int create();
  int map(int fd, std::uint64_t id);

  const std::string folder_, section_, port_;
  const int owner_;  // process: a forked child leaves the file alone
  int fd_ = -1;      // locked as long as this process lives
  Page* page_ = nullptr;
};

}  // namespace urnic::counters
