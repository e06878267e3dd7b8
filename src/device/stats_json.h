// EngineStats as JSON and back: declared in the public header (stats_to_json, stats_from_json).
#pragma once

#include <string>

#include "urnic/stats.h"

namespace urnic {

// The same document in pieces, for many connections and little time: the part before the
// connections, each connection (`first` for the first one), and the part after them.
std::string stats_head_to_json(const EngineStats&);
std::string stats_connection_to_json(const ConnectionStats&, bool first);
std::string stats_tail_to_json(const ConnectionStats& ended, bool any);

}  // namespace urnic
