// An ordinary RDMA program without any knowledge of urnic. The server offers 8 MiB of memory. The
// client fills it by RDMA Write and then sends a message; the server then checks each byte.
//
//   cc greeting.c -o greeting -lrdmacm -libverbs
//   ./greeting                the server
//   ./greeting ADDRESS        the client
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSize = 8 << 20, kPiece = 64 << 10, kDepth = 16 };

static uint8_t memory[kSize];
static char message[32] = "done";

struct offer {  // the private data of the server's accept
  uint64_t address;
  uint32_t key;
};

static uint8_t pattern(size_t i) {
  return (uint8_t)(i * 31 + (i >> 12));
}

static void need(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

static void expect(int completions, const struct ibv_wc* wc) {
  need(completions == 1, "no completion");
  if (wc->status == IBV_WC_SUCCESS) return;
  fprintf(stderr, "work request failed: %s\n", ibv_wc_status_str(wc->status));
  exit(1);
}

// Creates the client's end of a connection, or a listener if there is no address.
static struct rdma_cm_id* make_id(const char* address) {
  struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP,
                                .ai_flags = address ? 0 : RAI_PASSIVE},
                       *found;
  need(rdma_getaddrinfo(address, "7471", &hints, &found) == 0, "rdma_getaddrinfo");
  struct ibv_qp_init_attr attributes = {
      .qp_type = IBV_QPT_RC,
      .sq_sig_all = 1,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1}};
  struct rdma_cm_id* id;
  need(rdma_create_ep(&id, found, NULL, &attributes) == 0, "rdma_create_ep");
  rdma_freeaddrinfo(found);
  return id;
}

static int serve(void) {
  struct rdma_cm_id *listener = make_id(NULL), *id;
  need(rdma_listen(listener, 1) == 0, "rdma_listen");
  printf("waiting for a client\n");
  fflush(stdout);
  need(rdma_get_request(listener, &id) == 0, "rdma_get_request");
  struct ibv_mr* offered = rdma_reg_write(id, memory, kSize);
  struct ibv_mr* words = rdma_reg_msgs(id, message, sizeof message);
  need(offered && words, "ibv_reg_mr");
  need(rdma_post_recv(id, NULL, message, sizeof message, words) == 0, "rdma_post_recv");
  struct offer offer = {(uintptr_t)memory, offered->rkey};
  struct rdma_conn_param answer = {.private_data = &offer, .private_data_len = sizeof offer};
  need(rdma_accept(id, &answer) == 0, "rdma_accept");
  struct ibv_wc wc;
  expect(rdma_get_recv_comp(id, &wc), &wc);
  size_t wrong = 0;
  for (size_t i = 0; i < kSize; ++i) wrong += memory[i] != pattern(i);
  printf("%s: %d bytes received, %zu wrong\n", message, kSize, wrong);
  rdma_disconnect(id);
  rdma_dereg_mr(offered);
  rdma_dereg_mr(words);
  rdma_destroy_ep(id);
  rdma_destroy_ep(listener);
  return wrong != 0;
}

static int fill(const char* address) {
  struct rdma_cm_id* id = make_id(address);
  struct ibv_mr* source = rdma_reg_msgs(id, memory, kSize);
  struct ibv_mr* words = rdma_reg_msgs(id, message, sizeof message);
  need(source && words, "ibv_reg_mr");
  for (size_t i = 0; i < kSize; ++i) memory[i] = pattern(i);
  struct rdma_conn_param request = {.retry_count = 7, .rnr_retry_count = 7};
  need(rdma_connect(id, &request) == 0, "rdma_connect");
  const struct offer* offer = id->event->param.conn.private_data;
  const uint64_t to = offer->address;
  const uint32_t key = offer->key;
  struct ibv_wc wc;
  int outstanding = 0;
  for (size_t at = 0; at < kSize; at += kPiece) {
    for (; outstanding == kDepth; --outstanding) expect(rdma_get_send_comp(id, &wc), &wc);
    need(rdma_post_write(id, NULL, memory + at, kPiece, source, 0, to + at, key) == 0,
         "rdma_post_write");
    ++outstanding;
  }
  for (; outstanding > 0; --outstanding) expect(rdma_get_send_comp(id, &wc), &wc);
  need(rdma_post_send(id, NULL, message, sizeof message, words, 0) == 0, "rdma_post_send");
  expect(rdma_get_send_comp(id, &wc), &wc);
  printf("%d bytes written\n", kSize);
  rdma_disconnect(id);
  rdma_dereg_mr(source);
  rdma_dereg_mr(words);
  rdma_destroy_ep(id);
  return 0;
}

int main(int argc, char** argv) {
  return argc > 1 ? fill(argv[1]) : serve();
}
