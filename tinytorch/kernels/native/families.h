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
#include "attention.c"
#include "indexing.c"
#include "maxima.c"
#include "optim.c"
#include "rnn.c"

#define ENTRY(name) {#name, name##_call}

// A line for each family.
const Kernel KERNELS[] = {
    ENTRY(sigmoid), ENTRY(silu), ENTRY(silu_grad),
    ENTRY(gather), ENTRY(scatter), ENTRY(scattered), ENTRY(take_rows), ENTRY(add_rows), ENTRY(running_sums), ENTRY(place), ENTRY(maxima),
    ENTRY(sgd), ENTRY(adam), ENTRY(rmsprop),
    ENTRY(softmax_scores), ENTRY(softmax_slopes),
    ENTRY(lstm_cell), ENTRY(lstm_cell_grad),
    {0},
};

#if defined(TARGET) && defined(__clang__)
#pragma clang attribute pop
#endif
