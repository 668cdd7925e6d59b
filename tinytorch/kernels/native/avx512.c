// The kernels for x86 processors with AVX-512.
#if defined(__x86_64__)
#define WIDTH 16
#define TARGET "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma"
#define KERNELS tt_avx512
#include "families.h"
#endif
