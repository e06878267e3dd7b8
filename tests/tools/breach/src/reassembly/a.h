#include "ddp_rdma/work.h"  // breach: reassembly must not include ddp_rdma
#include <iostream>         // breach: <iostream>
