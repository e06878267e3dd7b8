#include "port/plugin.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <vector>

#ifndef URNIC_LIBDIR
#define URNIC_LIBDIR "lib"
#endif

namespace urnic::port {
namespace {

// Relative to the folder of the program, of liburnic.so or of the drop-in libraries, built or
// installed.
constexpr const char* kFolders[] = {"", "/urnic", "/../lib", "/../" URNIC_LIBDIR "/urnic"};
constexpr std::string_view kDropin = "/urnic/dropin";

// An address in the object file that this code is linked into.
const char kHere = 0;

std::vector<std::string> candidates(const std::string& file) {
  std::vector<std::string> paths;
  // secure_getenv: a set-uid program must not load files chosen by its caller's environment.
  if (const char* dir = secure_getenv("URNIC_PLUGIN_DIR"); dir != nullptr && *dir != '\0') {
    paths.push_back(std::string(dir) + "/" + file);
  }
  std::vector<std::string> beside;
  Dl_info here{};
  if (dladdr(&kHere, &here) != 0 && here.dli_fname != nullptr) beside.push_back(here.dli_fname);
  // For a program, dli_fname is argv[0], which may not be a path.
  std::array<char, 4096> exe{};
  const ssize_t n = readlink("/proc/self/exe", exe.data(), exe.size());
  if (n > 0 && static_cast<std::size_t>(n) < exe.size()) {
    beside.emplace_back(exe.data(), static_cast<std::size_t>(n));
  }
  for (const std::string& object : beside) {
    const std::size_t slash = object.rfind('/');
    if (slash == std::string::npos) continue;
    const std::string dir = object.substr(0, slash);
    for (const char* folder : kFolders) paths.push_back(dir + folder + "/" + file);
    if (dir.ends_with(kDropin)) paths.push_back(dir + "/../" + file);
  }
  return paths;
}

std::string first_line(const char* text) {
  const std::string s = text == nullptr ? "cannot be loaded" : text;
  return s.substr(0, s.find('\n'));
}

Outcome<const urnic_port_ops*, std::string> checked(void* handle, const std::string& path) {
  const auto entry = reinterpret_cast<urnic_port_entry_fn>(dlsym(handle, URNIC_PORT_ENTRY_SYMBOL));
  if (entry == nullptr)
    return fail(path + " is not a port plugin of urnic (symbol missing: " URNIC_PORT_ENTRY_SYMBOL
                       ")");
  const urnic_port_ops* ops = entry();
  if (ops == nullptr) return fail(path + " is not usable: its port table is missing");
  if (ops->abi_version != URNIC_PORT_ABI_VERSION || ops->size < sizeof(urnic_port_ops)) {
    return fail(path + " was built for another version of urnic (its port table has version " +
                std::to_string(ops->abi_version) +
                ", expected: " + std::to_string(URNIC_PORT_ABI_VERSION) + ")");
  }
  return ops;
}

}  // namespace

Outcome<const urnic_port_ops*, std::string> load_plugin(std::string_view kind, bool* missing) {
  const std::string file = "liburnic-port-" + std::string(kind) + ".so";
  constexpr int kFlags = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  for (const std::string& path : candidates(file)) {
    if (access(path.c_str(), F_OK) != 0) continue;
    void* handle = dlopen(path.c_str(), kFlags);
    // If a plugin exists but does not load (a missing dependency), report that to the user;
    // searching further would hide it.
    if (handle == nullptr) return fail(first_line(dlerror()));
    return checked(handle, path);
  }
  if (void* handle = dlopen(file.c_str(), kFlags); handle != nullptr) return checked(handle, file);
  if (missing != nullptr) *missing = true;
  return fail(file + " not found: set URNIC_PLUGIN_DIR to its folder");
}

}  // namespace urnic::port
