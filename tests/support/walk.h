// Random walks: a program that does whatever may be done, step after step, beside a small model
// that says what each step answers and what is left behind. A walk is a function of its seed. One
// that disagrees with its model is repeated with fewer and fewer steps, and the shortest that still
// disagrees is shown, with the environment variable that repeats it.
//
//   URNIC_WALK_SEED=N       the first seed, instead of 1
//   URNIC_WALK_EPISODES=N   how many seeds, instead of the number of the test
//   URNIC_WALK_REPLAY=SEED:STEP,STEP,...   that one alone, telling what it does
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace urnic::test {

// What the model says and what happened are two things.
struct Disagreement : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void agree(bool holds, const std::string& what) {
  if (!holds) throw Disagreement(what);
}
template <class T>
std::string shown(const T& value) {
  std::ostringstream text;
  if constexpr (std::is_arithmetic_v<T>) {
    text << +value;  // a byte as a number
  } else {
    text << value;
  }
  return text.str();
}
template <class A, class B>
void agree_on(const A& is, const B& model, const std::string& what) {
  if (is == model) return;
  throw Disagreement(what + ": is " + shown(is) + ", the model says " + shown(model));
}

class Dice {
 public:
  explicit Dice(std::uint64_t seed) : rng_(seed) {}
  std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(rng_.below(n)); }
  // Both included.
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + below(std::size_t{high} - low + 1);
  }
  bool one_in(unsigned n) { return below(n) == 0; }
  std::uint64_t number() { return rng_.next(); }
  // Null when there is none.
  template <class T>
  T* any(std::vector<T>& of) {
    return of.empty() ? nullptr : &of[below(of.size())];
  }
  std::vector<std::uint8_t> bytes(std::size_t n) {
    std::vector<std::uint8_t> all(n);
    for (std::uint8_t& o : all) o = static_cast<std::uint8_t>(rng_.next());
    return all;
  }

 private:
  Rng rng_;
};

// What one seed makes: something to walk in.
class Walk {
 public:
  virtual ~Walk() = default;
  // Throws Disagreement.
  virtual void step(Dice&) = 0;
  // Everything that was made goes; nothing may be left.
  virtual void finish() = 0;

  std::vector<std::string> told;

 protected:
  void tell(std::string what) { told.push_back(std::move(what)); }
};

struct WalkPlan {
  std::uint32_t episodes = 100;
  std::uint32_t steps = 60;  // of each
  std::function<std::unique_ptr<Walk>(Dice&)> make;
};

namespace walking {

using Steps = std::vector<std::uint32_t>;  // which of them are done, by their numbers

struct Outcome {
  std::optional<std::string> wrong;
  std::vector<std::string> told;
};

// Each step has dice of its own, so that the others stay what they are where one is left out.
inline Outcome episode(const WalkPlan& plan, std::uint64_t seed, const Steps& steps) {
  Dice first(seed * 1000003);
  std::unique_ptr<Walk> walk;
  Outcome o;
  try {
    walk = plan.make(first);
    for (const std::uint32_t n : steps) {
      Dice dice(seed * 1000003 + n + 1);
      walk->step(dice);
    }
    walk->finish();
  } catch (const Disagreement& d) {
    o.wrong = d.what();
  }
  if (walk) o.told = walk->told;
  return o;
}

inline Steps shortest(const WalkPlan& plan, std::uint64_t seed, Steps steps) {
  int tries = 400;
  for (std::size_t width = (steps.size() + 1) / 2; width > 0; width /= 2) {
    for (std::size_t at = 0; at < steps.size() && tries > 0;) {
      Steps fewer = steps;
      const std::size_t end = std::min(at + width, steps.size());
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at),
                  fewer.begin() + static_cast<std::ptrdiff_t>(end));
      --tries;
      if (episode(plan, seed, fewer).wrong) {
        steps = std::move(fewer);
      } else {
        at += width;
      }
    }
  }
  return steps;
}

inline std::string replay(std::uint64_t seed, const Steps& steps) {
  std::string text = "URNIC_WALK_REPLAY=" + std::to_string(seed) + ":";
  for (const std::uint32_t n : steps) text += std::to_string(n) + ",";
  return text;
}

inline std::string shown(std::uint64_t seed, const Steps& steps, const Outcome& o) {
  std::string text = o.wrong.value_or("agrees") + "\n" + replay(seed, steps) + "\n";
  for (const std::string& t : o.told) text += "  " + t + "\n";
  return text;
}

inline std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

inline std::pair<std::uint64_t, Steps> parse_replay(const char* text) {
  char* at = nullptr;
  const std::uint64_t seed = std::strtoull(text, &at, 10);
  Steps steps;
  while (*at == ':' || *at == ',') {
    if (*++at == '\0') break;
    steps.push_back(static_cast<std::uint32_t>(std::strtoul(at, &at, 10)));
  }
  return {seed, steps};
}

}  // namespace walking

// A test: fails with the shortest walk found that disagrees.
inline void walk(const WalkPlan& plan) {
  using namespace walking;
  if (const char* const again = std::getenv("URNIC_WALK_REPLAY"); again != nullptr) {
    const auto [seed, steps] = parse_replay(again);
    const Outcome o = episode(plan, seed, steps);
    std::fputs(shown(seed, steps, o).c_str(), stderr);
    EXPECT_FALSE(o.wrong) << *o.wrong;
    return;
  }
  const std::uint64_t first = from_environment("URNIC_WALK_SEED", 1);
  const std::uint64_t many = from_environment("URNIC_WALK_EPISODES", plan.episodes);
  Steps all(plan.steps);
  for (std::uint32_t n = 0; n < plan.steps; ++n) all[n] = n;
  for (std::uint64_t seed = first; seed < first + many; ++seed) {
    const Outcome first_of_all = episode(plan, seed, all);
    if (!first_of_all.wrong) continue;
    const Steps few = shortest(plan, seed, all);
    const Outcome again = episode(plan, seed, few);
    // A walk over the kernel's network may come out otherwise when it is repeated.
    FAIL() << (again.wrong ? shown(seed, few, again) : shown(seed, all, first_of_all));
  }
}

}  // namespace urnic::test
