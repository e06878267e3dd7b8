// Regions of the public API between two devices: the address with which they are registered, and
// reregistration. proves: E-54
#include "tests/support/wired_ends.h"

namespace urnic {
namespace {

using test::kAllRights;

class RegionsOnWire : public test::WiredEnds {};

// proves: E-54
TEST_P(RegionsOnWire, AreAddressedByTheirIova) {
  const MemoryRegion a = client.add(access_local_write, 0x1000);
  const MemoryRegion b = server.add(kAllRights, 0x2000);
  EXPECT_EQ(a.remote_address(), 0x1000u);
  EXPECT_EQ(b.address(), server.memory.data());
  client.fill(1);
  EXPECT_EQ(client.done(Opcode::write, {0x1010, 3000, a.lkey()}, 0x2020, b.rkey()),
            WcStatus::success);
  EXPECT_EQ(client.done(Opcode::read, {0x1000 + 4000, 3000, a.lkey()}, 0x2020, b.rkey()),
            WcStatus::success);
  EXPECT_TRUE(std::equal(&client.memory[0x10], &client.memory[0x10 + 3000], &client.memory[4000]));
  const auto virtual_address = reinterpret_cast<std::uint64_t>(server.memory.data());
  EXPECT_EQ(client.done(Opcode::read, {0x1000, 1, a.lkey()}, virtual_address, b.rkey()),
            WcStatus::remote_access);
}

// proves: E-54
TEST_P(RegionsOnWire, HaveThePropertiesOfTheirLastRegistration) {
  const MemoryRegion a = client.add(access_local_write);
  MemoryRegion b = server.add(kAllRights);
  const std::uint32_t key = b.rkey();
  const auto ours = reinterpret_cast<std::uint64_t>(client.memory.data());
  const auto read = [&](std::uint64_t from, std::uint32_t rkey) {
    return client.done(Opcode::read, {ours, 100, a.lkey()}, from, rkey);
  };

  EXPECT_FALSE(b.reregister({{}, access_remote_write, nullptr}).ok());
  EXPECT_FALSE(b.reregister({RegionChange::Memory{nullptr, 10, {}}, {}, nullptr}).ok());
  const ProtectionDomain foreign = *client.device.alloc_pd(), empty;
  for (const ProtectionDomain* pd : {&foreign, &empty}) {
    const auto refused = b.reregister({{}, {}, pd});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  }
  EXPECT_EQ(b.rkey(), key);
  EXPECT_EQ(read(b.remote_address(), key), WcStatus::success);

  std::vector<std::uint8_t> other(100, 0x77);
  ASSERT_TRUE(b.reregister({RegionChange::Memory{other.data(), 100, 0x500}, {}, nullptr}).ok());
  EXPECT_EQ(b.address(), other.data());
  EXPECT_EQ(b.length(), 100u);
  EXPECT_EQ(b.remote_address(), 0x500u);
  EXPECT_NE(b.rkey(), key);
  EXPECT_EQ(read(0x500, b.rkey()), WcStatus::success);
  EXPECT_EQ(client.memory[99], 0x77);

  const std::uint32_t second = b.rkey();
  ASSERT_TRUE(b.reregister({{}, kAllRights | access_zero_based, nullptr}).ok());
  EXPECT_NE(b.rkey(), second) << "what it names is called otherwise";
  EXPECT_EQ(b.remote_address(), 0u);
  EXPECT_EQ(read(0, b.rkey()), WcStatus::success);

  const ProtectionDomain domain = *server.device.alloc_pd();
  ASSERT_TRUE(b.reregister({{}, {}, &domain}).ok());
  EXPECT_EQ(read(0, b.rkey()), WcStatus::remote_access) << "the queue pair is of another domain";
}

// Unlike many iWARP adapters: the peer cannot write to the program's memory by the sink's key.
// proves: E-16
TEST_P(RegionsOnWire, ASinkNeedsNoRightButLocalWrite) {
  const MemoryRegion a = client.add(access_local_write), b = server.add(access_remote_read);
  server.fill(9);
  EXPECT_EQ(client.done(Opcode::read,
                        {reinterpret_cast<std::uint64_t>(client.memory.data()), 8192, a.lkey()},
                        b.remote_address(), b.rkey()),
            WcStatus::success);
  EXPECT_EQ(client.memory, server.memory);
}

INSTANTIATE_TEST_SUITE_P(Wires, RegionsOnWire, ::testing::Values("memif", "tcp"));

}  // namespace
}  // namespace urnic
