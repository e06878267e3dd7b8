// Decides which call, work request or completion has a fault of `urnic run --verbs-faults`: a
// function of the plans and of what the program does, in its order. Not thread safe.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"
#include "fault/verbs_plan.h"

namespace urnic::fault {

struct VerbsHit {
  VerbsKind kind = VerbsKind::Count;
  std::uint64_t nth = 0;  // it was the n-th of its kind that the plan applies to
  std::int64_t argument = 0;

  // "ibv_reg_mr 3: ENOMEM"
  std::string to_string() const;
};

class VerbsFaults {
 public:
  // True if the address lies in the function or the file of this name.
  using IsFrom = std::function<bool(const void* address, const std::string& name)>;
  VerbsFaults(const std::vector<VerbsPlan>& plans, IsFrom is_from);

  struct Where {
    std::uint32_t qp = 0;          // the queue pair's number in the order of creation; 0: none
    const void* caller = nullptr;  // an address in the function that called
  };
  // Counts one event of this kind and returns the fault that it has. The first plan that has one
  // wins; all count it.
  std::optional<VerbsHit> next(VerbsKind kind, const Where& where);
  // False if no plan has a fault of this kind, which therefore need not be counted.
  bool has(VerbsKind kind) const { return has_[static_cast<std::size_t>(kind)]; }

 private:
  // The faults of one kind in one plan. Each draws its own numbers, so that a plan's faults do not
  // depend on the order in which the program's threads do other things.
  struct Source {
    VerbsKind kind;
    std::uint32_t qp;
    std::string from;
    std::vector<VerbsPlan::Fault> faults;
    Rng rng;
    std::uint64_t count = 0;
  };
  std::optional<VerbsHit> draw(Source& source) const;

  IsFrom is_from_;
  std::vector<Source> sources_;
  std::vector<bool> has_;
};

}  // namespace urnic::fault
