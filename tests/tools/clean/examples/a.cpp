#include <iostream>
#include <urnic/verbs.h>
