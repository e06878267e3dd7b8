#include <thread>
#include <immintrin.h>
inline void pause() { std::this_thread::yield(); }
