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
  EXPECT_THAT(open_error("ethernet:x=1"), HasSubstr("URNIC_PLUGIN_DIR"));
}

TEST(PortOpen, AKindCannotNameAFileElsewhere) {
  EXPECT_THAT(open_error("../../etc/x:"), HasSubstr("is not a kind of port"));
  EXPECT_THAT(open_error("a/b:"), HasSubstr("is not a kind of port"));
  EXPECT_THAT(open_error("A:"), HasSubstr("is not a kind of port"));
}

TEST(PortOpen, NothingNamedIsExplained) {
  EXPECT_THAT(open_error(""), HasSubstr("kind:key=value"));
  EXPECT_THAT(open_error(":"), HasSubstr("kind:key=value"));
}

TEST(PortOpen, ErrorsOfAKindCarryItsName) {
  EXPECT_THAT(open_error("mem:nam=x"), HasSubstr("mem: unknown key 'nam'"));
  EXPECT_THAT(open_error("mem:"), HasSubstr("name="));
}

}  // namespace
}  // namespace urnic::port
