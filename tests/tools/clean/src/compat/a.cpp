#include <infiniband/verbs.h>
#include <urnic/verbs.h>
#include "compat/handles.h"
