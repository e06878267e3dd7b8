// The messages of connection management as values, read and written by offsets after the header of
// their MAD (mad.h). Numbers in comments are offsets there and, in parentheses, bytes; bits count
// from the most significant one. Fields without a name are reserved: sent as 0 and ignored.
//
// A body always has 232 bytes, so nothing is read beyond its end. The only length field on the
// wire, that of additional information, is limited to the size of its field. Private data has no
// length: all bytes of its field belong to it. Views borrow the bytes they were read from.
//
// Values and views; any thread.
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "ib/psn.h"
#include "ib_cm/gid.h"
#include "ib_cm/mad.h"

namespace urnic::ib_cm {

// Bytes of private data.
inline constexpr std::size_t kReqPrivate = 92;
inline constexpr std::size_t kMraPrivate = 222;
inline constexpr std::size_t kRejPrivate = 148;
inline constexpr std::size_t kRepPrivate = 196;
inline constexpr std::size_t kRtuPrivate = 224;
inline constexpr std::size_t kDreqPrivate = 220;
inline constexpr std::size_t kDrepPrivate = 224;
inline constexpr std::size_t kSidrReqPrivate = 216;
inline constexpr std::size_t kSidrRepPrivate = 136;
inline constexpr std::size_t kMostPrivate = 224;
inline constexpr std::size_t kMostInformation = 72;  // of REJ, SIDR REP and APR

// The 44 bytes of a REQ that describe a path.
struct PathRecord {
  std::uint16_t local_lid = 0, remote_lid = 0;  // 0, 2: 0xffff over RoCE
  Gid local{}, remote{};                        // 4, 20: of the sender and the receiver of the REQ
  std::uint32_t flow_label = 0;                 // 36: 20 bits
  std::uint8_t rate = 0;                        // 39: the last 6 bits
  std::uint8_t traffic_class = 0;               // 40
  std::uint8_t hop_limit = 0;                   // 41
  std::uint8_t service_level = 0;               // 42: 4 bits
  bool subnet_local = false;                    // 42: bit 4
  std::uint8_t ack_timeout = 0;                 // 43: 5 bits, code as in ib/timers.h

  // True if there is one: the alternate path is usually all zero.
  bool any() const { return local_lid != 0 || remote_lid != 0 || local != Gid{}; }
};

// Extended: Req::extended names the service.
enum class Transport : std::uint8_t { Rc = 0, Uc = 1, Rd = 2, Extended = 3 };
inline constexpr std::uint8_t kExtendedXrc = 1;

// Request for communication. Timeouts are codes: 4.096 us * 2^n.
struct Req {
  std::uint32_t local_id = 0;            // 0 (4): comm id of the sender
  std::uint32_t vendor_id = 0;           // 5 (3)
  std::uint64_t service = 0;             // 8 (8)
  std::uint64_t ca_guid = 0;             // 16 (8)
  std::uint32_t qkey = 0;                // 28 (4)
  std::uint32_t qpn = 0;                 // 32 (3)
  std::uint8_t responder_resources = 0;  // 35: READs and atomics it can serve
  std::uint32_t eecn = 0;                // 36 (3)
  std::uint8_t initiator_depth = 0;      // 39: READs and atomics it wants to have outstanding
  std::uint32_t remote_eecn = 0;         // 40 (3)
  std::uint8_t remote_timeout = 0;       // 43: 5 bits, how long it waits for a response
  Transport transport = Transport::Rc;   // 43: 2 bits
  bool credits = false;                  // 43: the last bit, end-to-end flow control
  ib::Psn psn;                           // 44 (3)
  std::uint8_t local_timeout = 0;        // 47: 5 bits, the time in which it responds itself
  std::uint8_t retry_count = 0;          // 47: 3 bits
  std::uint16_t pkey = 0;                // 48 (2)
  std::uint8_t path_mtu = 0;             // 50: 4 bits, 1 (256) .. 5 (4096)
  bool rdc = false;                      // 50: bit 4, RDC exists
  std::uint8_t rnr_retry = 0;            // 50: 3 bits
  std::uint8_t max_cm_retries = 0;       // 51: 4 bits
  bool srq = false;                      // 51: bit 4
  std::uint8_t extended = 0;             // 51: 3 bits, extended transport: 1 is XRC
  PathRecord primary;                    // 52 (44)
  PathRecord alternate;                  // 96 (44)
  ByteView private_data;                 // 140 (92)
};

// The message that an MRA or a REJ refers to.
enum class Which : std::uint8_t { Req = 0, Rep = 1, Other = 2 };  // MRA: 2 is LAP

// Message receipt acknowledgement: the response takes longer.
struct Mra {
  std::uint32_t local_id = 0, remote_id = 0;  // 0 (4), 4 (4)
  Which which = Which::Req;                   // 8: 2 bits
  std::uint8_t service_timeout = 0;           // 9: 5 bits, a code
  ByteView private_data;                      // 10 (222)
};

// Why there is no connection; the reasons in use.
enum class Reason : std::uint16_t {
  None = 0,
  NoQueuePair = 1,
  NoResources = 3,
  Timeout = 4,
  Unsupported = 5,
  InvalidCommId = 6,
  NoSuchService = 8,
  Transport = 9,
  Stale = 10,
  PrimaryGid = 12,
  PathMtu = 26,
  Consumer = 28,
  RnrRetry = 29,
  ClassVersion = 31,
  VendorOption = 35,
};

struct Rej {
  std::uint32_t local_id = 0, remote_id = 0;  // 0 (4), 4 (4): 0 if there is none
  Which which = Which::Req;                   // 8: 2 bits
  Reason reason = Reason::None;               // 10 (2)
  ByteView information;                       // 12 (72): its length is in 9, 7 bits
  ByteView private_data;                      // 84 (148)
};

struct Rep {
  std::uint32_t local_id = 0, remote_id = 0;  // 0 (4), 4 (4)
  std::uint32_t qkey = 0;                     // 8 (4)
  std::uint32_t qpn = 0;                      // 12 (3)
  std::uint32_t vendor_id = 0;                // a byte each at 15, 19, 23
  std::uint32_t eecn = 0;                     // 16 (3): for XRC the queue pair; 12 is then 0
  ib::Psn psn;                                // 20 (3)
  std::uint8_t responder_resources = 0;       // 24
  std::uint8_t initiator_depth = 0;           // 25
  std::uint8_t ack_delay = 0;                 // 26: 5 bits, a code
  std::uint8_t failover = 0;                  // 26: 2 bits, 1: no path migration
  bool credits = false;                       // 26: the last bit
  std::uint8_t rnr_retry = 0;                 // 27: 3 bits
  bool srq = false;                           // 27: bit 3
  std::uint64_t ca_guid = 0;                  // 28 (8)
  ByteView private_data;                      // 36 (196)
};

// Ready to use; a DREP has the same fields.
struct Rtu {
  std::uint32_t local_id = 0, remote_id = 0;  // 0 (4), 4 (4)
  ByteView private_data;                      // 8 (224)
};
using Drep = Rtu;

struct Dreq {
  std::uint32_t local_id = 0, remote_id = 0;  // 0 (4), 4 (4)
  std::uint32_t remote_qpn = 0;               // 8 (3): of the receiver of the DREQ
  ByteView private_data;                      // 12 (220)
};

struct SidrReq {
  std::uint32_t request_id = 0;  // 0 (4)
  std::uint16_t pkey = 0;        // 4 (2)
  std::uint64_t service = 0;     // 8 (8)
  ByteView private_data;         // 16 (216)
};

enum class SidrStatus : std::uint8_t {
  Valid = 0,
  NoSuchService = 1,
  Rejected = 2,
  NoQueuePair = 3,
  Redirect = 4,
  Version = 5,
};

struct SidrRep {
  std::uint32_t request_id = 0;           // 0 (4)
  SidrStatus status = SidrStatus::Valid;  // 4
  std::uint32_t qpn = 0;                  // 8 (3)
  std::uint64_t service = 0;              // 12 (8)
  std::uint32_t qkey = 0;                 // 20 (4)
  ByteView information;                   // 24 (72): its length is in 5
  ByteView private_data;                  // 96 (136)
};

// Load alternate path, as far as needed for its refusal.
struct Lap {
  std::uint32_t local_id = 0, remote_id = 0;  // 0 (4), 4 (4)
};
inline constexpr std::uint8_t kAprUnsupported = 2;
struct Apr {
  std::uint32_t local_id = 0, remote_id = 0;  // 0 (4), 4 (4)
  std::uint8_t status = kAprUnsupported;      // 9
};

// `mad`: of kMadBytes; read_header() has determined the message.
Req read_req(ByteView mad);
Mra read_mra(ByteView mad);
Rej read_rej(ByteView mad);
Rep read_rep(ByteView mad);
Rtu read_rtu(ByteView mad);
Dreq read_dreq(ByteView mad);
SidrReq read_sidr_req(ByteView mad);
SidrRep read_sidr_rep(ByteView mad);
Lap read_lap(ByteView mad);

// Writes the whole MAD. Private data and additional information may be shorter than their fields,
// and are truncated to them.
Mad write(std::uint64_t transaction, const Req&, std::uint32_t modifier = 0);
Mad write(std::uint64_t transaction, const Mra&);
Mad write(std::uint64_t transaction, const Rej&);
Mad write(std::uint64_t transaction, const Rep&, std::uint32_t modifier = 0);
Mad write_rtu(std::uint64_t transaction, const Rtu&);
Mad write(std::uint64_t transaction, const Dreq&);
Mad write_drep(std::uint64_t transaction, const Drep&);
Mad write(std::uint64_t transaction, const SidrReq&);
Mad write(std::uint64_t transaction, const SidrRep&);
Mad write(std::uint64_t transaction, const Apr&);

}  // namespace urnic::ib_cm
