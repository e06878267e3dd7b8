// Determines which addresses may connect: a list of allowed and denied prefixes (AC-1). The longest
// prefix that contains an address decides; if two are equal, the denying one. An address without a
// match is admitted unless the list allows some prefix.
#pragma once

#include <vector>

#include "base/ip_address.h"

namespace urnic {

class AccessList {
 public:
  void allow(const IpPrefix& p) { add(p, true); }
  void deny(const IpPrefix& p) { add(p, false); }
  bool empty() const { return rules_.empty(); }
  // An IPv4 address mapped into IPv6 is treated as IPv4; the same holds for prefixes.
  bool admits(const IpAddress& address) const;

 private:
  struct Rule {
    IpPrefix prefix;
    bool allows;
  };
  void add(const IpPrefix& p, bool allows);

  std::vector<Rule> rules_;  // longest first; among equal lengths, denying rules first
  bool admits_others_ = true;
};

}  // namespace urnic
