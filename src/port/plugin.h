// Ports in shared objects of their own (D11): liburnic-port-<kind>.so.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "port/port_abi.h"

namespace urnic::port {

// Loads the plugin of `kind` (letters a-z, digits, '-' and '_' only) and checks that it speaks our
// version of the table. Looked for in $URNIC_PLUGIN_DIR, beside the library or program this code
// is in, in ../lib from there, then where the dynamic loader looks. A plugin is never unloaded:
// DPDK leaves threads behind. Thread safe.
// `*missing`: there is no such file, which is all the error then says.
Outcome<const urnic_port_ops*, std::string> load_plugin(std::string_view kind,
                                                        bool* missing = nullptr);

}  // namespace urnic::port
