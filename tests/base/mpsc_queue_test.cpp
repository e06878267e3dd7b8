#include "base/mpsc_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace urnic {
namespace {

struct Item : MpscNode {
  int producer = 0;
  int number = 0;
};

TEST(MpscQueue, IsFirstInFirstOut) {
  MpscQueue<Item> q;
  Item items[5];
  EXPECT_TRUE(q.looks_empty());
  EXPECT_EQ(q.pop(), nullptr);
  for (auto& i : items) q.push(&i);
  EXPECT_FALSE(q.looks_empty());
  for (auto& i : items) EXPECT_EQ(q.pop(), &i);
  EXPECT_EQ(q.pop(), nullptr);
  EXPECT_TRUE(q.looks_empty());
}

TEST(MpscQueue, AnElementMayReturnAsSoonAsItWasPopped) {
  MpscQueue<Item> q;
  Item a, b;
  for (int i = 0; i < 100; ++i) {
    q.push(&a);
    q.push(&b);
    EXPECT_EQ(q.pop(), &a);
    q.push(&a);
    EXPECT_FALSE(q.looks_empty());
    EXPECT_EQ(q.pop(), &b);
    EXPECT_EQ(q.pop(), &a);
    EXPECT_EQ(q.pop(), nullptr);
    EXPECT_TRUE(q.looks_empty());
  }
}

TEST(MpscQueue, LosesNothingAndKeepsEachProducersOrder) {
  constexpr int kProducers = 4, kEach = 20000;
  MpscQueue<Item> q;
  std::vector<std::unique_ptr<Item[]>> items;
  for (int p = 0; p < kProducers; ++p) items.push_back(std::make_unique<Item[]>(kEach));
  std::vector<std::thread> producers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < kEach; ++i) {
        Item& item = items[static_cast<std::size_t>(p)][static_cast<std::size_t>(i)];
        item.producer = p;
        item.number = i;
        q.push(&item);
      }
    });
  }
  std::vector<int> next(kProducers, 0);
  int total = 0;
  bool in_order = true;
  while (total < kProducers * kEach) {
    const Item* item = q.pop();
    if (item == nullptr) {
      std::this_thread::yield();
      continue;
    }
    in_order = in_order && item->number == next[static_cast<std::size_t>(item->producer)]++;
    ++total;
  }
  for (auto& t : producers) t.join();
  EXPECT_TRUE(in_order);
  EXPECT_EQ(q.pop(), nullptr);
  EXPECT_TRUE(q.looks_empty());
}

// A completed push is visible, so no engine sleeps after a doorbell.
TEST(MpscQueue, AFinishedPushIsSeenByTheNextPop) {
  MpscQueue<Item> q;
  Item item;
  std::atomic<int> turn{0};
  constexpr int kRounds = 2000;
  std::thread producer([&] {
    for (int i = 0; i < kRounds; ++i) {
      while (turn.load(std::memory_order_acquire) != 2 * i) std::this_thread::yield();
      q.push(&item);
      turn.store(2 * i + 1, std::memory_order_release);
    }
  });
  bool seen = true;
  for (int i = 0; i < kRounds; ++i) {
    while (turn.load(std::memory_order_acquire) != 2 * i + 1) std::this_thread::yield();
    seen = seen && !q.looks_empty() && q.pop() == &item;
    turn.store(2 * i + 2, std::memory_order_release);
  }
  producer.join();
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace urnic
