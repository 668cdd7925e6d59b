// Twins of kernels/optim.py: steps of optimizers, each in one pass over a parameter and its state.
#include "helpers.h"

enum { STEP_BLOCK = 1 << 15, MAX_ARRAYS = 5, MAX_NUMBERS = 8 };

// Update `count` elements. `arrays` are the parameter, its gradient and its state.
typedef void (*StepBlock)(float *const *arrays, const float *numbers, Py_ssize_t count);

typedef struct {
    float *arrays[MAX_ARRAYS], numbers[MAX_NUMBERS];
    Py_ssize_t size;
    StepBlock block;
} StepCall;

static void step_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const StepCall *call = context;
    Py_ssize_t begin = part * STEP_BLOCK, left = call->size - begin;
    float *arrays[MAX_ARRAYS];
    for (int i = 0; i < MAX_ARRAYS; i++) arrays[i] = call->arrays[i] ? call->arrays[i] + begin : NULL;
    call->block(arrays, call->numbers, imin(left, STEP_BLOCK));
}

// Run a step. `args` are the parameter, its gradient, state (arrays, or None for what the step does without), and
// numbers.
static PyObject *run_step(PyObject *const *args, int arrays, int numbers, StepBlock block) {
    StepCall call = {.block = block};
    for (int i = 0; i < arrays; i++) {
        if (i > 1 && args[i] == Py_None) continue;
        if (!is_float_array(args[i], i != 1)) return FALLBACK;
        if (i && PyArray_SIZE(ARRAY(args[i])) != call.size) return FALLBACK;
        call.size = PyArray_SIZE(ARRAY(args[i]));
        call.arrays[i] = float_data(args[i]);
        if (i && call.arrays[i] == call.arrays[0]) return FALLBACK;
    }
    for (int i = 0; i < numbers; i++) {
        if (!tt_read_number(args[arrays + i], &call.numbers[i])) return FALLBACK;
    }
    tt_parallel_for(step_part, &call, ceil_div(call.size, STEP_BLOCK), call.size, tt_threads());
    Py_RETURN_NONE;
}

typedef float *Floats;  // so that one declaration lists several arrays

// Define a step by the names of its arrays and of its numbers, in the order of the Python definition. The function's
// body updates `count` elements (at most WIDTH) from `i` on: `a->p` is an array, `n.lr` a number.
#define STEP(name, arrays, numbers)                                                                                    \
    typedef struct {                                                                                                   \
        Floats UNPACK arrays;                                                                                          \
    } name##_arrays;                                                                                                   \
    typedef struct {                                                                                                   \
        float UNPACK numbers;                                                                                          \
    } name##_numbers;                                                                                                  \
    INLINE void name##_vector(const name##_arrays *a, name##_numbers n, Py_ssize_t i, Py_ssize_t count);               \
    static void name##_block(float *const *all_arrays, const float *all_numbers, Py_ssize_t count) {                   \
        const name##_arrays *a = (const name##_arrays *)all_arrays;                                                    \
        const name##_numbers *n = (const name##_numbers *)all_numbers;                                                 \
        Py_ssize_t i = 0;                                                                                              \
        for (; i + WIDTH <= count; i += WIDTH) name##_vector(a, *n, i, WIDTH);                                         \
        if (i < count) name##_vector(a, *n, i, count - i);                                                             \
    }                                                                                                                  \
    static PyObject *name##_call(PyObject *const *args) {                                                              \
        return run_step(args, sizeof(name##_arrays) / sizeof(Floats), sizeof(name##_numbers) / sizeof(float),          \
                        name##_block);                                                                                 \
    }                                                                                                                  \
    static const char name##_parameters[] = TEXT arrays ", " TEXT numbers;                                             \
    INLINE void name##_vector(const name##_arrays *a, name##_numbers n, Py_ssize_t i, Py_ssize_t count)

// The gradient that the step follows: its sign is turned if the objective is maximised; the decay is taken from the
// parameter directly (`stays`), or added to the gradient (`decay`).
INLINE vec direction(vec *p, vec g, float sign, float stays, float decay) {
    *p *= stays;
    return decay != 0 ? g * sign + *p * decay : g * sign;
}

STEP(sgd, (p, g, buffer), (sign, stays, decay, lr, momentum, entering, nesterov, starts)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    if (a->buffer) {
        vec buffer = g;
        if (!n.starts) buffer = load_up_to(a->buffer + i, count) * n.momentum + g * n.entering;
        store_up_to(a->buffer + i, buffer, count);
        g = n.nesterov ? g + buffer * n.momentum : buffer;
    }
    store_up_to(a->p + i, p - g * n.lr, count);
}

STEP(adam, (p, g, m, v, greatest), (sign, stays, decay, entering, beta2, entering_square, scale, eps)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    vec m = load_up_to(a->m + i, count), v = load_up_to(a->v + i, count);
    m = m + (g - m) * n.entering;
    v = v * n.beta2 + g * g * n.entering_square;
    store_up_to(a->m + i, m, count);
    store_up_to(a->v + i, v, count);
    if (a->greatest) {
        vec greatest = load_up_to(a->greatest + i, count);
        v = where((v > greatest) | (v != v), v, greatest);
        store_up_to(a->greatest + i, v, count);
    }
    store_up_to(a->p + i, p - m / (vsqrt(v) + n.eps) * n.scale, count);
}

STEP(rmsprop, (p, g, v, m, b), (sign, stays, decay, lr, alpha, entering, eps, momentum)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    vec v = load_up_to(a->v + i, count) * n.alpha + g * g * n.entering;
    store_up_to(a->v + i, v, count);
    if (a->m) {
        vec m = load_up_to(a->m + i, count);
        m = m + (g - m) * n.entering;
        store_up_to(a->m + i, m, count);
        v = v - m * m;
    }
    g = g / (vsqrt(v) + n.eps);
    if (a->b) {
        g = load_up_to(a->b + i, count) * n.momentum + g;
        store_up_to(a->b + i, g, count);
    }
    store_up_to(a->p + i, p - g * n.lr, count);
}

FAMILY(optim, ENTRY(sgd), ENTRY(adam), ENTRY(rmsprop));
