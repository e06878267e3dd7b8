#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "port/port.h"

namespace urnic::port {
namespace {

using ::testing::HasSubstr;

std::string open_error(const char* spec) {
  auto p = Port::open(spec);
  if (p.ok()) return "(opened)";
  EXPECT_EQ(p.error().find('\n'), std::string::npos) << "not one line: " << p.error();
  return p.error();
}

TEST(PortOpen, AnUnknownKindListsTheKinds) {
  EXPECT_THAT(open_error("ethernet:x=1"), HasSubstr("mem, "));
  EXPECT_THAT(open_error("ethernet:x=1"), HasSubstr("dpdk"));
  EXPECT_THAT(open_error("ethernet:x=1"), HasSubstr("tcp"));
  EXPECT_THAT(open_error("memfi:x=1"), HasSubstr("the nearest is 'memif'"));
}

TEST(PortOpen, AKindCannotNameAFileElsewhere) {
  EXPECT_THAT(open_error("../../etc/x:"), HasSubstr("unknown kind of port"));
  EXPECT_THAT(open_error("a/b:"), HasSubstr("unknown kind of port"));
  EXPECT_THAT(open_error("A:"), HasSubstr("unknown kind of port"));
}

TEST(PortOpen, AMissingKindIsExplained) {
  EXPECT_THAT(open_error(""), HasSubstr("kind:key=value"));
  EXPECT_THAT(open_error(":"), HasSubstr("kind:key=value"));
}

TEST(PortOpen, ErrorsOfAKindCarryItsName) {
  EXPECT_THAT(open_error("mem:nam=x"), HasSubstr("mem: unknown key 'nam'"));
  EXPECT_THAT(open_error("mem:"), HasSubstr("name="));
}

TEST(PortOpen, TheKernelsTcpCannotBeOpenedAsAFramePort) {
  EXPECT_THAT(open_error("tcp"), HasSubstr("no Ethernet frames"));
}

// Errors are found without opening anything: no socket appears, no device is touched.
TEST(PortCheck, KindsKeysAndValuesAreCheckedWithoutOpening) {
  for (const char* fine : {"memif:socket=/nonexistent/x", "tap:name=u0,mtu=1500",
                           "tap:", "dgram:path=/nonexistent/a,peer=/nonexistent/b", "mem:name=x",
                           "tcp", "tcp:bind=127.0.0.1,align=off", "dpdk:vdev=net_null0"}) {
    EXPECT_EQ(Port::check(fine), "") << fine;
  }
  const std::pair<const char*, const char*> wrong[] = {
      {"memif:socket=/x,mtuu=3", "the nearest is 'mtu'"},
      {"memif:socket=/x,mtu=3", "68 to"},
      {"memif:socket=/x,role=sever", "must be server, client or auto"},
      {"memif:socket=/x,bsize=100", "too small for mtu"},
      {"memif:", "socket= is required"},
      {"memif:socket=/x,serves=aaaaaaaaaaaaaaaaaaaaaaaaa", "serves= must be at most"},
      {"tap:nam=x", "the nearest is 'name'"},
      {"tap:name=x,fd=3", "either name= or fd="},
      {"dgram:path=/a", "peer= is required"},
      {"dgram:path=/a,peer=/a", "must differ"},
      {"mem:", "name= is required"},
      {"tcp:bindd=1.2.3.4", "the nearest is 'bind'"},
      {"tcp:bind=x", "unicast IP address"},
      {"memfi:socket=/x", "the nearest is 'memif'"},
      {"", "unknown kind of port"}};
  for (const auto& [spec, text] : wrong) EXPECT_THAT(Port::check(spec), HasSubstr(text)) << spec;
}

}  // namespace
}  // namespace urnic::port
