// EngineStats as JSON and back: declared in the public header (stats_to_json, stats_from_json).
#pragma once

#include "urnic/stats.h"
