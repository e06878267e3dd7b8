// Checks the consistency of all settings: the legal combinations of framing policy and InLogic
// variant (E-3), addresses and gateways.
#include <string>
#include <vector>

#include "base/ip_address.h"
#include "urnic/config.h"

namespace urnic {
namespace {

struct Combination {
  const char* framing;
  const char* in_logic;
  int least_attempts;     // minimum of max_recovery_attempts
  const char* condition;  // for `urnic config --matrix`
};

// Fig 3 finds frames by markers; Figs 9 and 10 need none (E-3).
constexpr Combination kLegal[] = {
    {"no-markers", "fig9", 1, "max_recovery_attempts >= 1"},
    {"no-markers", "fig10", 1, "max_recovery_attempts >= 1"},
    {"markers", "fig3", 0,
     "max_recovery_attempts >= 0; 0: no recovery, the first drop makes it SLOW"},
    {"absolute-markers", "fig3", 0,
     "max_recovery_attempts >= 0; both ends must be urnic with the same framing"},
    {"modified-length", "fig3", 0,
     "max_recovery_attempts >= 0; both ends must be urnic with the same framing"},
};

Error bad(std::string message) {
  return {Errc::invalid_argument, std::move(message)};
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out;
  std::size_t from = 0;
  while (from < text.size()) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    out.push_back(text.substr(from, comma - from));
    from = comma + 1;
  }
  return out;
}

Result<void> check_framing(const Config& c) {
  const std::string framing = c.get("framing"), in_logic = c.get("in_logic"), port = c.get("port");
  if (framing != "no-markers" && (port == "tcp" || port.starts_with("tcp:"))) {
    return bad("framing = " + framing + " cannot be combined with port = " + port +
               ": the kernel's TCP does not expose segments; use framing = no-markers");
  }
  for (const Combination& legal : kLegal) {
    if (framing != legal.framing || (in_logic != "auto" && in_logic != legal.in_logic)) continue;
    // RoCE has no such limit: a damaged packet is retransmitted.
    if (c.get("transport") != "roce" && c.get_int("max_recovery_attempts") < legal.least_attempts) {
      return bad(
          "max_recovery_attempts = 0: must be at least 1 without markers, or one corrupted segment "
          "would be refused forever");
    }
    return {};
  }
  return bad("framing = " + framing + " cannot be combined with in_logic = " + in_logic +
             " (fig9 and fig10 are for no-markers, fig3 for the other policies); see `urnic config "
             "--matrix`");
}

Result<void> check_transport(const Config& c) {
  const std::string transport = c.get("transport"), port = c.get("port");
  if (transport != "iwarp" && (port == "tcp" || port.starts_with("tcp:"))) {
    return bad("transport = " + transport + " cannot be combined with port = " + port +
               ": the kernel's TCP carries only iWARP; use transport = iwarp");
  }
  const std::string identity = c.get("identity");
  const char* const wanted = identity == "roce" ? "roce" : identity != "auto" ? "iwarp" : nullptr;
  if (wanted != nullptr && transport != wanted && transport != "both") {
    return bad("identity = " + identity + " cannot be combined with transport = " + transport +
               "; use transport = " + wanted + " or both");
  }
  if (port != "udp" && !port.starts_with("udp:")) return {};
  if (transport != "roce") {
    return bad("transport = " + transport + " cannot be combined with port = " + port +
               ": the kernel's UDP carries only RoCE; use transport = roce");
  }
  return {};
}

Result<void> check_addresses(const Config& c) {
  std::vector<IpPrefix> own;
  if (const std::string text = c.get("address"); text != "auto") {
    for (const std::string& item : split(text)) {
      const IpPrefix p = *IpPrefix::parse(item);
      for (const IpPrefix& other : own) {
        if (other.address == p.address)
          return bad("address = " + text + ": " + p.address.to_string() + " appears twice");
      }
      own.push_back(p);
    }
  } else {
    own = {*IpPrefix::parse("10.77.0.1/24"), *IpPrefix::parse("fd77::1/64")};
  }
  for (const std::string& item : split(c.get("gateway"))) {
    const IpAddress gateway = *IpAddress::parse(item);
    bool reachable = gateway.is_v6() && gateway.is_link_local();
    for (const IpPrefix& p : own) {
      if (p.address == gateway)
        return bad("gateway = " + item +
                   ": must not be one of the local addresses (address = " + c.get("address") + ")");
      reachable = reachable || p.contains(gateway);
    }
    if (!reachable) {
      return bad("gateway = " + item +
                 ": not in the network of a local address (address = " + c.get("address") + ")");
    }
  }
  for (const IpPrefix& p : own) {
    if (p.address.is_v6() && c.get("mtu") != "auto" && c.get_int("mtu") < 1280) {
      return bad("mtu = " + c.get("mtu") + ": IPv6 needs at least 1280 (RFC 8200)" +
                 (c.get("address") == "auto" ? ", or set address to IPv4 addresses only" : ""));
    }
  }
  return {};
}

// Every device section must set a port. Otherwise the device would have the same port as an unnamed
// device.
Result<void> check_port_named(const Config& c, const std::string& device) {
  if (device.empty()) return {};
  for (const Setting& s : c.settings()) {
    if (s.name != "port" || s.origin != Origin::standard) continue;
    return bad("device " + device + " has no port; set port in its section");
  }
  return {};
}

}  // namespace

Result<void> Config::check() const {
  if (!sections_.empty() || get("device") != device_) {
    if (sections_.size() > 1 && get("device").empty()) return check_devices();
    auto chosen = one();
    return chosen ? chosen->check() : Result<void>(chosen.error());
  }
  if (auto ok = check_port_named(*this, device_); !ok) return ok;
  if (auto ok = check_transport(*this); !ok) return ok;
  if (auto ok = check_framing(*this); !ok) return ok;
  if (auto ok = check_addresses(*this); !ok) return ok;
  if (get("completion_method") == "1" && get("completion_threshold") != "auto") {
    return bad("completion_threshold = " + get("completion_threshold") +
               " has no effect with completion_method = 1; use completion_method = 2 or "
               "completion_threshold = auto");
  }
  if (!get("log_file").empty() && get("log") == "off") {
    return bad("log_file is set, but log = off; set log to error, warn, info or debug");
  }
  return {};
}

std::vector<std::string> Config::matrix() {
  std::vector<std::string> out;
  for (const Combination& c : kLegal) {
    std::string line = c.framing;
    line.resize(18, ' ');
    line += c.in_logic;
    line.resize(26, ' ');
    out.push_back(line + "yes, with " + c.condition);
  }
  return out;
}

}  // namespace urnic
