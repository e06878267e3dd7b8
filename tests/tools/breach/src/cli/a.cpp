#include "tcp/tcb.h"  // breach: cli must not include tcp
#include <iostream>
