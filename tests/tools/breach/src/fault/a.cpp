#include "engine/engine.h"  // breach: fault must not include engine
