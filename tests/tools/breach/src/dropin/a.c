#include <urnic/verbs.h>
#include "verbs/queue_pair.h"  // breach: dropin must not include verbs
