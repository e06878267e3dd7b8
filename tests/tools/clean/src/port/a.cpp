#include <sys/socket.h>
#include "base/bytes.h"
int g() { return ::socket(1, 2, 3); }
