// The settings of a Config as the engine's options, read once when a device opens.
#pragma once

#include <string_view>

#include "engine/options.h"
#include "urnic/config.h"

namespace urnic::device {

using engine::Options;

// Settings of `config` as Options. Assumes config.check() has passed. `port_kind` is the configured
// kind, regardless of wrappers around the port.
Options options_from(const Config& config, std::string_view port_kind);

}  // namespace urnic::device
