// Memory that disappears while it is registered: the work request that needs it ends with a status,
// the owner of a queue pair whose peer needed it gets an access error event, and the process and
// other connections continue.
#include <sys/mman.h>
#include <unistd.h>

#include "device/roce_ends.h"
#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

constexpr std::size_t kBytes = 64 << 10;

// Memory of one end that can disappear.
class Lent {
 public:
  Lent() : fd_(memfd_create("lent", MFD_CLOEXEC)) {
    EXPECT_EQ(ftruncate(fd_, kBytes), 0);
    at_ = static_cast<std::uint8_t*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
  }
  ~Lent() {
    munmap(at_, kBytes);
    close(fd_);
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;
  MemoryRegion add(Device& device, const ProtectionDomain& pd) {
    constexpr std::uint32_t kAll =
        access_local_write | access_remote_write | access_remote_read | access_remote_atomic;
    auto mr = device.register_memory(pd, at_, kBytes, kAll);
    EXPECT_TRUE(mr.ok());
    return mr.ok() ? std::move(*mr) : MemoryRegion();
  }
  void protect() { EXPECT_EQ(mprotect(at_, kBytes, PROT_NONE), 0); }
  void cut() { EXPECT_EQ(ftruncate(fd_, 0), 0); }
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(at_); }

 private:
  int fd_;
  std::uint8_t* at_ = nullptr;
};

// ---- iWARP

class MemoryGoneOnWire : public test::WiredEnds {
 protected:
  // Another connection, which must not be affected.
  void begin() {
    server_other_ = server.another();
    client_other_ = client.another();
    join(server_other_, client_other_);
    ours_ = client.add(test::kAllRights);
    theirs_ = server.add(test::kAllRights);
    lent_ = owner_.add(server.device, server.pd);
  }
  Sge mine(std::uint32_t n) const { return {ours_.remote_address(), n, ours_.lkey()}; }
  Sge gone(std::uint32_t n) const { return {owner_.address(), n, lent_.lkey()}; }
  void expect_others_well() {
    SendRequest r;
    r.opcode = Opcode::read;
    const Sge sge = mine(100);
    r.sges = {&sge, 1};
    r.remote_address = theirs_.remote_address();
    r.rkey = theirs_.rkey();
    EXPECT_EQ(client.done(client_other_, r), WcStatus::success);
  }
  Lent owner_;
  QueuePair server_other_, client_other_;
  MemoryRegion ours_, theirs_, lent_;

  void TearDown() override {
    for (QueuePair* qp : {&client_other_, &server_other_}) *qp = QueuePair();
    for (MemoryRegion* mr : {&ours_, &theirs_, &lent_}) *mr = MemoryRegion();
    WiredEnds::TearDown();
  }
};

TEST_P(MemoryGoneOnWire, AReadOfItIsARemoteAccessError) {
  begin();
  owner_.cut();
  EXPECT_EQ(client.done(Opcode::read, mine(4096), owner_.address(), lent_.rkey()),
            WcStatus::remote_access);
  expect_others_well();
}

// A Write succeeds when TCP has it, so the Read after it shows the error.
TEST_P(MemoryGoneOnWire, AWriteToItEndsTheConnection) {
  begin();
  owner_.protect();
  EXPECT_EQ(client.done(Opcode::write, mine(4096), owner_.address(), lent_.rkey()),
            WcStatus::success);
  EXPECT_NE(client.done(Opcode::read, mine(100), theirs_.remote_address(), theirs_.rkey()),
            WcStatus::success);
  expect_others_well();
}

TEST_P(MemoryGoneOnWire, AnAtomicOnItIsARemoteAccessError) {
  begin();
  owner_.protect();
  EXPECT_EQ(client.done(Opcode::fetch_add, mine(8), owner_.address(), lent_.rkey()),
            WcStatus::remote_access);
  expect_others_well();
}

TEST_P(MemoryGoneOnWire, AReceiveIntoItIsALocalProtectionError) {
  begin();
  const Sge into = gone(4096);
  ASSERT_TRUE(server.qp.post_receive({1, {&into, 1}}).ok());
  owner_.protect();
  client.done(Opcode::send, mine(1000));
  EXPECT_EQ(server.wait().status, WcStatus::local_protection);
  expect_others_well();
}

TEST_P(MemoryGoneOnWire, ASendOutOfItIsALocalProtectionError) {
  for (const std::uint32_t bytes : {100u, 3000u, static_cast<std::uint32_t>(kBytes)}) {
    SCOPED_TRACE(bytes);
    MemoryGoneOnWire::TearDown();
    WiredEnds::SetUp();
    begin();
    Lent mine_too;
    const MemoryRegion mr = mine_too.add(client.device, client.pd);
    mine_too.cut();
    EXPECT_EQ(client.done(Opcode::write, {mine_too.address(), bytes, mr.lkey()},
                          theirs_.remote_address(), theirs_.rkey()),
              WcStatus::local_protection);
    expect_others_well();
  }
}

TEST_P(MemoryGoneOnWire, AReadIntoItIsALocalProtectionError) {
  begin();
  Lent mine_too;
  const MemoryRegion mr = mine_too.add(client.device, client.pd);
  mine_too.protect();
  EXPECT_EQ(client.done(Opcode::read, {mine_too.address(), 4096, mr.lkey()},
                        theirs_.remote_address(), theirs_.rkey()),
            WcStatus::local_protection);
  expect_others_well();
}

INSTANTIATE_TEST_SUITE_P(Ports, MemoryGoneOnWire, testing::Values("memif", "tcp"));

// ---- RoCE

class MemoryGoneOverRoce : public test::RoceDevices {
 protected:
  void begin() {
    up();
    for (int i = 0; i < 2; ++i) others_[i] = ends[i].make();
    test::Agreed().connect(others_[0], others_[1]);
    lent_ = owner_.add(ends[1].device, ends[1].pd);
    spare_ = reader_.add(ends[0].device, ends[0].pd);
  }
  void TearDown() override {
    for (QueuePair& qp : others_) qp = QueuePair();
    for (MemoryRegion* mr : {&lent_, &spare_}) *mr = MemoryRegion();
    RoceDevices::TearDown();
  }
  // Executes a request between `from`'s memory and the disappearing memory at the other end.
  WcStatus status_of(Opcode op, const Sge& from) {
    SendRequest r = request(op, 1, from, 0);
    if (op != Opcode::send) {
      r.remote_address = owner_.address();
      r.rkey = lent_.rkey();
    }
    EXPECT_TRUE(qps[0].post_send(r).ok());
    return ends[0].one().status;
  }
  void expect_refused(Opcode op, std::uint32_t bytes) {
    begin();
    owner_.protect();
    EXPECT_EQ(status_of(op, ends[0].sge(0, bytes)), WcStatus::remote_access);
    EXPECT_TRUE(ends[1].next(EventKind::access_error).has_value());
    expect_others_well();
  }
  void expect_others_well() {
    const Sge from = ends[0].sge(0, 5000);
    EXPECT_TRUE(others_[0].post_send(request(Opcode::write, 2, from, 0)).ok());
    EXPECT_EQ(ends[0].one().status, WcStatus::success);
  }
  Lent owner_, reader_;
  MemoryRegion lent_, spare_;
  QueuePair others_[2];
};

TEST_P(MemoryGoneOverRoce, AWriteToItIsARemoteAccessErrorAndTheOwnerGetsAnEvent) {
  expect_refused(Opcode::write, 20000);
}
TEST_P(MemoryGoneOverRoce, AReadOfItIsARemoteAccessErrorAndTheOwnerGetsAnEvent) {
  expect_refused(Opcode::read, 20000);
}
TEST_P(MemoryGoneOverRoce, AnAtomicOnItIsARemoteAccessErrorAndTheOwnerGetsAnEvent) {
  expect_refused(Opcode::fetch_add, 8);
}

TEST_P(MemoryGoneOverRoce, AReceiveIntoItIsALocalProtectionError) {
  begin();
  const Sge into{owner_.address(), 8192, lent_.lkey()};
  ASSERT_TRUE(qps[1].post_receive({7, {&into, 1}}).ok());
  owner_.cut();
  EXPECT_EQ(status_of(Opcode::send, ends[0].sge(0, 5000)), WcStatus::remote_operation);
  EXPECT_EQ(ends[1].one().status, WcStatus::local_protection);
  expect_others_well();
}

TEST_P(MemoryGoneOverRoce, ARequestOutOfItIsALocalProtectionError) {
  begin();
  reader_.cut();
  EXPECT_EQ(status_of(Opcode::write, {reader_.address(), kBytes, spare_.lkey()}),
            WcStatus::local_protection);
  expect_others_well();
}

TEST_P(MemoryGoneOverRoce, AReadIntoItIsALocalProtectionError) {
  begin();
  reader_.protect();
  EXPECT_EQ(status_of(Opcode::read, {reader_.address(), 9000, spare_.lkey()}),
            WcStatus::local_protection);
  expect_others_well();
}

INSTANTIATE_TEST_SUITE_P(Ports, MemoryGoneOverRoce, testing::Values("memif", "mem"));

}  // namespace
}  // namespace urnic
