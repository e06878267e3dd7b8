// Loopback addresses that no other test process uses: each address has only one port 4791.
#pragma once

#include <unistd.h>

#include <string>

namespace urnic::test {

// "127.a.b.", the same throughout this process; `which` distinguishes several networks of one
// process.
inline std::string loopback_network(unsigned which = 0) {
  const auto pid = static_cast<unsigned>(getpid());
  return "127." + std::to_string(1 + (pid / 200 + which * 50) % 250) + "." +
         std::to_string(1 + pid % 200) + ".";
}

}  // namespace urnic::test
