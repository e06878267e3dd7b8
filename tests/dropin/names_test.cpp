// The built libraries have every name of symbols.txt in its version node, and no other names.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace {

struct Row {
  std::string library, node, name;
};

std::vector<Row> rows() {
  std::ifstream in(URNIC_DROPIN_NAMES);
  std::vector<Row> out;
  Row r;
  while (in >> r.library >> r.node >> r.name) out.push_back(r);
  return out;
}

std::string output_of(const std::string& command) {
  std::string out;
  FILE* p = popen(command.c_str(), "r");
  char part[4096];
  while (std::size_t n = std::fread(part, 1, sizeof part, p)) out.append(part, n);
  pclose(p);
  return out;
}

TEST(DropinNames, EveryNameExistsInItsVersionNode) {
  const auto all = rows();
  ASSERT_GT(all.size(), 700u);
  for (const Row& r : all) {
    void* library = dlopen((std::string(URNIC_DROPIN "/") + r.library).c_str(), RTLD_NOW);
    ASSERT_NE(library, nullptr) << dlerror();
    EXPECT_NE(dlvsym(library, r.name.c_str(), r.node.c_str()), nullptr)
        << r.library << " " << r.name << "@" << r.node;
    dlclose(library);
  }
}

TEST(DropinNames, NoOtherNameIsExported) {
  std::map<std::string, std::set<std::string>> wanted;
  for (const Row& r : rows()) wanted[r.library].insert(r.name);
  for (const auto& [library, names] : wanted) {
    std::istringstream lines(output_of("nm -D --defined-only " URNIC_DROPIN "/" + library +
                                       " | awk '$2 != \"A\" {print $3}'"));
    std::string name;
    while (lines >> name) {
      EXPECT_TRUE(names.contains(name.substr(0, name.find('@')))) << library << " " << name;
    }
  }
  std::istringstream lines(output_of("nm -D --defined-only " URNIC_DROPIN
                                     "/liburnic-dropin.so | awk '$2 != \"A\" {print $3}'"));
  std::string name;
  while (lines >> name) EXPECT_TRUE(name.starts_with("urnic_")) << name;
}

TEST(DropinNames, NoCxxRuntimeIsNeeded) {
  for (const char* library :
       {"libibverbs.so.1", "librdmacm.so.1", "librspreload.so", "liburnic-dropin.so"}) {
    const std::string needed =
        output_of(std::string("readelf -d " URNIC_DROPIN "/") + library + " | grep NEEDED");
    EXPECT_EQ(needed.find("libstdc++"), std::string::npos) << library << "\n" << needed;
    if (std::string(library).starts_with("liburnic"))
      continue;  // pthread_cancel needs the system's libgcc
    EXPECT_EQ(needed.find("libgcc"), std::string::npos) << library << "\n" << needed;
  }
}

// Loading starts no thread, opens no file and prints nothing, as far as a test without strace can
// see.
TEST(DropinNames, LoadingDoesNothing) {
  const std::string probe =
      "LD_PRELOAD=" URNIC_DROPIN "/librspreload.so:" URNIC_DROPIN "/librdmacm.so.1:" URNIC_DROPIN
      "/libibverbs.so.1 "
      "/bin/sh -c 'ls /proc/$$/task | wc -l; ls /proc/$$/fd' 2>&1";
  const std::string plain = "/bin/sh -c 'ls /proc/$$/task | wc -l; ls /proc/$$/fd' 2>&1";
  EXPECT_EQ(output_of(probe), output_of(plain));
}

}  // namespace
