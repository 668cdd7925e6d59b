// Twins of the normalised exponentials in kernels/activation.py, and of the cross entropy in kernels/loss.py.

// An array seen as (outer, classes, inner), normalised over the classes.
typedef struct {
    const float *x, *g;
    const int64_t *labels;
    float *out, *losses;
    Py_ssize_t outer, classes, inner, rows;  // rows of a block
    int64_t ignored;
    float scale;
    bool logs;
} Classes;

// exp(x) for x up to 0.
INLINE vec exp_below(vec x) {
    ints n;
    vec less_one = exp_parts(at_least(x, -104.5f), &n);
    return times_power(less_one + 1, n);
}

INLINE vec larger(vec x, vec y) { return where(x > y, x, y); }

INLINE float largest_of(vec x) {
    if (WIDTH > 8) x = larger(x, SWAPPED(x, 8));
    if (WIDTH > 4) x = larger(x, SWAPPED(x, 4));
    x = larger(x, SWAPPED(x, 2));
    x = larger(x, SWAPPED(x, 1));
    return x[0];
}

// Write scale softmax(x), or its logarithm, of a row; return the logarithm of the sum of exp(x - top).
INLINE float softmax_row(const float *x, float *out, Py_ssize_t count, float scale, bool logs, float *top) {
    Ends ends = ends_of(count);
    Py_ssize_t i, whole = ends.whole;
    vec last = where(ends.own, load_last(x, &ends), all(-INFINITY)), largest = last, sums = {0};
    vec tops[TOGETHER] = {largest, largest, largest, largest};  // each waits for itself alone
    for (i = 0; i + ABREAST <= whole; i += ABREAST) {
        for (int k = 0; k < TOGETHER; k++) tops[k] = larger(load(x + i + k * WIDTH), tops[k]);
    }
    largest = larger(larger(tops[0], tops[1]), larger(tops[2], tops[3]));
    for (; i < whole; i += WIDTH) largest = larger(load(x + i), largest);
    vec shift = all(*top = largest_of(largest));
    for (i = 0; i < whole; i += WIDTH) {
        vec e = exp_below(load(x + i) - shift);
        if (!logs) store(out + i, e);
        sums += e;
    }
    last = load_last(x, &ends) - shift;
    vec e = exp_below(last);
    vec sum = all(sum_of(sums + own_of(e, &ends))), log_sum = log_of(sum), factor = scale / sum;
    if (logs) {
        for (i = 0; i < whole; i += WIDTH) store(out + i, load(x + i) - shift - log_sum);
    } else {
        for (i = 0; i < whole; i += WIDTH) store(out + i, load(out + i) * factor);
    }
    store_last(out, logs ? last - log_sum : e * factor, &ends);
    return log_sum[0];
}

// The same of columns.
INLINE void softmax_columns(
    const Classes *of, const float *x, float *out, const Columns *columns, bool logs, vec *top, vec *log_sums) {
    Py_ssize_t end = of->classes * of->inner;
    vec sums[TOGETHER];
    for (int k = 0; k < TOGETHER; k++) top[k] = load_columns(x, columns, k);
    for (Py_ssize_t i = of->inner; i < end; i += of->inner) {
        for (int k = 0; k < TOGETHER; k++) top[k] = larger(load_columns(x + i, columns, k), top[k]);
    }
    memset(sums, 0, sizeof sums);
    for (Py_ssize_t i = 0; i < end; i += of->inner) {
        for (int k = 0; k < TOGETHER; k++) {
            vec e = exp_below(load_columns(x + i, columns, k) - top[k]);
            if (!logs) store_columns(out + i, e, columns, k);
            sums[k] += e;
        }
    }
    for (int k = 0; k < TOGETHER; k++) {
        log_sums[k] = log_of(sums[k]);
        sums[k] = of->scale / sums[k];
    }
    for (Py_ssize_t i = 0; i < end; i += of->inner) {
        for (int k = 0; k < TOGETHER; k++) {
            if (logs) {
                store_columns(out + i, load_columns(x + i, columns, k) - top[k] - log_sums[k], columns, k);
            } else {
                store_columns(out + i, load_columns(out + i, columns, k) * sums[k], columns, k);
            }
        }
    }
}

// The gradient through `y`, softmax(x) or its logarithm: (g - sum(g y)) y, or g - sum(g) exp(y).
INLINE vec softmax_grad_of(vec g, vec y, vec sum, bool logs) { return logs ? g - exp_below(y) * sum : (g - sum) * y; }

INLINE void softmax_grad_row(const float *g, const float *y, float *out, Py_ssize_t count, bool logs) {
    Ends ends = ends_of(count);
    Py_ssize_t i, whole = ends.whole;
    vec of_g = load_last(g, &ends), of_y = load_last(y, &ends), sums = own_of(logs ? of_g : of_g * of_y, &ends);
    for (i = 0; i < whole; i += WIDTH) sums += logs ? load(g + i) : load(g + i) * load(y + i);
    vec sum = all(sum_of(sums));
    for (i = 0; i < whole; i += WIDTH) store(out + i, softmax_grad_of(load(g + i), load(y + i), sum, logs));
    store_last(out, softmax_grad_of(of_g, of_y, sum, logs), &ends);
}

INLINE void softmax_grad_columns(
    const Classes *of, const float *g, const float *y, float *out, const Columns *columns, bool logs) {
    Py_ssize_t end = of->classes * of->inner;
    vec sums[TOGETHER];
    memset(sums, 0, sizeof sums);
    for (Py_ssize_t i = 0; i < end; i += of->inner) {
        for (int k = 0; k < TOGETHER; k++) {
            vec slope = load_columns(g + i, columns, k);
            sums[k] += logs ? slope : slope * load_columns(y + i, columns, k);
        }
    }
    for (Py_ssize_t i = 0; i < end; i += of->inner) {
        for (int k = 0; k < TOGETHER; k++) {
            vec slope = load_columns(g + i, columns, k), value = load_columns(y + i, columns, k);
            store_columns(out + i, softmax_grad_of(slope, value, sums[k], logs), columns, k);
        }
    }
}

INLINE void loss_of(const Classes *of, Py_ssize_t sample, Py_ssize_t place, float top, float log_sum) {
    Py_ssize_t size = of->classes * of->inner, index = sample * of->inner + place;
    int64_t label = of->labels[index];
    float *out = of->out + sample * size + place;
    if (label == of->ignored) {
        of->losses[index] = 0;
        for (Py_ssize_t i = 0; i < size; i += of->inner) out[i] = 0;
    } else {
        of->losses[index] = log_sum - (of->x[sample * size + place + label * of->inner] - top);
    }
}

INLINE Py_ssize_t groups_of(const Classes *of) { return (of->inner + ABREAST - 1) / ABREAST; }

INLINE void some_columns(const Classes *of, Py_ssize_t sample, const Columns *columns, bool logs) {
    Py_ssize_t at = sample * of->classes * of->inner + columns->begin;
    if (of->g) {
        softmax_grad_columns(of, of->g + at, of->x + at, of->out + at, columns, logs);
        return;
    }
    vec top[TOGETHER], log_sums[TOGETHER];
    softmax_columns(of, of->x + at, of->out + at, columns, logs, top, log_sums);
    for (Py_ssize_t i = 0; of->labels && i < columns->count; i++) {
        loss_of(of, sample, columns->begin + i, top[i / WIDTH][i % WIDTH], log_sums[i / WIDTH][i % WIDTH]);
    }
}

INLINE void classes_block(const Classes *of, Py_ssize_t block, bool logs) {
    Py_ssize_t classes = of->classes;
    if (of->inner == 1) {
        Py_ssize_t end = (block + 1) * of->rows < of->outer ? (block + 1) * of->rows : of->outer;
        for (Py_ssize_t i = block * of->rows; i < end; i++) {
            float top, log_sum;
            if (of->g) {
                softmax_grad_row(of->g + i * classes, of->x + i * classes, of->out + i * classes, classes, logs);
                continue;
            }
            log_sum = softmax_row(of->x + i * classes, of->out + i * classes, classes, of->scale, logs, &top);
            if (of->labels) loss_of(of, i, 0, top, log_sum);
        }
        return;
    }
    Py_ssize_t groups = groups_of(of), begin = block % groups * ABREAST, sample = block / groups;
    Columns columns = {begin, of->inner - begin};
    if (columns.count < ABREAST) {
        some_columns(of, sample, &columns, logs);
    } else {
        columns.count = ABREAST;  // which the compiler sees
        some_columns(of, sample, &columns, logs);
    }
}

static void softmax_block(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    classes_block(context, block, false);
}

static void log_softmax_block(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    classes_block(context, block, true);
}

// See an array as (outer, classes, inner); false if it is none that the kernels take.
static bool see_classes(Classes *of, PyObject *x, int axis) {
    if (!tt_float32(x) || !tt_contiguous(x)) return false;
    int dims = PyArray_NDIM((PyArrayObject *)x);
    if (axis < 0 || axis >= dims || !PyArray_SIZE((PyArrayObject *)x)) return false;
    of->outer = of->inner = 1;
    for (int dim = 0; dim < dims; dim++) {
        Py_ssize_t length = PyArray_DIM((PyArrayObject *)x, dim);
        *(dim < axis ? &of->outer : dim > axis ? &of->inner : &of->classes) *= length;
    }
    of->rows = PART / of->classes + 1;
    of->x = PyArray_DATA((PyArrayObject *)x);
    return true;
}

static PyObject *over_classes(Classes *of, PyObject *x) {
    PyObject *out = PyArray_NewLikeArray((PyArrayObject *)x, NPY_CORDER, NULL, 0);
    if (!out) return NULL;
    of->out = PyArray_DATA((PyArrayObject *)out);
    Py_ssize_t blocks = of->inner == 1 ? (of->outer + of->rows - 1) / of->rows : of->outer * groups_of(of);
    Work work = of->logs ? log_softmax_block : softmax_block;
    tt_share(work, of, blocks, of->outer * of->classes * of->inner, tt_threads());
    return out;
}

static PyObject *softmax_call_of(PyObject *const *args, Py_ssize_t count, bool logs) {
    Classes of = {.classes = 1, .scale = 1, .logs = logs};
    if (count != 2 || !PyLong_Check(args[1]) || !see_classes(&of, args[0], (int)PyLong_AsLong(args[1]))) return PASS;
    return over_classes(&of, args[0]);
}

static PyObject *softmax_grad_call_of(PyObject *const *args, Py_ssize_t count, bool logs) {
    Classes of = {.classes = 1, .logs = logs};
    if (count != 3 || !PyLong_Check(args[2]) || !see_classes(&of, args[1], (int)PyLong_AsLong(args[2]))) return PASS;
    if (!tt_float32(args[0]) || !tt_contiguous(args[0]) || !PyArray_SAMESHAPE((PyArrayObject *)args[0], (PyArrayObject *)args[1])) {
        return PASS;
    }
    of.g = PyArray_DATA((PyArrayObject *)args[0]);
    return over_classes(&of, args[1]);
}

KERNEL(softmax) { return out ? PASS : softmax_call_of(args, count, false); }
KERNEL(log_softmax) { return out ? PASS : softmax_call_of(args, count, true); }
KERNEL(softmax_grad) { return out ? PASS : softmax_grad_call_of(args, count, false); }
KERNEL(log_softmax_grad) { return out ? PASS : softmax_grad_call_of(args, count, true); }

// (x, target, weight, ignore_index, reduction, label_smoothing): without weights and smoothing, reduced.
KERNEL(cross_entropy) {
    Classes of = {.classes = 1};
    if (out || count != 6 || args[2] != Py_None || !PyLong_Check(args[3]) || !PyUnicode_Check(args[4])) return PASS;
    if (!PyFloat_Check(args[5]) || PyFloat_AsDouble(args[5]) != 0) return PASS;
    bool mean = !PyUnicode_CompareWithASCIIString(args[4], "mean");
    if (!mean && PyUnicode_CompareWithASCIIString(args[4], "sum")) return PASS;
    if (!tt_float32(args[0]) || !see_classes(&of, args[0], PyArray_NDIM((PyArrayObject *)args[0]) > 1)) return PASS;
    PyArrayObject *target = (PyArrayObject *)args[1];
    Py_ssize_t samples = of.outer * of.inner, counted = 0;
    if (!PyArray_CheckExact(target) || PyArray_TYPE(target) != NPY_INT64 || !PyArray_ISCARRAY_RO(target)) return PASS;
    if (PyArray_SIZE(target) != samples) return PASS;
    of.labels = PyArray_DATA(target);
    of.ignored = PyLong_AsLongLong(args[3]);
    if (of.ignored == -1 && PyErr_Occurred()) return PyErr_Clear(), PASS;
    for (Py_ssize_t i = 0; i < samples; i++) {
        if (of.labels[i] == of.ignored) continue;
        if (of.labels[i] < 0 || of.labels[i] >= of.classes) return PASS;
        counted++;
    }
    of.scale = mean ? 1 / (float)counted : 1;
    of.losses = malloc(4 * (size_t)samples);
    if (!of.losses) return PyErr_NoMemory();
    PyObject *slope = over_classes(&of, args[0]), *loss = slope ? tt_new(args[0], 0, NULL) : NULL;
    if (loss) {
        double total = 0;
        float *grad = of.out;
        Py_ssize_t size = of.classes * of.inner;
        for (Py_ssize_t i = 0; i < samples; i++) {
            total += of.losses[i];
            if (of.labels[i] != of.ignored) grad[i / of.inner * size + of.labels[i] * of.inner + i % of.inner] -= of.scale;
        }
        *(float *)PyArray_DATA((PyArrayObject *)loss) = (float)(mean ? total / (double)counted : total);
        loss = PyArray_Return((PyArrayObject *)loss);
    }
    free(of.losses);
    PyObject *both = loss ? PyTuple_Pack(2, loss, slope) : NULL;
    Py_XDECREF(loss);
    Py_XDECREF(slope);
    return both;
}
