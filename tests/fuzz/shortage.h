// Calls during which memory or descriptors run out at a point that the input determines.
#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <new>

#include "tests/fuzz/input.h"
#include "tests/support/allocator.h"

namespace urnic::fuzz {

class Shortage {
 public:
  // Selects what runs out in the following calls: memory, descriptors, or nothing.
  void choose(Input& in) {
    kind_ = Kind::None;
    const unsigned what = in.u8();
    if (what >= 96) return;
    kind_ = what < 72 ? Kind::Memory : Kind::Descriptors;
    after_ = in.below(kind_ == Kind::Memory ? 40 : 4);
    many_ = what % 4 == 0 ? testing::NoMemory::kForEver : 1 + what % 4;
  }
  void end() { kind_ = Kind::None; }
  // How many calls have been affected so far.
  std::uint64_t refused() const { return refused_; }

  template <class F>
  auto operator()(F&& call) -> decltype(call()) {
    if (kind_ == Kind::None) return call();
    try {
      if (kind_ == Kind::Descriptors) {
        ++refused_;  // possibly
        const Descriptors few(after_);
        return call();
      }
      testing::NoMemory plan(after_, many_);
      const Counted counted{refused_, plan};
      return call();
    } catch (const std::bad_alloc&) {
      fail("a call has thrown");
    }
  }

 private:
  enum class Kind : std::uint8_t { None, Memory, Descriptors };
  struct Counted {
    std::uint64_t& all;
    const testing::NoMemory& plan;
    ~Counted() { all += plan.failed(); }
  };
  // Limits the number of descriptors that can be opened to `n` more.
  class Descriptors {
   public:
    explicit Descriptors(std::uint64_t n) {
      getrlimit(RLIMIT_NOFILE, &before_);
      const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (next < 0) return;
      close(next);
      rlimit few = before_;
      few.rlim_cur = static_cast<rlim_t>(next) + n;
      setrlimit(RLIMIT_NOFILE, &few);
    }
    ~Descriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
    Descriptors(const Descriptors&) = delete;
    Descriptors& operator=(const Descriptors&) = delete;

   private:
    rlimit before_{};
  };

  Kind kind_ = Kind::None;
  std::uint64_t after_ = 0, many_ = 1, refused_ = 0;
};

}  // namespace urnic::fuzz
