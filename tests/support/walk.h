// Random walks: a program that performs arbitrary permitted steps beside a small model that
// predicts the result of each step and the final state. A walk is a function of its seed. If it
// disagrees with its model, it is repeated with fewer and fewer steps. The shortest walk that still
// disagrees is shown, with the environment variable that repeats it.
//
//   URNIC_WALK_SEED=N       the first seed, instead of 1
//   URNIC_WALK_EPISODES=N   the number of seeds, instead of the test's
//   URNIC_WALK_REPLAY=SEED:STEP,STEP,...   only that walk, with a description of its steps
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

// The result differs from the model's prediction.
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
  // Both inclusive.
  std::uint32_t between(std::uint32_t low, std::uint32_t high) {
    return low + below(std::size_t{high} - low + 1);
  }
  bool one_in(unsigned n) { return below(n) == 0; }
  std::uint64_t number() { return rng_.next(); }
  // Null if there are no elements.
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

// One walk, created from a seed.
class Walk {
 public:
  virtual ~Walk() = default;
  // Throws Disagreement.
  virtual void step(Dice&) = 0;
  // Destroys everything that was created and checks that nothing is left.
  virtual void finish() = 0;

  std::vector<std::string> told;

 protected:
  void tell(std::string what) { told.push_back(std::move(what)); }
};

struct WalkPlan {
  std::uint32_t episodes = 100;
  std::uint32_t steps = 60;  // per walk
  std::function<std::unique_ptr<Walk>(Dice&)> make;
};

namespace walking {

using Steps = std::vector<std::uint32_t>;  // numbers of the steps to perform

struct Outcome {
  std::optional<std::string> wrong;
  std::vector<std::string> told;
};

// Each step has its own dice, so that leaving out a step does not change the others.
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

// A test: fails with the shortest disagreeing walk that it finds.
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
    // A walk over the kernel's network may have a different result when it is repeated.
    FAIL() << (again.wrong ? shown(seed, few, again) : shown(seed, all, first_of_all));
  }
}

}  // namespace urnic::test
