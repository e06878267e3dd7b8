#include <urnic/verbs.h>
#include "iwarp/side.h"
#include "verbs/queue_pair.h"
