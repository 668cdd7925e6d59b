// The kernels for x86 processors with AVX2 and FMA.
#if defined(__x86_64__)
#define WIDTH 8
#define TARGET "avx2,fma"
#define KERNELS tt_avx2
#include "families.h"
#endif
