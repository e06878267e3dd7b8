#include "engine/engine.h"
#include "cli/cli.h"  // breach: sim must not include cli
#include <random>     // breach: <random>
