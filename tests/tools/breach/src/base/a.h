#include "tcp/seq.h"  // breach: base must not include tcp
#include <thread>
void f() { std::thread t; }  // breach: starts or blocks a thread
