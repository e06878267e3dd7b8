#include "rsockets/ending.h"

#include <errno.h>
#include <gtest/gtest.h>

namespace urnic::rsockets {
namespace {

Ending connected() {
  Ending e;
  e.connected();
  return e;
}

constexpr auto value(Control c) {
  return static_cast<std::uint32_t>(c);
}

// proves: DI-17
TEST(RsocketEnding, ClosingForWritingSendsAShutdownAndKeepsTheOtherDirection) {
  Ending e = connected();
  EXPECT_EQ(e.close(false, true), Control::shutdown);
  EXPECT_TRUE(e.is_readable());
  EXPECT_FALSE(e.is_writable());
  EXPECT_EQ(e.close(false, true), std::nullopt) << "once";
  EXPECT_EQ(e.close(true, false), Control::disconnect);
  EXPECT_TRUE(e.is_connected()) << "until that has gone";
  e.on_disconnect_sent();
  EXPECT_FALSE(e.is_connected());
  EXPECT_EQ(e.error(), 0);
}

// proves: DI-17
TEST(RsocketEnding, ClosingForReadingSendsNothing) {
  Ending e = connected();
  EXPECT_EQ(e.close(true, false), std::nullopt);
  EXPECT_TRUE(e.is_writable());
  EXPECT_EQ(e.close(false, true), Control::disconnect);
}

TEST(RsocketEnding, ClosingBothIsOneMessage) {
  Ending e = connected();
  EXPECT_EQ(e.close(true, true), Control::disconnect);
  EXPECT_EQ(e.close(true, true), std::nullopt);
}

// proves: DI-17
TEST(RsocketEnding, ThePeersShutdownEndsInputAndWithOursTheConnection) {
  Ending e = connected();
  EXPECT_TRUE(e.on_control(value(Control::shutdown)));
  EXPECT_FALSE(e.is_readable());
  EXPECT_TRUE(e.is_writable());
  EXPECT_EQ(e.close(false, true), Control::disconnect);
  e = connected();
  e.close(false, true);
  EXPECT_TRUE(e.on_control(value(Control::shutdown)));
  EXPECT_FALSE(e.is_connected()) << "nobody has anything to say";
}

TEST(RsocketEnding, ThePeersDisconnectEndsTheConnectionWithoutAnError) {
  Ending e = connected();
  EXPECT_TRUE(e.on_control(value(Control::disconnect)));
  EXPECT_FALSE(e.is_connected() || e.is_readable() || e.is_writable());
  EXPECT_EQ(e.error(), 0);
  e.lost(ECONNRESET);
  EXPECT_EQ(e.error(), 0) << "what comes after the end is none of its business";
}

TEST(RsocketEnding, ALostConnectionIsAnError) {
  Ending e = connected();
  e.lost(ECONNRESET);
  EXPECT_FALSE(e.is_connected());
  EXPECT_EQ(e.error(), ECONNRESET);
}

TEST(RsocketEnding, KeepAlivesAreAcceptedAndUnknownMessagesAreInvalid) {
  Ending e = connected();
  EXPECT_TRUE(e.on_control(value(Control::keepalive)));
  EXPECT_TRUE(e.is_readable() && e.is_writable());
  EXPECT_FALSE(e.on_control(3));
}

}  // namespace
}  // namespace urnic::rsockets
