// The results of rdma_getaddrinfo, and how rdma_create_ep, rdma_create_srq_ex and synchronous
// listeners use their arguments.
#include <errno.h>
#include <netdb.h>

#include "dropin/calls_walk.h"
#include "dropin/cm_ends.h"

namespace cm {
namespace {

struct Lookup {
  rdma_addrinfo* found = nullptr;
  int error;
  Lookup(const char* node, const char* service, const rdma_addrinfo& hints)
      : error(rdma_getaddrinfo(node, service, &hints, &found)) {}
  ~Lookup() {
    if (found != nullptr) rdma_freeaddrinfo(found);
  }
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
};

const sockaddr_in& v4(const sockaddr* a) {
  return *reinterpret_cast<const sockaddr_in*>(a);
}

// proves: DI-9
TEST(AddressInfo, APassiveLookupWithoutANodeIsTheWildcardAndAnActiveOneTheLoopbackAddress) {
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_PASSIVE | RAI_FAMILY;
  hints.ai_family = AF_INET;
  const Lookup passive(nullptr, "7471", hints);
  ASSERT_EQ(passive.error, 0);
  ASSERT_NE(passive.found->ai_src_addr, nullptr);
  EXPECT_EQ(passive.found->ai_dst_addr, nullptr);
  EXPECT_EQ(passive.found->ai_src_len, sizeof(sockaddr_in));
  EXPECT_EQ(v4(passive.found->ai_src_addr).sin_addr.s_addr, htonl(INADDR_ANY));
  EXPECT_EQ(v4(passive.found->ai_src_addr).sin_port, htons(7471));
  hints.ai_flags = RAI_FAMILY;
  const Lookup active(nullptr, "7471", hints);
  ASSERT_EQ(active.error, 0);
  ASSERT_NE(active.found->ai_dst_addr, nullptr);
  EXPECT_EQ(active.found->ai_src_addr, nullptr);
  EXPECT_EQ(v4(active.found->ai_dst_addr).sin_addr.s_addr, htonl(INADDR_LOOPBACK));
  EXPECT_EQ(v4(active.found->ai_dst_addr).sin_port, htons(7471));
}

TEST(AddressInfo, TheSourceOfTheHintsIsCopiedAndTheirDestinationReplaced) {
  sockaddr_in source = loopback(11), destination = loopback(12);
  rdma_addrinfo hints{};
  hints.ai_flags = RAI_NUMERICHOST;
  hints.ai_src_addr = any(source);
  hints.ai_src_len = sizeof source;
  hints.ai_dst_addr = any(destination);
  hints.ai_dst_len = sizeof destination;
  const Lookup both("127.0.0.9", "13", hints);
  ASSERT_EQ(both.error, 0);
  ASSERT_TRUE(both.found->ai_src_addr != nullptr && both.found->ai_dst_addr != nullptr);
  EXPECT_NE(both.found->ai_src_addr, any(source));
  EXPECT_EQ(both.found->ai_src_len, sizeof source);
  EXPECT_EQ(v4(both.found->ai_src_addr).sin_port, htons(11));
  EXPECT_EQ(v4(both.found->ai_dst_addr).sin_port, htons(13));
  const Lookup neither(nullptr, nullptr, hints);
  ASSERT_EQ(neither.error, 0);
  ASSERT_TRUE(neither.found->ai_src_addr != nullptr && neither.found->ai_dst_addr != nullptr);
  EXPECT_EQ(v4(neither.found->ai_src_addr).sin_port, htons(11));
  EXPECT_EQ(v4(neither.found->ai_dst_addr).sin_port, htons(12));
  const Lookup name("localhost", "13", hints);
  EXPECT_EQ(name.error, EAI_NONAME) << "a name is not a number";
}

class EndpointsTest : public CmTest {
 protected:
  // Listens through an id with a channel of its own, as librdmacm's synchronous programs do.
  void listen_synchronously(ibv_pd* pd, ibv_qp_init_attr* attr) {
    rdma_addrinfo hints{};
    hints.ai_flags = RAI_PASSIVE | RAI_NUMERICHOST;
    const Lookup own("127.0.0.1", "0", hints);
    ASSERT_EQ(own.error, 0);
    ASSERT_EQ(rdma_create_ep(&endpoint_, own.found, pd, attr), 0);
    ASSERT_EQ(rdma_listen(endpoint_, 1), 0);
  }
  // Returns when the request waits in the listener's channel.
  void request() {
    rdma_conn_param p{};
    ASSERT_EQ(rdma_connect(client_, &p), 0);
    ASSERT_FALSE(silent(endpoint_->channel, urnic::test::kSoonMs));
  }

  rdma_cm_id* endpoint_ = nullptr;
};

// proves: DI-9
TEST_F(EndpointsTest, TheQueuePairOfARequestIsOfTheDomainThatTheEndpointWasMadeWith) {
  rdma_cm_id* resolved = nullptr;  // for its device
  ASSERT_EQ(rdma_create_id(peers_, &resolved, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in to = loopback(9);
  ASSERT_EQ(rdma_resolve_addr(resolved, nullptr, any(to), 1000), 0);
  pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
  ibv_pd* const pd = ibv_alloc_pd(resolved->verbs);
  ASSERT_NE(pd, nullptr);
  auto attr = small_qp();
  attr.qp_context = &attr;
  listen_synchronously(pd, &attr);
  resolve(ntohs(rdma_get_src_port(endpoint_)));
  request();
  ASSERT_EQ(rdma_get_request(endpoint_, &server_), 0);
  ASSERT_NE(server_->qp, nullptr);
  EXPECT_EQ(server_->qp->pd, pd);
  EXPECT_NE(server_->pd, pd);
  EXPECT_EQ(server_->qp->qp_context, &attr);
  EXPECT_EQ(rdma_accept(server_, nullptr), 0);
  pass(peers_, RDMA_CM_EVENT_ESTABLISHED);
  rdma_destroy_qp(server_);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  rdma_destroy_ep(endpoint_);
  EXPECT_EQ(rdma_destroy_id(resolved), 0);
}

// The id of such a request has a channel of its own already.
TEST_F(EndpointsTest, ASynchronousListenerClosesTheChannelsOfRequestsThatNobodyHasFetched) {
  const std::size_t before = calls_walk::count_descriptors();
  listen_synchronously(nullptr, nullptr);
  resolve(ntohs(rdma_get_src_port(endpoint_)));
  request();
  rdma_destroy_ep(endpoint_);
  pass(peers_, RDMA_CM_EVENT_REJECTED);
  rdma_destroy_qp(client_);
  EXPECT_TRUE(urnic::test::soon([&] { return calls_walk::count_descriptors() == before; }))
      << calls_walk::count_descriptors() << " and not " << before;
}

// As in rdma-core, the event stays with the listener, and with it the id of the request.
TEST_F(EndpointsTest, ARequestWhoseQueuePairCannotBeMadeIsLeftToTheProgram) {
  auto attr = small_qp();
  attr.cap.max_send_sge = 1000;
  listen_synchronously(nullptr, &attr);
  resolve(ntohs(rdma_get_src_port(endpoint_)));
  request();
  errno = 0;
  EXPECT_EQ(rdma_get_request(endpoint_, &server_), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(server_, nullptr);
  ASSERT_NE(endpoint_->event, nullptr);
  EXPECT_EQ(endpoint_->event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  rdma_cm_id* const id = endpoint_->event->id;
  EXPECT_EQ(rdma_reject(id, "no", 2), 0);
  pass(peers_, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  rdma_destroy_ep(endpoint_);  // acknowledges it
}

TEST_F(EndpointsTest, ASharedQueueHasTheContextAndTheDomainOfItsAttributes) {
  resolve(1);
  ibv_pd* const pd = ibv_alloc_pd(client_->verbs);
  ibv_srq_init_attr_ex wanted{};
  wanted.srq_context = &wanted;
  wanted.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  wanted.srq_type = IBV_SRQT_XRC;
  wanted.pd = pd;
  wanted.attr.max_wr = 12;
  errno = 0;
  EXPECT_EQ(rdma_create_srq_ex(client_, &wanted), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(client_->srq, nullptr);
  wanted.srq_type = IBV_SRQT_BASIC;
  ASSERT_EQ(rdma_create_srq_ex(client_, &wanted), 0);
  ASSERT_NE(client_->srq, nullptr);
  EXPECT_EQ(client_->srq->srq_context, &wanted);
  EXPECT_EQ(client_->srq->pd, pd);
  ibv_srq_attr shown{};
  ASSERT_EQ(ibv_query_srq(client_->srq, &shown), 0);
  EXPECT_EQ(wanted.attr.max_wr, shown.max_wr);
  EXPECT_EQ(wanted.attr.max_sge, shown.max_sge) << "what was granted";
  EXPECT_NE(shown.max_sge, 0u);
  rdma_destroy_srq(client_);
  wanted.comp_mask = 0;
  ASSERT_EQ(rdma_create_srq_ex(client_, &wanted), 0);
  EXPECT_EQ(client_->srq->pd, client_->pd) << "without a domain the id's";
  rdma_destroy_srq(client_);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

}  // namespace
}  // namespace cm
