// Twins of kernels/optim.py: steps of optimizers, each in one pass over a parameter and its state.
#include "helpers.h"

enum { STEP_BLOCK = 1 << 15, MAX_ARRAYS = 5, MAX_NUMBERS = 9 };

// Update `count` elements. `arrays` are the parameter, its gradient and its state.
typedef void (*StepBlock)(float *const *arrays, const float *numbers, Py_ssize_t count);

typedef struct {
    float *arrays[MAX_ARRAYS];
    const float *numbers;
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

// Read the arrays of a parameter's step: the parameter, its gradient and state (None for what is not `required`).
static bool read_arrays(StepCall *call, PyObject *const *args, int required, int arrays) {
    for (int i = 0; i < arrays; i++) {
        call->arrays[i] = NULL;
        if (i >= required && args[i] == Py_None) continue;
        if (!is_float_array(args[i], i != 1)) return false;
        if (i && PyArray_SIZE(ARRAY(args[i])) != call->size) return false;
        call->size = PyArray_SIZE(ARRAY(args[i]));
        call->arrays[i] = float_data(args[i]);
        if (i && call->arrays[i] == call->arrays[0]) return false;
    }
    return true;
}

// Run a step of one parameter, or of several: then `args` has lists instead of arrays. The numbers follow them.
static PyObject *run_step(PyObject *const *args, int required, int arrays, int numbers, StepBlock block) {
    float read[MAX_NUMBERS];
    for (int i = 0; i < numbers; i++) {
        if (!tt_read_number(args[arrays + i], &read[i])) return FALLBACK;
    }
    bool several = PyList_Check(args[0]);
    Py_ssize_t count = several ? PyList_Size(args[0]) : 1;
    for (int i = 0; several && i < arrays; i++) {
        if (args[i] == Py_None) continue;
        if (!PyList_Check(args[i]) || PyList_Size(args[i]) != count) return FALLBACK;
    }
    StepCall one, *calls = several ? PyMem_Malloc((size_t)(count ? count : 1) * sizeof(StepCall)) : &one;
    if (!calls) return PyErr_NoMemory();
    bool fit = true;
    for (Py_ssize_t k = 0; fit && k < count; k++) {
        PyObject *own[MAX_ARRAYS];
        for (int i = 0; i < arrays; i++) own[i] = PyList_Check(args[i]) ? PyList_GetItem(args[i], k) : args[i];
        calls[k].numbers = read;
        calls[k].block = block;
        fit = read_arrays(&calls[k], own, required, arrays);
    }
    for (Py_ssize_t k = 0; fit && k < count; k++) {
        tt_parallel_for(step_part, &calls[k], ceil_div(calls[k].size, STEP_BLOCK), calls[k].size, tt_threads());
    }
    if (several) PyMem_Free(calls);
    if (!fit) return FALLBACK;
    Py_RETURN_NONE;
}

typedef float *Floats;  // so that one declaration lists several arrays

// Define a step by how many arrays it requires, and by the names of its arrays and of its numbers, in the order of the
// Python definition. The body of the function updates `count` elements (at most WIDTH) from `i` on: `a->p` is an array,
// `n.lr` a number. (The loop has one copy of it, for whole vectors and the rest: two could round differently.)
#define STEP(name, required, arrays, numbers)                                                                          \
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
        for (Py_ssize_t i = 0; i < count; i += WIDTH) name##_vector(a, *n, i, imin(WIDTH, count - i));                 \
    }                                                                                                                  \
    static PyObject *name##_call(PyObject *const *args) {                                                              \
        return run_step(args, required, sizeof(name##_arrays) / sizeof(Floats),                                        \
                        sizeof(name##_numbers) / sizeof(float), name##_block);                                         \
    }                                                                                                                  \
    static const char name##_parameters[] = TEXT arrays ", " TEXT numbers;                                             \
    INLINE void name##_vector(const name##_arrays *a, name##_numbers n, Py_ssize_t i, Py_ssize_t count)

// The gradient that the step follows: its sign is turned if the objective is maximised; the decay is taken from the
// parameter directly (`stays`), or added to the gradient (`decay`).
INLINE vec direction(vec *p, vec g, float sign, float stays, float decay) {
    *p *= stays;
    return decay != 0 ? g * sign + *p * decay : g * sign;
}

// The averages of the gradient and of its square, which are moved and stored.
typedef struct {
    vec m, v;
} Moments;

INLINE Moments moments(float *m, float *v, vec g, float entering, float beta2, float entering_square,
                       Py_ssize_t count) {
    vec mean = load_up_to(m, count), square = load_up_to(v, count);
    mean = mean + (g - mean) * entering;
    square = square * beta2 + g * g * entering_square;
    store_up_to(m, mean, count);
    store_up_to(v, square, count);
    return (Moments){mean, square};
}

STEP(sgd, 2, (p, g, buffer), (sign, stays, decay, lr, momentum, entering, nesterov, starts)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    if (a->buffer) {
        vec buffer = g;
        if (!n.starts) buffer = load_up_to(a->buffer + i, count) * n.momentum + g * n.entering;
        store_up_to(a->buffer + i, buffer, count);
        g = n.nesterov ? g + buffer * n.momentum : buffer;
    }
    store_up_to(a->p + i, p - g * n.lr, count);
}

STEP(adam, 4, (p, g, m, v, greatest), (sign, stays, decay, entering, beta2, entering_square, scale, eps)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    Moments by = moments(a->m + i, a->v + i, g, n.entering, n.beta2, n.entering_square, count);
    if (a->greatest) {
        vec greatest = load_up_to(a->greatest + i, count);
        by.v = where((by.v > greatest) | (by.v != by.v), by.v, greatest);
        store_up_to(a->greatest + i, by.v, count);
    }
    store_up_to(a->p + i, p - by.m / (vsqrt(by.v) + n.eps) * n.scale, count);
}

STEP(rmsprop, 3, (p, g, v, m, b), (sign, stays, decay, lr, alpha, entering, eps, momentum)) {
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

STEP(adamax, 4, (p, g, m, u), (sign, stays, decay, entering, beta2, eps, scale)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    vec m = load_up_to(a->m + i, count), u = load_up_to(a->u + i, count) * n.beta2, size = vabs(g) + n.eps;
    m = m + (g - m) * n.entering;
    u = where((u > size) | (u != u), u, size);
    store_up_to(a->m + i, m, count);
    store_up_to(a->u + i, u, count);
    store_up_to(a->p + i, p - m / u * n.scale, count);
}

STEP(nadam, 4, (p, g, m, v), (sign, stays, decay, entering, beta2, entering_square, of_g, of_m, eps)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    Moments by = moments(a->m + i, a->v + i, g, n.entering, n.beta2, n.entering_square, count);
    store_up_to(a->p + i, p - (g * n.of_g + by.m * n.of_m) / (vsqrt(by.v) + n.eps), count);
}

STEP(radam, 4, (p, g, m, v), (sign, stays, decay, entering, beta2, entering_square, eps, scale, rectified)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    Moments by = moments(a->m + i, a->v + i, g, n.entering, n.beta2, n.entering_square, count);
    store_up_to(a->p + i, p - (n.rectified ? by.m / (vsqrt(by.v) + n.eps) : by.m) * n.scale, count);
}

STEP(adadelta, 4, (p, g, v, a), (sign, stays, decay, rho, entering, eps, lr)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    vec v = load_up_to(a->v + i, count) * n.rho + g * g * n.entering, moved = load_up_to(a->a + i, count);
    vec d = g / vsqrt(v + n.eps) * vsqrt(moved + n.eps);
    store_up_to(a->v + i, v, count);
    store_up_to(a->a + i, moved * n.rho + d * d * n.entering, count);
    store_up_to(a->p + i, p - d * n.lr, count);
}

STEP(adagrad, 3, (p, g, total), (sign, stays, decay, eps, scale)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    vec total = load_up_to(a->total + i, count) + g * g;
    store_up_to(a->total + i, total, count);
    store_up_to(a->p + i, p - g / (vsqrt(total) + n.eps) * n.scale, count);
}

STEP(rprop, 4, (p, g, last, size), (sign, stays, decay, shrink, grow, least, greatest)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    vec size = load_up_to(a->size + i, count), product = g * load_up_to(a->last + i, count);
    size = where(product > 0, size * n.grow, where(product < 0, size * n.shrink, size));
    size = clamp_max(clamp_min(size, n.least), n.greatest);
    g = where(product < 0, broadcast(0), g);
    store_up_to(a->size + i, size, count);
    store_up_to(a->last + i, g, count);
    store_up_to(a->p + i, where(g > 0, p - size, where(g < 0, p + size, p)), count);
}

STEP(asgd, 3, (p, g, average), (sign, stays, decay, kept, rate, share)) {
    vec p = load_up_to(a->p + i, count), g = direction(&p, load_up_to(a->g + i, count), n.sign, n.stays, n.decay);
    vec average = load_up_to(a->average + i, count);
    p = p * n.kept - g * n.rate;
    store_up_to(a->average + i, n.share == 1 ? p : average + (p - average) * n.share, count);
    store_up_to(a->p + i, p, count);
}

FAMILY(optim, ENTRY(sgd), ENTRY(adam), ENTRY(rmsprop), ENTRY(adamax), ENTRY(nadam), ENTRY(radam), ENTRY(adadelta),
       ENTRY(adagrad), ENTRY(rprop), ENTRY(asgd));
