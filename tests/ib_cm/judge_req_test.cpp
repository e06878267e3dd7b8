#include "ib_cm/judge_req.h"

#include <gtest/gtest.h>

#include <functional>

#include "ib_cm/end.h"

namespace urnic::ib_cm {
namespace {

const AddressPair kWay{test::host(3), test::host(2)};

class JudgeReq : public ::testing::Test {
 protected:
  JudgeReq() {
    write_ip_header({kWay.remote, kWay.local, 40000}, data.data());
    good.local_id = 1;
    good.service = test::kService;
    good.qpn = 0x11;
    good.pkey = 0xffff;
    good.path_mtu = 3;
    good.primary.local = gid_of(kWay.remote);
    good.primary.remote = gid_of(kWay.local);
    good.private_data = data;
  }
  Reason judge(const std::function<void(Req&)>& change) {
    Req r = good;
    change(r);
    return judge_req(r, kWay, ib::PathMtu::k2048);
  }
  std::array<std::uint8_t, kReqPrivate> data{};
  Req good;
};

// proves: IB-137
TEST_F(JudgeReq, EveryInvalidRequestHasItsReason) {
  const auto none = [](Req&) {};
  EXPECT_EQ(judge(none), Reason::None);
  EXPECT_EQ(judge([](Req& r) { r.transport = Transport::Uc; }), Reason::None);
  EXPECT_EQ(judge([](Req& r) { r.transport = Transport::Rd; }), Reason::Transport);
  EXPECT_EQ(judge([](Req& r) { r.transport = Transport::Extended; }), Reason::Transport);
  EXPECT_EQ(judge([](Req& r) { r.extended = 1; }), Reason::Transport);
  for (std::uint8_t extended = 0; extended < 8; ++extended) {
    EXPECT_EQ(judge([extended](Req& r) {
                r.transport = Transport::Extended;
                r.extended = extended;
              }),
              extended == kExtendedXrc ? Reason::None : Reason::Transport);
  }
  for (const std::uint32_t qpn : {0u, 1u, 0xffffffu}) {
    EXPECT_EQ(judge([qpn](Req& r) { r.qpn = qpn; }), Reason::Unsupported) << qpn;
  }
  EXPECT_EQ(judge([](Req& r) { r.rdc = true; }), Reason::Unsupported);
  EXPECT_EQ(judge([](Req& r) { r.pkey = 0x8001; }), Reason::Unsupported);
  for (const int code : {0, 5, 6, 15}) {
    EXPECT_EQ(judge([code](Req& r) { r.path_mtu = static_cast<std::uint8_t>(code); }),
              Reason::PathMtu)
        << code;
  }
  EXPECT_EQ(judge([](Req& r) { r.path_mtu = 4; }), Reason::None);
  EXPECT_EQ(judge([](Req& r) { r.primary.local[15] ^= 1; }), Reason::PrimaryGid);
  EXPECT_EQ(judge([](Req& r) { r.primary.remote[15] ^= 1; }), Reason::PrimaryGid);
}

// proves: IB-136
TEST_F(JudgeReq, HeaderAndDatagramMustAgree) {
  data[19] ^= 1;  // source
  EXPECT_EQ(judge([](Req&) {}), Reason::PrimaryGid);
  EXPECT_EQ(judge([](Req& r) { r.service = 5; }), Reason::None) << "a service without a header";
  data[19] ^= 1;
  data[35] ^= 1;  // destination
  EXPECT_EQ(judge([](Req&) {}), Reason::PrimaryGid);
  data[35] ^= 1;
  data[0] = 1;
  EXPECT_EQ(judge([](Req&) {}), Reason::Unsupported);
}

TEST(PathMtuCode, IsOneToFive) {
  for (std::uint8_t code = 1; code <= 5; ++code) {
    ASSERT_TRUE(path_mtu_of(code));
    EXPECT_EQ(bytes(*path_mtu_of(code)), 128u << code);
    EXPECT_EQ(code_of(*path_mtu_of(code)), code);
  }
  EXPECT_FALSE(path_mtu_of(0));
  EXPECT_FALSE(path_mtu_of(6));
}

}  // namespace
}  // namespace urnic::ib_cm
