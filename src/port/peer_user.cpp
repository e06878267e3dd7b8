#include "port/peer_user.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace urnic::port {
namespace {

// The user id that the kernel shows for a user without a mapping in our user namespace.
constexpr uid_t kUnmapped = 65534;

std::string name_of(uid_t user) {
  std::array<char, 4096> room;
  passwd entry{};
  passwd* found = nullptr;
  getpwuid_r(user, &entry, room.data(), room.size(), &found);
  return found == nullptr ? "user " + std::to_string(user) : "user " + std::string(found->pw_name);
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Outcome<PeerUser, std::string> PeerUser::parse(const std::string& text) {
  PeerUser p;
  if (text.empty()) return p;
  if (text == "any") {
    p.any_ = true;
    return p;
  }
  uid_t number = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (ec == std::errc() && end == text.data() + text.size()) {
    p.also_ = number;
    return p;
  }
  std::array<char, 4096> room;
  passwd entry{};
  passwd* found = nullptr;
  getpwnam_r(text.c_str(), &entry, room.data(), room.size(), &found);
  if (found == nullptr) return fail("peer_user=" + text + ": unknown user");
  p.also_ = found->pw_uid;
  return p;
}

bool PeerUser::allows(uid_t user) const {
  return any_ || user == geteuid() || user == 0 || user == also_;
}

std::string PeerUser::refusal_of(uid_t user, const std::string& what) const {
  if (allows(user)) return "";
  return what + " belongs to " + name_of(user) +
         ", not to you; to allow it, set peer_user=" + std::to_string(user);
}

std::string PeerUser::refusal_of(int socket) const {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return std::string("cannot get the user of the peer from the kernel: ") + std::strerror(errno);
  }
  return refusal_of(peer.uid, "the peer process");
}

std::string folder_fault(const std::string& path, const PeerUser& peer, bool sticky_will_do) {
  if (peer.any()) return "";
  std::array<char, PATH_MAX> real;
  std::string folder = parent_of(path);
  if (realpath(folder.c_str(), real.data()) == nullptr) return "";  // its user will report why
  folder = real.data();
  // A user with write access to a parent folder can replace the folders below it.
  for (bool own = true;; own = false, folder = parent_of(folder)) {
    struct stat st {};
    if (stat(folder.c_str(), &st) != 0)
      return "cannot check the owner of " + folder + ": " + std::strerror(errno);
    const bool sticky = (st.st_mode & S_ISVTX) != 0 && (sticky_will_do || !own);
    const std::string advice =
        "; use a folder of your own (mkdir -m 700), or peer_user=any to allow every user";
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !sticky) {
      return "other users can write to the folder " + folder + advice;
    }
    if (!peer.allows(st.st_uid) && st.st_uid != kUnmapped) {
      return "the folder " + folder + " belongs to " + name_of(st.st_uid) + advice;
    }
    if (folder == "/") return "";
  }
}

std::string fallback_folder() {
  return "/tmp/urnic-" + std::to_string(geteuid());
}

void make_fallback_folder(const std::string& path) {
  if (parent_of(path) == fallback_folder()) mkdir(fallback_folder().c_str(), 0700);
}

}  // namespace urnic::port
