// For tests that need their own network: a child process in a new network namespace. Tries in this
// order (E-40): an unprivileged user namespace, root privileges; otherwise returns why neither
// worked.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

namespace urnic::port::check {

inline bool write_file(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return ok;
}

// Empty if this process is now in its own network namespace, with the right to change it.
inline std::string enter_network_namespace(bool as_root) {
  const auto uid = getuid(), gid = getgid();
  std::string why;
  if (!as_root && unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) {
    write_file("/proc/self/setgroups", "deny");
    if (write_file("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1") &&
        write_file("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1")) {
      return "";
    }
    return "the user namespace cannot be mapped";
  }
  why = std::string("no user namespace (") + std::strerror(errno) + ")";
  if (unshare(CLONE_NEWNET) == 0) return "";
  return why + " and no network namespace (" + std::strerror(errno) + ")";
}

inline bool interface_up(const char* name, const char* address = nullptr) {
  const int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  bool ok = s >= 0;
  ifreq r{};
  std::strncpy(r.ifr_name, name, IFNAMSIZ - 1);
  if (ok && address != nullptr) {
    auto* in = reinterpret_cast<sockaddr_in*>(&r.ifr_addr);
    in->sin_family = AF_INET;
    inet_pton(AF_INET, address, &in->sin_addr);
    ok = ioctl(s, SIOCSIFADDR, &r) == 0;
    inet_pton(AF_INET, "255.255.255.0", &in->sin_addr);
    ok = ok && ioctl(s, SIOCSIFNETMASK, &r) == 0;
  }
  r.ifr_flags = 0;
  ok = ok && ioctl(s, SIOCGIFFLAGS, &r) == 0;
  r.ifr_flags = static_cast<short>(r.ifr_flags | IFF_UP);
  ok = ok && ioctl(s, SIOCSIFFLAGS, &r) == 0;
  if (s >= 0) close(s);
  return ok;
}

// Runs `body` in a child; its result, or how it died, is stored in `result`.
inline void in_child(const std::function<std::string()>& body, std::string* result) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    *result = "no pipe";
    return;
  }
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const std::string out = "." + body();
    if (write(ends[1], out.data(), out.size()) < 0) _exit(1);
    _exit(0);
  }
  close(ends[1]);
  std::string out;
  std::array<char, 1024> part;
  for (ssize_t n; (n = read(ends[0], part.data(), part.size())) > 0;) {
    out.append(part.data(), static_cast<std::size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    *result = "the child died of signal " + std::to_string(WTERMSIG(status));
  } else {
    *result = out.empty() ? "the child ended without a word" : out.substr(1);
  }
}

struct NamespaceResult {
  bool skipped = false;
  std::string text;  // why it was skipped or failed; empty on success
};

// Runs `body` in a child in its own network namespace. `body` returns an error, or an empty text.
inline NamespaceResult in_network_namespace(const std::function<std::string()>& body,
                                            bool as_root = false) {
  std::string out;
  in_child(
      [&]() -> std::string {
        const std::string wrong = enter_network_namespace(as_root);
        if (!wrong.empty()) return "S" + wrong;
        interface_up("lo");
        return "R" + body();
      },
      &out);
  if (!out.empty() && (out[0] == 'S' || out[0] == 'R')) return {out[0] == 'S', out.substr(1)};
  return {false, out};
}

#define RUN_IN_NETWORK_NAMESPACE(body)                                                  \
  do {                                                                                  \
    const auto result_ = ::urnic::port::check::in_network_namespace(body);              \
    if (result_.skipped) GTEST_SKIP() << "needs a network namespace: " << result_.text; \
    EXPECT_EQ(result_.text, "");                                                        \
  } while (false)

}  // namespace urnic::port::check
