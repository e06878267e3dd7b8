#include "fault/capture_port.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <sstream>

#include "captured.h"
#include "fault/pcapng.h"
#include "support/golden.h"

namespace urnic::fault {
namespace {

using test::Bytes;
using urnic::test::tcp_frame;

// draft-ietf-opsawg-pcapng, 4: the layout of blocks, compared byte by byte.
TEST(Pcapng, BlocksMatchTheFormat) {
  std::vector<std::uint8_t> out;
  append_section(out, "urnic");
  EXPECT_EQ(test::to_hex(out),
            "0a0d0d0a2c0000004d3c2b1a01000000ffffffffffffffff"
            "0400050075726e696300000000000000"
            "2c000000");
  out.clear();
  append_interface(out, "ab", 0);
  EXPECT_EQ(test::to_hex(out),
            "0100000028000000010000000000000002000200616200000900010009000000000000002800"
            "0000");
  out.clear();
  const Bytes head = {1, 2, 3}, tail = {4, 5};
  append_packet(out, 7, Direction::Tx, 0x1122334455667788, head, tail, 5);
  EXPECT_EQ(test::to_hex(out),
            "0600000034000000070000004433221188776655050000000500000001020304050000000200"
            "0400020000000000000034000000");
  out.clear();
  append_packet(out, 0, Direction::Rx, 1, head, tail, 2);  // truncated
  EXPECT_EQ(load_le32(&out[20]), 2u);
  EXPECT_EQ(load_le32(&out[24]), 5u);
  EXPECT_EQ(out.size() % 4, 0u);
}

TEST(CapturePort, FramesReturnedUnsentAreNotRecorded) {
  const captured::TempDir dir;
  auto file = *CaptureFile::create(dir / "a.pcapng");
  auto [inner, peer] = port::make_memory_pair();
  port::Port p = wrap_capture(std::move(inner), file, "x", captured::kClock);
  EXPECT_STREQ(p.kind(), "capture");
  EXPECT_EQ(p.info().link_up, 1);
  port::Frame f[2];
  ASSERT_EQ(p.tx_reserve(0, 60, f, 2), 2u);
  f[0].len[0] = 0;
  p.tx_commit(0, f, 2);
  EXPECT_EQ(file->stats().frames, 1u);
  EXPECT_EQ(captured::drain(peer), 1u);
  EXPECT_EQ(p.stats().tx_frames, 1u);
}

TEST(CaptureFile, LimitsAreRespectedAndMissingFramesCounted) {
  const captured::TempDir dir;
  const std::string path = dir / "a.pcapng";
  CaptureOptions o;
  o.snap_length = 40;
  o.max_bytes = 2000;
  o.buffer_bytes = 100;
  auto file = *CaptureFile::create(path, o);
  const auto id = file->add_interface("x");
  const Bytes frame = tcp_frame({.payload = 1000});
  for (int i = 0; i < 100; ++i) file->add(id, Direction::Rx, 1, frame, {});
  file->flush();
  EXPECT_LE(captured::read_all(path).size(), 2000u);
  EXPECT_GT(file->stats().frames, 10u);
  EXPECT_EQ(file->stats().frames + file->stats().missing, 100u);
  EXPECT_EQ(file->error(), "");
}

TEST(CaptureFile, WrongPathsAreRefusedWithOneLine) {
  const captured::TempDir dir;
  const auto missing = CaptureFile::create(dir / "no/such/folder.pcapng");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().find("No such file"), std::string::npos);
  EXPECT_FALSE(CaptureFile::create(dir.path).ok());  // a folder
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(CaptureFile::create(fifo).ok());  // refused without blocking
  EXPECT_FALSE(CaptureFile::create("/dev/full").ok());
}

TEST(CaptureFile, AFullDiskEndsTheCaptureNotTheTraffic) {
  const captured::TempDir dir;
  CaptureOptions o;
  o.buffer_bytes = 1000;
  auto file = *CaptureFile::create(dir / "a.pcapng", o);
  auto [inner, peer] = port::make_memory_pair();
  port::Port p = wrap_capture(std::move(inner), file, "x", captured::kClock);
  // The file must not exceed this size. The signal for that would end the process.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 5000;
  setrlimit(RLIMIT_FSIZE, &small);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(captured::send(p, tcp_frame({.payload = 500}), 54));
    EXPECT_EQ(captured::drain(peer), 1u);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(file->error(), "");
  EXPECT_GT(file->stats().missing, 30u);
}

}  // namespace
}  // namespace urnic::fault
