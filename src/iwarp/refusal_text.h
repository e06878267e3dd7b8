// Explains to a user why two framing policies are incompatible.
#pragma once

#include <string>

#include "iwarp/startup.h"

namespace urnic::iwarp {

// For the end whose policy is `own`.
std::string refusal_text(mpa::Refusal refusal, mpa::Policy own, const mpa::PolicyToken& peer);

}  // namespace urnic::iwarp
