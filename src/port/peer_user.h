// Who may be at the other end of a unix socket (E-44): ourselves, root, and whom `peer_user` names.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace urnic::port {

class PeerUser {
 public:
  PeerUser() = default;
  // `text` of the key peer_user: empty, a user's name or number, or "any".
  static Outcome<PeerUser, std::string> parse(const std::string& text);

  bool allows(uid_t user) const;
  // Others than ourselves and root may come: the socket's file must let them.
  bool lets_others() const { return any_ || also_.has_value(); }
  bool any() const { return any_; }
  // Empty when the process at the other end of the connected stream or seqpacket socket may be
  // there, else one line: who it is and what to do.
  std::string refusal_of(int socket) const;
  // The same for a user known otherwise. `what`: "the program at PATH".
  std::string refusal_of(uid_t user, const std::string& what) const;

 private:
  std::optional<uid_t> also_;
  bool any_ = false;
};

// Empty when nobody but us, root and those of `peer` can put another socket at `path`, else one
// line that says what is wrong with the folder. A folder for all with the sticky bit (/tmp) is good
// enough where `sticky_will_do`: for sockets that tell themselves who is at the other end. A folder
// that is not there yet is no fault.
std::string folder_fault(const std::string& path, const PeerUser& peer, bool sticky_will_do);

// The folder of a user without XDG_RUNTIME_DIR, "/tmp/urnic-<uid>".
std::string fallback_folder();
// Makes it, for us alone, if `path` lies in it and it is missing.
void make_fallback_folder(const std::string& path);

}  // namespace urnic::port
