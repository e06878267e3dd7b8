// Why two framing policies do not come together, in words for a person.
#pragma once

#include <string>

#include "engine/startup.h"

namespace urnic::engine {

// For the end that runs `own`.
std::string refusal_text(mpa::Refusal refusal, mpa::Policy own, const mpa::PolicyToken& peer);

}  // namespace urnic::engine
