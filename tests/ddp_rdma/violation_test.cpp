#include "ddp_rdma/violation.h"
#include "tests/support/source_dir.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

namespace urnic::ddp {
namespace {

using Error = std::tuple<int, int, int>;

Error error_of(Violation v) {
  const ViolationRow& r = violation_row(v);
  return {r.layer, r.etype, r.code};
}

// Compares with the registered codes (RFC 5040 4.8, RFC 5041 7.2, RFC 5044 8, RFC 6581 8).
// proves: E-36
TEST(ViolationTable, CodesAreThoseOfTheRfcs) {
  const std::map<Violation, Error> want = {
      {Violation::TaggedInvalidStag, {1, 1, 0x00}},
      {Violation::TaggedBounds, {1, 1, 0x01}},
      {Violation::TaggedStagNotAssociated, {1, 1, 0x02}},
      {Violation::TaggedToWrap, {1, 1, 0x03}},
      {Violation::TaggedVersion, {1, 1, 0x04}},
      {Violation::UntaggedQn, {1, 2, 0x01}},
      {Violation::UntaggedNoBuffer, {1, 2, 0x02}},
      {Violation::UntaggedMsnRange, {1, 2, 0x03}},
      {Violation::UntaggedMo, {1, 2, 0x04}},
      {Violation::UntaggedTooLong, {1, 2, 0x05}},
      {Violation::UntaggedVersion, {1, 2, 0x06}},
      {Violation::ReadInvalidStag, {0, 1, 0x00}},
      {Violation::ReadBounds, {0, 1, 0x01}},
      {Violation::ReadAccess, {0, 1, 0x02}},
      {Violation::ReadStagNotAssociated, {0, 1, 0x03}},
      {Violation::ReadToWrap, {0, 1, 0x04}},
      {Violation::WriteAccess, {0, 1, 0x02}},
      {Violation::InvalidateOther, {0, 1, 0x09}},
      {Violation::RdmapVersion, {0, 2, 0x05}},
      {Violation::UnexpectedOpcode, {0, 2, 0x06}},
      {Violation::ReadQueueFull, {0, 2, 0x07}},
      {Violation::InvalidateUnknown, {0, 2, 0x09}},
      {Violation::StreamCatastrophic, {0, 2, 0x07}},
      {Violation::AtomicMisaligned, {0, 2, 0x07}},
      {Violation::LocalCatastrophic, {0, 0, 0x00}},
      {Violation::MpaTcpLost, {2, 0, 0x01}},
      {Violation::MpaCrc, {2, 0, 0x02}},
      {Violation::MpaMarker, {2, 0, 0x03}},
      {Violation::MpaStartup, {2, 0, 0x04}},
      {Violation::MpaLocalCatastrophic, {2, 0, 0x05}},
      {Violation::MpaInsufficientIrd, {2, 0, 0x06}},
      {Violation::MpaNoRtr, {2, 0, 0x07}},
  };
  EXPECT_EQ(want.size() + 1, static_cast<std::size_t>(Violation::kCount));
  for (const auto& [v, error] : want) EXPECT_EQ(error_of(v), error) << violation_row(v).name;
}

// RFC 5040 4.8: the headers copied for each error.
TEST(ViolationTable, HeadersCopiedFollowRfc5040_4_8) {
  for (int i = 1; i < static_cast<int>(Violation::kCount); ++i) {
    const ViolationRow& r = violation_row(static_cast<Violation>(i));
    const bool local_or_mpa = r.layer == 2 || (r.layer == 0 && r.etype == 0);
    EXPECT_EQ(r.with_ddp, !local_or_mpa) << r.name;
    const bool read_source = r.name.starts_with("read source:");
    EXPECT_EQ(r.with_rdmap, read_source) << r.name;
  }
}

TEST(ViolationTable, EveryRowExplainsItselfAndNamesItsSource) {
  std::set<std::string_view> names;
  for (int i = 1; i < static_cast<int>(Violation::kCount); ++i) {
    const ViolationRow& r = violation_row(static_cast<Violation>(i));
    EXPECT_TRUE(names.insert(r.name).second) << r.name << " twice";
    EXPECT_NE(r.why.find("RFC"), std::string_view::npos) << r.name;
  }
}

TEST(ViolationTable, ValuesOutsideTheEnumerationAreHarmless) {
  EXPECT_EQ(violation_row(Violation::kCount).name, "none");
  EXPECT_EQ(violation_row(static_cast<Violation>(255)).name, "none");
}

// docs/wire.md shows the table to people and must match it.
TEST(ViolationTable, IsShownInTheDocumentation) {
  std::ifstream in(source_dir() + "/docs/wire.md");
  ASSERT_TRUE(in) << "docs/wire.md";
  std::stringstream text;
  text << in.rdbuf();
  for (int i = 1; i < static_cast<int>(Violation::kCount); ++i) {
    const ViolationRow& r = violation_row(static_cast<Violation>(i));
    char code[16];
    std::snprintf(code, sizeof code, "%d/%d/%02x", r.layer, r.etype, r.code);
    const char* copied = r.with_rdmap ? "DDP, RDMAP" : r.with_ddp ? "DDP" : "–";
    std::ostringstream row;
    row << "| " << code << " | " << r.name << " | " << copied << " | " << r.why << " |\n";
    EXPECT_NE(text.str().find(row.str()), std::string::npos) << "missing: " << row.str();
  }
}

}  // namespace
}  // namespace urnic::ddp
