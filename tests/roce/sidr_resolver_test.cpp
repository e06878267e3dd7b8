// UD service requests and their answers: two simulated engines (IB-141).
#include "roce/sidr_resolver.h"

#include <gtest/gtest.h>

#include "tests/roce/connect_ends.h"
#include "tests/roce/moved_counters.h"
#include "tests/support/allocator.h"

namespace urnic::test {
namespace {

using ib_cm::PortSpace;
using verbs::QpState;
using verbs::Service;

constexpr std::uint16_t kPort = 7000;

RoceHostStats stats_of(const sim::Node& n) {
  EngineStats s;
  n.engine().fill_stats(&s);
  return s.roce;
}

// The right end serves datagrams, the left one asks for the service.
class RoceQuestion : public RoceConnectEnds {
 protected:
  void begin() {
    up_unreliable(verbs::Service::Ud);
    listener = serve_at(pair->right(), Service::Ud);
    ASSERT_NE(listener, nullptr);
  }
  static roce::Listener* serve_at(sim::Node& n, Service service) {
    roce::Listeners& all = connections(n).listeners();
    auto bound = all.bind({*SocketAddress::parse("[::]:7000"), false, false}, service);
    return bound && all.listen(bound.value(), 8) ? bound.value() : nullptr;
  }
  roce::SidrResolver& questions() { return connections(pair->left()).resolver(); }
  Result<roce::SidrResolver::Asked> put(const roce::SidrQuery& p = {},
                                        const std::string& to = "10.0.0.2:7000") {
    return questions().ask(&owner, *SocketAddress::parse(to), p, pair->now());
  }
  Result<void> serve(const std::string& data = "", std::uint32_t qkey = kQkey) {
    return connections(pair->right())
        .resolver()
        .serve(pair->right().roce_requests.back().id, *right, qkey, view(data), pair->now());
  }
  bool told(Duration limit = Duration::s(60)) {
    return pair->run_until([&] { return !answers().empty(); }, limit);
  }
  std::vector<sim::Node::Answer>& answers() { return pair->left().answers; }
  const verbs::DatagramAnswer& answer() { return answers().at(0).answer; }
  static std::string text(const std::vector<std::uint8_t>& d) { return {d.begin(), d.end()}; }
  static std::string padded(std::string s, std::size_t bytes) {
    s.resize(bytes);
    return s;
  }
  void expect_over() {
    pair->run_for(Duration::s(300));
    EXPECT_EQ(answers().size(), 1u) << "told once";
    EXPECT_EQ(questions().size(), 0u);
    for (sim::Node* n : {&pair->left(), &pair->right()}) {
      EXPECT_EQ(connections(*n).handles(), 0u);
    }
  }

  int owner = 0;
};

// proves: IB-141
TEST_F(RoceQuestion, IsAnsweredWithTheQueuePairAndItsKey) {
  begin();
  roce::SidrQuery p;
  const std::string hello = "hello";
  p.private_data = view(hello);
  const auto asked_from = put(p);
  ASSERT_TRUE(asked_from.ok());
  EXPECT_EQ(asked_from->from.ip, address_of(0));
  EXPECT_GE(asked_from->from.port, 49152);
  ASSERT_TRUE(asked());
  const verbs::ConnectionRequest& r = pair->right().roce_requests.front();
  EXPECT_EQ(r.service, verbs::Service::Ud);
  EXPECT_EQ(r.peer.to_string(), asked_from->from.to_string());
  EXPECT_EQ(r.local.to_string(), "10.0.0.2:7000");
  EXPECT_EQ(text(r.private_data), padded("hello", 180));
  ASSERT_TRUE(serve("welcome").ok());
  ASSERT_TRUE(told());
  EXPECT_EQ(answers()[0].owner, &owner);
  EXPECT_TRUE(answer().found);
  EXPECT_EQ(answer().qp_number, right->number());
  EXPECT_EQ(answer().qkey, kQkey);
  EXPECT_EQ(answer().remote, address_of(1));
  EXPECT_EQ(answer().local, address_of(0));
  EXPECT_EQ(text(answers()[0].private_data), padded("welcome", 136));
  const auto again = serve();
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::closed) << "answered";
  expect_over();
}

// proves: IB-141
TEST_F(RoceQuestion, IsRepeatedAfterALostRequestOrAnswer) {
  for (const bool request : {true, false}) {
    begin();
    ASSERT_TRUE(put({}, "10.0.0.2:7000").ok());  // neighbors are resolved
    ASSERT_TRUE(asked());
    ASSERT_TRUE(serve().ok());
    ASSERT_TRUE(told());
    answers().clear();
    pair->right().roce_requests.clear();
    if (request) pair->set_faults_left("loss=1");
    ASSERT_TRUE(put().ok());
    pair->run_for(Duration::ms(10));
    pair->set_faults_left("");
    ASSERT_TRUE(asked());
    if (!request) pair->set_faults_right("loss=1");
    ASSERT_TRUE(serve().ok());
    pair->run_for(Duration::ms(10));
    pair->set_faults_right("");
    ASSERT_TRUE(told());
    EXPECT_TRUE(answer().found);
    EXPECT_EQ(pair->right().roce_requests.size(), 1u) << "its listener hears of it once";
    expect_over();
  }
}

// proves: IB-141
TEST_F(RoceQuestion, WithoutAListenerIsRefusedAtOnce) {
  begin();
  connections(pair->right()).listeners().close(listener);
  ASSERT_TRUE(put().ok());
  ASSERT_TRUE(told(Duration::ms(100)));
  EXPECT_FALSE(answer().found);
  EXPECT_EQ(answer().code, Errc::refused);
  EXPECT_NE(std::string(answer().why).find("no UD service on that port"), std::string::npos);
  expect_over();
}

// proves: IB-141
TEST_F(RoceQuestion, AServiceThatOpensLaterIsFoundWithRefusalRetry) {
  begin();
  connections(pair->right()).listeners().close(listener);
  roce::SidrQuery p;
  p.refusal_retry = Duration::ms(100);
  ASSERT_TRUE(put(p).ok());
  pair->run_for(Duration::ms(40));
  ASSERT_TRUE(answers().empty());
  ASSERT_NE(serve_at(pair->right(), Service::Ud), nullptr);
  ASSERT_TRUE(asked(Duration::ms(20)));
  ASSERT_TRUE(serve().ok());
  ASSERT_TRUE(told());
  EXPECT_TRUE(answer().found);
  expect_over();
}

TEST_F(RoceQuestion, WithoutAListenerRefusalRetryEndsAfterItsTime) {
  begin();
  connections(pair->right()).listeners().close(listener);
  roce::SidrQuery p;
  p.refusal_retry = Duration::ms(100);
  const Instant from = pair->now();
  ASSERT_TRUE(put(p).ok());
  ASSERT_TRUE(told());
  EXPECT_EQ(answer().code, Errc::refused);
  EXPECT_GE(pair->now() - from, Duration::ms(100));
  EXPECT_LT(pair->now() - from, Duration::ms(120));
  expect_over();
}

// proves: IB-141
TEST_F(RoceQuestion, ARejectionArrivesWithItsPrivateData) {
  begin();
  ASSERT_TRUE(put().ok());
  ASSERT_TRUE(asked());
  connections(pair->right())
      .reject(pair->right().roce_requests.front().id, view("not today"), pair->now());
  ASSERT_TRUE(told());
  EXPECT_EQ(answer().code, Errc::rejected);
  EXPECT_EQ(text(answers()[0].private_data), padded("not today", 136));
  expect_over();
}

// proves: IB-141
TEST_F(RoceQuestion, WithoutAnAnswerFailsAfterItsTimeout) {
  begin();
  pair->set_faults_right("loss=1");
  roce::SidrQuery p;
  p.timeout = Duration::s(3);
  const Instant from = pair->now();
  ASSERT_TRUE(put(p).ok());
  ASSERT_TRUE(told());
  EXPECT_EQ(answer().code, Errc::timed_out);
  EXPECT_GE(pair->now() - from, Duration::s(3));
  EXPECT_LT(pair->now() - from, Duration::s(3) + Duration::ms(1));
  pair->set_faults_right("");
  expect_over();
}

// proves: IB-141
TEST_F(RoceQuestion, AfterGivingUpNothingIsReportedAndAnAnswerIsDropped) {
  begin();
  const auto id = put();
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(asked());
  questions().give_up(id->id, pair->now());
  questions().give_up(id->id, pair->now());  // it has ended
  ASSERT_TRUE(serve().ok());
  pair->run_for(Duration::s(300));
  EXPECT_TRUE(answers().empty());
  EXPECT_EQ(questions().size(), 0u);
  EXPECT_GE(stats_of(pair->left()).cm_dropped, 1u);
}

// Also between two repetitions.
// proves: IB-141
TEST_F(RoceQuestion, AfterGivingUpBetweenRepetitionsNothingIsSent) {
  begin();
  connections(pair->right()).listeners().close(listener);
  roce::SidrQuery p;
  p.refusal_retry = Duration::ms(100);
  const auto id = put(p);
  ASSERT_TRUE(id.ok());
  const auto sent = [&] { return stats_of(pair->left()).cm_sent; };
  ASSERT_TRUE(pair->run_until([&] { return sent() == 2; }, Duration::s(1)));
  pair->run_for(Duration::ms(1));  // it is refused, and repeated after a while
  questions().give_up(id->id, pair->now());
  pair->run_for(Duration::s(1));
  EXPECT_EQ(sent(), 2u);
  EXPECT_TRUE(answers().empty());
}

// ---- wrong use

// proves: IB-141
TEST_F(RoceQuestion, ReportsInvalidCallsAtOnce) {
  begin();
  roce::SidrQuery p;
  const std::string large(181, 'x');
  p.private_data = view(large);
  const auto no = put(p);
  ASSERT_FALSE(no.ok());
  EXPECT_EQ(no.error().code, Errc::invalid_argument);
  EXPECT_NE(no.error().message.find("at most 180 bytes"), std::string::npos);
  const auto nowhere = put({}, "203.0.113.1:7");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.error().code, Errc::unreachable);
  EXPECT_EQ(questions().size(), 0u);
  ASSERT_TRUE(put().ok());
  ASSERT_TRUE(asked());
  const auto large_answer = serve(std::string(137, 'x'));
  ASSERT_FALSE(large_answer.ok());
  EXPECT_EQ(large_answer.error().code, Errc::invalid_argument);
  verbs::QueuePair* const fresh = pair->right().make_roce_qp({}, verbs::Service::Ud);
  const auto early = connections(pair->right())
                         .resolver()
                         .serve(pair->right().roce_requests.back().id, *fresh, 1, {}, pair->now());
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code, Errc::wrong_state);
  ASSERT_TRUE(serve().ok()) << "nothing of that was an answer";
  ASSERT_TRUE(told());
  EXPECT_TRUE(answer().found);
}

// Connections and datagrams have separate port spaces, and each request is refused at the other.
// proves: IB-141
TEST_F(RoceQuestion, ConnectionsAndDatagramServicesRefuseEachOthersRequests) {
  begin();
  verbs::QueuePair* const reliable = pair->left().make_roce_qp();
  ASSERT_TRUE(connections(pair->left())
                  .connect(*reliable, *SocketAddress::parse("10.0.0.2:7000"), wish(), pair->now())
                  .ok());
  ASSERT_TRUE(until(pair->left(), Kind::ConnectFailed, Duration::ms(100)));
  EXPECT_EQ(find(pair->left(), Kind::ConnectFailed)->code, Errc::refused);
  ASSERT_NE(serve_at(pair->right(), Service::Rc), nullptr) << "beside it";
  EXPECT_EQ(serve_at(pair->right(), Service::Ud), nullptr) << "taken";
  connections(pair->right()).listeners().close(listener);
  ASSERT_TRUE(put().ok());
  ASSERT_TRUE(told(Duration::ms(100)));
  EXPECT_EQ(answer().code, Errc::refused);
  EXPECT_TRUE(pair->right().roce_requests.empty());
}

// With the service id of the other port space, which our own code never sends.
// proves: IB-141
TEST(RoceService, ARequestOfTheOtherPortSpaceIsRefused) {
  Crafted c;
  roce::Connections& ours = c.node->engine().roce_control().connections();
  ib_cm::Options options;
  options.key = {1, 2};
  ib_cm::Manager peer(options);
  ib_cm::Outgoing mad;
  const ib_cm::AddressPair addresses{address_of(1), address_of(0)};
  for (const Service service : {Service::Rc, Service::Ud}) {
    auto bound = ours.listeners().bind({{IpAddress::any_v6(), kPort}, false, false}, service);
    ASSERT_TRUE(bound);
    ASSERT_TRUE(ours.listeners().listen(bound.value(), 8));
  }
  ib_cm::Connect connection;
  connection.addresses = addresses;
  connection.service = ib_cm::service_of(PortSpace::Udp, kPort);
  connection.qp.qpn = 0x77;
  ASSERT_TRUE(peer.connections().connect(connection, {}, c.now).ok());
  ASSERT_TRUE(peer.next_mad(&mad));
  c.arrive(mad.mad);
  ib_cm::Resolve question;
  question.addresses = addresses;
  question.service = ib_cm::service_of(PortSpace::Tcp, kPort);
  ASSERT_TRUE(peer.sidr().resolve(question, {}, c.now).ok());
  ASSERT_TRUE(peer.next_mad(&mad));
  c.arrive(mad.mad);
  EXPECT_TRUE(c.node->roce_requests.empty());
  EXPECT_EQ(stats_of(*c.node).cm_received, 2u);
  EXPECT_EQ(stats_of(*c.node).cm_sent, 2u) << "refusals";
}

// proves: IB-141
TEST_F(RoceQuestion, AfterAListenerClosesNewRequestsAreRefusedAndPendingOnesAnswered) {
  begin();
  ASSERT_TRUE(put().ok());
  ASSERT_TRUE(asked());
  connections(pair->right()).listeners().close(listener);
  ASSERT_TRUE(put().ok());
  ASSERT_TRUE(told());
  EXPECT_EQ(answer().code, Errc::refused);
  ASSERT_TRUE(serve().ok());
  ASSERT_TRUE(pair->run_until([&] { return answers().size() == 2; }, Duration::s(1)));
  EXPECT_TRUE(answers()[1].answer.found);
}

// proves: IB-141
TEST_F(RoceQuestion, RequestsThatWaitAreLimitedByTheBacklog) {
  begin();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(put().ok());
  pair->run_for(Duration::s(5));
  EXPECT_EQ(pair->right().roce_requests.size(), 8u);
  EXPECT_TRUE(answers().empty());
  for (const verbs::ConnectionRequest& r : pair->right().roce_requests) {
    EXPECT_TRUE(
        connections(pair->right()).resolver().serve(r.id, *right, kQkey, {}, pair->now()).ok());
  }
  pair->run_until([&] { return answers().size() == 100; }, Duration::s(20));
  EXPECT_EQ(answers().size(), 100u);
}

// Any one allocation fails: there is an answer or a clear failure, and nothing remains.
// proves: E-50
TEST_F(RoceQuestion, WithoutMemoryThereIsAnAnswerOrAClearFailure) {
  std::uint64_t found = 0;
  for (std::uint64_t n = 0;; ++n) {
    SCOPED_TRACE(n);
    begin();
    bool put_ok = false, no_more = false;
    {
      testing::NoMemory none(n);
      const auto quietly = [&](auto&& f) {
        try {
          f();
        } catch (const std::bad_alloc&) {
        }
      };
      quietly([&] { put_ok = put().ok(); });
      for (int i = 0; i < 200; ++i) {
        quietly([&] { pair->run_for(Duration::us(50)); });
        if (!pair->right().roce_requests.empty()) quietly([&] { static_cast<void>(serve()); });
      }
      no_more = none.failed() == 0;
    }
    const bool ended = pair->run_until([&] { return !answers().empty(); }, Duration::s(20));
    EXPECT_EQ(ended, put_ok);
    found += ended && answer().found;
    pair->run_for(Duration::s(300));
    EXPECT_EQ(answers().size(), put_ok ? 1u : 0u);
    EXPECT_EQ(questions().size(), 0u);
    for (sim::Node* e : {&pair->left(), &pair->right()}) {
      EXPECT_EQ(connections(*e).handles(), 0u);
    }
    if (no_more) break;
  }
  EXPECT_GT(found, 0u);
}

}  // namespace
}  // namespace urnic::test
