// rdma_set_option, with the results of rdma-core and a kernel.
#include <errno.h>
#include <infiniband/sa.h>

#include "dropin/cm_ends.h"

namespace cm {
namespace {

// A program that knows the path sets it instead of calling rdma_resolve_route.
// proves: DI-9
TEST_F(CmTest, AKnownPathReplacesResolveRoute) {
  ibv_path_data ways[2] = {};
  ways[0].flags = IBV_PATH_FLAG_ALTERNATE;
  ways[1].flags = IBV_PATH_FLAG_GMP | IBV_PATH_FLAG_PRIMARY | IBV_PATH_FLAG_BIDIRECTIONAL;
  const auto say = [&](std::size_t bytes) {
    errno = 0;
    return rdma_set_option(client_, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, ways, bytes);
  };
  EXPECT_EQ(say(sizeof ways), -1);
  EXPECT_EQ(errno, EINVAL) << "it has no address yet";
  sockaddr_in to = loopback(ntohs(rdma_get_src_port(listener_)));
  ASSERT_EQ(rdma_resolve_addr(client_, nullptr, any(to), 1000), 0);
  pass(peers_, RDMA_CM_EVENT_ADDR_RESOLVED);
  for (const std::size_t wrong : {std::size_t{0}, sizeof ways[0], sizeof ways - 1}) {
    EXPECT_EQ(say(wrong), -1) << wrong;
    EXPECT_EQ(errno, EINVAL) << wrong;
  }
  ASSERT_EQ(say(sizeof ways), 0);
  pass(peers_, RDMA_CM_EVENT_ROUTE_RESOLVED);
  EXPECT_EQ(say(sizeof ways), -1);
  EXPECT_EQ(errno, EINVAL) << "the route is there";
  auto attr = small_qp();
  ASSERT_EQ(rdma_create_qp(client_, nullptr, &attr), 0);
  request();
  accept();
}

TEST_F(CmTest, UnknownOptionsFailWithTheErrnoOfRdmaCore) {
  std::uint8_t value = 3;
  const auto set = [&](int level, int name, void* at, std::size_t bytes) {
    return rdma_set_option(client_, level, name, at, bytes) == 0 ? 0 : errno;
  };
  EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, 1), 0);
  EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &value, 4), EINVAL);
  EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, 1), 0);
  EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, 0), EINVAL);
  value = 32;
  EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &value, 1), EINVAL) << "five bits";
  EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &value, 1), EINVAL);
  EXPECT_EQ(set(RDMA_OPTION_ID, 77, &value, 1), ENOSYS);
  EXPECT_EQ(set(RDMA_OPTION_IB, 77, &value, 1), ENOSYS);
  EXPECT_EQ(set(77, 0, &value, 1), ENOSYS);
  EXPECT_EQ(set(RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, nullptr, 1), EFAULT);
}

}  // namespace
}  // namespace cm
