// Everything a program needs to do RDMA with urnic.
#pragma once

#include "urnic/config.h"
#include "urnic/memory.h"
#include "urnic/qp_attributes.h"
#include "urnic/stats.h"
#include "urnic/status.h"
#include "urnic/verbs.h"
#include "urnic/work.h"
