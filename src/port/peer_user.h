// The users allowed at the other end of a unix socket (E-44): ourselves, root, and those in
// `peer_user`.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace urnic::port {

class PeerUser {
 public:
  PeerUser() = default;
  // Parses the value of the key peer_user: empty, a user's name or number, or "any".
  static Outcome<PeerUser, std::string> parse(const std::string& text);

  bool allows(uid_t user) const;
  // True if other users than ourselves and root may connect: the socket's file must permit it.
  bool lets_others() const { return any_ || also_.has_value(); }
  bool any() const { return any_; }
  // Empty if the process at the other end of the connected stream or seqpacket socket is allowed.
  // Otherwise one line: which user it is and what to do.
  std::string refusal_of(int socket) const;
  // The same for a user determined otherwise. `what`: "the program at PATH".
  std::string refusal_of(uid_t user, const std::string& what) const;

 private:
  std::optional<uid_t> also_;
  bool any_ = false;
};

// Empty if only we, root and the users of `peer` can create another socket at `path`. Otherwise one
// line with the problem of the folder. `sticky_will_do`: a folder for all users with the sticky bit
// (/tmp) is accepted; use it for sockets that identify the user at the other end. A folder that
// does not exist yet is accepted.
std::string folder_fault(const std::string& path, const PeerUser& peer, bool sticky_will_do);

// The folder for a user without XDG_RUNTIME_DIR: "/tmp/urnic-<uid>".
std::string fallback_folder();
// Creates that folder with access for us only, if `path` is in it and it is missing.
void make_fallback_folder(const std::string& path);

}  // namespace urnic::port
