#include "verbs/memory.h"
#include "tcp/seq.h"  // breach: ddp_rdma must not include tcp
#include "fastpath/in_logic.h"  // breach: ddp_rdma must not include fastpath
#include <urnic/verbs.h>        // breach: ddp_rdma must not include public
