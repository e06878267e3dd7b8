// Addresses of loopback that no other process of the tests has: port 4791 is one for each address.
#pragma once

#include <unistd.h>

#include <string>

namespace urnic::test {

// "127.a.b.", the same for all of this process; `which` tells apart what one process needs several
// of.
inline std::string loopback_network(unsigned which = 0) {
  const auto pid = static_cast<unsigned>(getpid());
  return "127." + std::to_string(1 + (pid / 200 + which * 50) % 250) + "." +
         std::to_string(1 + pid % 200) + ".";
}

}  // namespace urnic::test
