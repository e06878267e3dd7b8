#include "verbs/queue_pair.h"   // breach: fastpath must not include verbs
#include "reassembly/buffer.h"  // breach: fastpath must not include reassembly
int f() { return rand(); }      // breach: unseeded randomness
int g() { return ::open("x", 0); }  // breach: uses a descriptor
void h() { printf("x"); }           // breach: logs
