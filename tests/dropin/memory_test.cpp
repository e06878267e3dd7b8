// Regions and windows, through the exported names.
#include <errno.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <vector>

#include "dropin/verbs_fixture.h"

namespace verbs_api {
namespace {

// proves: DI-1
TEST_F(VerbsTest, RegionsNeedALegalSetOfRights) {
  std::vector<char> memory(4096);
  const auto reg = [&](int access) { return ibv_reg_mr(pd_, memory.data(), 4096, access); };
  errno = 0;
  EXPECT_EQ(reg(IBV_ACCESS_REMOTE_WRITE), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(reg(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ibv_mr* mr = reg(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                   IBV_ACCESS_RELAXED_ORDERING);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, memory.data());
  EXPECT_EQ(mr->length, 4096u);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(VerbsTest, UnmappedMemoryIsABadAddress) {
  void* const gone = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* const readable = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto refused = [&](void* at, std::size_t length, int access) {
    errno = 0;
    const ibv_mr* const plain = ibv_reg_mr(pd_, at, length, access);
    const int error = errno;
    errno = 0;
    const ibv_mr* const named = ibv_reg_mr_iova(pd_, at, length, 0x1000, access);
    EXPECT_EQ(plain, nullptr);
    EXPECT_EQ(named, nullptr);
    EXPECT_EQ(errno, error);
    return error;
  };
  EXPECT_EQ(refused(gone, 4096, 0), EFAULT);
  EXPECT_EQ(refused(readable, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT);
  EXPECT_EQ(refused(readable, std::size_t{1} << 62, 0), EFAULT);
  EXPECT_EQ(refused(nullptr, 64, 0), EFAULT);
  char* const last = reinterpret_cast<char*>(~std::uintptr_t{9});
  EXPECT_EQ(refused(last, 11, 0), EINVAL) << "the range wraps around";

  ibv_mr* const mr = ibv_reg_mr(pd_, readable, 4096, IBV_ACCESS_REMOTE_READ);
  ASSERT_NE(mr, nullptr);
  const auto not_moved = [&](int flags, void* at, int access) {
    errno = 0;
    EXPECT_EQ(ibv_rereg_mr(mr, flags, nullptr, at, 4096, access), IBV_REREG_MR_ERR_CMD);
    EXPECT_EQ(errno, EFAULT);
    EXPECT_EQ(mr->addr, readable);
  };
  not_moved(IBV_REREG_MR_CHANGE_TRANSLATION, gone, 0);
  not_moved(IBV_REREG_MR_CHANGE_ACCESS, readable, IBV_ACCESS_LOCAL_WRITE);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  munmap(gone, 4096);
  munmap(readable, 4096);
}

TEST_F(VerbsTest, WindowsAreAllocatedAndCounted) {
  EXPECT_NE(attr_.device_cap_flags & IBV_DEVICE_MEM_WINDOW, 0u);
  EXPECT_NE(attr_.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B, 0u);
  // Send with Invalidate; programs such as SPDK only use it if this flag is set.
  EXPECT_NE(attr_.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS, 0u);
  EXPECT_GT(attr_.max_mw, 0);
  errno = 0;
  EXPECT_EQ(ibv_alloc_mw(pd_, static_cast<ibv_mw_type>(3)), nullptr);
  EXPECT_EQ(errno, EINVAL);
  ibv_mw* one = ibv_alloc_mw(pd_, IBV_MW_TYPE_1);
  ibv_mw* two = ibv_alloc_mw(pd_, IBV_MW_TYPE_2);
  ASSERT_TRUE(one != nullptr && two != nullptr);
  EXPECT_EQ(one->type, IBV_MW_TYPE_1);
  EXPECT_EQ(one->pd, pd_);
  EXPECT_EQ(one->context, context_);
  EXPECT_NE(one->rkey, two->rkey);
  EXPECT_EQ(ibv_dealloc_pd(pd_), EBUSY);
  EXPECT_EQ(ibv_dealloc_mw(one), 0);
  EXPECT_EQ(ibv_dealloc_mw(two), 0);
}

TEST_F(VerbsTest, ReregistrationHasTheResultsOfRdmaCore) {
  std::vector<char> memory(4096), other(100);
  ibv_mr* mr = ibv_reg_mr(pd_, memory.data(), 4096, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  const std::uint32_t key = mr->lkey;
  constexpr int kMove = IBV_REREG_MR_CHANGE_TRANSLATION, kRights = IBV_REREG_MR_CHANGE_ACCESS,
                kDomain = IBV_REREG_MR_CHANGE_PD;
  const auto refused = [&](int answer, int error, int flags, void* address, std::size_t length,
                           int access) {
    errno = 0;
    EXPECT_EQ(ibv_rereg_mr(mr, flags, nullptr, address, length, access), answer) << flags;
    EXPECT_EQ(errno, error) << flags;
    EXPECT_EQ(mr->lkey, key);
    EXPECT_EQ(mr->rkey, key);
    EXPECT_EQ(mr->addr, memory.data());
    EXPECT_EQ(mr->length, 4096u);
    EXPECT_EQ(mr->pd, pd_);
  };
  refused(IBV_REREG_MR_ERR_INPUT, EINVAL, 1 << 8, nullptr, 0, 0);
  refused(IBV_REREG_MR_ERR_INPUT, EINVAL, kMove, nullptr, 100, 0);
  refused(IBV_REREG_MR_ERR_INPUT, EINVAL, kMove, other.data(), 0, 0);
  refused(IBV_REREG_MR_ERR_INPUT, EINVAL, kMove, other.data(), 100, IBV_ACCESS_LOCAL_WRITE);
  refused(IBV_REREG_MR_ERR_INPUT, EINVAL, kDomain, nullptr, 0, 0);
  refused(IBV_REREG_MR_ERR_CMD, EINVAL, 0, nullptr, 0, 0);
  refused(IBV_REREG_MR_ERR_CMD, EINVAL, kRights, nullptr, 0, IBV_ACCESS_REMOTE_WRITE);
  refused(IBV_REREG_MR_ERR_CMD, EOPNOTSUPP, kRights, nullptr, 0, IBV_ACCESS_ON_DEMAND);

  EXPECT_EQ(ibv_rereg_mr(mr, kRights, nullptr, nullptr, 0,
                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ),
            0);
  EXPECT_EQ(mr->lkey, key);
  EXPECT_EQ(ibv_rereg_mr(mr, kMove | kRights, nullptr, other.data(), 100, 0), 0);
  EXPECT_NE(mr->lkey, key);
  EXPECT_EQ(mr->rkey, mr->lkey);
  EXPECT_EQ(mr->addr, other.data());
  EXPECT_EQ(mr->length, 100u);
  ibv_pd* domain = ibv_alloc_pd(context_);
  EXPECT_EQ(ibv_rereg_mr(mr, kDomain, domain, nullptr, 0, 0), 0);
  EXPECT_EQ(mr->pd, domain);
  EXPECT_EQ(ibv_dealloc_pd(domain), EBUSY);
  EXPECT_EQ(ibv_rereg_mr(mr, kDomain, pd_, nullptr, 0, 0), 0);
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

// It belongs to the context of its domain, not to that with which it was created, which may be
// closed.
TEST_F(VerbsTest, ARegionMovesToTheContextOfItsNewDomain) {
  ibv_context* other = ibv_open_device(list_[0]);
  ASSERT_NE(other, nullptr);
  ibv_pd* domain = ibv_alloc_pd(other);
  ASSERT_NE(domain, nullptr);
  char memory[16];
  ibv_mr* mr = ibv_reg_mr(domain, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd_, nullptr, 0, 0), 0);
  EXPECT_EQ(mr->context, context_);
  EXPECT_EQ(ibv_dealloc_pd(domain), 0);
  EXPECT_EQ(ibv_close_device(other), 0);
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
}

TEST_F(VerbsTest, ARegionMayHaveAnIovaOtherThanItsAddress) {
  std::vector<char> memory(4096);
  ibv_mr* mr = ibv_reg_mr_iova(pd_, memory.data(), 4096, 0x10, IBV_ACCESS_LOCAL_WRITE);
  ASSERT_NE(mr, nullptr);
  EXPECT_EQ(mr->addr, memory.data());
  EXPECT_EQ(ibv_dereg_mr(mr), 0);
  errno = 0;
  EXPECT_EQ(ibv_reg_mr_iova(pd_, memory.data(), 4096, ~0ull - 100, IBV_ACCESS_LOCAL_WRITE),
            nullptr);
  EXPECT_EQ(errno, EINVAL);
}

}  // namespace
}  // namespace verbs_api
