#include "fault/capture_port.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fault/pcapng.h"
#include "port/memory_port.h"
#include "support/golden.h"
#include "tcp_frames.h"

namespace urnic::fault {
namespace {

using test::Bytes;
using urnic::test::tcp_frame;

struct TempDir {
  TempDir() {
    std::string t = (std::filesystem::temp_directory_path() / "urnic-capture-XXXXXX").string();
    path = mkdtemp(t.data());
  }
  ~TempDir() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return path + "/" + name; }
  std::string path;
};

Bytes read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::uint64_t fixed_time(void*) {
  return 5000000123;
}
const WireClock kClock{fixed_time, nullptr, false};

bool send(port::Port& p, const Bytes& b, std::size_t head) {
  port::Frame f;
  if (p.tx_reserve(0, static_cast<std::uint32_t>(b.size()), &f, 1) != 1) return false;
  std::memcpy(f.data[0], b.data(), head);
  f.len[0] = static_cast<std::uint32_t>(head);
  f.data[1] = const_cast<std::uint8_t*>(b.data()) + head;
  f.len[1] = static_cast<std::uint32_t>(b.size() - head);
  p.tx_commit(0, &f, 1);
  return true;
}
unsigned drain(port::Port& p) {
  std::array<port::Frame, 32> f;
  const unsigned n = p.rx_burst(0, f.data(), 32);
  p.rx_release(0, f.data(), n);
  return n;
}

// What `tshark` prints for the file; empty when there is no tshark.
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

// draft-ietf-opsawg-pcapng, 4: block layout, checked octet by octet.
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
  append_packet(out, 0, Direction::Rx, 1, head, tail, 2);  // cut short
  EXPECT_EQ(load_le32(&out[20]), 2u);
  EXPECT_EQ(load_le32(&out[24]), 5u);
  EXPECT_EQ(out.size() % 4, 0u);
}

TEST(CapturePort, RecordsBothDirectionsAndTsharkReadsThem_D10) {
  const TempDir dir;
  const std::string path = dir / "a.pcapng";
  auto file = CaptureFile::create(path);
  ASSERT_TRUE(file.ok()) << file.error();
  auto [inner, peer] = port::make_memory_pair();
  port::Port p = wrap_capture(std::move(inner), *file, "left", kClock, 1000000000);
  const Bytes v4 = tcp_frame({.seq = 1, .payload = 100, .tsval = 7});
  const Bytes v6 = tcp_frame({.seq = 1, .payload = 31, .v6 = true});
  ASSERT_TRUE(send(p, v4, 66));
  ASSERT_TRUE(send(peer, v6, v6.size()));
  EXPECT_EQ(drain(p), 1u);
  EXPECT_EQ(drain(peer), 1u);
  EXPECT_EQ((*file)->stats().frames, 2u);
  EXPECT_FALSE(p.arm(0));  // going to sleep flushes
  p.disarm(0);
  EXPECT_EQ(read_all(path).size(), (*file)->stats().bytes);
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

TEST(CapturePort, FramesGivenBackAreNotRecorded) {
  const TempDir dir;
  auto file = *CaptureFile::create(dir / "a.pcapng");
  auto [inner, peer] = port::make_memory_pair();
  port::Port p = wrap_capture(std::move(inner), file, "x", kClock);
  EXPECT_STREQ(p.kind(), "capture");
  EXPECT_EQ(p.info().link_up, 1);
  port::Frame f[2];
  ASSERT_EQ(p.tx_reserve(0, 60, f, 2), 2u);
  f[0].len[0] = 0;
  p.tx_commit(0, f, 2);
  EXPECT_EQ(file->stats().frames, 1u);
  EXPECT_EQ(drain(peer), 1u);
  EXPECT_EQ(p.stats().tx_frames, 1u);
}

TEST(CapturePort, TwoPortsShareOneFile) {
  const TempDir dir;
  const std::string path = dir / "a.pcapng";
  auto file = *CaptureFile::create(path);
  auto [a, b] = port::make_memory_pair();
  port::Port left = wrap_capture(std::move(a), file, "left", kClock);
  port::Port right = wrap_capture(std::move(b), file, "right", kClock);
  send(left, tcp_frame({.payload = 9}), 54);
  EXPECT_EQ(drain(right), 1u);
  left = {};
  right = {};
  file.reset();
  const std::string out = tshark(path, "-T fields -e frame.interface_name");
  if (out.empty()) GTEST_SKIP() << "no tshark on this machine";
  EXPECT_EQ(out, "left\nright\n");
}

TEST(CaptureFile, LimitsAreKeptAndCounted) {
  const TempDir dir;
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
  EXPECT_LE(read_all(path).size(), 2000u);
  EXPECT_GT(file->stats().frames, 10u);
  EXPECT_EQ(file->stats().frames + file->stats().missing, 100u);
  EXPECT_EQ(file->error(), "");
  const std::string out = tshark(path, "-T fields -e frame.cap_len -e frame.len");
  if (!out.empty()) {
    EXPECT_EQ(out.substr(0, 8), "40\t1054\n");
  }
}

TEST(CaptureFile, WrongPathsAreRefusedWithOneLine) {
  const TempDir dir;
  const auto missing = CaptureFile::create(dir / "no/such/folder.pcapng");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().find("No such file"), std::string::npos);
  EXPECT_FALSE(CaptureFile::create(dir.path).ok());  // a folder
  const std::string fifo = dir / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_FALSE(CaptureFile::create(fifo).ok());  // refused, not waited for
  EXPECT_FALSE(CaptureFile::create("/dev/full").ok());
}

TEST(CaptureFile, AFullDiskEndsTheCaptureNotTheTraffic) {
  const TempDir dir;
  CaptureOptions o;
  o.buffer_bytes = 1000;
  auto file = *CaptureFile::create(dir / "a.pcapng", o);
  auto [inner, peer] = port::make_memory_pair();
  port::Port p = wrap_capture(std::move(inner), file, "x", kClock);
  // The file may not grow beyond this size; the signal that says so would end the process.
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  rlimit small = before;
  small.rlim_cur = 5000;
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(send(p, tcp_frame({.payload = 500}), 54));
    EXPECT_EQ(drain(peer), 1u);
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(file->error(), "");
  EXPECT_GT(file->stats().missing, 30u);
}

}  // namespace
}  // namespace urnic::fault
