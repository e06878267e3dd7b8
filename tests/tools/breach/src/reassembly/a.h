#include "ddp_rdma/header.h"  // breach: reassembly must not include ddp_rdma
#include <iostream>         // breach: <iostream>
