// Twins of the softmax functions of kernels/activation.py, and of losses of classes of kernels/loss.py.
#include "helpers.h"

// An array viewed as (outer, classes, inner), normalised over the classes.
typedef struct {
    const float *x, *g;  // `g` is NULL forward; backward, `x` is the result of the forward pass
    const int64_t *labels;
    float *out, *losses;
    Py_ssize_t outer, classes, inner, rows_per_part;
    int64_t ignored;
    const float *weight;  // of the classes, or NULL
    float scale, smoothing, shares;  // shares: of all classes in a target, with label smoothing
    bool log;  // log_softmax
} Softmax;

// Where a class has a greater share than this, its gradient is minus the sum of the others', which add up to 0 with it:
// 1 minus the share would lose its digits.
static const float sure = 1 - 0x1p-9f;

// A share, but 0 for that of the largest element, exp(0).
INLINE vec unless_largest(vec e) { return where(e == 1, broadcast(0), e); }

// Write scale softmax(x), or log softmax(x), of a row. Return the logarithm of the sum of exp(x - max), in `others` the
// sum of what is written for the elements that are smaller than the largest.
INLINE float softmax_row(const float *x, float *out, Py_ssize_t count, float scale, bool log, float *max,
                         float *others) {
    Tail tail = tail_of(count);
    Py_ssize_t i, body = tail.body;
    vec last = where(tail.own, load_tail(x, &tail), broadcast(-INFINITY)), largest = last, sums = {0};
    vec maxima[UNROLL] = {largest, largest, largest, largest};
    for (i = 0; i + UNROLLED_WIDTH <= body; i += UNROLLED_WIDTH) {
        for (int k = 0; k < UNROLL; k++) maxima[k] = vmax(load(x + i + k * WIDTH), maxima[k]);
    }
    largest = vmax(vmax(maxima[0], maxima[1]), vmax(maxima[2], maxima[3]));
    for (; i < body; i += WIDTH) largest = vmax(load(x + i), largest);
    vec shift = broadcast(*max = horizontal_max(largest));
    for (i = 0; i < body; i += WIDTH) {
        vec e = vexp_nonpositive(load(x + i) - shift);
        if (!log) store(out + i, e);
        sums += e;
    }
    last = load_tail(x, &tail) - shift;
    vec e = vexp_nonpositive(last);
    vec sum = broadcast(horizontal_sum(sums + mask_tail(e, &tail))), log_sum = vlog(sum), factor = scale / sum;
    if (log) {
        for (i = 0; i < body; i += WIDTH) store(out + i, load(x + i) - shift - log_sum);
    } else {
        vec rest = mask_tail(unless_largest(e), &tail);
        for (i = 0; i < body; i += WIDTH) {
            vec share = load(out + i);
            rest += unless_largest(share);
            store(out + i, share * factor);
        }
        *others = horizontal_sum(rest * factor);
    }
    store_tail(out, log ? last - log_sum : e * factor, &tail);
    return log_sum[0];
}

// The same for columns.
INLINE void softmax_columns(const Softmax *s, const float *x, float *out, const Columns *columns, bool log, vec *max,
                            vec *log_sums, vec *others) {
    Py_ssize_t end = s->classes * s->inner;
    vec sums[UNROLL];
    for (int k = 0; k < UNROLL; k++) max[k] = load_columns(x, columns, k);
    for (Py_ssize_t i = s->inner; i < end; i += s->inner) {
        for (int k = 0; k < UNROLL; k++) max[k] = vmax(load_columns(x + i, columns, k), max[k]);
    }
    memset(sums, 0, sizeof sums);
    for (Py_ssize_t i = 0; i < end; i += s->inner) {
        for (int k = 0; k < UNROLL; k++) {
            vec e = vexp_nonpositive(load_columns(x + i, columns, k) - max[k]);
            if (!log) store_columns(out + i, e, columns, k);
            sums[k] += e;
        }
    }
    for (int k = 0; k < UNROLL; k++) {
        log_sums[k] = vlog(sums[k]);
        sums[k] = s->scale / sums[k];
        others[k] = broadcast(0);
    }
    for (Py_ssize_t i = 0; i < end; i += s->inner) {
        for (int k = 0; k < UNROLL; k++) {
            if (log) {
                store_columns(out + i, load_columns(x + i, columns, k) - max[k] - log_sums[k], columns, k);
            } else {
                vec share = load_columns(out + i, columns, k);
                others[k] += unless_largest(share) * sums[k];
                store_columns(out + i, share * sums[k], columns, k);
            }
        }
    }
}

// The gradient through y = softmax(x) is (g - sum(g y)) y; through y = log softmax(x), g - sum(g) exp(y).
INLINE vec softmax_grad_of(vec g, vec y, vec sum, bool log) {
    return log ? g - vexp_nonpositive(y) * sum : (g - sum) * y;
}

INLINE float sure_of(bool log) { return log ? -0x1p-9f : sure; }

INLINE void softmax_grad_row(const float *g, const float *y, float *out, Py_ssize_t count, bool log) {
    Tail tail = tail_of(count);
    Py_ssize_t i, body = tail.body;
    vec last_g = load_tail(g, &tail), last_y = load_tail(y, &tail);
    vec largest = where(tail.own, last_y, broadcast(-INFINITY));
    vec sums = mask_tail(log ? last_g : last_g * last_y, &tail);
    for (i = 0; i < body; i += WIDTH) {
        vec value = load(y + i);
        largest = vmax(value, largest);
        sums += log ? load(g + i) : load(g + i) * value;
    }
    vec sum = broadcast(horizontal_sum(sums));
    for (i = 0; i < body; i += WIDTH) store(out + i, softmax_grad_of(load(g + i), load(y + i), sum, log));
    vec last = softmax_grad_of(last_g, last_y, sum, log);
    store_tail(out, last, &tail);
    if (!(horizontal_max(largest) > sure_of(log))) return;
    vec others = mask_tail(where(last_y > sure_of(log), broadcast(0), last), &tail);
    for (i = 0; i < body; i += WIDTH) others += where(load(y + i) > sure_of(log), broadcast(0), load(out + i));
    vec own = broadcast(-horizontal_sum(others));
    for (i = 0; i < body; i += WIDTH) store(out + i, where(load(y + i) > sure_of(log), own, load(out + i)));
    store_tail(out, where(last_y > sure_of(log), own, last), &tail);
}

INLINE void softmax_grad_columns(const Softmax *s, const float *g, const float *y, float *out, const Columns *columns,
                                 bool log) {
    Py_ssize_t end = s->classes * s->inner;
    vec sums[UNROLL], others[UNROLL], largest = broadcast(-INFINITY);
    memset(sums, 0, sizeof sums);
    memset(others, 0, sizeof others);
    for (Py_ssize_t i = 0; i < end; i += s->inner) {
        for (int k = 0; k < UNROLL; k++) {
            vec grad = load_columns(g + i, columns, k);
            sums[k] += log ? grad : grad * load_columns(y + i, columns, k);
        }
    }
    for (Py_ssize_t i = 0; i < end; i += s->inner) {
        for (int k = 0; k < UNROLL; k++) {
            vec grad = load_columns(g + i, columns, k), value = load_columns(y + i, columns, k);
            vec slope = softmax_grad_of(grad, value, sums[k], log);
            largest = vmax(value, largest);
            others[k] += where(value > sure_of(log), broadcast(0), slope);
            store_columns(out + i, slope, columns, k);
        }
    }
    if (!(horizontal_max(largest) > sure_of(log))) return;
    for (Py_ssize_t i = 0; i < end; i += s->inner) {
        for (int k = 0; k < UNROLL; k++) {
            vec value = load_columns(y + i, columns, k), slope = load_columns(out + i, columns, k);
            store_columns(out + i, where(value > sure_of(log), -others[k], slope), columns, k);
        }
    }
}

// With weights of classes and label smoothing: correct the gradient of a sample, and return its loss.
COMPACT static double weigh_label(const Softmax *s, const float *x, float *out, int64_t label, double loss, float slope,
                                  float max, float log_sum) {
    const float own = (s->weight ? s->weight[label] : 1) * (1 - s->smoothing), every = own + s->shares;
    loss = loss * own + log_sum * s->shares;
    for (Py_ssize_t k = 0; k < s->classes; k++) {
        const float share = s->smoothing / (float)s->classes * (s->weight ? s->weight[k] : 1);
        out[k * s->inner] = out[k * s->inner] * every - share * s->scale;
        if (s->smoothing) loss -= share * (x[k * s->inner] - max);
    }
    out[label * s->inner] = s->smoothing ? out[label * s->inner] - own * s->scale : slope * own;
    return loss;
}

// Write the loss of one label and its gradient; that of an ignored one is zero.
INLINE void label_loss(const Softmax *s, Py_ssize_t sample, Py_ssize_t place, float max, float log_sum, float others) {
    Py_ssize_t size = s->classes * s->inner, index = sample * s->inner + place;
    int64_t label = s->labels[index];
    float *out = s->out + sample * size + place;
    if (label == s->ignored) {
        s->losses[index] = 0;
        for (Py_ssize_t i = 0; i < size; i += s->inner) out[i] = 0;
        return;
    }
    const float *x = s->x + sample * size + place;
    float *slope = out + label * s->inner;
    double loss = log_sum - (x[label * s->inner] - max);
    const float of_label = *slope > sure * s->scale ? -others : *slope - s->scale;
    if (!s->weight && !s->smoothing) {
        *slope = of_label;
    } else {
        loss = weigh_label(s, x, out, label, loss, of_label, max, log_sum);
    }
    s->losses[index] = (float)loss;
}

INLINE Py_ssize_t column_blocks(const Softmax *s) { return ceil_div(s->inner, UNROLLED_WIDTH); }

INLINE void process_columns(const Softmax *s, Py_ssize_t sample, const Columns *columns, bool log) {
    Py_ssize_t at = sample * s->classes * s->inner + columns->begin;
    if (s->g) {
        softmax_grad_columns(s, s->g + at, s->x + at, s->out + at, columns, log);
        return;
    }
    vec max[UNROLL], log_sums[UNROLL], others[UNROLL];
    softmax_columns(s, s->x + at, s->out + at, columns, log, max, log_sums, others);
    for (Py_ssize_t i = 0; s->labels && i < columns->count; i++) {
        Py_ssize_t k = i / WIDTH, lane = i % WIDTH;
        label_loss(s, sample, columns->begin + i, max[k][lane], log_sums[k][lane], others[k][lane]);
    }
}

INLINE void process_part(const Softmax *s, Py_ssize_t part, bool log) {
    Py_ssize_t classes = s->classes;
    if (s->inner == 1) {
        Py_ssize_t end = imin((part + 1) * s->rows_per_part, s->outer);
        for (Py_ssize_t i = part * s->rows_per_part; i < end; i++) {
            float max, log_sum, others = 0;
            if (s->g) {
                softmax_grad_row(s->g + i * classes, s->x + i * classes, s->out + i * classes, classes, log);
                continue;
            }
            log_sum = softmax_row(s->x + i * classes, s->out + i * classes, classes, s->scale, log, &max, &others);
            if (s->labels) label_loss(s, i, 0, max, log_sum, others);
        }
        return;
    }
    Py_ssize_t blocks = column_blocks(s), begin = part % blocks * UNROLLED_WIDTH, sample = part / blocks;
    Columns columns = {begin, s->inner - begin};
    if (columns.count < UNROLLED_WIDTH) {
        process_columns(s, sample, &columns, log);
    } else {
        columns.count = UNROLLED_WIDTH;  // a constant: the compiler drops the checks of `load_columns`
        process_columns(s, sample, &columns, log);
    }
}

static void softmax_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    process_part(context, part, false);
}

static void log_softmax_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    process_part(context, part, true);
}

// Calls -----------------------------------------------------------------------------------------

// View an array as (outer, classes, inner); false if it is left to the definition.
static bool read_softmax(Softmax *s, PyObject *x, Py_ssize_t axis) {
    if (!is_float_array(x, false)) return false;
    int dims = PyArray_NDIM(ARRAY(x));
    if (axis < 0 || axis >= dims || !PyArray_SIZE(ARRAY(x))) return false;
    s->outer = s->classes = s->inner = 1;
    for (int dim = 0; dim < dims; dim++) {
        Py_ssize_t length = PyArray_DIM(ARRAY(x), dim);
        *(dim < axis ? &s->outer : dim > axis ? &s->inner : &s->classes) *= length;
    }
    s->rows_per_part = PART_SIZE / s->classes + 1;
    s->x = float_data(x);
    return true;
}

static PyObject *run_softmax(Softmax *s, PyObject *x) {
    PyObject *out = new_like(x);
    if (!out) return NULL;
    s->out = float_data(out);
    Py_ssize_t parts = s->inner == 1 ? ceil_div(s->outer, s->rows_per_part) : s->outer * column_blocks(s);
    Work work = s->log ? log_softmax_part : softmax_part;
    tt_parallel_for(work, s, parts, s->outer * s->classes * s->inner, tt_threads());
    return out;
}

static PyObject *forward(PyObject *x, PyObject *axis, bool log) {
    Softmax s = {.scale = 1, .log = log};
    return read_softmax(&s, x, read_int(axis)) ? run_softmax(&s, x) : FALLBACK;
}

static PyObject *backward(PyObject *g, PyObject *out, PyObject *axis, bool log) {
    Softmax s = {.log = log};
    if (!read_softmax(&s, out, read_int(axis)) || !is_float_array(g, false) || !same_shape(g, out)) return FALLBACK;
    s.g = float_data(g);
    return run_softmax(&s, out);
}

KERNEL(softmax, x, axis) { return forward(args->x, args->axis, false); }
KERNEL(log_softmax, x, axis) { return forward(args->x, args->axis, true); }
KERNEL(softmax_grad, g, out, axis) { return backward(args->g, args->out, args->axis, false); }
KERNEL(log_softmax_grad, g, out, axis) { return backward(args->g, args->out, args->axis, true); }

// What losses of labels are told.
typedef struct {
    Softmax of;
    Py_ssize_t samples;
    bool mean, none;  // the reduction
    double total;     // of the weights of the samples, for the mean, or 1
} Labels;

// Read scores, labels, weights of classes and a reduction. False if they are left to the definition, which knows the
// error for a label that is out of range.
COMPACT static bool read_labels(Labels *l, PyObject *x, PyObject *target, PyObject *weight, PyObject *ignored,
                                PyObject *reduction) {
    Softmax *s = &l->of;
    float *weights;
    l->mean = is_string(reduction, "mean");
    l->none = is_string(reduction, "none");
    if (!l->mean && !l->none && !is_string(reduction, "sum")) return false;
    if (!tt_is_float32(x) || !read_softmax(s, x, PyArray_NDIM(ARRAY(x)) > 1)) return false;
    if (!read_floats(weight, s->classes, true, &weights) || !is_index_array(target)) return false;
    l->samples = s->outer * s->inner;
    if (PyArray_SIZE(ARRAY(target)) != l->samples || !PyLong_Check(ignored)) return false;
    s->weight = weights;
    s->labels = PyArray_DATA(ARRAY(target));
    s->ignored = PyLong_AsLongLong(ignored);
    if (s->ignored == -1 && PyErr_Occurred()) return PyErr_Clear(), false;
    l->total = 0;
    for (Py_ssize_t i = 0; i < l->samples; i++) {
        if (s->labels[i] == s->ignored) continue;
        if (s->labels[i] < 0 || s->labels[i] >= s->classes) return false;
        l->total += s->weight ? s->weight[s->labels[i]] : 1;
    }
    if (!l->mean) l->total = 1;
    s->scale = (float)(1 / l->total);
    return true;
}

// The losses of the samples as a new array, or their sum or mean.
COMPACT static PyObject *reduced_loss(const Labels *l, PyObject *x, PyObject *target, const float *losses) {
    npy_intp *shape = PyArray_DIMS(ARRAY(target));
    const int dims = l->none && PyArray_NDIM(ARRAY(x)) > 1 ? PyArray_NDIM(ARRAY(target)) : 0;
    PyObject *loss = PyArray_SimpleNew(dims, shape, NPY_FLOAT);
    if (!loss) return NULL;
    double sum = 0;
    for (Py_ssize_t i = 0; i < l->samples; i++) {
        if (l->none) float_data(loss)[i] = losses[i];
        else sum += losses[i];
    }
    if (!l->none) *float_data(loss) = (float)(l->total ? sum / l->total : NAN);
    return loss;
}

// The loss and its gradient.
KERNEL(cross_entropy, x, target, weight, ignore_index, reduction, label_smoothing) {
    Labels l = {.of = {0}};
    Softmax *s = &l.of;
    double smoothing;
    if (!tt_read_double(args->label_smoothing, &smoothing) || smoothing < 0) return FALLBACK;
    if (!read_labels(&l, args->x, args->target, args->weight, args->ignore_index, args->reduction)) return FALLBACK;
    s->smoothing = (float)smoothing;
    for (Py_ssize_t k = 0; smoothing > 0 && k < s->classes; k++) {
        s->shares += s->smoothing / (float)s->classes * (s->weight ? s->weight[k] : 1);
    }
    s->losses = malloc(4 * (size_t)l.samples);
    if (!s->losses) return PyErr_NoMemory();
    PyObject *grad = run_softmax(s, args->x), *loss = grad ? reduced_loss(&l, args->x, args->target, s->losses) : NULL;
    free(s->losses);
    return new_tuple(2, (PyObject *[]){loss, grad});
}

// The place of the score of a sample's label.
static Py_ssize_t place_of_label(const Softmax *s, Py_ssize_t i) {
    return (i / s->inner * s->classes + s->labels[i]) * s->inner + i % s->inner;
}

SMALL_KERNEL(nll, x, target, weight, ignore_index, reduction) {
    Labels l = {.of = {0}};
    const Softmax *s = &l.of;
    if (!read_labels(&l, args->x, args->target, args->weight, args->ignore_index, args->reduction)) return FALLBACK;
    float *losses = malloc(4 * (size_t)l.samples);
    if (!losses) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < l.samples; i++) {
        losses[i] = 0;
        if (s->labels[i] == s->ignored) continue;
        losses[i] = -s->x[place_of_label(s, i)] * (s->weight ? s->weight[s->labels[i]] : 1);
    }
    PyObject *loss = reduced_loss(&l, args->x, args->target, losses);
    free(losses);
    return loss;
}

SMALL_KERNEL(nll_loss_grad, g, x, target, weight, ignore_index, reduction) {
    Labels l = {.of = {0}};
    const Softmax *s = &l.of;
    float *g;
    if (!read_labels(&l, args->x, args->target, args->weight, args->ignore_index, args->reduction)) return FALLBACK;
    if (!read_floats(args->g, l.none ? l.samples : 1, false, &g)) return FALLBACK;
    PyObject *out = new_like(args->x);
    if (!out) return NULL;
    memset(float_data(out), 0, (size_t)PyArray_NBYTES(ARRAY(out)));
    for (Py_ssize_t i = 0; i < l.samples; i++) {
        if (s->labels[i] == s->ignored) continue;
        const float upstream = l.none ? g[i] : *g / (float)l.total;
        float_data(out)[place_of_label(s, i)] = -(upstream * (s->weight ? s->weight[s->labels[i]] : 1));
    }
    return out;
}

KERNEL(multi_margin_loss, x, target, p, margin, weight, reduction) {
    double margin, total = 0;
    float *weight;
    const Py_ssize_t power = read_int(args->p);
    const bool mean = is_string(args->reduction, "mean");
    if (!is_float_array(args->x, false) || !is_index_array(args->target) || power < 1 || power > 2 ||
        !tt_read_double(args->margin, &margin) || (!mean && !is_string(args->reduction, "sum"))) {
        return FALLBACK;
    }
    const int dims = PyArray_NDIM(ARRAY(args->x));
    const int64_t classes = dims == 1 || dims == 2 ? PyArray_DIM(ARRAY(args->x), dims - 1) : 0;
    const int64_t samples = classes ? PyArray_SIZE(ARRAY(args->x)) / classes : 0;
    if (!samples || PyArray_SIZE(ARRAY(args->target)) != samples ||
        !read_floats(args->weight, classes, true, &weight)) {
        return FALLBACK;
    }
    for (int64_t i = 0; i < samples; i++) {
        const float *x = float_data(args->x) + i * classes;
        const int64_t label = ((const int64_t *)PyArray_DATA(ARRAY(args->target)))[i];
        if (label < 0 || label >= classes) return FALLBACK;
        double loss = 0;
        for (int64_t j = 0; j < classes; j++) {
            const float above = (float)margin - x[label] + x[j];
            loss += j == label || above <= 0 ? 0 : power == 1 ? above : above * above;
        }
        total += (float)(loss / (double)classes * (weight ? weight[label] : 1));
    }
    PyObject *result = tt_new_array(args->x, 0, NULL);
    if (!result) return NULL;
    *float_data(result) = (float)(mean ? total / (double)samples : total);
    return PyArray_Return(ARRAY(result));
}

FAMILY(softmax, ENTRY(softmax), ENTRY(log_softmax), ENTRY(softmax_grad), ENTRY(log_softmax_grad), ENTRY(cross_entropy),
       ENTRY(nll), ENTRY(nll_loss_grad), ENTRY(multi_margin_loss));
