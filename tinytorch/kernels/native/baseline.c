// The kernels for every processor: the compiler has SSE2 on x86 and NEON on ARM, and takes vectors apart elsewhere.
#define WIDTH 4
#define KERNELS tt_baseline
#include "families.h"
