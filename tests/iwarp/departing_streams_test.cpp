// Connections that have ended while their bytes are inside a plan of faults.
#include "iwarp/departing_streams.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <string>

namespace urnic::iwarp {
namespace {

// Holds pieces of the same text, one every millisecond.
class Held final : public kernel_tcp::FaultyStream {
 public:
  explicit Held(unsigned pieces, Instant first) : left_(pieces), next_(first) {}
  std::size_t send(std::span<const iovec>, std::span<const std::uint32_t>, Instant) override {
    return 0;
  }
  ByteView due(Instant now) const override {
    if (left_ == 0 || next_ > now) return {};
    return {reinterpret_cast<const std::uint8_t*>(text_.data()), text_.size()};
  }
  void passed(std::size_t n) override {
    ASSERT_EQ(n, text_.size());
    --left_;
    next_ = next_ + Duration::ms(1);
  }
  bool reset_is_due(Instant) const override { return false; }
  bool end_is_due(Instant) override { return left_ == 0; }
  Instant next_due() const override { return left_ == 0 ? Instant::never() : next_; }
  bool empty() const override { return left_ == 0; }
  void received(ByteView, Instant) override {}
  Instant window_opens() const override { return {}; }

 private:
  const std::string text_ = "abc";
  unsigned left_;
  Instant next_;
};

struct DepartingStreamsTest : ::testing::Test {
  DepartingStreamsTest() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0); }
  ~DepartingStreamsTest() override { close(fds[1]); }
  void add(unsigned pieces, Duration until) {
    streams.add(kernel_tcp::Socket(fds[0]), std::make_unique<Held>(pieces, t0 + Duration::ms(1)),
                false, t0 + until, t0);
  }
  // What has arrived; "." at the end: the stream has ended.
  std::string arrived() {
    std::string out;
    char c;
    for (;;) {
      const ssize_t n = read(fds[1], &c, 1);
      if (n == 1) {
        out += c;
      } else {
        return n == 0 ? out + "." : out;
      }
    }
  }
  int fds[2] = {};
  DepartingStreams streams;
  const Instant t0 = Instant() + Duration::s(1);
};

TEST_F(DepartingStreamsTest, EachPieceLeavesInItsTimeAndThenTheStreamEnds) {
  add(2, Duration::s(10));
  EXPECT_EQ(streams.next(), t0);
  streams.run(t0);
  EXPECT_EQ(streams.next(), t0 + Duration::ms(1));
  streams.run(t0 + Duration::ms(1));
  EXPECT_EQ(arrived(), "abc");
  EXPECT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams.next(), t0 + Duration::ms(2));
  streams.run(t0 + Duration::ms(2));
  EXPECT_EQ(arrived(), "abc.");
  EXPECT_EQ(streams.size(), 0u);
  EXPECT_TRUE(streams.next().is_never());
}

TEST_F(DepartingStreamsTest, ItDoesNotWaitLongerThanItMay) {
  add(1000, Duration::ms(3));
  streams.run(t0);
  streams.run(t0 + Duration::ms(2));
  EXPECT_EQ(streams.next(), t0 + Duration::ms(3));
  streams.run(t0 + Duration::ms(3));
  EXPECT_EQ(arrived(), "abcabcabc.");
}

TEST_F(DepartingStreamsTest, WithoutRoomItTriesAgain) {
  const std::string filler(4096, 'x');
  while (write(fds[0], filler.data(), filler.size()) > 0) continue;
  while (write(fds[0], "x", 1) > 0) continue;
  add(1, Duration::s(10));
  streams.run(t0 + Duration::ms(1));
  EXPECT_EQ(streams.size(), 1u);
  EXPECT_EQ(streams.next(), t0 + Duration::ms(2));
  arrived();
  streams.run(t0 + Duration::ms(2));
  EXPECT_EQ(arrived(), "abc.");
}

TEST_F(DepartingStreamsTest, APeerThatIsGoneEndsIt) {
  close(fds[1]);
  add(5, Duration::s(10));
  streams.run(t0 + Duration::ms(1));
  EXPECT_EQ(streams.size(), 0u);
  fds[1] = -1;
}

TEST_F(DepartingStreamsTest, AllEndAtOnce) {
  add(5, Duration::s(10));
  streams.end();
  EXPECT_EQ(arrived(), ".");
  EXPECT_EQ(streams.size(), 0u);
  EXPECT_TRUE(streams.next().is_never());
}

TEST_F(DepartingStreamsTest, AnEndWithoutAPlaceIsAResetAtOnce) {
  for (int i = 0; i < 1024; ++i) {
    streams.add({}, std::make_unique<Held>(1, t0 + Duration::s(5)), false, t0 + Duration::s(9), t0);
  }
  EXPECT_EQ(streams.size(), 1024u);
  add(1, Duration::s(10));
  EXPECT_EQ(arrived(), ".");
  streams.run(t0 + Duration::s(9));
  EXPECT_EQ(streams.size(), 0u) << "later there are places again";
}

}  // namespace
}  // namespace urnic::iwarp
