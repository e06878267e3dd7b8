#include "cli/transfer/transfer_plan.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "cli/transfer/client_options.h"

namespace urnic::cli {
namespace {

std::string without_slashes(std::string text) {
  while (!text.empty() && text.back() == '/') text.pop_back();
  return text;
}

std::string join(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : name.empty() ? folder : folder + "/" + name;
}

// "d/", "." and ".." stand for the content of the folder.
bool means_content(const std::string& path) {
  const std::string leaf = leaf_of(path);
  return leaf.empty() || leaf == "." || leaf == "..";
}

void plan_file(const std::string& path, const std::string& name, const struct stat& st,
               TransferPlan* plan) {
  if (const std::string wrong = check_name(name); !wrong.empty()) {
    plan->left_out.push_back(path + ": " + wrong);
    return;
  }
  const bool folder = S_ISDIR(st.st_mode);
  plan->files.push_back(
      {path, name, folder, st.st_mode & 0777, folder ? 0 : static_cast<std::uint64_t>(st.st_size)});
}

// Adds the content of a local folder in the order of names. Links to files are followed; links to
// folders are not, because they might form a cycle.
void plan_folder(const std::string& path, const std::string& name, TransferPlan* plan) {
  DIR* dir = opendir(path.c_str());
  if (dir == nullptr) {
    plan->left_out.push_back(path + ": " + std::strerror(errno));
    return;
  }
  std::vector<std::string> names;
  while (const dirent* e = readdir(dir)) {
    const std::string leaf = e->d_name;
    if (leaf != "." && leaf != ".." && !leaf.starts_with(kTemporaryPrefix)) names.push_back(leaf);
  }
  closedir(dir);
  std::sort(names.begin(), names.end());
  for (const std::string& leaf : names) {
    const std::string at = path.back() == '/' ? path + leaf : path + "/" + leaf;
    struct stat st {};
    if (lstat(at.c_str(), &st) != 0) {
      plan->left_out.push_back(at + ": " + std::strerror(errno));
      continue;
    }
    const bool link = S_ISLNK(st.st_mode);
    if (link && stat(at.c_str(), &st) != 0) {
      plan->left_out.push_back(at + ": a broken symbolic link");
    } else if (S_ISREG(st.st_mode)) {
      plan_file(at, join(name, leaf), st, plan);
    } else if (!S_ISDIR(st.st_mode)) {
      plan->left_out.push_back(at + ": not a regular file");
    } else if (link) {
      plan->left_out.push_back(at + ": a symbolic link to a folder (not followed)");
    } else {
      const std::size_t before = plan->files.size();
      plan_file(at, join(name, leaf), st, plan);
      if (plan->files.size() != before) plan_folder(at, join(name, leaf), plan);
    }
  }
}

// Adds the folder that several files are copied to, and its parents.
void plan_parents(const std::string& folder, TransferPlan* plan) {
  for (std::size_t slash = 0; slash != std::string::npos && !folder.empty();) {
    slash = folder.find('/', slash + 1);
    plan->files.push_back({"", folder.substr(0, slash), true, 0777, 0});
  }
}

}  // namespace

Outcome<TransferPlan, std::string> plan_put(const std::vector<std::string>& sources,
                                            const std::string& name, bool recursive) {
  std::vector<struct stat> found(sources.size());
  TransferPlan plan;
  plan.several = sources.size() > 1;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string& path = sources[i];
    if (path == "-") continue;
    if (stat(path.c_str(), &found[i]) != 0) return fail(path + ": " + std::strerror(errno));
    if (!S_ISDIR(found[i].st_mode)) continue;
    if (!recursive) {
      return fail(path + ": is a folder; use -r to put it with everything below it");
    }
    plan.several = true;
  }
  const bool into = plan.several || name.empty() || name.back() == '/';
  const std::string base = into ? without_slashes(name) : name;
  if (plan.several && !base.empty()) {
    if (const std::string wrong = check_name(base); !wrong.empty()) {
      return fail("'" + base + "': " + wrong);
    }
    plan_parents(base, &plan);
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string& path = sources[i];
    if (!S_ISDIR(found[i].st_mode)) {
      // The target name is checked by the put itself.
      plan.files.push_back({path, into ? join(base, leaf_of(path)) : base, false, 0,
                            static_cast<std::uint64_t>(found[i].st_size)});
    } else if (means_content(path)) {
      plan_folder(path, base, &plan);
    } else {
      plan_file(path, join(base, leaf_of(path)), found[i], &plan);
      plan_folder(path, join(base, leaf_of(path)), &plan);
    }
  }
  return plan;
}

bool is_pattern(std::string_view name) {
  return name.find_first_of("*?[") != std::string_view::npos;
}

std::string listed_for(std::string_view name) {
  const std::size_t first = name.find_first_of("*?[");
  if (first == std::string_view::npos) return without_slashes(std::string(name));
  const std::size_t slash = name.rfind('/', first);
  return slash == std::string_view::npos ? "" : std::string(name.substr(0, slash));
}

namespace {

// The outermost chosen folder that contains `name`; empty if there is none.
std::string chosen_above(const std::set<std::string>& chosen, const std::string& name) {
  for (std::size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    if (chosen.contains(name.substr(0, slash))) return name.substr(0, slash);
  }
  return {};
}

}  // namespace

Outcome<bool, std::string> plan_get(const std::string& name, const std::vector<ListEntry>& listed,
                                    bool recursive, TransferPlan* plan) {
  const std::string asked = without_slashes(name), below = listed_for(name);
  const bool content = means_content(name);
  const std::size_t before = plan->files.size();
  std::set<std::string> chosen;  // folders
  for (const ListEntry& e : listed) {
    const bool within = below.empty() || e.name == below || e.name.starts_with(below + "/");
    if (!within || !check_name(e.name).empty()) {
      return fail("protocol error: the target listed '" + e.name + "', which was not requested");
    }
    std::string top = chosen_above(chosen, e.name);
    if (top.empty()) {
      const bool meant = asked.empty() || e.name == asked ||
                         (is_pattern(name) &&
                          fnmatch(asked.c_str(), e.name.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0);
      if (!meant || (e.folder && !recursive)) continue;
      if (e.folder) chosen.insert(e.name);
      top = e.name;
    }
    // The name keeps the last component of the chosen file or folder, and everything below it.
    std::size_t cut = top.rfind('/') + 1;
    if (content && !asked.empty()) cut = chosen.contains(top) ? top.size() + 1 : cut;
    if (e.name.size() <= cut) continue;
    plan->files.push_back({e.name, e.name.substr(cut), e.folder, e.permissions, e.size});
  }
  return plan->files.size() != before;
}

std::string clash_in(const TransferPlan& plan) {
  std::map<std::string, const PlannedFile*> taken;
  for (const PlannedFile& f : plan.files) {
    const auto [it, free] = taken.emplace(f.to, &f);
    if (free || (f.folder && it->second->folder)) continue;
    return it->second->from + " and " + f.from + " would both be written to " + f.to;
  }
  return {};
}

}  // namespace urnic::cli
