#include <infiniband/verbs.h>
#include <urnic/verbs.h>
#include "dropin/handles.h"
