// The table in which an engine and a port meet (E-32): plain C, versioned, so that a port with
// heavy dependencies can live in a shared object of its own (D11). Frames move in bursts; there is
// one call per burst, none per frame.
//
// Threading: all calls on one queue of a port come from one thread at a time (the thread that owns
// the engine at that moment). Different queues may be used by different threads at once.
#ifndef URNIC_PORT_PORT_ABI_H
#define URNIC_PORT_PORT_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define URNIC_PORT_ABI_VERSION 3u

// What is known about the TCP/UDP checksum of a received frame (E-32).
enum urnic_csum_state {
  URNIC_CSUM_UNKNOWN = 0,  // verify it
  URNIC_CSUM_GOOD = 1,     // somebody trustworthy verified it
  URNIC_CSUM_PARTIAL = 2,  // the field holds the pseudo-header sum only (kernel offload); the
                           // bytes come from the same machine and are to be trusted
  URNIC_CSUM_SOCKET = 3    // a socket of the kernel's has looked, and the headers in front are made
                           // of what it tells: of IPv4 not the identification, zero stands there
};

// One Ethernet frame. `data[0]` always holds every header up to the payload of TCP or UDP; the
// payload is contiguous: either it follows the headers inside span 0 (then len[1] == 0), or span 0
// ends with the headers and span 1 is the payload.
//
// Received frames are borrowed: valid and unchanged in length and place until rx_release. Where the
// bytes live in memory shared with a peer (memif) their *content* may change at any time: copy
// headers out before believing them (E-19).
typedef struct urnic_frame {
  uint8_t* data[2];
  uint32_t len[2];
  uint64_t arrival_ns;  // monotonic; 0 = not known, the engine's own "now" then counts
  uint64_t cookie;      // belongs to the port
  uint8_t csum;         // enum urnic_csum_state
  uint8_t reserved[7];
} urnic_frame;

typedef struct urnic_port urnic_port;  // opaque, the port's own

typedef struct urnic_port_info {
  uint8_t mac[6];       // all zero when the port has none of its own: the configuration decides
  uint8_t link_up;      // 1 when frames can flow (memif: peer connected)
  uint8_t server_side;  // memif: 1 on the listening side, else 0 (default addresses follow it)
  uint32_t max_frame;   // largest frame in bytes, Ethernet header included, no FCS
  uint32_t queues;      // usable receive/transmit queue pairs
  uint32_t link_epoch;  // rises by one whenever the link comes up
} urnic_port_info;

// Counters since open, per port, all queues together. Monotonic.
typedef struct urnic_port_stats {
  uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes;
  uint64_t rx_bad;      // refused: bad descriptor, length, index (hostile or broken peer)
  uint64_t tx_dropped;  // committed but could not be sent
  uint64_t tx_full;     // tx_reserve gave less than asked
  uint64_t syscalls;    // made on the data path
  uint64_t wakeups;     // returns from sleep caused by this port's descriptors
} urnic_port_stats;

typedef struct urnic_port_ops {
  uint32_t abi_version;  // URNIC_PORT_ABI_VERSION
  uint32_t size;         // sizeof(urnic_port_ops)
  const char* kind;      // "memif", "tap", ...

  // Open `args` ("key=value,key=value", the part behind "kind:"). On failure returns -1 and writes
  // one line that says what is wrong and what to do into err.
  int (*open)(const char* args, urnic_port** out, char* err, size_t err_len);
  void (*close)(urnic_port*);
  void (*info)(urnic_port*, urnic_port_info*);
  void (*stats)(urnic_port*, urnic_port_stats*);

  // Up to `n` received frames, oldest first. Never blocks. Also does what the port must do to stay
  // alive (control socket, reconnect), rarely and cheaply.
  unsigned (*rx_burst)(urnic_port*, unsigned queue, urnic_frame* frames, unsigned n);
  // Give back all frames of the last rx_burst, in the same order. Must come before the next one.
  void (*rx_release)(urnic_port*, unsigned queue, const urnic_frame* frames, unsigned n);

  // Reserve up to `n` transmit buffers with room for `len` bytes each in span 0 (len <=
  // max_frame). Returns how many; fewer when the port is full or the link is down.
  unsigned (*tx_reserve)(urnic_port*, unsigned queue, uint32_t len, urnic_frame* frames,
                         unsigned n);
  // Send the first `n` of the reserved frames, in order, with the lengths now in them. len[0] may
  // be anything up to the reserved length; span 1, when len[1] != 0, is foreign memory that the
  // port has read before this returns. A frame with len[0] == 0 is given back unsent. Every
  // reserved frame must be committed before the next tx_reserve on that queue.
  void (*tx_commit)(urnic_port*, unsigned queue, urnic_frame* frames, unsigned n);

  // Sleeping (every port can): up to `max` descriptors to poll for POLLIN; returns how many.
  unsigned (*wait_fds)(urnic_port*, unsigned queue, int* fds, unsigned max);
  // Ask for a wake-up through those descriptors on the next received frame (or, after a
  // tx_reserve fell short, on room to transmit). Returns 1 when there is work already: do not
  // sleep. disarm goes back to polling and clears the descriptors.
  int (*arm)(urnic_port*, unsigned queue);
  void (*disarm)(urnic_port*, unsigned queue);

  // One line for people why there is no link, or who was turned away last, into `text`; empty when
  // there is nothing to say. May be null.
  void (*why)(urnic_port*, char* text, size_t text_len);
} urnic_port_ops;

// The one symbol a port's shared object exports: liburnic-port-<kind>.so.
typedef const urnic_port_ops* (*urnic_port_entry_fn)(void);
#define URNIC_PORT_ENTRY_SYMBOL "urnic_port_entry"

#ifdef __cplusplus
}
#endif
#endif
