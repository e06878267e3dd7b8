#include "cli/transfer/storage_message.h"

#include <algorithm>
#include <cstring>

#include "base/bytes.h"

namespace urnic::cli {
namespace {

// Header of every message:
//   0 magic(4)  4 version(1)  5 kind(1)  6 length of the whole(2)  8 transfer(4)  12 status(4)
constexpr std::size_t kHeader = 16;
constexpr std::size_t kOpenBody = 44, kAbortBody = 8, kHash = sizeof(Digest);
// Size, hash, counters, length of the text.
constexpr std::size_t kResultBody = 8 + kHash + 64;

// The size of the body before any text.
constexpr std::size_t body_size(MessageKind kind) {
  switch (kind) {
    case MessageKind::Hello:
      return 16;
    case MessageKind::Welcome:
      return 32;
    case MessageKind::Open:
      return kOpenBody;
    case MessageKind::Opened:
      return 48;
    case MessageKind::Chunk:
      return 16;
    case MessageKind::Have:
      return 8 + kHash;
    case MessageKind::Begin:
      return 16;
    case MessageKind::Taken:
      return 8;
    case MessageKind::Commit:
      return 8 + kHash;
    case MessageKind::Result:
      return kResultBody;
    case MessageKind::Abort:
      return kAbortBody;
  }
  return 0;
}

constexpr std::size_t max_text(MessageKind kind) {
  if (kind == MessageKind::Open) return kMaxName;
  return kind == MessageKind::Result || kind == MessageKind::Abort ? kMaxText : 0;
}

static_assert(kHeader + kOpenBody + kMaxName <= kMaxMessage);
static_assert(kHeader + kResultBody + kMaxText <= kMaxMessage);

std::string printable(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return out;
}

// The description of a file in Open and Opened: 40 bytes.
void store_file(std::uint8_t* b, const Message& m) {
  store_be32(b, m.permissions);
  store_be32(b + 4, m.modified.nanoseconds);
  store_be64(b + 8, static_cast<std::uint64_t>(m.modified.seconds));
  store_be64(b + 16, m.size);
  store_be64(b + 24, m.allocated);
  store_be64(b + 32, m.offset);
}

void load_file(const std::uint8_t* b, Message* m) {
  m->permissions = load_be32(b) & 0777;
  m->modified = {static_cast<std::int64_t>(load_be64(b + 8)), load_be32(b + 4)};
  m->size = load_be64(b + 16);
  m->allocated = load_be64(b + 24);
  m->offset = load_be64(b + 32);
}

bool is_kind(std::uint8_t k) {
  return k >= static_cast<std::uint8_t>(MessageKind::Hello) &&
         k <= static_cast<std::uint8_t>(MessageKind::Begin);
}

}  // namespace

const char* describe(Status s) {
  switch (s) {
    case Status::Ok:
      return "done";
    case Status::BadRequest:
      return "protocol error in the request";
    case Status::BadName:
      return "invalid name";
    case Status::NotFound:
      return "no such file or folder on the target";
    case Status::NotAFile:
      return "not a regular file on the target";
    case Status::Permission:
      return "the target has no permission for the file";
    case Status::ReadOnly:
      return "the target exports its folder read-only";
    case Status::NoSpace:
      return "the disk of the target is full";
    case Status::TooLarge:
      return "the file is larger than the target's file system allows";
    case Status::InputOutput:
      return "I/O error on the target's disk";
    case Status::Truncated:
      return "the file was truncated while it was read";
    case Status::Checksum:
      return "hash mismatch: the received data is corrupt";
    case Status::Aborted:
      return "aborted";
    case Status::Busy:
      return "the target has no memory for another client";
    case Status::kCount:
      break;
  }
  return "unknown status";
}

std::size_t encode(const Message& m, std::span<std::uint8_t> out) {
  const std::size_t body = body_size(m.kind);
  const std::size_t text = std::min(m.text.size(), max_text(m.kind));
  const std::size_t length = kHeader + body + text;
  std::uint8_t* p = out.data();
  std::memset(p, 0, length);
  store_be32(p, kStorageMagic);
  p[4] = kStorageVersion;
  p[5] = static_cast<std::uint8_t>(m.kind);
  store_be16(p + 6, static_cast<std::uint16_t>(length));
  store_be32(p + 8, m.transfer);
  store_be32(p + 12, static_cast<std::uint32_t>(m.status));
  std::uint8_t* b = p + kHeader;
  switch (m.kind) {
    case MessageKind::Hello:
      store_be32(b, m.slots);
      store_be32(b + 4, m.chunk);
      break;
    case MessageKind::Welcome:
      store_be32(b, m.slots);
      store_be32(b + 4, m.chunk);
      store_be32(b + 8, m.rkey);
      store_be32(b + 12, m.read_only ? 1 : 0);
      store_be64(b + 16, m.address);
      break;
    case MessageKind::Open:
      b[0] = static_cast<std::uint8_t>(m.mode);
      b[1] = m.resume ? 1 : 0;
      store_be16(b + 2, static_cast<std::uint16_t>(text));
      store_file(b + 4, m);
      break;
    case MessageKind::Opened:
      store_file(b, m);
      store_be32(b + 40, m.whole_only ? 1 : 0);
      break;
    case MessageKind::Have:
      store_be64(b, m.offset);
      std::copy(m.hash.begin(), m.hash.end(), b + 8);
      break;
    case MessageKind::Begin:
      store_be64(b, m.offset);
      break;
    case MessageKind::Chunk:
      store_be16(b, static_cast<std::uint16_t>(m.slot));
      store_be16(b + 2, m.hole ? 1 : 0);
      store_be32(b + 4, m.length);
      store_be64(b + 8, m.offset);
      break;
    case MessageKind::Taken:
      store_be32(b, m.slot);
      break;
    case MessageKind::Commit:
      store_be64(b, m.size);
      std::copy(m.hash.begin(), m.hash.end(), b + 8);
      break;
    case MessageKind::Result:
      store_be64(b, m.size);
      std::copy(m.hash.begin(), m.hash.end(), b + 8);
      store_be64(b + 24, m.bytes_fast);
      store_be64(b + 32, m.bytes_slow);
      store_be64(b + 40, m.downgrades);
      store_be64(b + 48, m.upgrades);
      store_be64(b + 56, m.recoveries);
      store_be16(b + 64, static_cast<std::uint16_t>(text));
      break;
    case MessageKind::Abort:
      store_be16(b, static_cast<std::uint16_t>(text));
      break;
  }
  std::memcpy(b + body, m.text.data(), text);
  return length;
}

Outcome<Message, std::string> decode(std::span<const std::uint8_t> bytes) {
  using Bad = std::string;
  if (bytes.size() < kHeader) return fail(Bad("a control message is too short"));
  const std::uint8_t* p = bytes.data();
  if (load_be32(p) != kStorageMagic) return fail(Bad("a control message has a wrong magic number"));
  if (p[4] != kStorageVersion) {
    return fail("a control message has version " + std::to_string(p[4]) + ", not " +
                std::to_string(kStorageVersion));
  }
  const std::uint32_t status = load_be32(p + 12);
  if (!is_kind(p[5])) return fail("a control message has kind " + std::to_string(p[5]));
  if (load_be16(p + 6) != bytes.size() || status >= static_cast<std::uint32_t>(Status::kCount)) {
    return fail(Bad("a control message is malformed"));
  }
  Message m;
  m.kind = static_cast<MessageKind>(p[5]);
  m.status = static_cast<Status>(status);
  m.transfer = load_be32(p + 8);
  const std::size_t body = body_size(m.kind);
  if (bytes.size() < kHeader + body) return fail(Bad("a control message is too short"));
  const std::uint8_t* b = p + kHeader;
  std::size_t text = 0;
  switch (m.kind) {
    case MessageKind::Hello:
      m.slots = load_be32(b);
      m.chunk = load_be32(b + 4);
      break;
    case MessageKind::Welcome:
      m.slots = load_be32(b);
      m.chunk = load_be32(b + 4);
      m.rkey = load_be32(b + 8);
      m.read_only = (load_be32(b + 12) & 1) != 0;
      m.address = load_be64(b + 16);
      break;
    case MessageKind::Open:
      if (b[0] < 1 || b[0] > 4) return fail(Bad("a control message has an unknown open mode"));
      m.mode = static_cast<OpenMode>(b[0]);
      m.resume = (b[1] & 1) != 0;
      text = load_be16(b + 2);
      load_file(b + 4, &m);
      break;
    case MessageKind::Opened:
      load_file(b, &m);
      m.whole_only = (load_be32(b + 40) & 1) != 0;
      break;
    case MessageKind::Have:
      m.offset = load_be64(b);
      std::copy_n(b + 8, kHash, m.hash.begin());
      break;
    case MessageKind::Begin:
      m.offset = load_be64(b);
      break;
    case MessageKind::Chunk:
      m.slot = load_be16(b);
      m.hole = (load_be16(b + 2) & 1) != 0;
      m.length = load_be32(b + 4);
      m.offset = load_be64(b + 8);
      break;
    case MessageKind::Taken:
      m.slot = load_be32(b);
      break;
    case MessageKind::Commit:
      m.size = load_be64(b);
      std::copy_n(b + 8, kHash, m.hash.begin());
      break;
    case MessageKind::Result:
      m.size = load_be64(b);
      std::copy_n(b + 8, kHash, m.hash.begin());
      m.bytes_fast = load_be64(b + 24);
      m.bytes_slow = load_be64(b + 32);
      m.downgrades = load_be64(b + 40);
      m.upgrades = load_be64(b + 48);
      m.recoveries = load_be64(b + 56);
      text = load_be16(b + 64);
      break;
    case MessageKind::Abort:
      text = load_be16(b);
      break;
  }
  if (text > max_text(m.kind) || bytes.size() != kHeader + body + text) {
    return fail(Bad("a control message is malformed"));
  }
  m.text.assign(reinterpret_cast<const char*>(b + body), text);
  if (m.kind != MessageKind::Open) m.text = printable(m.text);  // it is printed on a terminal
  return m;
}

std::vector<std::uint8_t> storage_greeting(const TokenDigest* token) {
  std::vector<std::uint8_t> g(token != nullptr ? kGreeting + token->size() : kGreeting);
  store_be32(g.data(), kStorageMagic);
  g[4] = kStorageVersion;
  if (token != nullptr) std::copy(token->begin(), token->end(), g.begin() + kGreeting);
  return g;
}

TokenDigest token_said(std::span<const std::uint8_t> d) {
  TokenDigest said{};
  if (d.size() >= kGreeting + said.size()) {
    std::copy_n(d.begin() + kGreeting, said.size(), said.begin());
  }
  return said;
}

std::string check_greeting(std::span<const std::uint8_t> d) {
  if (d.size() < kGreeting || load_be32(d.data()) != kStorageMagic) {
    return "this is urnic target; connect with urnic put, get or ls";
  }
  if (d[4] != kStorageVersion) {
    return "this target speaks version " + std::to_string(kStorageVersion) +
           " of the storage protocol, the client version " + std::to_string(d[4]);
  }
  return {};
}

constexpr std::size_t kEntry = 22;  // without the name

// Each entry: size(8) modified(8) what(1; 1 file, 2 folder) 0(1) permissions(2) name length(2) name
std::vector<std::uint8_t> encode_listing(const std::vector<ListEntry>& entries) {
  std::vector<std::uint8_t> out;
  for (const ListEntry& e : entries) {
    const std::size_t at = out.size(), name = std::min<std::size_t>(e.name.size(), 65535);
    out.resize(at + kEntry + name);
    store_be64(&out[at], e.size);
    store_be64(&out[at + 8], static_cast<std::uint64_t>(e.modified));
    out[at + 16] = e.folder ? 2 : 1;
    store_be16(&out[at + 18], static_cast<std::uint16_t>(e.permissions));
    store_be16(&out[at + 20], static_cast<std::uint16_t>(name));
    std::memcpy(&out[at] + kEntry, e.name.data(), name);
  }
  return out;
}

Outcome<std::vector<ListEntry>, std::string> decode_listing(std::span<const std::uint8_t> bytes) {
  std::vector<ListEntry> out;
  while (!bytes.empty()) {
    if (bytes.size() < kEntry) return fail(std::string("the listing is truncated"));
    ListEntry e;
    e.size = load_be64(bytes.data());
    e.modified = static_cast<std::int64_t>(load_be64(bytes.data() + 8));
    e.folder = bytes[16] == 2;
    e.permissions = load_be16(bytes.data() + 18) & 0777u;
    const std::size_t name = load_be16(bytes.data() + 20);
    if (bytes.size() < kEntry + name) return fail(std::string("the listing is truncated"));
    e.name =
        printable(std::string_view(reinterpret_cast<const char*>(bytes.data() + kEntry), name));
    bytes = bytes.subspan(kEntry + name);
    out.push_back(std::move(e));
  }
  return out;
}

std::string check_name(std::string_view name) {
  if (name.empty()) return "the name is empty";
  if (name.size() > kMaxName) return "the name is longer than " + std::to_string(kMaxName);
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f) return "the name contains a control character";
  }
  for (std::size_t components = 1;; ++components) {
    if (components > kMaxComponents) {
      return "the name has more than " + std::to_string(kMaxComponents) + " components";
    }
    const std::size_t slash = name.find('/');
    const std::string_view part = name.substr(0, slash);
    if (part.empty()) return "the name begins or ends with a slash, or has two in a row";
    if (part == "." || part == "..") return "the name contains the component '.' or '..'";
    if (part.size() > 255) return "a component of the name is longer than 255";
    if (part.starts_with(kTemporaryPrefix)) {
      return "names that begin with '" + std::string(kTemporaryPrefix) + "' are reserved";
    }
    if (slash == std::string_view::npos) return {};
    name.remove_prefix(slash + 1);
  }
}

Outcome<StorageAddress, std::string> parse_storage_address(std::string_view text) {
  StorageAddress out;
  const std::size_t slash = text.find('/');
  const std::string_view endpoint = text.substr(0, slash);
  if (slash != std::string_view::npos) out.name = text.substr(slash + 1);
  const auto to = parse_endpoint(endpoint, kStoragePort);
  if (!to) {
    return fail("'" + std::string(text) +
                "' is not a target; write ADDRESS[:PORT][/NAME], e.g. 10.77.0.1/file, host/file or "
                "[fd77::1]:18700/file");
  }
  out.endpoint = *to;
  return out;
}

}  // namespace urnic::cli
