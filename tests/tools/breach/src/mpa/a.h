#include "tcp/tcb.h"     // breach: mpa must not include tcp
#include "a_neighbour.h"  // breach: is not room/file.h
