// main() of a fuzz target without libFuzzer: inputs are generated from seeds, or read from files.
//
//   fuzz_NAME [--seconds N] [--seed FIRST] [--runs N] [--longest BYTES] [FILE or FOLDER...]
//
// First runs every file, then inputs of seeds FIRST, FIRST + 1, ... until the runs or the seconds
// are over. On any failure it prints the seed or the file; `--seed S --runs 1` repeats the run.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/rng.h"
#include "tests/fuzz/input.h"

// Reports of a sanitizer also name the input.
extern "C" const char* __asan_default_options() {
  return "abort_on_error=1:detect_leaks=1";
}
extern "C" const char* __ubsan_default_options() {
  return "abort_on_error=1:print_stacktrace=1";
}

namespace {

constexpr unsigned kLongestRun = 60;  // seconds; a longer run is a hang

char what[512] = "nothing was run";

void report(int signal) {
  const char* text = signal == SIGALRM ? "fuzz: no end within a minute: " : "fuzz: input: ";
  (void)!write(STDERR_FILENO, text, std::strlen(text));
  (void)!write(STDERR_FILENO, what, std::strlen(what));
  (void)!write(STDERR_FILENO, "\n", 1);
  ::signal(SIGABRT, SIG_DFL);
  std::abort();
}

void run(const std::vector<std::uint8_t>& input) {
  alarm(kLongestRun);
  // A separate allocation, so that reading beyond it is detected.
  std::vector<std::uint8_t> exact(input.begin(), input.end());
  exact.shrink_to_fit();
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  alarm(0);
}

std::vector<std::uint8_t> made_from(std::uint64_t seed, std::size_t longest) {
  urnic::Rng rng(seed);
  std::vector<std::uint8_t> input(rng.below(2) == 0 ? rng.below(longest / 8) : rng.below(longest));
  for (auto& b : input) b = static_cast<std::uint8_t>(rng.next());
  return input;
}

unsigned long run_file(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    unsigned long n = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path)) n += run_file(entry.path());
    return n;
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "fuzz: cannot read %s\n", path.c_str());
    std::exit(2);
  }
  std::snprintf(what, sizeof what, "file %s", path.c_str());
  run({std::istreambuf_iterator<char>(in), {}});
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 1, runs = 0, seconds = 0, longest = 4096;
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    std::uint64_t* number = word == "--seconds"   ? &seconds
                            : word == "--seed"    ? &seed
                            : word == "--runs"    ? &runs
                            : word == "--longest" ? &longest
                                                  : nullptr;
    if (number != nullptr && i + 1 < argc) {
      *number = std::strtoull(argv[++i], nullptr, 10);
    } else if (number != nullptr || word.starts_with("--")) {
      std::fprintf(stderr,
                   "usage: %s [--seconds N] [--seed N] [--runs N] [--longest N] [FILE...]\n",
                   argv[0]);
      return 2;
    } else {
      files.emplace_back(word);
    }
  }
  if (longest < 16) longest = 16;
  signal(SIGABRT, report);
  signal(SIGALRM, report);
  unsigned long done = 0;
  for (const auto& f : files) done += run_file(f);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::uint64_t n = 0;
  for (; n < runs || (seconds != 0 && std::chrono::steady_clock::now() < end); ++n) {
    std::snprintf(what, sizeof what, "--seed %llu --runs 1 --longest %llu",
                  static_cast<unsigned long long>(seed + n),
                  static_cast<unsigned long long>(longest));
    run(made_from(seed + n, longest));
  }
  std::printf("%lu files and %llu seeds from %llu on: nothing found\n", done,
              static_cast<unsigned long long>(n), static_cast<unsigned long long>(seed));
  return 0;
}
