#include "fastpath/in_logic.h"  // breach: verbs must not include fastpath
#include "port/port.h"          // breach: verbs must not include port
#include <mutex>
std::mutex lock;  // breach: starts or blocks a thread
