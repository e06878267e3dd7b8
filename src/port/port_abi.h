// The interface between an engine and a port (E-32). It is a plain C table with a version, so that
// a port with large dependencies can be a separate shared object (D11). Frames move in bursts, with
// one call per burst.
//
// Threading: all calls on one queue of a port come from one thread at a time (the thread that owns
// the engine at that moment). Different threads may use different queues at once.
#ifndef URNIC_PORT_PORT_ABI_H
#define URNIC_PORT_PORT_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define URNIC_PORT_ABI_VERSION 3u

// The state of the TCP/UDP checksum of a received frame (E-32).
enum urnic_csum_state {
  URNIC_CSUM_UNKNOWN = 0,  // verify it
  URNIC_CSUM_GOOD = 1,     // verified by a trusted party
  URNIC_CSUM_PARTIAL = 2,  // the field holds only the pseudo-header sum (kernel offload);
                           // the bytes come from the same machine and are trusted
  URNIC_CSUM_SOCKET = 3    // verified by a kernel socket; the headers are built from its
                           // information, except the IPv4 identification, which is 0
};

// One Ethernet frame. `data[0]` always contains all headers up to the payload of TCP or UDP. The
// payload is contiguous: either it follows the headers inside span 0 (then len[1] == 0), or span 0
// ends with the headers and span 1 is the payload.
//
// Received frames are borrowed: their address and length are valid until rx_release. If the bytes
// are in memory shared with a peer (memif), their *content* may change at any time: copy headers
// before trusting them (E-19).
typedef struct urnic_frame {
  uint8_t* data[2];
  uint32_t len[2];
  uint64_t arrival_ns;  // monotonic; 0: not known, use the engine's own time
  uint64_t cookie;      // for use by the port
  uint8_t csum;         // enum urnic_csum_state
  uint8_t reserved[7];
} urnic_frame;

typedef struct urnic_port urnic_port;  // opaque, defined by the port

typedef struct urnic_port_info {
  uint8_t mac[6];       // all zero if the port has none: the configuration decides
  uint8_t link_up;      // 1 if frames can be sent and received (memif: peer connected)
  uint8_t server_side;  // memif: 1 on the listening side, else 0 (selects the default addresses)
  uint32_t max_frame;   // largest frame in bytes, Ethernet header included, no FCS
  uint32_t queues;      // usable receive/transmit queue pairs
  uint32_t link_epoch;  // incremented whenever the link comes up
} urnic_port_info;

// Counters since open, for all queues of the port together. Monotonic.
typedef struct urnic_port_stats {
  uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes;
  uint64_t rx_bad;      // rejected: bad descriptor, length, index (hostile or broken peer)
  uint64_t tx_dropped;  // committed but could not be sent
  uint64_t tx_full;     // tx_reserve returned less than requested
  uint64_t syscalls;    // made on the data path
  uint64_t wakeups;     // returns from sleep caused by this port's descriptors
} urnic_port_stats;

typedef struct urnic_port_ops {
  uint32_t abi_version;  // URNIC_PORT_ABI_VERSION
  uint32_t size;         // sizeof(urnic_port_ops)
  const char* kind;      // "memif", "tap", ...

  // Opens `args` ("key=value,key=value", the part after "kind:"). On failure returns -1 and writes
  // one line to `err` with the problem and a remedy.
  int (*open)(const char* args, urnic_port** out, char* err, size_t err_len);
  void (*close)(urnic_port*);
  void (*info)(urnic_port*, urnic_port_info*);
  void (*stats)(urnic_port*, urnic_port_stats*);

  // Returns up to `n` received frames, oldest first. Never blocks. Also does the port's
  // housekeeping (control socket, reconnect) at low cost.
  unsigned (*rx_burst)(urnic_port*, unsigned queue, urnic_frame* frames, unsigned n);
  // Returns all frames of the last rx_burst, in the same order. Must precede the next rx_burst.
  void (*rx_release)(urnic_port*, unsigned queue, const urnic_frame* frames, unsigned n);

  // Reserves up to `n` transmit buffers with room for `len` bytes each in span 0 (len <=
  // max_frame). Returns the number reserved; less than `n` if the port is full or the link is down.
  unsigned (*tx_reserve)(urnic_port*, unsigned queue, uint32_t len, urnic_frame* frames,
                         unsigned n);
  // Sends the first `n` of the reserved frames, in order, with their current lengths. len[0] may be
  // up to the reserved length. If len[1] != 0, span 1 is foreign memory, which the port reads
  // before this returns. A frame with len[0] == 0 is returned unsent. Every reserved frame must be
  // committed before the next tx_reserve on that queue.
  void (*tx_commit)(urnic_port*, unsigned queue, urnic_frame* frames, unsigned n);

  // For sleeping (every port supports it): stores up to `max` descriptors to poll for POLLIN and
  // returns how many.
  unsigned (*wait_fds)(urnic_port*, unsigned queue, int* fds, unsigned max);
  // Requests a wake-up through those descriptors on the next received frame (or on room to
  // transmit, if a tx_reserve fell short). Returns 1 if there is work already: do not sleep. disarm
  // returns to polling and clears the descriptors.
  int (*arm)(urnic_port*, unsigned queue);
  void (*disarm)(urnic_port*, unsigned queue);

  // Writes one line for the user into `text`: why there is no link, or which peer was rejected
  // last; empty if there is nothing to report. May be null.
  void (*why)(urnic_port*, char* text, size_t text_len);
} urnic_port_ops;

// The only symbol that a port's shared object exports: liburnic-port-<kind>.so.
typedef const urnic_port_ops* (*urnic_port_entry_fn)(void);
#define URNIC_PORT_ENTRY_SYMBOL "urnic_port_entry"

#ifdef __cplusplus
}
#endif
#endif
