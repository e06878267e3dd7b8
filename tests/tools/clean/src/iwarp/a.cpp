#include "fastpath/in_logic.h"
#include "wire/wire.h"
