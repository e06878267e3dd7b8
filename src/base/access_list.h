// Which addresses may connect: prefixes that are allowed or denied (AC-1). The longest one that an
// address is in decides; of two alike the one that denies. Where none matches an address is
// admitted unless something is allowed.
#pragma once

#include <vector>

#include "base/ip_address.h"

namespace urnic {

class AccessList {
 public:
  void allow(const IpPrefix& p) { add(p, true); }
  void deny(const IpPrefix& p) { add(p, false); }
  bool empty() const { return rules_.empty(); }
  // An IPv4 address within an IPv6 one is judged as what it is, as is a prefix.
  bool admits(const IpAddress& address) const;

 private:
  struct Rule {
    IpPrefix prefix;
    bool allows;
  };
  void add(const IpPrefix& p, bool allows);

  std::vector<Rule> rules_;  // the longest first, of equal length those that deny
  bool admits_others_ = true;
};

}  // namespace urnic
