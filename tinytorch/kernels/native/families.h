// All kernel families for one instruction set. A file per set defines WIDTH, TARGET and KERNELS (the name of the table)
// and includes this one; so everything in the families is static, and compiled once per set. Each family includes what
// it needs and compiles on its own, in any order.
#include "native.h"  // before the target is set: NumPy's and the system's inline functions are for every processor

#ifdef TARGET
#define PRAGMA(...) PRAGMA_TEXT(__VA_ARGS__)
#define PRAGMA_TEXT(...) _Pragma(#__VA_ARGS__)
#ifdef __clang__
PRAGMA(clang attribute push(__attribute__((target(TARGET))), apply_to = function))
#else
PRAGMA(GCC target(TARGET))
#endif
#endif

#include "activation.c"
#include "arithmetic.c"
#include "attention.c"
#include "channels_last.c"
#include "conv.c"
#include "elementary.c"
#include "fft.c"
#include "indexing.c"
#include "norm.c"
#include "optim.c"
#include "pooling.c"
#include "products.c"
#include "quantized.c"
#include "random.c"
#include "resample.c"
#include "rnn.c"
#include "softmax.c"
#include "sorting.c"
#include "sparse.c"
#include "special.c"
#include "sums.c"
#ifndef TARGET  // what gains nothing from an instruction set, and is found here by all
#include "division.c"
#include "places.c"
#include "rearrange.c"
#include "serial.c"
#endif

const Kernel *const KERNELS[] = {
    activation_kernels,
    arithmetic_kernels,
    attention_kernels,
    channels_last_kernels,
    conv_kernels,
    elementary_kernels,
    fft_kernels,
    indexing_kernels,
    norm_kernels,
    optim_kernels,
    pooling_kernels,
    products_kernels,
    quantized_kernels,
    random_kernels,
    resample_kernels,
    rnn_kernels,
    softmax_kernels,
    sorting_kernels,
    sparse_kernels,
    special_kernels,
    sums_kernels,
#ifndef TARGET
    division_kernels,
    places_kernels,
    rearrange_kernels,
    serial_kernels,
#endif
    NULL,
};

#if defined(TARGET) && defined(__clang__)
#pragma clang attribute pop
#endif
