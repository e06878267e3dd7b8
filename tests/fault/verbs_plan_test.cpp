#include "fault/verbs_plan.h"

#include <errno.h>
#include <gtest/gtest.h>

#include "base/rng.h"

namespace urnic::fault {
namespace {

std::string error_of(const char* text) {
  const auto plans = parse_verbs_plans(text);
  return plans.ok() ? std::string() : plans.error();
}

TEST(VerbsPlan, ReadsProbabilitiesExactPlacesAndRestrictions) {
  const auto p = VerbsPlan::parse(
      "ibv_reg_mr=0.25:EAGAIN, "
      "late=0.5:3ms,at=send_wr:5:RNR_RETRY_EXC_ERR+ibv_create_qp:1,qp=2,seed=9");
  ASSERT_FALSE(p.ok()) << "qp= and ibv_reg_mr";
  const auto q = VerbsPlan::parse("send_wr=0.25:FATAL_ERR,at=recv_wr:5+qp_fatal:2,qp=2,seed=9");
  ASSERT_TRUE(q.ok()) << q.error();
  EXPECT_EQ(q->qp, 2u);
  EXPECT_EQ(q->seed, 9u);
  ASSERT_EQ(q->faults.size(), 3u);
  EXPECT_EQ(q->faults[0], (VerbsPlan::Fault{VerbsKind::send_wr, 0.25, 0, 19}));
  EXPECT_EQ(q->faults[1], (VerbsPlan::Fault{VerbsKind::recv_wr, 0, 5, 4})) << "LOC_PROT_ERR";
  EXPECT_EQ(q->faults[2], (VerbsPlan::Fault{VerbsKind::qp_fatal, 0, 2, 0}));
}

TEST(VerbsPlan, ArgumentsAreThoseOfTheirKind) {
  const auto argument = [](const char* text) {
    const auto p = VerbsPlan::parse(text);
    return p.ok() ? p->faults[0].argument : -9999;
  };
  EXPECT_EQ(argument("ibv_reg_mr=1"), ENOMEM);
  EXPECT_EQ(argument("rdma_listen=1:EADDRINUSE"), EADDRINUSE);
  EXPECT_EQ(argument("rdma_listen=1:77"), 77);
  EXPECT_EQ(argument("send_wr=1"), 12) << "RETRY_EXC_ERR";
  EXPECT_EQ(argument("recv_wr=1:GENERAL_ERR"), 21);
  EXPECT_EQ(argument("late=1:2us"), 2000);
  EXPECT_EQ(argument("rejected=1:24"), 24);
  EXPECT_EQ(argument("unreachable=1:EHOSTUNREACH"), -EHOSTUNREACH);
}

TEST(VerbsPlan, SeveralPlansHaveTheirOwnRestrictions) {
  const auto plans = parse_verbs_plans("send_wr=0.1,qp=1 ; ibv_reg_mr=0.2,from=libucp.so.0");
  ASSERT_TRUE(plans.ok()) << plans.error();
  ASSERT_EQ(plans->size(), 2u);
  EXPECT_EQ((*plans)[0].qp, 1u);
  EXPECT_EQ((*plans)[1].from, "libucp.so.0");
}

TEST(VerbsPlan, ErrorsNameTheItemAndTheExpectedFormat) {
  EXPECT_EQ(error_of("send_wr=2"), "verbs faults: send_wr=2: expected a probability from 0 to 1");
  EXPECT_EQ(error_of("sendwr=1"), "verbs faults: unknown key 'sendwr'; the nearest is 'send_wr'");
  EXPECT_EQ(error_of("qp=1,late=0.5"),
            "verbs faults: qp= does not apply to late: write it as a plan of its own, after ';'");
  EXPECT_EQ(error_of("seed=4"), "verbs faults: the plan has no fault");
  for (const char* bad : {"",
                          ";",

                          "late",
                          "late=0.1:",
                          "late=0.1:5",
                          "late=0.1:2h",
                          "split=0.1:1ms",
                          "send_wr=0.1:SUCCESS",
                          "send_wr=0.1:",
                          "send_wr=0.1:retry",
                          "ibv_reg_mr=1:ENOSUCH",
                          "ibv_reg_mr=1:0",
                          "ibv_reg_mr=1:5000",
                          "rejected=1:0",
                          "rejected=1:256",
                          "at=",
                          "at=late",
                          "at=late:0",
                          "at=late:1:",
                          "at=nosuch:1",

                          "at=late:1,at=late:2",
                          "qp=0,send_wr=1",
                          "from=,send_wr=1",
                          "from=main,late=1",
                          "seed=-1,late=1",
                          "late=nan",
                          "=1"}) {
    EXPECT_NE(error_of(bad), "") << bad;
    EXPECT_EQ(error_of(bad).find('\n'), std::string::npos) << bad;
  }
}

TEST(VerbsPlan, TextParsesBackToThePlan) {
  for (const char* text :
       {"send_wr=0.5", "late=0.1:250us,split=1", "at=rejected:1:24+unreachable:2:EHOSTUNREACH",
        "ibv_reg_mr=1:EAGAIN,at=ibv_reg_mr:7,from=main,seed=3", "qp_access_err=0.5,qp=4"}) {
    const auto p = VerbsPlan::parse(text);
    ASSERT_TRUE(p.ok()) << p.error();
    EXPECT_EQ(p->to_string(), text);
    const auto again = VerbsPlan::parse(p->to_string());
    ASSERT_TRUE(again.ok()) << again.error();
    EXPECT_EQ(*again, *p) << text;
  }
}

TEST(VerbsPlan, HostileTextIsRefusedOrRead) {
  constexpr std::uint64_t kSeed = 5;
  SCOPED_TRACE(kSeed);
  Rng rng(kSeed);
  constexpr char kAlphabet[] = "late=split,at:send_wr+;0123456789.msqp ";
  int read = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string text = i % 2 == 0 ? "late=1" : "";
    for (std::uint64_t n = rng.below(24); n != 0; --n) {
      text += kAlphabet[rng.below(sizeof kAlphabet - 1)];
    }
    const auto p = VerbsPlan::parse(text);
    if (!p.ok()) continue;
    ++read;
    EXPECT_EQ(*VerbsPlan::parse(p->to_string()), *p) << text;
  }
  EXPECT_GT(read, 100);
}

}  // namespace
}  // namespace urnic::fault
