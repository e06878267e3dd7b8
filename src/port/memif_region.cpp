#include "port/memif_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>

namespace urnic::port::memif {
namespace {

// Offsets in descriptors have 32 bits, so memory after this limit is unreachable.
constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 32;
constexpr long kTmpfsMagic = 0x01021994;

std::uint8_t* map(int fd, std::size_t size) {
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return p == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(p);
}

}  // namespace

Outcome<Region, std::string> Region::create(std::size_t size) {
  Region r;
  r.fd_.reset(memfd_create("urnic-memif", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!r.fd_ || ftruncate(r.fd_.get(), static_cast<off_t>(size)) != 0 ||
      fcntl(r.fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return fail(std::string("cannot create shared memory: ") + std::strerror(errno));
  }
  r.base_ = map(r.fd_.get(), size);
  if (r.base_ == nullptr)
    return fail(std::string("cannot create shared memory: ") + std::strerror(errno));
  r.size_ = size;
  return r;
}

Outcome<Region, std::string> Region::adopt(Fd fd, std::uint64_t stated) {
  if (!fd) return fail(std::string("Missing region fd"));
  if (stated == 0 || stated > kMaxSize) return fail(std::string("Invalid region size"));
  struct stat st {};
  struct statfs fs {};
  if (fstat(fd.get(), &st) != 0 || fstatfs(fd.get(), &fs) != 0 || !S_ISREG(st.st_mode)) {
    return fail(std::string("Region is not a memory file"));
  }
  // Check the seal first, then the size: only a sealed size cannot shrink any more. Huge pages are
  // refused, because a hole punched into them may have no page to fault in.
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fs.f_type != kTmpfsMagic) {
    return fail(std::string("Region must be a memfd sealed with F_SEAL_SHRINK"));
  }
  if (fstat(fd.get(), &st) != 0 || static_cast<std::uint64_t>(st.st_size) < stated) {
    return fail(std::string("Region is smaller than stated"));
  }
  Region r;
  r.size_ = static_cast<std::size_t>(stated);
  r.base_ = map(fd.get(), r.size_);
  if (r.base_ == nullptr) return fail(std::string("Region cannot be mapped"));
  r.fd_ = std::move(fd);
  return r;
}

Region::~Region() {
  if (base_ != nullptr) munmap(base_, size_);
}

}  // namespace urnic::port::memif
