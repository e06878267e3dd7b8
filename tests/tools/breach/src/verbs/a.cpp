#include "base/bytes.h"
#include "ddp_rdma/violation.h"  // breach: verbs must not include ddp_rdma
#include "mpa/fpdu.h"            // breach: verbs must not include mpa
#include "tcp/seq.h"             // breach: verbs must not include tcp
#include "fastpath/in_logic.h"  // breach: verbs must not include fastpath
#include "port/port.h"          // breach: verbs must not include port
#include <mutex>
std::mutex lock;  // breach: starts or blocks a thread
