// Compares with this machine's tshark, on captures of the Linux kernel's iWARP.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "ddp_rdma/siw_captures.h"

namespace urnic::ddp::siw_captures {
namespace {

// Splits one line of tshark's output into columns. Fields with several values are comma-separated.
std::vector<std::string> split(const std::string& s, char by) {
  std::vector<std::string> parts;
  std::istringstream in(s);
  for (std::string part; std::getline(in, part, by);) parts.push_back(part);
  return parts;
}

TEST(Captures, TsharkOfThisMachineCountsTheSame) {
  if (std::system("command -v tshark >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "tshark is not installed";
  }
  for (const Expected& e : expected()) {
    SCOPED_TRACE(e.file);
    const Capture capture = load(e.file);
    const std::string command =
        "tshark -n -r '" + test::golden_path(std::string("captures/") + e.file) +
        "' --disable-protocol nvme-tcp --disable-protocol rpcordma --disable-protocol smb_direct "
        "-o tcp.reassemble_out_of_order:TRUE -Y iwarp_mpa.fpdu -T fields -e tcp.srcport "
        "-e iwarp_rdma.opcode -e iwarp_mpa.ulpdulength 2>/dev/null";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    ASSERT_NE(pipe, nullptr);
    Counts counts;
    std::array<char, 4096> line;
    while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
      const auto columns = split(std::string(line.data()), '\t');
      ASSERT_EQ(columns.size(), 3u);
      const bool initiator =
          capture.initiator_ports.count(static_cast<std::uint16_t>(std::stoul(columns[0]))) != 0;
      const auto opcodes = split(columns[1], ','), lengths = split(columns[2], ',');
      ASSERT_EQ(opcodes.size(), lengths.size());
      for (std::size_t i = 0; i < opcodes.size(); ++i) {
        Count& n = counts[{initiator, std::stoi(opcodes[i], nullptr, 0)}];
        ++n.fpdus;
        n.ulpdu_bytes += std::stoul(lengths[i]);
      }
    }
    expect_counts(counts, count(capture));
  }
}

}  // namespace
}  // namespace urnic::ddp::siw_captures
