#include "fastpath/in_logic.h"  // breach: engine must not include fastpath
#include <sys/eventfd.h>  // breach: engine is part of the core
#include <chrono>         // breach: engine is part of the core
auto now = std::chrono::steady_clock::now();  // breach: reads a clock
