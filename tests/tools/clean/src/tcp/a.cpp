#include "base/bytes.h"
#include "net/ipv4.h"
// A comment may name <chrono>, std::thread and "engine/engine.h".
int Window::poll(int) { return 1'000'000; }
int f() { return rng.rand(); }
