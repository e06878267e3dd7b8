#include <urnic/verbs.h>
#include "fastpath/in_logic.h"
#include "verbs/queue_pair.h"
