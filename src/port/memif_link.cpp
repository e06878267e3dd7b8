#include "port/memif_link.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace urnic::port::memif {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLine = 64;

// An odd number of cache lines between buffers, so that the headers of consecutive frames fall into
// different cache sets. With a stride of 2048 they would not.
std::uint32_t stride_of(std::uint32_t buffer_size) {
  return static_cast<std::uint32_t>((((buffer_size + kLine - 1) / kLine) | 1) * kLine);
}

std::size_t ring_stride(unsigned log2) {
  return (ring::bytes(log2) + kLine - 1) / kLine * kLine;
}

std::size_t rings_bytes(const ClientLayout& l) {
  return (2 * l.queues * ring_stride(l.log2_ring) + kPage - 1) / kPage * kPage;
}

std::string place_rings(Link* link, std::vector<RingPlace>& rings) {
  for (RingPlace& r : rings) {
    if (r.region >= link->regions.size()) return "Invalid ring region";
    const Region& region = link->regions[r.region];
    if (r.offset % ring::kDescriptorSize != 0) return "Invalid ring offset";
    if (r.log2_size > kMaxLog2Ring) return "Invalid ring size";
    if (!region.holds(r.offset, ring::bytes(r.log2_size))) return "Ring outside its region";
    r.at = region.base() + r.offset;
    std::uint32_t cookie;
    std::memcpy(&cookie, r.at + ring::kCookieAt, sizeof cookie);
    if (cookie != kCookie) return "Wrong ring cookie";
  }
  return "";
}

}  // namespace

std::uint64_t layout_bytes(const ClientLayout& l) {
  const std::uint64_t buffers = std::uint64_t{2} * l.queues << l.log2_ring;
  return rings_bytes(l) + buffers * stride_of(l.buffer_size);
}

Outcome<std::shared_ptr<Link>, std::string> make_client_link(const ClientLayout& layout) {
  auto link = std::make_shared<Link>();
  link->side = Side::kClient;
  auto region = Region::create(layout_bytes(layout));
  if (!region.ok()) return fail(region.error());
  link->regions.push_back(std::move(region.value()));
  std::uint8_t* base = link->regions[0].base();
  link->buffer_size = layout.buffer_size;
  link->buffer_stride = stride_of(layout.buffer_size);
  link->first_buffer = static_cast<std::uint32_t>(rings_bytes(layout));

  for (unsigned i = 0; i < 2 * layout.queues; ++i) {
    RingPlace r;
    r.offset = static_cast<std::uint32_t>(i * ring_stride(layout.log2_ring));
    r.log2_size = static_cast<std::uint8_t>(layout.log2_ring);
    r.at = base + r.offset;
    r.event.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!r.event) return fail(std::string("cannot create an eventfd: ") + std::strerror(errno));
    std::memcpy(r.at + ring::kCookieAt, &kCookie, sizeof kCookie);
    (i < layout.queues ? link->s2m : link->m2s).push_back(std::move(r));
  }
  for (unsigned i = 0; i < 2 * layout.queues; ++i) {
    std::uint8_t* at = (i < layout.queues ? link->s2m[i] : link->m2s[i - layout.queues]).at;
    for (std::size_t slot = 0; slot < std::size_t{1} << layout.log2_ring; ++slot) {
      Descriptor{0, 0, layout.buffer_size, link->buffer_offset(i, slot)}.store(at, slot);
    }
  }
  return link;
}

std::string check_rings(Link* link) {
  if (link->s2m.empty() || link->m2s.empty()) return "No rings";
  if (std::string wrong = place_rings(link, link->s2m); !wrong.empty()) return wrong;
  return place_rings(link, link->m2s);
}

bool is_eventfd(int fd) {
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  std::array<char, 64> target{};
  const ssize_t n = readlink(link.c_str(), target.data(), target.size());
  return n > 0 &&
         std::string_view(target.data(), static_cast<std::size_t>(n)) == "anon_inode:[eventfd]";
}

}  // namespace urnic::port::memif
