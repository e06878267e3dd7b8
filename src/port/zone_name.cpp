#include "port/zone_name.h"

#include <net/if.h>

#include <algorithm>

namespace urnic::port {

std::string number_zone(std::string_view text) {
  std::string out(text);
  const std::size_t percent = out.find('%');
  if (percent == std::string::npos) return out;
  const std::size_t end = std::min(out.rfind(']'), out.size());
  if (end <= percent) return out;
  const std::string name = out.substr(percent + 1, end - percent - 1);
  const unsigned index = if_nametoindex(name.c_str());
  if (index != 0) out.replace(percent + 1, name.size(), std::to_string(index));
  return out;
}

std::optional<IpAddress> parse_with_zone(std::string_view text) {
  return IpAddress::parse_zoned(number_zone(text));
}

}  // namespace urnic::port
