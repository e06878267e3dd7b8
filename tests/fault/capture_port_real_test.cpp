// Checks that another program can read our capture files.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "captured.h"

namespace urnic::fault {
namespace {

using test::Bytes;
using urnic::test::tcp_frame;

// The output of `tshark` for the file; empty if tshark is not installed.
std::string tshark(const std::string& path, const std::string& arguments) {
  if (std::system("command -v tshark >/dev/null 2>&1") != 0) return "";
  const std::string command = "tshark -r '" + path + "' " + arguments + " 2>/dev/null";
  FILE* p = popen(command.c_str(), "r");
  std::string out;
  char line[512];
  while (p != nullptr && fgets(line, sizeof line, p) != nullptr) out += line;
  if (p != nullptr) pclose(p);
  return out;
}

TEST(CapturePort, RecordsBothDirectionsAndTsharkReadsThem_D10) {
  const captured::TempDir dir;
  const std::string path = dir / "a.pcapng";
  auto file = CaptureFile::create(path);
  ASSERT_TRUE(file.ok()) << file.error();
  auto [inner, peer] = port::make_memory_pair();
  port::Port p = wrap_capture(std::move(inner), *file, "left", captured::kClock, 1000000000);
  const Bytes v4 = tcp_frame({.seq = 1, .payload = 100, .tsval = 7});
  const Bytes v6 = tcp_frame({.seq = 1, .payload = 31, .v6 = true});
  ASSERT_TRUE(captured::send(p, v4, 66));
  ASSERT_TRUE(captured::send(peer, v6, v6.size()));
  EXPECT_EQ(captured::drain(p), 1u);
  EXPECT_EQ(captured::drain(peer), 1u);
  EXPECT_EQ((*file)->stats().frames, 2u);
  EXPECT_FALSE(p.arm(0));  // going to sleep flushes
  p.disarm(0);
  EXPECT_EQ(captured::read_all(path).size(), (*file)->stats().bytes);
  EXPECT_EQ((*file)->error(), "");

  const std::string out =
      tshark(path,
             "-o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -T fields -e frame.len"
             " -e frame.packet_flags_direction -e frame.interface_name -e frame.time_epoch"
             " -e tcp.len -e tcp.checksum.status");
  if (out.empty()) GTEST_SKIP() << "no tshark on this machine";
  EXPECT_EQ(out,
            "166\t0x00000002\tleft\t6.000000123\t100\t1\n"
            "105\t0x00000001\tleft\t6.000000123\t31\t1\n");
}

TEST(CapturePort, TwoPortsShareOneFile) {
  const captured::TempDir dir;
  const std::string path = dir / "a.pcapng";
  auto file = *CaptureFile::create(path);
  auto [a, b] = port::make_memory_pair();
  port::Port left = wrap_capture(std::move(a), file, "left", captured::kClock);
  port::Port right = wrap_capture(std::move(b), file, "right", captured::kClock);
  captured::send(left, tcp_frame({.payload = 9}), 54);
  EXPECT_EQ(captured::drain(right), 1u);
  left = {};
  right = {};
  file.reset();
  const std::string out = tshark(path, "-T fields -e frame.interface_name");
  if (out.empty()) GTEST_SKIP() << "no tshark on this machine";
  EXPECT_EQ(out, "left\nright\n");
}

TEST(CaptureFile, TsharkReadsTruncatedFrames) {
  const captured::TempDir dir;
  const std::string path = dir / "a.pcapng";
  CaptureOptions o;
  o.snap_length = 40;
  auto file = *CaptureFile::create(path, o);
  const Bytes frame = tcp_frame({.payload = 1000});
  file->add(file->add_interface("x"), Direction::Rx, 1, frame, {});
  file->flush();
  const std::string out = tshark(path, "-T fields -e frame.cap_len -e frame.len");
  if (out.empty()) GTEST_SKIP() << "no tshark on this machine";
  EXPECT_EQ(out, "40\t1054\n");
}

}  // namespace
}  // namespace urnic::fault
