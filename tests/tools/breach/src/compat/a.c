#include <urnic/verbs.h>
#include "verbs/queue_pair.h"  // breach: compat must not include verbs
