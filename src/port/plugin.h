// Ports in separate shared objects (D11): liburnic-port-<kind>.so.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "port/port_abi.h"

namespace urnic::port {

// Loads the plugin of `kind` (letters a-z, digits, '-' and '_' only) and checks that it supports
// our version of the table. Searches $URNIC_PLUGIN_DIR, the folder of this library or program,
// ../lib from there, then the dynamic loader's folders. A plugin is never unloaded, because DPDK
// leaves threads running. Thread safe. `*missing`: the only error is that the file does not exist.
Outcome<const urnic_port_ops*, std::string> load_plugin(std::string_view kind,
                                                        bool* missing = nullptr);

}  // namespace urnic::port
