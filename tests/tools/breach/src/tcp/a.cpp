#include "base/bytes.h"
#  include "mpa/fpdu.h"  // breach: tcp must not include mpa
#include <chrono>        // breach: <chrono>
// #include "verbs/queue_pair.h" is only talked about here
const char* kText = "#include \"verbs/queue_pair.h\" std::chrono";
auto now() { return std::chrono::steady_clock::now(); }  // breach: reads a clock
