// Events of a device itself, whether they are fetched or not.
#include <gtest/gtest.h>

#include "device/device_impl.h"

namespace urnic::device {
namespace {

Event event_of(EventKind kind, void* context = nullptr) {
  Event e;
  e.kind = kind;
  e.context = context;
  return e;
}

TEST(DeviceNews, EventsOfTheDeviceAreBoundedAndTheLatestAreKept) {
  EventQueueImpl queue;
  int object = 0;
  queue.push(event_of(EventKind::established, &object), &object);
  for (int i = 0; i < 1000; ++i) {
    queue.push_news(event_of(i % 2 == 0 ? EventKind::link_down : EventKind::link_up));
  }
  queue.push(event_of(EventKind::disconnected, &object), &object);
  EXPECT_EQ(queue.events.size(), EventQueueImpl::kMostNews + 2);
  Event e;
  ASSERT_TRUE(queue.pop(&e));
  EXPECT_EQ(e.kind, EventKind::established) << "what others tell stays";
  std::size_t news = 0;
  EventKind last = EventKind::link_down;
  while (queue.pop(&e) && e.kind != EventKind::disconnected) {
    ++news;
    last = e.kind;
  }
  EXPECT_EQ(news, EventQueueImpl::kMostNews);
  EXPECT_EQ(last, EventKind::link_up) << "how it is now";
  EXPECT_EQ(e.kind, EventKind::disconnected);
  queue.push_news(event_of(EventKind::link_down));
  EXPECT_TRUE(queue.pop(&e));
  EXPECT_FALSE(queue.pop(&e));
}

}  // namespace
}  // namespace urnic::device
