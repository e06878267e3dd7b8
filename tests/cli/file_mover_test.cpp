#include "cli/transfer/file_mover.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>

namespace urnic::cli {
namespace {

std::vector<std::uint8_t> random_bytes(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::uint8_t> out(n);
  for (auto& b : out) b = static_cast<std::uint8_t>(rng());
  return out;
}

Digest digest_of(const std::vector<std::uint8_t>& bytes) {
  Xxh128 h;
  h.add(bytes);
  return h.finish();
}

struct TemporaryFile {
  TemporaryFile() {
    char name[] = "/tmp/urnic-mover-XXXXXX";
    fd = mkstemp(name);
    unlink(name);
  }
  ~TemporaryFile() { close(fd); }
  std::vector<std::uint8_t> content() const {
    std::vector<std::uint8_t> out(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)));
    EXPECT_EQ(pread(fd, out.data(), out.size(), 0), static_cast<ssize_t>(out.size()));
    return out;
  }
  int fd;
};

// Transfers a file; memcpy replaces the wire. Arrivals and answers are delayed at random. Returns
// the number of transferred bytes.
std::uint64_t carry(FileQueue& files, FileSource& source, FileSink& sink, const std::uint8_t* here,
                    std::uint8_t* there, std::uint32_t chunk, unsigned seed) {
  std::mt19937 rng(seed);
  std::uint64_t bytes = 0;
  std::vector<ChunkRef> arriving;
  std::vector<std::uint32_t> answers;
  // Detects a hang: a file of 150 MiB takes 3 s, and ten times as long on a busy machine.
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!(source.finished() && sink.finished())) {
    if (std::chrono::steady_clock::now() > give_up) {
      ADD_FAILURE() << "no progress";
      break;
    }
    source.step();
    sink.step();
    FileQueue::Done done;
    while (files.poll(&done)) {
      EXPECT_GE(done.result, 0);
      if (done.tag < 1000) {
        source.file_done(static_cast<std::uint32_t>(done.tag), done.result);
      } else {
        sink.file_done(static_cast<std::uint32_t>(done.tag - 1000), done.result);
      }
    }
    while (const auto c = source.next_ready()) {
      EXPECT_TRUE(sink.announce(*c));
      if (!c->hole) {
        std::memcpy(there + std::size_t{c->slot} * chunk, here + std::size_t{c->slot} * chunk,
                    c->length);
      }
      arriving.push_back(*c);
      bytes += c->hole ? 0 : c->length;
    }
    // A hole arrives at once, even if earlier chunks are still in flight.
    for (std::size_t i = 0; i < arriving.size();) {
      if (!arriving[i].hole && rng() % 3 == 0) {
        ++i;
        continue;
      }
      sink.arrived(arriving[i].slot);
      arriving.erase(arriving.begin() + static_cast<std::ptrdiff_t>(i));
    }
    while (const auto slot = sink.next_freed()) answers.push_back(*slot);
    while (!answers.empty() && rng() % 3 != 0) {
      EXPECT_TRUE(source.slot_free(answers.front()));
      answers.erase(answers.begin());
    }
  }
  return bytes;
}

// Transfers a file through two windows.
void move(std::size_t size, std::uint32_t slots, std::uint32_t chunk, bool uring, unsigned seed) {
  SCOPED_TRACE("size " + std::to_string(size) + " slots " + std::to_string(slots) + " chunk " +
               std::to_string(chunk) + " seed " + std::to_string(seed));
  const auto data = random_bytes(size, seed);
  TemporaryFile in, out;
  ASSERT_EQ(pwrite(in.fd, data.data(), data.size(), 0), static_cast<ssize_t>(size));
  std::vector<std::uint8_t> here(std::size_t{slots} * chunk), there(here.size());
  FileQueue files(4, uring);
  FileSource source(&files, 0, {here.data(), slots, chunk}, FileDescriptor(dup(in.fd)), size, "in");
  FileSink sink(&files, 1000, {there.data(), slots, chunk}, out.fd, size, "out");
  carry(files, source, sink, here.data(), there.data(), chunk, seed);
  EXPECT_EQ(out.content(), data);
  EXPECT_EQ(source.digest(), digest_of(data));
  EXPECT_EQ(sink.digest(), digest_of(data));
}
TEST(FileMover, AnySizeThroughAnyWindow) {
  for (const bool uring : {true, false}) {
    for (const std::size_t size : {0u, 1u, 4095u, 4096u, 4097u, 65536u, 1'000'003u}) {
      move(size, 1, 4096, uring, 1);
      move(size, 3, 4096, uring, 2);
      move(size, 16, 70'000, uring, 3);
    }
  }
}

TEST(FileMover, RandomWindows) {
  const unsigned seed = 1;
  std::mt19937 rng(seed);
  for (int i = 0; i < 30; ++i) {
    move(rng() % 300'000, 1 + rng() % 32, 4096 + rng() % 20'000, rng() % 2 != 0,
         seed + static_cast<unsigned>(i));
  }
}

// Creates a file with one block of data at each of these places, and holes elsewhere.
void make_sparse(const TemporaryFile& f, std::size_t size, const std::vector<std::size_t>& at) {
  ASSERT_EQ(ftruncate(f.fd, static_cast<off_t>(size)), 0);
  for (const std::size_t place : at)
    ASSERT_EQ(pwrite(f.fd, "data", 4, static_cast<off_t>(place)), 4);
}

TEST(FileMover, HolesStayHolesAndAreHashedAsZeros) {
  const std::size_t size = 150 << 20, chunk = 64 << 10;
  for (const std::vector<std::size_t>& at :
       {std::vector<std::size_t>{}, {0}, {size - 4}, {5'000'000, 5'200'000, 149'000'000}}) {
    TemporaryFile in, out;
    make_sparse(in, size, at);
    if (lseek(in.fd, 0, SEEK_HOLE) == static_cast<off_t>(size)) GTEST_SKIP() << "no holes in /tmp";
    std::vector<std::uint8_t> here(4 * chunk), there(here.size(), 0xee);
    FileQueue files(4, true);
    FileSource source(&files, 0, {here.data(), 4, chunk}, FileDescriptor(dup(in.fd)), size, "in");
    FileSink sink(&files, 1000, {there.data(), 4, chunk}, out.fd, size, "out");
    EXPECT_LE(carry(files, source, sink, here.data(), there.data(), chunk, 7), at.size() * chunk);
    ASSERT_EQ(ftruncate(out.fd, size), 0);  // like commit()
    const auto content = in.content();
    EXPECT_EQ(out.content(), content);
    EXPECT_EQ(source.digest(), digest_of(content));
    EXPECT_EQ(sink.digest(), digest_of(content));
    struct stat st {};
    ASSERT_EQ(fstat(out.fd, &st), 0);
    EXPECT_LE(st.st_blocks * 512, static_cast<off_t>((at.size() + 1) * chunk));
  }
}

TEST(FileMover, AStreamGetsTheZerosOfAHole) {
  TemporaryFile in;
  make_sparse(in, 300'000, {200'000});
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  ASSERT_GE(fcntl(pipe_fds[1], F_SETPIPE_SZ, 1 << 20), 1 << 20);
  std::vector<std::uint8_t> here(4 * 4096), there(here.size());
  FileQueue files(4, false);
  FileSource source(&files, 0, {here.data(), 4, 4096}, FileDescriptor(dup(in.fd)), 300'000, "in");
  FileSink sink({there.data(), 4, 4096}, pipe_fds[1], 300'000, "out");
  carry(files, source, sink, here.data(), there.data(), 4096, 8);
  close(pipe_fds[1]);
  std::vector<std::uint8_t> got(400'000);
  std::size_t n = 0;
  for (ssize_t r = 1; r > 0; n += static_cast<std::size_t>(std::max<ssize_t>(r, 0))) {
    r = read(pipe_fds[0], &got[n], got.size() - n);
  }
  close(pipe_fds[0]);
  got.resize(n);
  EXPECT_EQ(got, in.content());
}

TEST(FileMover, ContinuesAfterTheExistingBytes) {
  const auto data = random_bytes(200'000, 9);
  TemporaryFile in, out;
  ASSERT_EQ(pwrite(in.fd, data.data(), data.size(), 0), 200'000);
  ASSERT_EQ(pwrite(out.fd, data.data(), 70'001, 0), 70'001);
  std::vector<std::uint8_t> here(4 * 4096), there(here.size());
  FileQueue files(4, true);
  FileSource source(&files, 0, {here.data(), 4, 4096}, FileDescriptor(dup(in.fd)), data.size(),
                    "in");
  FileSink sink(&files, 1000, {there.data(), 4, 4096}, out.fd, data.size(), "out");
  Xxh128 before;
  before.add({data.data(), 70'001});
  source.begin_at(70'001, before.copy());
  sink.begin_at(70'001, before.copy());
  EXPECT_EQ(carry(files, source, sink, here.data(), there.data(), 4096, 9), 200'000u - 70'001u);
  EXPECT_EQ(out.content(), data);
  EXPECT_EQ(source.digest(), digest_of(data)) << "of all of it";
  EXPECT_EQ(sink.digest(), digest_of(data));
}

TEST(FileSource, AFileThatBecameShorterIsAnError) {
  TemporaryFile in;
  ASSERT_EQ(ftruncate(in.fd, 10'000), 0);
  std::vector<std::uint8_t> window(4 * 4096);
  FileQueue files(4, false);
  FileSource source(&files, 0, {window.data(), 4, 4096}, FileDescriptor(dup(in.fd)), 20'000, "in");
  source.step();
  FileQueue::Done done;
  while (files.poll(&done)) source.file_done(static_cast<std::uint32_t>(done.tag), done.result);
  ASSERT_TRUE(source.error().has_value());
  EXPECT_EQ(source.error()->status, Status::Truncated);
  EXPECT_FALSE(source.next_ready().has_value()) << "nothing of it goes out any more";
  EXPECT_EQ(source.in_flight(), 0u);
}

TEST(FileSource, OnlyLentSlotsCanBeReturned) {
  std::vector<std::uint8_t> window(2 * 4096);
  FileSource source({window.data(), 2, 4096}, std::vector<std::uint8_t>(5000, 1));
  EXPECT_FALSE(source.slot_free(0));
  EXPECT_FALSE(source.slot_free(2));
  source.step();
  EXPECT_FALSE(source.slot_free(0)) << "read, but not sent";
  ASSERT_TRUE(source.next_ready().has_value());
  EXPECT_TRUE(source.slot_free(0));
  EXPECT_FALSE(source.slot_free(0)) << "twice";
}

TEST(FileSink, OnlyTheNextChunkInItsSlotIsTaken) {
  std::vector<std::uint8_t> window(4 * 4096);
  const Window w{window.data(), 4, 4096};
  EXPECT_FALSE(FileSink(w, 10'000).announce({1, 4096, 0})) << "slot";
  EXPECT_FALSE(FileSink(w, 10'000).announce({0, 4096, 4096})) << "offset";
  EXPECT_FALSE(FileSink(w, 10'000).announce({0, 4097, 0})) << "length";
  EXPECT_FALSE(FileSink(w, 10'000).announce({0, 10'001, 0, true})) << "a hole beyond the end";
  EXPECT_FALSE(FileSink(w, 1 << 30).announce({0, kMaxHole + 1, 0, true})) << "a hole too large";
  EXPECT_TRUE(FileSink(w, 10'000).announce({0, 10'000, 0, true}));
  EXPECT_FALSE(FileSink(w, 10'000).announce({0, 0, 0})) << "length";
  EXPECT_FALSE(FileSink(w, 0).announce({0, 1, 0})) << "beyond the end";
  FileSink sink(w, 5 * 4096);
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_TRUE(sink.announce({i, 4096, i * 4096u}));
  EXPECT_FALSE(sink.announce({0, 4096, 4 * 4096u})) << "the slot is still in use";
  EXPECT_FALSE(sink.complete());
}

TEST(FileSink, AFailedWriteIsAnErrorAndFreesNothing) {
  std::vector<std::uint8_t> window(2 * 4096);
  FileQueue files(4, false);
  FileSink sink(&files, 0, {window.data(), 2, 4096}, -1, 4096, "out");
  ASSERT_TRUE(sink.announce({0, 4096, 0}));
  sink.arrived(0);
  FileQueue::Done done;
  ASSERT_TRUE(files.poll(&done));
  EXPECT_LT(done.result, 0);
  sink.file_done(0, done.result);
  while (sink.step()) {
  }
  EXPECT_TRUE(sink.error().has_value());
  EXPECT_FALSE(sink.next_freed().has_value());
  EXPECT_FALSE(sink.finished());
}

TEST(FileQueue, FallsBackAndReportsTheBackend) {
  EXPECT_NE(FileQueue(4, false).backend().find("pread/pwrite"), std::string::npos);
  FileQueue files(4, true);
  EXPECT_FALSE(files.backend().empty());
}

TEST(FileQueue, MoreOperationsThanItsDepthAllComplete) {
  for (const bool uring : {true, false}) {
    TemporaryFile f;
    const auto data = random_bytes(100 * 512, 5);
    std::vector<std::uint8_t> back(data.size());
    FileQueue files(4, uring);
    for (unsigned i = 0; i < 100; ++i) files.write(f.fd, &data[i * 512], 512, i * 512, i);
    unsigned seen = 0;
    FileQueue::Done done;
    while (seen < 100) {
      if (!files.poll(&done)) continue;
      EXPECT_EQ(done.result, 512);
      ++seen;
    }
    files.read(f.fd, back.data(), static_cast<std::uint32_t>(back.size()), 0, 7);
    files.read(f.fd, back.data(), 100, back.size() - 40, 8);  // beyond the end
    while (files.outstanding() != 0) {
      if (!files.poll(&done)) continue;
      EXPECT_EQ(done.result, done.tag == 7 ? static_cast<std::int64_t>(back.size()) : 40);
    }
    std::fill(back.begin(), back.end(), 0);
    ASSERT_EQ(pread(f.fd, back.data(), back.size(), 0), static_cast<ssize_t>(back.size()));
    EXPECT_EQ(back, data);
  }
}

}  // namespace
}  // namespace urnic::cli
