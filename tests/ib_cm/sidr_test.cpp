#include "ib_cm/sidr.h"

#include <gmock/gmock.h>

#include "ib_cm/end.h"

namespace urnic::ib_cm {
namespace {

using test::attributes_of;
using test::begins_with;
using test::bytes_of;
using test::kinds_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SidrTest : public test::Couple {
 protected:
  Handle ask(ByteView data = {}) {
    Resolve r;
    r.addresses = a.to(b.me);
    r.service = test::kUdService;
    r.source_port = 40001;
    return *a.manager.sidr().resolve(r, data, now);
  }
  Event asked() {
    const auto events = b.events();
    EXPECT_THAT(kinds_of(events), ElementsAre(EventKind::ServiceRequest));
    return events.empty() ? Event() : events[0];
  }
};

// proves: IB-141
TEST_F(SidrTest, AServiceIsResolvedToItsQueuePairAndQkey) {
  listener = b.manager.listen({test::kUdService, {}, Transport::Rc, 4});
  const Handle h = ask(bytes_of("where"));
  EXPECT_THAT(carry(a), ElementsAre(Attribute::SidrReq));
  const Event e = asked();
  EXPECT_EQ(e.listener, listener);
  EXPECT_EQ(e.wanted, test::kUdService);
  EXPECT_EQ(e.source_port, 40001);
  EXPECT_EQ(e.addresses, b.to(a.me));
  EXPECT_TRUE(begins_with(e.data, "where", 180));
  ASSERT_EQ(b.manager.sidr().answer(e.handle, {SidrStatus::Valid, 0x1a, 0x01234567},
                                    bytes_of("here"), now),
            Refusal::None);
  EXPECT_THAT(carry(b), ElementsAre(Attribute::SidrRep));
  const auto events = a.events();
  ASSERT_THAT(kinds_of(events), ElementsAre(EventKind::Resolved, EventKind::Released));
  EXPECT_EQ(events[0].handle, h);
  EXPECT_EQ(events[0].service.status, SidrStatus::Valid);
  EXPECT_EQ(events[0].service.qpn, 0x1au);
  EXPECT_EQ(events[0].service.qkey, 0x01234567u);
  EXPECT_TRUE(begins_with(events[0].data, "here", 136));
  EXPECT_EQ(a.manager.size(), 0u);
  wait(b);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Released));
  EXPECT_EQ(b.manager.size(), 0u);
  EXPECT_EQ(b.manager.half_open(), 0u);
}

// proves: IB-141
TEST_F(SidrTest, AMissingServiceAndARejectionAreAnswered) {
  ask();
  carry(a);
  EXPECT_EQ(b.manager.size(), 0u) << "nothing is kept";
  carry(b);
  EXPECT_EQ(a.events().at(0).service.status, SidrStatus::NoSuchService);

  b.manager.listen({test::kUdService, {}, Transport::Rc, 4});
  ask();
  carry(a);
  ASSERT_EQ(b.manager.sidr().answer(asked().handle, {SidrStatus::Rejected, 0x1a, 7}, {}, now),
            Refusal::None);
  const auto rep = b.mads();
  EXPECT_EQ(read_sidr_rep(rep[0].mad).qpn, 0u) << "and tells nothing";
  deliver(b, rep[0]);
  EXPECT_EQ(a.events().at(0).service.status, SidrStatus::Rejected);

  ask();
  Outgoing req = a.mads().at(0);
  req.mad[kMadHeaderBytes + 16] = 1;  // another version of the IP header
  deliver(a, req);
  carry(b);
  EXPECT_EQ(a.events().at(0).service.status, SidrStatus::Rejected);
  EXPECT_THAT(b.events(), IsEmpty());
}

TEST_F(SidrTest, ALostMessageIsSentAgain) {
  b.manager.listen({test::kUdService, {}, Transport::Rc, 4});
  ask();
  const auto first = a.mads();
  wait(a);
  const auto second = a.mads();
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].mad, first[0].mad);
  deliver(a, second[0]);
  deliver(a, first[0]);
  const Event e = asked();
  EXPECT_EQ(drops(b, Drop::Unexpected), 1u);
  ASSERT_EQ(b.manager.sidr().answer(e.handle, {SidrStatus::Valid, 0x1a, 1}, {}, now),
            Refusal::None);
  const auto rep = b.mads();
  deliver(a, first[0]);
  const auto again = b.mads();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].mad, rep[0].mad);
  deliver(b, again[0]);
  deliver(b, rep[0]);
  EXPECT_THAT(kinds_of(a.events()), ElementsAre(EventKind::Resolved, EventKind::Released));
  EXPECT_EQ(drops(a, Drop::Unknown), 1u);
}

TEST_F(SidrTest, ARequestWithoutAnAnswerEnds) {
  ask();
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(a.mads().size(), 1u) << i;
    wait(a);
  }
  EXPECT_THAT(kinds_of(a.events()), ElementsAre(EventKind::Unreachable, EventKind::Released));
  EXPECT_EQ(a.manager.size(), 0u);
}

TEST_F(SidrTest, StrangersAndAnOwnerThatNeverAnswersDoNoHarm) {
  b.manager.listen({test::kUdService, {}, Transport::Rc, 2});
  const Handle h = ask();
  const auto req = a.mads();
  deliver(a, req[0]);
  const Event e = asked();
  Outgoing forged = req[0];
  forged.mad[15] ^= 1;
  deliver(a, forged);
  EXPECT_EQ(drops(b, Drop::Stranger), 1u);
  SidrRep rep;
  rep.request_id = h;
  a.manager.take(a.to(b.me), write(read_header(req[0].mad)->transaction + 1, rep), now);
  a.manager.take(a.to(test::host(9)), write(read_header(req[0].mad)->transaction, rep), now);
  EXPECT_EQ(drops(a, Drop::Stranger), 2u);
  EXPECT_THAT(a.events(), IsEmpty());
  ask();
  ask();
  carry(a);
  EXPECT_EQ(drops(b, Drop::Backlog), 1u);
  EXPECT_EQ(b.events().size(), 1u);
  wait(b);  // both at the same time
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Released, EventKind::Released));
  EXPECT_EQ(b.manager.sidr().answer(e.handle, {}, {}, now), Refusal::NoSuchHandle);
  EXPECT_EQ(b.manager.size(), 0u);
}

TEST_F(SidrTest, InvalidCallsAreRefused) {
  const test::Bytes data(217);
  const ByteView view(data);
  Resolve r;
  r.addresses = a.to(b.me);
  r.service = test::kUdService;
  EXPECT_EQ(a.manager.sidr().resolve(r, view.first(181), now).error(), Refusal::TooLong);
  r.service = 4;
  EXPECT_EQ(a.manager.sidr().resolve(r, view, now).error(), Refusal::TooLong);
  r.max_cm_retries = 16;
  EXPECT_EQ(a.manager.sidr().resolve(r, {}, now).error(), Refusal::BadValue);
  b.manager.listen({test::kUdService, {}, Transport::Rc, 2});
  const Handle h = ask();
  carry(a);
  const Event e = asked();
  EXPECT_EQ(b.manager.sidr().answer(e.handle, {SidrStatus::Valid, 1 << 24, 0}, {}, now),
            Refusal::BadValue);
  EXPECT_EQ(b.manager.sidr().answer(e.handle, {}, view.first(137), now), Refusal::TooLong);
  EXPECT_EQ(b.manager.connections().accept(e.handle, values(), {}, now), Refusal::WrongState);
  EXPECT_EQ(b.manager.abandon(e.handle, now), Refusal::None);
  EXPECT_EQ(a.manager.abandon(h, now), Refusal::None);
  EXPECT_THAT(kinds_of(a.events()), ElementsAre(EventKind::Released));
  const auto rep = b.mads();
  EXPECT_EQ(read_sidr_rep(rep.at(0).mad).status, SidrStatus::Rejected);
  wait(b);
  EXPECT_THAT(kinds_of(b.events()), ElementsAre(EventKind::Released));
}

}  // namespace
}  // namespace urnic::ib_cm
