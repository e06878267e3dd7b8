#include <cstdio>
#include <urnic/verbs.h>
#include "engine/engine.h"  // breach: examples include only
