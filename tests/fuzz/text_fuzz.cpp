// Texts that users write: configuration files and settings, ports, scenarios, fault plans,
// addresses. For any text, the result is a value or one line of error, and a printed value parses
// to the same value.
#include <sys/mman.h>
#include <unistd.h>

#include "base/ip_address.h"
#include "fault/plan.h"
#include "port/port.h"
#include "sim/scenario.h"
#include "tests/fuzz/input.h"
#include "urnic/config.h"

namespace urnic::fuzz {
namespace {

// Unless the text itself has several lines and is repeated in the error; the command escapes it.
void one_line(const std::string& said, const std::string& text) {
  require(!said.empty(), "an error without a word");
  require(said.find('\n') == std::string::npos || text.find('\n') != std::string::npos,
          "an error of several lines");
}

// Pieces of such texts, so that complete ones occur.
std::string text(Input& in) {
  constexpr std::string_view kWords[] = {"mtu",
                                         "=",
                                         "\n",
                                         "\"",
                                         "[",
                                         "]",
                                         "wire",
                                         ".",
                                         "loss",
                                         "0.01",
                                         "[[variant]]",
                                         "address",
                                         "10.0.0.1/24",
                                         "fd77::1",
                                         ",",
                                         "'",
                                         "#",
                                         "1e9",
                                         "true",
                                         "memif:socket=/tmp/x",
                                         "tap:name=",
                                         "dpdk:vdev=",
                                         "{",
                                         "}",
                                         "seed",
                                         "work",
                                         "count",
                                         "-1",
                                         "18446744073709551616",
                                         "1979-05-27",
                                         "nan",
                                         "inf",
                                         "0x",
                                         "\\u0041",
                                         "\"\"\"",
                                         "framing",
                                         "markers",
                                         "crc",
                                         "dup=0.5",
                                         "corrupt=0.1",
                                         "@4M",
                                         ";",
                                         ":",
                                         "/",
                                         "left",
                                         "right",
                                         "port",
                                         "\xc3\xa9",
                                         "\xff",
                                         "log",
                                         "on",
                                         "off",
                                         "[device.a]\n",
                                         "device."};
  std::string out;
  while (!in.empty() && out.size() < 4000) {
    const unsigned what = in.u8();
    if (what < 200) {
      out += kWords[what % std::size(kWords)];
    } else if (what < 230) {
      out += static_cast<char>(32 + in.below(95));
    } else {
      out += static_cast<char>(in.u8());
    }
    if (what % 3 == 0) out += ' ';
  }
  return out;
}

void configuration(const std::string& t) {
  const int fd = memfd_create("fuzz", 0);
  if (fd < 0) return;
  (void)!write(fd, t.data(), t.size());
  auto c = Config::load("/proc/self/fd/" + std::to_string(fd));
  close(fd);
  if (!c.ok()) return one_line(c.error().message, t);
  if (auto ok = c->check(); !ok.ok()) one_line(ok.error().message, t);
}

void setting(const std::string& t) {
  Config c;
  const std::size_t equals = t.find('=');
  const std::string name = t.substr(0, equals);
  const std::string value = equals == std::string::npos ? "" : t.substr(equals + 1);
  for (const Setting& s : c.settings()) {
    if (auto ok = c.set(s.name, value); !ok.ok()) one_line(ok.error().message, t);
  }
  if (auto ok = c.set(name, value); !ok.ok()) one_line(ok.error().message, t);
  if (auto ok = c.check(); !ok.ok()) one_line(ok.error().message, t);
}

void port_text(const std::string& t) {
  port::Args a(t);
  a.str("socket");
  a.num("mtu", 1500, 68, 65000);
  a.on_off("offload", true);
  a.has("name");
  if (const std::string wrong = a.finish(); !wrong.empty()) one_line(wrong, t);
  // Only ports that do not use the machine's resources.
  for (const char* kind : {"mem:", ""}) {
    if (*kind == 0 && t.find("mem") == std::string::npos && t.find(':') != std::string::npos)
      continue;
    if (auto p = port::Port::open(kind + t); !p.ok()) one_line(p.error(), t);
  }
}

void plan(const std::string& t) {
  const auto p = fault::FaultPlan::parse(t);
  if (!p.ok()) return one_line(p.error(), t);
  const auto again = fault::FaultPlan::parse(p->to_string());
  require(again.ok() && again->to_string() == p->to_string(),
          "a fault plan that was printed is another");
}

void addresses(const std::string& t) {
  const auto same = [&](auto value, auto parse) {
    if (!value) return;
    const auto again = parse(value->to_string());
    require(again && *again == *value, "an address that was printed is another");
  };
  same(IpAddress::parse(t), [](const std::string& s) { return IpAddress::parse(s); });
  same(IpPrefix::parse(t), [](const std::string& s) { return IpPrefix::parse(s); });
  same(SocketAddress::parse(t), [](const std::string& s) { return SocketAddress::parse(s); });
  same(MacAddress::parse(t), [](const std::string& s) { return MacAddress::parse(s); });
}

}  // namespace
}  // namespace urnic::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace urnic::fuzz;
  Input in(data, size);
  const unsigned what = in.below(6);
  const std::string t =
      in.often(240) ? text(in) : std::string(reinterpret_cast<const char*>(data), size);
  switch (what) {
    case 0:
      configuration(t);
      break;
    case 1:
      setting(t);
      break;
    case 2:
      port_text(t);
      break;
    case 3: {
      const auto s = urnic::sim::parse_scenario(t, "x.toml");
      if (!s.ok()) one_line(s.error(), t);
      break;
    }
    case 4:
      plan(t);
      break;
    default:
      addresses(t);
      break;
  }
  return 0;
}
