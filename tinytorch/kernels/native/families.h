// All kernels, for one instruction set: its file defines WIDTH, TARGET and KERNELS, the name of the table, and includes
// this.
#include "native.h"  // what is not the family's own, system headers too, is compiled for every processor

#ifdef TARGET
#define TEXT(what) #what
#define PRAGMA(what) _Pragma(TEXT(what))
#ifdef __clang__
PRAGMA(clang attribute push(__attribute__((target(TARGET))), apply_to = function))
#else
PRAGMA(GCC target(TARGET))
#endif
#endif

#define VECTORS
#include "native.h"

#include "activation.c"
#include "conv.c"

#define ENTRY(name) {#name, name##_call}

// A line for each family.
// clang-format off
const Kernel KERNELS[] = {
    ENTRY(sigmoid), ENTRY(silu), ENTRY(silu_grad),
    ENTRY(conv), ENTRY(conv_input), ENTRY(conv_weight),
    {0},
};
// clang-format on

#if defined(TARGET) && defined(__clang__)
#pragma clang attribute pop
#endif
