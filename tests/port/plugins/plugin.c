/* A port's shared object for the loader's tests, in the variants that the loader must distinguish.
 * Plain C, because the table must be usable from C. */
#include <stdio.h>
#include <string.h>

#include "port/port_abi.h"

struct urnic_port {
  int unused;
};
static urnic_port the_port;

static int open_port(const char* args, urnic_port** out, char* err, size_t err_len) {
  if (strcmp(args, "x=1") != 0) {
    snprintf(err, err_len, "this test wants x=1, got %s", args);
    return -1;
  }
  *out = &the_port;
  return 0;
}
static void close_port(urnic_port* p) {
  (void)p;
}
static void info(urnic_port* p, urnic_port_info* i) {
  (void)p;
  memset(i, 0, sizeof *i);
  i->max_frame = 4242;
}

static const urnic_port_ops ops = {
#ifdef OLD_VERSION
    .abi_version = URNIC_PORT_ABI_VERSION + 1,
#else
    .abi_version = URNIC_PORT_ABI_VERSION,
#endif
#ifdef SHORT_TABLE
    .size = sizeof(urnic_port_ops) - sizeof(void*),
#else
    .size = sizeof(urnic_port_ops),
#endif
    .kind = "test",
    .open = open_port,
    .close = close_port,
    .info = info,
};

#ifndef NO_ENTRY
__attribute__((visibility("default"))) const urnic_port_ops* urnic_port_entry(void) {
#ifdef NO_TABLE
  (void)ops;
  return NULL;
#else
  return &ops;
#endif
}
#else
__attribute__((visibility("default"))) const urnic_port_ops* something_else(void) {
  return &ops;
}
#endif
