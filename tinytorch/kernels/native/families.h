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
#include "correlation.c"
#include "direct.c"
#include "conv.c"
#include "products.c"
#include "softmax.c"
#include "norm.c"
#include "attention.c"
#include "indexing.c"
#include "maxima.c"
#include "sums.c"
#include "arithmetic.c"
#include "sorting.c"
#include "optim.c"
#include "rnn.c"

#define ENTRY(name) {#name, name##_call}

// A line for each family.
// clang-format off
const Kernel KERNELS[] = {
    ENTRY(conv), ENTRY(conv_input), ENTRY(conv_weight),
    ENTRY(product), ENTRY(linear),
    ENTRY(elu), ENTRY(elu_grad), ENTRY(gelu), ENTRY(gelu_grad), ENTRY(hardswish), ENTRY(hardswish_grad),
    ENTRY(leaky_relu), ENTRY(leaky_relu_grad), ENTRY(log_sigmoid), ENTRY(logistic), ENTRY(relu), ENTRY(relu_grad),
    ENTRY(sigmoid), ENTRY(sigmoid_slope), ENTRY(silu), ENTRY(silu_grad), ENTRY(softplus), ENTRY(softplus_grad),
    ENTRY(tanh_slope),
    ENTRY(cross_entropy), ENTRY(log_softmax), ENTRY(log_softmax_grad), ENTRY(softmax), ENTRY(softmax_grad),
    ENTRY(batch_norm), ENTRY(batch_norm_grad), ENTRY(given_norm), ENTRY(group_norm), ENTRY(group_norm_grad),
    ENTRY(layer_norm), ENTRY(layer_norm_grad), ENTRY(rms_norm), ENTRY(rms_norm_grad),
    ENTRY(gather), ENTRY(scatter), ENTRY(scattered), ENTRY(take_rows), ENTRY(add_rows), ENTRY(running_sums), ENTRY(column_sums), ENTRY(total),
    ENTRY(addcmul), ENTRY(add), ENTRY(subtract), ENTRY(multiply), ENTRY(divide),
    ENTRY(add_to_rows),
    ENTRY(place), ENTRY(maxima), ENTRY(max_corners), ENTRY(corner_grad), ENTRY(few),
    ENTRY(sgd), ENTRY(adam), ENTRY(rmsprop),
    ENTRY(attend), ENTRY(attend_grad),
    ENTRY(concatenated), ENTRY(lstm_steps), ENTRY(lstm_steps_grad),
    {0},
};
// clang-format on

#if defined(TARGET) && defined(__clang__)
#pragma clang attribute pop
#endif
