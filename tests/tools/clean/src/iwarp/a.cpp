#include "fastpath/in_logic.h"
#include "net/wire.h"
