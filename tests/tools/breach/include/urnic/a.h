#include <cstdint>
#include <urnic/status.h>
#include "base/bytes.h"           // breach: public headers include only
#include <infiniband/verbs.h>     // breach: public headers include only
