#include "ddp_rdma/backlog.h"

#include "ddp_rdma/requests_fixture.h"

namespace urnic::ddp::test {
namespace {

class BacklogTest : public RequestsFixture {
 protected:
  void owe(std::uint32_t size) {
    const std::uint32_t msn = owed.next();
    owed.place(msn, {0, 0, size, 0, 0});
    owed.announce();
  }
  BufferPool pool;
  ReadQueue owed{&pool};
  FpduSizes sizes{false};
  Backlog backlog{&queue, &owed, &sizes, 1};
};

TEST_F(BacklogTest, CountsRequestsThatHaveNotBegun) {
  owed.set_limit(4);
  post(WrOp::Write, {100});
  post(WrOp::Send, {100, 28});
  post(WrOp::Read, {100});
  post(WrOp::LocalInv, {});
  owe(500);
  const std::uint64_t write = sizes.estimate_message(100, true);
  const std::uint64_t send = sizes.estimate_message(128, false);
  const std::uint64_t read = sizes.estimate(kReadRequestHeader);
  EXPECT_EQ(backlog.bytes().requests, write + send + read);
  EXPECT_EQ(backlog.bytes().responses, sizes.estimate_message(500, true));
  backlog.request_begins(0);
  queue.start();
  backlog.response_begins(1);
  owed.start_response();
  EXPECT_EQ(backlog.bytes().requests, send + read);
  EXPECT_EQ(backlog.bytes().responses, 0u);
}

TEST_F(BacklogTest, RequestsThatBeginBeforeTheFirstQueryDoNotCount) {
  post(WrOp::Write, {100});
  post(WrOp::Write, {200});
  backlog.request_begins(0);
  queue.start();
  EXPECT_EQ(backlog.bytes().requests, sizes.estimate_message(200, true));
}

TEST_F(BacklogTest, OtherFpduSizesAreCountedAgain) {
  post(WrOp::Write, {400});
  post(WrOp::Write, {400});
  backlog.request_begins(0);
  queue.start();
  const std::uint64_t before = backlog.bytes().requests;
  sizes.set_framing({mpa::Policy::Markers, 0});
  sizes.set_emss(200);
  backlog.recount();
  EXPECT_EQ(backlog.bytes().requests, sizes.estimate_message(400, true));
  EXPECT_GT(backlog.bytes().requests, before);
}

TEST_F(BacklogTest, ForgottenWorkTakesNoBytes) {
  owed.set_limit(4);
  post(WrOp::Write, {400});
  owe(500);
  backlog.forget();
  EXPECT_EQ(backlog.bytes().requests, 0u);
  EXPECT_EQ(backlog.bytes().responses, 0u);
  post(WrOp::Write, {100});
  EXPECT_EQ(backlog.bytes().requests, sizes.estimate_message(100, true));
}

}  // namespace
}  // namespace urnic::ddp::test
