// Twins of kernels/optim.py: steps of optimizers, each in one pass over a parameter and what is kept for it.

enum { STEP_BLOCK = 1 << 15, STEP_ARRAYS = 5, STEP_NUMBERS = 8 };

typedef void (*Step)(float *const *a, const float *number, Py_ssize_t count);

typedef struct {
    float *arrays[STEP_ARRAYS], numbers[STEP_NUMBERS];
    Py_ssize_t size;
    Step step;
} Steps;

static void step_block(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Steps *steps = context;
    Py_ssize_t begin = block * STEP_BLOCK, left = steps->size - begin;
    float *arrays[STEP_ARRAYS];
    for (int i = 0; i < STEP_ARRAYS; i++) arrays[i] = steps->arrays[i] ? steps->arrays[i] + begin : NULL;
    steps->step(arrays, steps->numbers, left < STEP_BLOCK ? left : STEP_BLOCK);
}

// Arguments: the parameter, its gradient, what is kept (arrays or None), and numbers.
static PyObject *stepped(PyObject *const *args, Py_ssize_t count, int arrays, int numbers, Step step) {
    if (count != arrays + numbers) return PASS;
    Steps steps = {.step = step};
    for (int i = 0; i < arrays; i++) {
        if (i > 1 && args[i] == Py_None) continue;
        PyArrayObject *array = (PyArrayObject *)args[i];
        if (!tt_float32(args[i]) || !tt_contiguous(args[i]) || (i != 1 && !PyArray_ISWRITEABLE(array))) return PASS;
        if (i && PyArray_SIZE(array) != steps.size) return PASS;
        steps.size = PyArray_SIZE(array);
        steps.arrays[i] = PyArray_DATA(array);
        if (i && steps.arrays[i] == steps.arrays[0]) return PASS;
    }
    for (int i = 0; i < numbers; i++) {
        if (!PyFloat_Check(args[arrays + i]) && !PyLong_Check(args[arrays + i])) return PASS;
        double value = PyFloat_AsDouble(args[arrays + i]);
        if (value == -1 && PyErr_Occurred()) return NULL;
        steps.numbers[i] = (float)value;
    }
    tt_share(step_block, &steps, (steps.size + STEP_BLOCK - 1) / STEP_BLOCK, steps.size, tt_threads());
    Py_INCREF(Py_None);
    return Py_None;
}

INLINE vec some(const float *from, Py_ssize_t count) { return count == WIDTH ? load(from) : load_some(from, count); }
INLINE void keep(float *to, vec x, Py_ssize_t count) { count == WIDTH ? store(to, x) : store_some(to, x, count); }

INLINE vec root(vec x) {
    for (int i = 0; i < WIDTH; i++) x[i] = sqrtf(x[i]);
    return x;
}

#define STEP(name, arrays, numbers)                                                                                    \
    static void name##_step(float *const *a, const float *number, Py_ssize_t count) {                                  \
        Py_ssize_t i = 0;                                                                                              \
        for (; i + WIDTH <= count; i += WIDTH) name##_at(a, number, i, WIDTH);                                         \
        if (i < count) name##_at(a, number, i, count - i);                                                             \
    }                                                                                                                  \
    KERNEL(name) { return out ? PASS : stepped(args, count, arrays, numbers, name##_step); }

// The first three numbers: the gradient's sign, what stays of the parameter, what of it is added to the gradient.
INLINE vec direction(vec *p, vec g, const float *number) {
    *p *= number[1];
    return number[2] != 0 ? g * number[0] + *p * number[2] : g * number[0];
}

INLINE void sgd_at(float *const *a, const float *number, Py_ssize_t i, Py_ssize_t count) {
    vec p = some(a[0] + i, count), g = direction(&p, some(a[1] + i, count), number);
    const float lr = number[3], momentum = number[4], entering = number[5], nesterov = number[6], starts = number[7];
    if (a[2]) {
        vec b = g;
        if (!starts) b = some(a[2] + i, count) * momentum + g * entering;
        keep(a[2] + i, b, count);
        g = nesterov ? g + b * momentum : b;
    }
    keep(a[0] + i, p - g * lr, count);
}
STEP(sgd, 3, 8)

INLINE void adam_at(float *const *a, const float *number, Py_ssize_t i, Py_ssize_t count) {
    vec p = some(a[0] + i, count), g = direction(&p, some(a[1] + i, count), number);
    const float entering = number[3], stays = number[4], entering_square = number[5], scale = number[6], eps = number[7];
    vec m = some(a[2] + i, count), v = some(a[3] + i, count);
    m = m + (g - m) * entering;
    v = v * stays + g * g * entering_square;
    keep(a[2] + i, m, count);
    keep(a[3] + i, v, count);
    if (a[4]) {
        vec most = some(a[4] + i, count);
        v = where((v > most) | (v != v), v, most);
        keep(a[4] + i, v, count);
    }
    keep(a[0] + i, p - m / (root(v) + eps) * scale, count);
}
STEP(adam, 5, 8)

INLINE void rmsprop_at(float *const *a, const float *number, Py_ssize_t i, Py_ssize_t count) {
    vec p = some(a[0] + i, count), g = direction(&p, some(a[1] + i, count), number);
    const float lr = number[3], alpha = number[4], entering = number[5], eps = number[6], momentum = number[7];
    vec v = some(a[2] + i, count) * alpha + g * g * entering;
    keep(a[2] + i, v, count);
    if (a[3]) {
        vec m = some(a[3] + i, count);
        m = m + (g - m) * entering;
        keep(a[3] + i, m, count);
        v = v - m * m;
    }
    g = g / (root(v) + eps);
    if (a[4]) {
        g = some(a[4] + i, count) * momentum + g;
        keep(a[4] + i, g, count);
    }
    keep(a[0] + i, p - g * lr, count);
}
STEP(rmsprop, 5, 8)
