// Why two framing policies do not come together, in words for a person.
#pragma once

#include <string>

#include "iwarp/startup.h"

namespace urnic::iwarp {

// For the end that runs `own`.
std::string refusal_text(mpa::Refusal refusal, mpa::Policy own, const mpa::PolicyToken& peer);

}  // namespace urnic::iwarp
