// Secrets that peers must not guess differ from device to device (E-49), and two devices with one
// address detect each other (E-34).
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "tests/support/soon.h"
#include "urnic/urnic.h"

namespace urnic {
namespace {

Device open(const std::string& name) {
  Config c;
  EXPECT_TRUE(c.set("port", "mem:name=" + name).ok());
  EXPECT_TRUE(c.set("stat", "off").ok());
  auto d = Device::open(c);
  EXPECT_TRUE(d.ok()) << d.error().message;
  return d.ok() ? *d : Device();
}

// proves: E-49
TEST(Identity, KeysAndNumbersOfOneDeviceDoNotPredictThoseOfAnother) {
  Device a = open("identity-a"), b = open("identity-b");
  char memory[64];
  std::set<std::uint32_t> keys, numbers;
  int in_a_row = 0;
  for (Device* d : {&a, &b}) {
    auto pd = *d->alloc_pd();
    QpOptions o;
    o.send_cq = o.receive_cq = *d->create_cq(8);
    std::uint32_t last_key = 0, last_number = 0;
    std::vector<QueuePair> qps;
    std::vector<MemoryRegion> regions;
    for (int i = 0; i < 8; ++i) {
      regions.push_back(*d->register_memory(pd, memory, sizeof memory, access_local_write));
      qps.push_back(*d->create_qp(pd, o));
      const std::uint32_t key = regions.back().rkey(), number = qps.back().number();
      EXPECT_NE(key >> 8, 0u);
      EXPECT_NE(number, 0u);
      EXPECT_LT(number, 1u << 24);
      in_a_row += (key >> 8) == (last_key >> 8) + 1;
      in_a_row += number == last_number + 1;
      EXPECT_TRUE(keys.insert(key).second);
      EXPECT_TRUE(numbers.insert(number).second);
      last_key = key;
      last_number = number;
    }
  }
  EXPECT_LT(in_a_row, 3);
  EXPECT_EQ(keys.size(), 16u);
  EXPECT_EQ(numbers.size(), 16u);
}

TEST(Identity, ANumberChosenByTheConsumerIsNotUsedTwice) {
  Device d = open("identity-d");
  auto pd = *d.alloc_pd();
  QpOptions o;
  o.send_cq = o.receive_cq = *d.create_cq(8);
  o.number = 0x20abcd;
  QueuePair qp = *d.create_qp(pd, o);
  EXPECT_EQ(qp.number(), 0x20abcdu);
  auto again = d.create_qp(pd, o);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::in_use);
  qp.discard();
  EXPECT_TRUE(d.create_qp(pd, o).ok());
  o.number = 1u << 24;
  again = d.create_qp(pd, o);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.error().code, Errc::invalid_argument);
}

// proves: E-49
TEST(Identity, ReregisteringMemoryGivesAnotherKey) {
  Device d = open("identity-c");
  auto pd = *d.alloc_pd();
  char memory[64];
  std::set<std::uint32_t> keys;
  int counted = 0;
  for (std::uint32_t i = 0, last = 0; i < 200; ++i) {
    auto mr = *d.register_memory(pd, memory, sizeof memory, 0);
    EXPECT_TRUE(keys.insert(mr.rkey()).second);
    counted += mr.rkey() == last + 1;
    last = mr.rkey();
  }
  EXPECT_LT(counted, 10);
}

// proves: E-34
TEST(Identity, AMacIsRandomAndLocallyAdministered) {
  std::set<std::string> seen;
  for (int i = 0; i < 4; ++i) {
    Device d = open("identity-" + std::to_string(i));
    const std::string mac = d.info().mac;
    const int first = std::stoi(mac.substr(0, 2), nullptr, 16);
    EXPECT_EQ(first & 3, 2) << mac;
    seen.insert(mac);
  }
  EXPECT_EQ(seen.size(), 4u);
}

// proves: E-34
TEST(Identity, TwoDevicesWithOneAddressNoticeEachOther) {
  const auto open_at = [](EventQueue* events) {
    Config c;
    EXPECT_TRUE(c.set("port", "mem:name=identity-twin").ok());
    EXPECT_TRUE(c.set("stat", "off").ok());
    EXPECT_TRUE(c.set("address", "10.9.8.7/24").ok());
    auto d = Device::open(c);
    EXPECT_TRUE(d.ok());
    *events = *d->create_event_queue();
    EXPECT_TRUE(d->deliver_events(*events).ok());
    return *d;
  };
  EventQueue ea, eb;
  Device a = open_at(&ea), b = open_at(&eb);
  // The first one detects the second.
  Event e;
  bool noticed = false;
  while (!noticed && ea.wait(&e, 10000)) {
    noticed = e.kind == EventKind::address_conflict &&
              e.error.message.find("10.9.8.7") != std::string::npos;
  }
  EXPECT_TRUE(noticed);
  // It defends its address, so the second detects it too, perhaps before it delivers events.
  EXPECT_TRUE(test::soon([&] { return b.stats().net.address_conflicts != 0; }));
  EXPECT_NE(a.stats().net.address_conflicts, 0u);
}

}  // namespace
}  // namespace urnic
