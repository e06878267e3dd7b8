#include "tcp/segment.h"  // breach: port must not include tcp
#include <unistd.h>
