// Control messages between `urnic put/get/ls` and `urnic target` (E-38): fixed layout, versioned,
// big-endian, one message per RDMA Send. docs/storage-protocol.md describes layouts and order.
//
// The data itself moves by RDMA through the target's window: `slots` pieces of `chunk` bytes. Chunk
// k of a transfer uses slot k mod slots. A chunk that is a hole of the file takes its slot in the
// same order, but the slot holds no data.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/endpoint.h"
#include "cli/transfer/storage_token.h"
#include "cli/xxh128.h"

namespace urnic::cli {

inline constexpr std::uint16_t kStoragePort = 18700;
inline constexpr std::uint32_t kStorageMagic = 0x55524e53;  // "URNS"
inline constexpr std::uint8_t kStorageVersion = 3;
inline constexpr std::size_t kMaxMessage = 1536;
inline constexpr std::size_t kMaxName = 1024;
inline constexpr std::size_t kMaxText = 512;
inline constexpr std::uint32_t kMaxHole = 64 << 20;  // the largest chunk that is a hole, in bytes
inline constexpr std::size_t kMaxComponents = 64;    // in a name

enum class MessageKind : std::uint8_t {
  Hello = 1,  // initiator: requested window
  Welcome,    // target: granted window
  Open,       // initiator: put, get or list
  Opened,     // target: transfer may begin
  Chunk,      // the side that fills slots: this slot holds the next piece
  Taken,      // the other side: the slot may be filled again
  Commit,     // the filling side: all chunks are announced; carries the hash of the file
  Result,     // target: the outcome (put: after the rename)
  Abort,      // initiator: abandons the open file
  Have,       // target: hash of the existing bytes before `offset`
  Begin,      // initiator: continue at `offset`
};

// A Result answers MakeFolder; an existing folder counts as success.
enum class OpenMode : std::uint8_t { Put = 1, Get, List, MakeFolder };

// A modification time; nanoseconds == kNoTime means unknown.
inline constexpr std::uint32_t kNoTime = UINT32_MAX;
struct FileTime {
  std::int64_t seconds = 0;  // since 1970
  std::uint32_t nanoseconds = kNoTime;
  bool known() const { return nanoseconds < 1'000'000'000; }
  bool operator==(const FileTime&) const = default;
};

enum class Status : std::uint8_t {
  Ok,
  BadRequest,  // message out of order or malformed
  BadName,     // would leave the folder, or is not a valid name
  NotFound,
  NotAFile,
  Permission,
  ReadOnly,
  NoSpace,
  TooLarge,
  InputOutput,
  Truncated,  // the file became shorter while it was read
  Checksum,
  Aborted,
  Busy,  // no window available
  kCount
};
// "no such file on the target", ...
const char* describe(Status);

// All fields of all kinds; encode() uses those of the message's kind, decode() fills them.
struct Message {
  MessageKind kind = MessageKind::Hello;
  Status status = Status::Ok;          // Result, Abort
  std::uint32_t transfer = 0;          // chosen by the initiator; 0 for Hello and Welcome
  std::uint32_t slots = 0, chunk = 0;  // Hello (requested), Welcome (granted)
  std::uint32_t rkey = 0;              // Welcome
  std::uint64_t address = 0;           // Welcome: address of the window
  bool read_only = false;              // Welcome
  OpenMode mode = OpenMode::Put;       // Open
  bool resume = false;                 // Open: continue with the existing bytes
  bool whole_only = false;             // Opened: complete file exists; Begin at 0 or its end
  std::uint64_t allocated = 0;         // Open (put), Opened: bytes that its disk blocks take
  FileTime modified;                   // Open (put), Opened
  std::uint32_t permissions = 0;       // Open (put), Opened (get): lowest nine mode bits
  std::uint64_t size = 0;              // Open (put), Opened, Commit, Result: bytes of the file
  std::uint32_t slot = 0, length = 0;  // Chunk; Taken has the slot
  bool hole = false;                   // Chunk: zeros, without data in the slot
  // Chunk, Begin: offset in the file. Open (get), Opened, Have: number of bytes already there.
  std::uint64_t offset = 0;
  Digest hash{};  // Commit, Result, Have
  // Result: counters of the target's receive side on this connection so far.
  std::uint64_t bytes_fast = 0, bytes_slow = 0;
  std::uint64_t downgrades = 0, upgrades = 0, recoveries = 0;
  std::string text;  // Open: name; Result, Abort: one line for the user
};

// Returns the number of bytes written to `out`, which has room for kMaxMessage. Cuts texts that are
// too long.
std::size_t encode(const Message& message, std::span<std::uint8_t> out);
// The error is one line.
Outcome<Message, std::string> decode(std::span<const std::uint8_t> bytes);

// Private data of the connect request: magic and version, so that both ends detect a mismatch
// before anything is set up. With a token its digest follows: 40 bytes instead of 8, which also fit
// into RoCE's private data.
inline constexpr std::size_t kGreeting = 8;
std::vector<std::uint8_t> storage_greeting(const TokenDigest* token = nullptr);
// Empty if it is a valid greeting; else the reason.
std::string check_greeting(std::span<const std::uint8_t> private_data);
// The token's digest after a valid greeting; all zero if there is none.
TokenDigest token_said(std::span<const std::uint8_t> private_data);

// ---- listing: the content returned for an Open in mode List

// bound: names in a listing of a target; beyond: the listing is cut and marked so; `get -r` refuses
// it; test: FolderTest.ListWalksFoldersAndHidesTemporaries
inline constexpr std::size_t kMostEntries = 100'000;  // further entries are omitted

struct ListEntry {
  std::string name;
  std::uint64_t size = 0;
  std::int64_t modified = 0;  // seconds since 1970
  bool folder = false;
  std::uint32_t permissions = 0;
  bool operator==(const ListEntry&) const = default;
};
std::vector<std::uint8_t> encode_listing(const std::vector<ListEntry>& entries);
Outcome<std::vector<ListEntry>, std::string> decode_listing(std::span<const std::uint8_t> bytes);

// ---- names

// Checks a name inside an exported folder: at most kMaxComponents components, separated by single
// slashes, none of them "." or "..", no control characters, not one of our temporary names. Empty
// if valid; else the reason.
std::string check_name(std::string_view name);
inline constexpr std::string_view kTemporaryPrefix = ".urnic-";

// Parses "host:port" and "host:port/name" with optional port: "10.77.0.1", "[fd77::1]:7/a/b",
// "host/a". The error is one line.
struct StorageAddress {
  Endpoint endpoint;
  std::string name;  // without the leading slash; may be empty
};
Outcome<StorageAddress, std::string> parse_storage_address(std::string_view text);

}  // namespace urnic::cli
