#include "tcp/segment.h"  // breach: net must not include tcp
#include <sys/socket.h>   // breach: <sys/socket.h>
#include <net/if.h>       // breach: <net/if.h>
