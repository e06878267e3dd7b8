#include "port/transmit_ring.h"

#include <gtest/gtest.h>

#include <string>

namespace urnic::port {
namespace {

using Ring = TransmitRing<int>;
constexpr std::size_t kStride = 64;

void fill(urnic_frame& f, const std::string& text) {
  std::memcpy(f.data[0], text.data(), text.size());
  f.len[0] = static_cast<std::uint32_t>(text.size());
}
std::string text_of(MutBytes b) {
  return {b.begin(), b.end()};
}

TEST(TransmitRing, NeverLendsABufferWithAWaitingFrame) {
  Ring ring(kStride);
  urnic_frame frames[Ring::kSlots + 1];
  ASSERT_EQ(ring.reserve(kStride, frames, Ring::kSlots + 1), Ring::kSlots);
  for (unsigned i = 0; i < Ring::kSlots; ++i) {
    ASSERT_TRUE(ring.lent());
    fill(frames[i], std::to_string(i));
    ring.gather(frames[i]);
    ring.keep(static_cast<int>(i));
  }
  EXPECT_FALSE(ring.lent());
  EXPECT_EQ(ring.waiting(), Ring::kSlots);
  EXPECT_EQ(ring.reserve(kStride, frames, 1), 0u);
  ring.drop(3);
  ASSERT_EQ(ring.reserve(kStride, frames, Ring::kSlots), 3u);
  for (unsigned i = 0; i < 3; ++i) fill(frames[i], "new");
  // The waiting frames are unchanged.
  for (unsigned i = 0; i < ring.waiting(); ++i) {
    EXPECT_EQ(ring.note(i), static_cast<int>(i + 3));
    const std::string number = std::to_string(i + 3);
    EXPECT_EQ(text_of({ring.frame(i), number.size()}), number);
  }
}

TEST(TransmitRing, FramesNotKeptAreLentAgainAndNotSent) {
  Ring ring(kStride);
  urnic_frame frames[4];
  ASSERT_EQ(ring.reserve(kStride, frames, 4), 4u);
  std::uint8_t* const first = frames[0].data[0];
  fill(frames[2], "only this");  // the frames before and after it are returned
  ring.gather(frames[2]);
  ring.keep(1);
  EXPECT_EQ(ring.waiting(), 1u);
  EXPECT_EQ(ring.frame(0), first);
  EXPECT_EQ(text_of({ring.frame(0), 9}), "only this");
  EXPECT_TRUE(ring.lent());
  ASSERT_EQ(ring.reserve(kStride, frames, 1), 1u);
  EXPECT_EQ(frames[0].data[0], first + kStride);
  ring.gather(frames[0]);
  ring.keep(2);
  EXPECT_FALSE(ring.lent()) << "one was asked for the second time";
}

TEST(TransmitRing, AFrameInTwoPiecesIsJoined) {
  Ring ring(kStride);
  urnic_frame f;
  ASSERT_EQ(ring.reserve(5, &f, 1), 1u);
  std::uint8_t tail[] = {'p', 'a', 'y'};
  fill(f, "head ");
  f.data[1] = tail;
  f.len[1] = sizeof tail;
  EXPECT_EQ(text_of(ring.gather(f)), "head pay");
}

}  // namespace
}  // namespace urnic::port
