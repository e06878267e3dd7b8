#include <cstdint>
#include <urnic/status.h>
