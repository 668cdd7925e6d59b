// What every processor has: SSE2 on x86, NEON on ARM, vectors that the compiler writes out elsewhere.
#define WIDTH 4
#define KERNELS tt_baseline
#include "families.h"
