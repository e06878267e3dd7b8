// The guest's end of the protocol of tests/interop/verbs_peer.cpp, over librdmacm and libibverbs.
// The table of modes is at the beginning of that file; either end may be client or server.
//
//   verbs_peer -c ADDRESS | -l ADDRESS  -p PORT -m MODE [-C COUNT] [-S SIZE] [-d PRIVATE_BYTES]
//
// Exit 0 and one line on standard output if everything went as the mode requires.
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { INFO = 16, WAIT_S = 30, SLOTS = 4, MAX_PRIVATE = 196, PAUSE_US = 200000 };

static int client;
static uint32_t count = 20, size = 16384, private_bytes;
static struct rdma_cm_id* id;
static uint8_t *slots, *out;  // received messages; the message to send
static struct ibv_mr *slots_mr, *out_mr;

static _Noreturn void die(const char* format, ...) {
  va_list list;
  va_start(list, format);
  fprintf(stderr, "verbs_peer: ");
  vfprintf(stderr, format, list);
  fprintf(stderr, "\n");
  va_end(list);
  exit(1);
}
static void must(int failed, const char* what) {
  if (failed) die("%s: %s", what, strerror(errno));
}

// Byte k of message, region or private data number n; both ends know it.
static uint8_t pattern(uint32_t n, uint32_t k) {
  return (uint8_t)(n * 37 + k * 11 + (k >> 8) + 1);
}
static void fill(uint8_t* at, uint32_t length, uint32_t n) {
  for (uint32_t k = 0; k < length; ++k) at[k] = pattern(n, k);
}
static void check(const uint8_t* at, uint32_t length, uint32_t n, const char* what) {
  for (uint32_t k = 0; k < length; ++k) {
    if (at[k] != pattern(n, k)) die("%s %u: byte %u of %u is wrong", what, n, k, length);
  }
}

// ---- queues

static struct ibv_wc completion(struct ibv_cq* cq, const char* what) {
  const time_t until = time(NULL) + WAIT_S;
  struct ibv_wc wc;
  for (;;) {
    const int n = ibv_poll_cq(cq, 1, &wc);
    if (n < 0) die("poll_cq fails (%s)", what);
    if (n == 1) return wc;
    if (time(NULL) > until) die("timed out waiting for %s", what);
  }
}
static struct ibv_mr* region(uint8_t** at, size_t length, int access) {
  *at = calloc(1, length);
  struct ibv_mr* mr = ibv_reg_mr(id->pd, *at, length, IBV_ACCESS_LOCAL_WRITE | access);
  must(mr == NULL, "reg_mr");
  return mr;
}
static void post_slot(uint64_t slot) {
  must(rdma_post_recv(id, (void*)(uintptr_t)slot, slots + slot * size, size, slots_mr),
       "post_recv");
}
// The next message; it stays in place until the slot is posted again.
static uint8_t* receive(uint32_t* length, uint64_t* slot) {
  const struct ibv_wc wc = completion(id->recv_cq, "a message");
  if (wc.status != IBV_WC_SUCCESS) die("receive: %s", ibv_wc_status_str(wc.status));
  *length = wc.byte_len;
  *slot = wc.wr_id;
  return slots + wc.wr_id * size;
}
// The connection has ended: posted receives are flushed.
static void await_end(void) {
  const struct ibv_wc wc = completion(id->recv_cq, "the end of the connection");
  if (wc.status == IBV_WC_SUCCESS) die("a message instead of the end of the connection");
}
static enum ibv_wc_status run(enum ibv_wr_opcode op, void* at, uint32_t length, struct ibv_mr* mr,
                              uint64_t remote, uint32_t key) {
  struct ibv_sge sge = {(uintptr_t)at, length, mr->lkey};
  struct ibv_send_wr wr = {
      .sg_list = &sge, .num_sge = 1, .opcode = op, .send_flags = IBV_SEND_SIGNALED};
  struct ibv_send_wr* bad;
  if (op == IBV_WR_SEND_WITH_INV) wr.invalidate_rkey = key;
  // libsiw also takes the STag to invalidate from here.
  wr.wr.rdma.rkey = key;
  wr.wr.rdma.remote_addr = remote;
  must(ibv_post_send(id->qp, &wr, &bad), "post_send");
  return completion(id->send_cq, "the send queue").status;
}
static void send_message(uint32_t length) {
  const enum ibv_wc_status s = run(IBV_WR_SEND, out, length, out_mr, 0, 0);
  if (s != IBV_WC_SUCCESS) die("send: %s", ibv_wc_status_str(s));
}

struct info {
  uint64_t address;
  uint32_t stag, length;
};
static void announce(const void* at, const struct ibv_mr* mr, uint32_t length) {
  const struct info i = {htobe64((uintptr_t)at), htobe32(mr->rkey), htobe32(length)};
  memcpy(out, &i, INFO);
  send_message(INFO);
}
static struct info announced(void) {
  struct info i;
  uint32_t length;
  uint64_t slot;
  const uint8_t* at = receive(&length, &slot);
  if (length != INFO) die("an announcement of %u bytes", length);
  memcpy(&i, at, INFO);
  post_slot(slot);
  i = (struct info){be64toh(i.address), be32toh(i.stag), be32toh(i.length)};
  if (i.length > size) die("%u bytes announced, at most %u expected", i.length, size);
  return i;
}

// ---- connections

static void prepare(void) {
  struct ibv_qp_init_attr attr = {.cap = {16, 16, 1, 1, 0}, .qp_type = IBV_QPT_RC, .sq_sig_all = 1};
  must(rdma_create_qp(id, NULL, &attr), "create_qp");
  slots_mr = region(&slots, (size_t)SLOTS * size, 0);
  out_mr = region(&out, size, 0);
  for (uint64_t i = 0; i < SLOTS; ++i) post_slot(i);
}
static void check_private(const struct rdma_cm_event* event, uint32_t n) {
  if (event == NULL || event->param.conn.private_data_len != private_bytes) {
    die("%d bytes of private data instead of %u", event ? event->param.conn.private_data_len : -1,
        private_bytes);
  }
  check(event->param.conn.private_data, private_bytes, n, "private data");
}
static struct rdma_conn_param parameters(uint8_t* data, uint32_t n) {
  fill(data, private_bytes, n);
  return (struct rdma_conn_param){.private_data = data,
                                  .private_data_len = (uint8_t)private_bytes,
                                  .responder_resources = 5,
                                  .initiator_depth = 4};
}

// Does not return if the server has rejected us as expected.
static void connect_to(struct sockaddr_in* to, int rejected) {
  uint8_t data[MAX_PRIVATE];
  struct rdma_conn_param p = parameters(data, 100);
  must(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "create_id");
  must(rdma_resolve_addr(id, NULL, (struct sockaddr*)to, 5000), "resolve_addr");
  must(rdma_resolve_route(id, 5000), "resolve_route");
  prepare();
  const int failed = rdma_connect(id, &p);
  if (rejected) {
    if (!failed) die("connected although the server rejects");
    if (errno != ECONNREFUSED) die("connect: %s, not a rejection", strerror(errno));
    // siw does not pass on the private data of a rejection.
    if (id->event == NULL || id->event->param.conn.private_data_len != 0)
      check_private(id->event, 200);
    printf("rejected with %u bytes\n", private_bytes);
    exit(0);
  }
  must(failed, "connect");
  check_private(id->event, 200);
}
static void take_one(struct sockaddr_in* at, int reject) {
  uint8_t data[MAX_PRIVATE];
  struct rdma_conn_param p = parameters(data, 200);
  struct rdma_cm_id* listener;
  must(rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP), "create_id");
  must(rdma_bind_addr(listener, (struct sockaddr*)at), "bind_addr");
  must(rdma_listen(listener, 4), "listen");
  must(rdma_get_request(listener, &id), "get_request");
  check_private(id->event, 100);
  if (reject) {
    must(rdma_reject(id, data, (uint8_t)private_bytes), "reject");
    printf("rejected with %u bytes\n", private_bytes);
    exit(0);
  }
  prepare();
  must(rdma_accept(id, &p), "accept");
}

// ---- modes

static void echo(uint32_t messages) {
  for (uint32_t i = 0; i < messages; ++i) {
    const uint32_t expected = 1 + i * 7919 % size;
    uint32_t length;
    uint64_t slot;
    if (client) {
      fill(out, expected, i);
      send_message(expected);
    }
    const uint8_t* at = receive(&length, &slot);
    if (length != expected) die("message %u has %u bytes", i, length);
    check(at, length, i, "message");
    if (!client) memcpy(out, at, length);
    post_slot(slot);
    if (!client) send_message(length);
  }
}
static void end_orderly(void) {
  if (client) {
    must(rdma_disconnect(id), "disconnect");
    await_end();
  } else {
    await_end();
    rdma_disconnect(id);
  }
}
static void invalidate(void) {
  if (client) {
    uint8_t* mine;
    uint32_t length;
    uint64_t slot;
    struct ibv_mr* mr = region(&mine, size, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    announce(mine, mr, size);
    receive(&length, &slot);  // libsiw does not report that it has invalidated the STag
    check(mine, size, 1, "region");
    post_slot(slot);
    announce(mine, mr, size);
    await_end();
    check(mine, size, 1, "region, after a Write with an STag that was invalidated:");
  } else {
    uint8_t* source;
    struct ibv_mr* mr = region(&source, size, 0);
    struct info i = announced();
    fill(source, i.length, 1);
    enum ibv_wc_status s = run(IBV_WR_RDMA_WRITE, source, i.length, mr, i.address, i.stag);
    if (s != IBV_WC_SUCCESS) die("write: %s", ibv_wc_status_str(s));
    s = run(IBV_WR_SEND_WITH_INV, source, INFO, mr, 0, i.stag);
    if (s != IBV_WC_SUCCESS) die("send with invalidate: %s", ibv_wc_status_str(s));
    i = announced();
    fill(source, i.length, 2);
    run(IBV_WR_RDMA_WRITE, source, i.length, mr, i.address, i.stag);
    await_end();
  }
}
static void bad_stag(enum ibv_wr_opcode op) {
  uint8_t* mine;
  struct ibv_mr* mr = region(&mine, size, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  fill(mine, size, client ? 2 : 1);
  if (client) {
    announce(mine, mr, size);
    const struct info i = announced();
    const enum ibv_wc_status s = run(op, mine, i.length, mr, i.address, i.stag + (77u << 8));
    if (op == IBV_WR_RDMA_READ) {
      if (s == IBV_WC_SUCCESS) die("a Read of an unknown STag succeeded");
      check(mine, size, 2, "sink");
    }
    printf("%s; ", ibv_wc_status_str(s));
    await_end();
  } else {
    announced();
    announce(mine, mr, size);
    if (op == IBV_WR_RDMA_READ) {
      sleep(1);  // after its own Terminate for a Read, siw flushes no request that could be awaited
    } else {
      await_end();
    }
    check(mine, size, 1, "region");
  }
}
static void go_away(void) {
  echo(3);
  if (!client) {
    await_end();
    return;
  }
  usleep(PAUSE_US);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
  must(ibv_modify_qp(id->qp, &attr, IBV_QP_STATE), "modify_qp");
  await_end();
}

int main(int argc, char** argv) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  const char* mode = "";
  for (int o; (o = getopt(argc, argv, "c:l:p:m:C:S:d:")) != -1;) {
    if (o == 'c' || o == 'l') {
      client = o == 'c';
      if (inet_pton(AF_INET, optarg, &address.sin_addr) != 1) die("%s is no address", optarg);
    } else if (o == 'p') {
      address.sin_port = htons((uint16_t)atoi(optarg));
    } else if (o == 'm') {
      mode = optarg;
    } else if (o == 'C') {
      count = (uint32_t)atoi(optarg);
    } else if (o == 'S') {
      size = (uint32_t)atoi(optarg);
    } else if (o == 'd') {
      private_bytes = (uint32_t)atoi(optarg);
    } else {
      die("see the head of the source");
    }
  }
  if (private_bytes > MAX_PRIVATE || size < INFO || count == 0) die("an option out of range");
  const int reject = !strcmp(mode, "reject");
  client ? connect_to(&address, reject) : take_one(&address, reject);
  if (!strcmp(mode, "echo")) {
    echo(count);
    end_orderly();
  } else if (!strcmp(mode, "invalidate")) {
    invalidate();
  } else if (!strcmp(mode, "bad-write")) {
    bad_stag(IBV_WR_RDMA_WRITE);
  } else if (!strcmp(mode, "bad-read")) {
    bad_stag(IBV_WR_RDMA_READ);
  } else if (!strcmp(mode, "abort")) {
    go_away();
  } else {
    die("no mode '%s'", mode);
  }
  printf("%s done\n", mode);
  return 0;
}
