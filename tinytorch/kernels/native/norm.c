// Twins of kernels/norm.py and kernels/layer_norm.py. Batch and group normalisation see an array as (samples, channels,
// places), layer normalisation as (rows, channels). The places of a channel in one sample are a plane. Where there is
// one place per channel, the columns of the matrix (samples, channels) are processed side by side, as vectors.
#include "helpers.h"

typedef struct {
    const float *x, *g, *weight, *bias, *mean, *scale, *variance;       // inputs
    float *out, *means, *variances, *scales, *grad_bias, *grad_weight;  // outputs
    Py_ssize_t samples, channels, places, groups, rows_per_part;
    float eps;
} Norm;

// Add the sums of g and of g (x - mean) over a plane.
INLINE void gradient_sums(const float *g, const float *x, Py_ssize_t count, float mean, float *sum, float *dot) {
    Tail tail = tail_of(count);
    vec sums = {0}, sums2 = {0}, dots = {0}, dots2 = {0}, last = mask_tail(load_tail(g, &tail), &tail);
    Py_ssize_t i = 0;
    for (; i + 2 * WIDTH <= tail.body; i += 2 * WIDTH) {
        vec g1 = load(g + i), g2 = load(g + i + WIDTH);
        sums += g1;
        sums2 += g2;
        dots += g1 * (load(x + i) - mean);
        dots2 += g2 * (load(x + i + WIDTH) - mean);
    }
    for (; i < tail.body; i += WIDTH) {
        sums += load(g + i);
        dots += load(g + i) * (load(x + i) - mean);
    }
    *sum += horizontal_sum(sums + sums2 + last);
    *dot += horizontal_sum(dots + dots2 + mask_tail(last * (load_tail(x, &tail) - mean), &tail));
}

// out = x factor + summand
INLINE void scale_plane(const float *x, float *out, Py_ssize_t count, float factor, float summand) {
    Tail tail = tail_of(count);
    for (Py_ssize_t i = 0; i < tail.body; i += WIDTH) store(out + i, load(x + i) * factor + summand);
    store_tail(out, load_tail(x, &tail) * factor + summand, &tail);
}

// out = g g_factor + x x_factor + summand
INLINE void combine_planes(const float *g, const float *x, float *out, Py_ssize_t count, float g_factor, float x_factor,
                           float summand) {
    Tail tail = tail_of(count);
    for (Py_ssize_t i = 0; i < tail.body; i += WIDTH) {
        store(out + i, load(g + i) * g_factor + (load(x + i) * x_factor + summand));
    }
    store_tail(out, load_tail(g, &tail) * g_factor + (load_tail(x, &tail) * x_factor + summand), &tail);
}

INLINE float at_or(const float *numbers, Py_ssize_t index, float fallback) {
    return numbers ? numbers[index] : fallback;
}

// Batch normalisation ---------------------------------------------------------------------------

// Normalise a channel, by the given mean and variance, or by its own.
static void batch_channel_part(void *context, Py_ssize_t channel, int worker) {
    (void)worker;
    const Norm *n = context;
    Py_ssize_t step = n->channels * n->places, count = n->places;
    const float *x = n->x + channel * count;
    float mean, variance;
    if (n->mean) {
        mean = n->mean[channel], variance = n->variance[channel];
    } else {  // add the planes one after another, by Chan's formula
        double running_mean = 0, squares = 0;
        for (Py_ssize_t sample = 0; sample < n->samples; sample++) {
            double plane_mean = sum_of_row(x + sample * step, count, 0, false) / (double)count;
            double difference = plane_mean - running_mean;
            squares += sum_of_row(x + sample * step, count, (float)plane_mean, true);
            squares += difference * difference * (double)count * (double)sample / (double)(sample + 1);
            running_mean += difference / (double)(sample + 1);
        }
        n->means[channel] = mean = (float)running_mean;
        n->variances[channel] = variance = (float)(squares / (double)(count * n->samples));
        n->scales[channel] = 1 / sqrtf(variance + n->eps);
    }
    float factor = at_or(n->weight, channel, 1) / sqrtf(variance + n->eps);
    float summand = at_or(n->bias, channel, 0) - mean * factor;
    for (Py_ssize_t sample = 0; sample < n->samples; sample++) {
        scale_plane(x + sample * step, n->out + channel * count + sample * step, count, factor, summand);
    }
}

INLINE vec columns_or(const float *numbers, const Columns *columns, int k, float fallback) {
    return numbers ? load_columns(numbers + columns->begin, columns, k) : broadcast(fallback);
}

enum { ROW_BLOCK = 64 };  // rows whose columns stay in the cache, and which float32 sums without losing digits

// The same for columns, whose blocks of rows are added by Chan's formula.
INLINE void batch_columns(const Norm *n, const Columns *columns) {
    Py_ssize_t step = n->channels;
    const float *x = n->x + columns->begin;
    vec mean[UNROLL], variance[UNROLL], factor[UNROLL], summand[UNROLL];
    for (int k = 0; k < UNROLL; k++) {
        mean[k] = columns_or(n->mean, columns, k, 0);
        variance[k] = columns_or(n->variance, columns, k, 0);
    }
    for (Py_ssize_t begin = 0; !n->mean && begin < n->samples; begin += ROW_BLOCK) {
        Py_ssize_t end = imin(begin + ROW_BLOCK, n->samples);
        float count = (float)(end - begin), before = (float)begin;
        vec block_mean[UNROLL] = {{0}};
        for (Py_ssize_t row = begin; row < end; row++) {
            for (int k = 0; k < UNROLL; k++) block_mean[k] += load_columns(x + row * step, columns, k);
        }
        for (int k = 0; k < UNROLL; k++) block_mean[k] /= count;
        for (Py_ssize_t row = begin; row < end; row++) {
            for (int k = 0; k < UNROLL; k++) {
                vec deviation = load_columns(x + row * step, columns, k) - block_mean[k];
                variance[k] += deviation * deviation;
            }
        }
        for (int k = 0; k < UNROLL; k++) {
            vec difference = block_mean[k] - mean[k];
            variance[k] += difference * difference * (before * (count / (before + count)));
            mean[k] += difference * (count / (before + count));
        }
    }
    for (int k = 0; k < UNROLL; k++) {
        if (!n->mean) variance[k] /= (float)n->samples;
        vec scale = vrsqrt(variance[k] + n->eps);
        factor[k] = scale * columns_or(n->weight, columns, k, 1);
        summand[k] = columns_or(n->bias, columns, k, 0) - mean[k] * factor[k];
        if (!n->mean) {
            store_columns(n->means + columns->begin, mean[k], columns, k);
            store_columns(n->variances + columns->begin, variance[k], columns, k);
            store_columns(n->scales + columns->begin, scale, columns, k);
        }
    }
    for (Py_ssize_t row = 0; row < n->samples; row++) {
        for (int k = 0; k < UNROLL; k++) {
            vec value = load_columns(x + row * step, columns, k) * factor[k] + summand[k];
            store_columns(n->out + columns->begin + row * step, value, columns, k);
        }
    }
}

// The gradient by the input is (g - sum(g) / count - deviation scale^2 sum(g deviation) / count) scale weight.
static void batch_channel_grad_part(void *context, Py_ssize_t channel, int worker) {
    (void)worker;
    const Norm *n = context;
    Py_ssize_t step = n->channels * n->places, count = n->places, at = channel * count;
    float mean = n->mean[channel], scale = n->scale[channel];
    double sum = 0, dot = 0;
    for (Py_ssize_t sample = 0; sample < n->samples; sample++) {
        float plane_sum = 0, plane_dot = 0;
        gradient_sums(n->g + at + sample * step, n->x + at + sample * step, count, mean, &plane_sum, &plane_dot);
        sum += plane_sum;
        dot += plane_dot;
    }
    n->grad_bias[channel] = (float)sum;
    n->grad_weight[channel] = (float)dot * scale;
    if (!n->out) return;
    float g_factor = scale * at_or(n->weight, channel, 1), share = g_factor / (float)(n->samples * count);
    float x_factor = -share * scale * scale * (float)dot, summand = -share * (float)sum - x_factor * mean;
    for (Py_ssize_t sample = 0; sample < n->samples; sample++) {
        Py_ssize_t plane = at + sample * step;
        combine_planes(n->g + plane, n->x + plane, n->out + plane, count, g_factor, x_factor, summand);
    }
}

INLINE void batch_columns_grad(const Norm *n, const Columns *columns) {
    Py_ssize_t step = n->channels;
    const float *x = n->x + columns->begin, *g = n->g + columns->begin;
    vec sums[UNROLL] = {{0}}, dots[UNROLL] = {{0}}, mean[UNROLL], g_factor[UNROLL], x_factor[UNROLL], summand[UNROLL];
    for (int k = 0; k < UNROLL; k++) mean[k] = columns_or(n->mean, columns, k, 0);
    for (Py_ssize_t begin = 0; begin < n->samples; begin += ROW_BLOCK) {
        Py_ssize_t end = imin(begin + ROW_BLOCK, n->samples);
        vec block_sums[UNROLL] = {{0}}, block_dots[UNROLL] = {{0}};
        for (Py_ssize_t row = begin; row < end; row++) {
            for (int k = 0; k < UNROLL; k++) {
                vec grad = load_columns(g + row * step, columns, k);
                block_sums[k] += grad;
                block_dots[k] += grad * (load_columns(x + row * step, columns, k) - mean[k]);
            }
        }
        for (int k = 0; k < UNROLL; k++) {
            sums[k] += block_sums[k];
            dots[k] += block_dots[k];
        }
    }
    for (int k = 0; k < UNROLL; k++) {
        vec scale = columns_or(n->scale, columns, k, 0);
        store_columns(n->grad_bias + columns->begin, sums[k], columns, k);
        store_columns(n->grad_weight + columns->begin, dots[k] * scale, columns, k);
        g_factor[k] = scale * columns_or(n->weight, columns, k, 1);
        vec share = g_factor[k] / (float)n->samples;
        x_factor[k] = -share * scale * scale * dots[k];
        summand[k] = -share * sums[k] - x_factor[k] * mean[k];
    }
    for (Py_ssize_t row = 0; n->out && row < n->samples; row++) {
        for (int k = 0; k < UNROLL; k++) {
            vec value = load_columns(x + row * step, columns, k) * x_factor[k] + summand[k];
            value += load_columns(g + row * step, columns, k) * g_factor[k];
            store_columns(n->out + columns->begin + row * step, value, columns, k);
        }
    }
}

static void batch_columns_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Norm *n = context;
    Columns columns = {part * UNROLLED_WIDTH, n->channels - part * UNROLLED_WIDTH};
    if (columns.count >= UNROLLED_WIDTH) {
        columns.count = UNROLLED_WIDTH;  // a constant: the compiler drops the checks of `load_columns`
        n->g ? batch_columns_grad(n, &columns) : batch_columns(n, &columns);
    } else {
        n->g ? batch_columns_grad(n, &columns) : batch_columns(n, &columns);
    }
}

// Group normalisation ---------------------------------------------------------------------------

static void group_part(void *context, Py_ssize_t group, int worker) {
    (void)worker;
    const Norm *n = context;
    Py_ssize_t size = n->channels / n->groups, length = size * n->places, first = group % n->groups * size;
    const float *x = n->x + group * length;
    float mean = (float)(sum_of_row(x, length, 0, false) / (double)length);
    float scale = 1 / sqrtf((float)(sum_of_row(x, length, mean, true) / (double)length) + n->eps);
    n->means[group] = mean;
    n->scales[group] = scale;
    for (Py_ssize_t c = 0; c < size; c++) {
        float factor = scale * at_or(n->weight, first + c, 1), summand = at_or(n->bias, first + c, 0) - mean * factor;
        scale_plane(x + c * n->places, n->out + group * length + c * n->places, n->places, factor, summand);
    }
}

// `grad_bias` and `grad_weight` have a number per sample and channel, to be added over the samples.
static void group_grad_part(void *context, Py_ssize_t group, int worker) {
    (void)worker;
    const Norm *n = context;
    Py_ssize_t size = n->channels / n->groups, count = n->places, first = group % n->groups * size;
    const float *x = n->x + group * size * count, *g = n->g + group * size * count;
    float mean = n->mean[group], scale = n->scale[group], sum = 0, dot = 0;
    for (Py_ssize_t c = 0; c < size; c++) {
        float *plane_sum = n->grad_bias + group * size + c, *plane_dot = n->grad_weight + group * size + c;
        *plane_sum = *plane_dot = 0;
        gradient_sums(g + c * count, x + c * count, count, mean, plane_sum, plane_dot);
        sum += *plane_sum * at_or(n->weight, first + c, 1);
        dot += *plane_dot * at_or(n->weight, first + c, 1);
        *plane_dot *= scale;
    }
    if (!n->out) return;
    float share = scale / (float)(size * count), x_factor = -share * scale * scale * dot;
    float summand = -share * sum - x_factor * mean;
    for (Py_ssize_t c = 0; c < size; c++) {
        float g_factor = scale * at_or(n->weight, first + c, 1);
        float *out = n->out + (group * size + c) * count;
        combine_planes(g + c * count, x + c * count, out, count, g_factor, x_factor, summand);
    }
}

// Layer normalisation ---------------------------------------------------------------------------

// A vector of a row: at `i`, or its tail if `tail` is not NULL.
INLINE vec load_at(const float *x, Py_ssize_t i, const Tail *tail) { return tail ? load_tail(x, tail) : load(x + i); }

INLINE void store_at(float *x, Py_ssize_t i, vec value, const Tail *tail) {
    if (tail) {
        store_tail(x, value, tail);
    } else {
        store(x + i, value);
    }
}

INLINE void layer_vector(const Norm *n, const float *x, float *out, Py_ssize_t i, const Tail *tail, float mean,
                         float scale) {
    vec value = (load_at(x, i, tail) - mean) * scale;
    if (n->weight) value *= load_at(n->weight, i, tail);
    if (n->bias) value += load_at(n->bias, i, tail);
    store_at(out, i, value, tail);
}

static void layer_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Norm *n = context;
    Py_ssize_t count = n->channels, end = imin((part + 1) * n->rows_per_part, n->samples);
    Tail tail = tail_of(count);
    for (Py_ssize_t row = part * n->rows_per_part; row < end; row++) {
        const float *x = n->x + row * count;
        float mean = n->means ? (float)(sum_of_row(x, count, 0, false) / (double)count) : 0,
              *out = n->out + row * count;
        float scale = 1 / sqrtf((float)(sum_of_row(x, count, mean, true) / (double)count) + n->eps);
        if (n->means) n->means[row] = mean;
        n->scales[row] = scale;
        for (Py_ssize_t i = 0; i < tail.body; i += WIDTH) layer_vector(n, x, out, i, NULL, mean, scale);
        layer_vector(n, x, out, 0, &tail, mean, scale);
    }
}

// What the gradient of a row needs: the sums of g weight and of g weight deviation.
typedef struct {
    vec sums, dots;
    float mean, scale;
} RowGradient;

INLINE void layer_grad_sums(const Norm *n, const float *g, const float *x, Py_ssize_t i, const Tail *tail,
                            float *grad_weight, float *grad_bias, RowGradient *row) {
    vec grad = load_at(g, i, tail), deviation = load_at(x, i, tail) - row->mean;
    if (tail) grad = mask_tail(grad, tail);
    if (grad_bias) store_at(grad_bias, i, load_at(grad_bias, i, tail) + grad, tail);
    vec product = grad * deviation;
    if (tail) product = mask_tail(product, tail);
    if (grad_weight) store_at(grad_weight, i, load_at(grad_weight, i, tail) + product * row->scale, tail);
    vec weight = n->weight ? load_at(n->weight, i, tail) : broadcast(1);
    row->sums += grad * weight;
    row->dots += product * weight;
}

INLINE void layer_grad_vector(const Norm *n, const float *g, const float *x, float *out, Py_ssize_t i, const Tail *tail,
                              float scale, float x_factor, float summand) {
    vec grad = load_at(g, i, tail) * scale;
    if (n->weight) grad *= load_at(n->weight, i, tail);
    store_at(out, i, grad + (load_at(x, i, tail) * x_factor + summand), tail);
}

// `grad_weight` and `grad_bias` have a row per part.
static void layer_grad_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Norm *n = context;
    Py_ssize_t count = n->channels, end = imin((part + 1) * n->rows_per_part, n->samples);
    Tail tail = tail_of(count);
    float *grad_weight = n->grad_weight ? n->grad_weight + part * count : NULL;
    float *grad_bias = n->grad_bias ? n->grad_bias + part * count : NULL;
    for (Py_ssize_t row = part * n->rows_per_part; row < end; row++) {
        const float *x = n->x + row * count, *g = n->g + row * count;
        RowGradient sums = {{0}, {0}, at_or(n->mean, row, 0), n->scale[row]};
        for (Py_ssize_t i = 0; i < tail.body; i += WIDTH) {
            layer_grad_sums(n, g, x, i, NULL, grad_weight, grad_bias, &sums);
        }
        layer_grad_sums(n, g, x, 0, &tail, grad_weight, grad_bias, &sums);
        if (!n->out) continue;
        float *out = n->out + row * count, scale = sums.scale, share = scale / (float)count;
        float x_factor = -share * scale * scale * horizontal_sum(sums.dots);
        float summand = n->mean ? -share * horizontal_sum(sums.sums) - x_factor * sums.mean : 0;
        for (Py_ssize_t i = 0; i < tail.body; i += WIDTH) {
            layer_grad_vector(n, g, x, out, i, NULL, scale, x_factor, summand);
        }
        layer_grad_vector(n, g, x, out, 0, &tail, scale, x_factor, summand);
    }
}

// Calls -----------------------------------------------------------------------------------------

static bool read_optional(PyObject *object, Py_ssize_t size, const float **numbers) {
    return read_floats(object, size, true, (float **)numbers);
}

static bool read_required(PyObject *object, Py_ssize_t size, const float **numbers) {
    return read_floats(object, size, false, (float **)numbers);
}

// View `x` as (samples, channels, places); or, if `last` is not 0, as (rows, channels) where the channels are the last
// `last` dimensions. False for arguments that are left to the definition.
static bool read_norm(Norm *n, PyObject *x, Py_ssize_t last, PyObject *weight, PyObject *bias) {
    if (!is_float_array(x, false) || !PyArray_SIZE(ARRAY(x))) return false;
    int dims = PyArray_NDIM(ARRAY(x));
    n->samples = n->channels = n->places = 1;
    for (int dim = 0; dim < dims; dim++) {
        Py_ssize_t length = PyArray_DIM(ARRAY(x), dim);
        if (last) {
            *(dim < dims - last ? &n->samples : &n->channels) *= length;
        } else {
            *(dim == 0 ? &n->samples : dim == 1 ? &n->channels : &n->places) *= length;
        }
    }
    n->x = float_data(x);
    return dims >= (last ? last : 2) && read_optional(weight, n->channels, &n->weight) &&
           read_optional(bias, n->channels, &n->bias);
}

static int64_t size_of(const Norm *n) { return n->samples * n->channels * n->places; }

// Read the further arguments of a gradient, with `count` means and scales.
static bool read_gradient(Norm *n, PyObject *g, PyObject *mean, PyObject *scale, PyObject *wanted, Py_ssize_t count) {
    return read_required(g, size_of(n), &n->g) && read_required(mean, count, &n->mean) &&
           read_required(scale, count, &n->scale) && PyBool_Check(wanted);
}

// Allocate an array of the given shape (NULL: that of `like`), whose memory is `data`.
static PyObject *allocate(PyObject *like, int dims, const int64_t *shape, float **data) {
    PyObject *out = shape ? tt_new_array(like, dims, shape) : new_like(like);
    if (out) *data = float_data(out);
    return out;
}

// Allocate the gradient by the input; an empty array if it is not `wanted`.
static PyObject *allocate_grad(Norm *n, PyObject *like, PyObject *wanted) {
    const int64_t empty = 0;
    PyObject *grad = allocate(like, 1, wanted == Py_True ? NULL : &empty, &n->out);
    if (wanted != Py_True) n->out = NULL;
    return grad;
}

static void run_channels(Norm *n, Work channel_part) {
    bool planes = n->places > 1;
    Py_ssize_t parts = planes ? n->channels : ceil_div(n->channels, UNROLLED_WIDTH);
    tt_parallel_for(planes ? channel_part : batch_columns_part, n, parts, size_of(n), tt_threads());
}

// A view of an array with one dimension.
static PyObject *flattened(PyObject *array) {
    npy_intp size = PyArray_SIZE(ARRAY(array));
    PyArray_Dims shape = {&size, 1};
    return PyArray_Newshape(ARRAY(array), &shape, NPY_CORDER);
}

KERNEL(batch_norm, x, weight, bias, eps) {
    Norm n = {0};
    if (!tt_read_number(args->eps, &n.eps) || !n.eps || !read_norm(&n, args->x, 0, args->weight, args->bias)) return FALLBACK;
    int64_t shape[] = {1, n.channels};
    PyObject *y = allocate(args->x, 0, NULL, &n.out), *mean = allocate(args->x, 2, shape, &n.means);
    PyObject *variance = allocate(args->x, 1, shape + 1, &n.variances), *scale = allocate(args->x, 2, shape, &n.scales);
    if (y && mean && variance && scale) run_channels(&n, batch_channel_part);
    return new_tuple(5, (PyObject *[]){y, mean ? flattened(mean) : NULL, variance, mean, scale});
}

KERNEL(given_norm, x, weight, bias, mean, variance, eps) {
    Norm n = {0};
    if (!tt_read_number(args->eps, &n.eps) || !read_norm(&n, args->x, 0, args->weight, args->bias)) return FALLBACK;
    if (!read_required(args->mean, n.channels, &n.mean)) return FALLBACK;
    if (!read_required(args->variance, n.channels, &n.variance)) return FALLBACK;
    PyObject *y = allocate(args->x, 0, NULL, &n.out);
    if (y) run_channels(&n, batch_channel_part);
    return y;
}

KERNEL(batch_norm_grad, g, x, weight, mean, scale, wanted) {
    Norm n = {0};
    if (!read_norm(&n, args->x, 0, args->weight, Py_None)) return FALLBACK;
    if (!read_gradient(&n, args->g, args->mean, args->scale, args->wanted, n.channels)) return FALLBACK;
    int64_t channels = n.channels;
    PyObject *grad = allocate_grad(&n, args->x, args->wanted);
    PyObject *grad_weight = allocate(args->x, 1, &channels, &n.grad_weight);
    PyObject *grad_bias = allocate(args->x, 1, &channels, &n.grad_bias);
    if (grad && grad_weight && grad_bias) run_channels(&n, batch_channel_grad_part);
    return new_tuple(3, (PyObject *[]){grad, grad_weight, grad_bias});
}

KERNEL(group_norm, x, groups, weight, bias, eps) {
    Norm n = {0};
    if (!tt_read_number(args->eps, &n.eps) || !read_norm(&n, args->x, 0, args->weight, args->bias)) return FALLBACK;
    n.groups = read_int(args->groups);
    if (n.places == 1 || n.groups < 1 || n.channels % n.groups) return FALLBACK;
    int64_t shape[] = {n.samples, n.groups};
    PyObject *y = allocate(args->x, 0, NULL, &n.out), *mean = allocate(args->x, 2, shape, &n.means);
    PyObject *scale = allocate(args->x, 2, shape, &n.scales);
    if (y && mean && scale) tt_parallel_for(group_part, &n, n.samples * n.groups, size_of(&n), tt_threads());
    return new_tuple(3, (PyObject *[]){y, mean, scale});
}

KERNEL(group_norm_grad, g, x, weight, mean, scale, wanted) {
    Norm n = {0};
    if (!read_norm(&n, args->x, 0, args->weight, Py_None) || n.places == 1) return FALLBACK;
    if (!PyArray_CheckExact(args->mean) || PyArray_NDIM(ARRAY(args->mean)) != 2) return FALLBACK;
    n.groups = PyArray_DIM(ARRAY(args->mean), 1);
    if (n.groups < 1 || n.channels % n.groups) return FALLBACK;
    if (!read_gradient(&n, args->g, args->mean, args->scale, args->wanted, n.samples * n.groups)) return FALLBACK;
    int64_t channels = n.channels, planes = n.samples * n.channels;
    float *weights, *biases;
    PyObject *grad = allocate_grad(&n, args->x, args->wanted);
    PyObject *grad_weight = allocate(args->x, 1, &channels, &weights);
    PyObject *grad_bias = allocate(args->x, 1, &channels, &biases);
    n.grad_bias = malloc(8 * (size_t)planes);
    if (grad && grad_weight && grad_bias && n.grad_bias) {
        n.grad_weight = n.grad_bias + planes;
        tt_parallel_for(group_grad_part, &n, n.samples * n.groups, size_of(&n), tt_threads());
        memset(weights, 0, 4 * (size_t)n.channels);
        memset(biases, 0, 4 * (size_t)n.channels);
        for (Py_ssize_t i = 0; i < planes; i++) {
            weights[i % n.channels] += n.grad_weight[i];
            biases[i % n.channels] += n.grad_bias[i];
        }
    } else if (!n.grad_bias) {
        Py_CLEAR(grad);
        PyErr_NoMemory();
    }
    free(n.grad_bias);
    return new_tuple(3, (PyObject *[]){grad, grad_weight, grad_bias});
}

// Layer normalisation; without `centred`, by the root of the mean square.
static PyObject *layer(PyObject *x, PyObject *count, PyObject *weight, PyObject *bias, PyObject *eps, bool centred) {
    Norm n = {0};
    Py_ssize_t last = read_int(count);
    int64_t shape[NPY_MAXDIMS];
    if (last < 1 || !tt_read_number(eps, &n.eps) || !read_norm(&n, x, last, weight, bias)) return FALLBACK;
    int dims = PyArray_NDIM(ARRAY(x));
    for (int i = 0; i < dims; i++) shape[i] = i < dims - last ? PyArray_DIM(ARRAY(x), i) : 1;
    n.rows_per_part = PART_SIZE / n.channels + 1;
    PyObject *y = allocate(x, 0, NULL, &n.out), *scale = allocate(x, dims, shape, &n.scales);
    PyObject *mean = centred ? allocate(x, dims, shape, &n.means) : NULL;
    if (y && scale && (mean || !centred)) {
        tt_parallel_for(layer_part, &n, ceil_div(n.samples, n.rows_per_part), size_of(&n), tt_threads());
    }
    return centred ? new_tuple(3, (PyObject *[]){y, mean, scale}) : new_tuple(2, (PyObject *[]){y, scale});
}

KERNEL(layer_norm, x, count, weight, bias, eps) {
    return layer(args->x, args->count, args->weight, args->bias, args->eps, true);
}

KERNEL(rms_norm, x, count, weight, eps) { return layer(args->x, args->count, args->weight, Py_None, args->eps, false); }

// Sum the rows of a matrix.
static void sum_rows(const float *x, Py_ssize_t rows, Py_ssize_t columns, float *out) {
    memcpy(out, x, 4 * (size_t)columns);
    for (Py_ssize_t row = 1; row < rows; row++) {
        for (Py_ssize_t i = 0; i < columns; i++) out[i] += x[row * columns + i];
    }
}

// The gradients of a layer; with `mean` None, the two of `rms_norm`.
static PyObject *layer_grad(PyObject *g, PyObject *needs, PyObject *x, PyObject *count, PyObject *weight,
                            PyObject *mean, PyObject *scale) {
    Norm n = {0};
    int inputs = mean == Py_None ? 2 : 3;
    Py_ssize_t last = read_int(count);
    if (!PyTuple_Check(needs) || PyTuple_Size(needs) != inputs) return FALLBACK;
    if (last < 1 || !read_norm(&n, x, last, weight, Py_None)) return FALLBACK;
    if (!read_required(g, size_of(&n), &n.g) || !read_optional(mean, n.samples, &n.mean)) return FALLBACK;
    if (!read_required(scale, n.samples, &n.scale)) return FALLBACK;
    bool needed[3] = {false};
    for (int i = 0; i < inputs; i++) needed[i] = PyTuple_GetItem(needs, i) == Py_True;
    // At most about 32 parts: their sums are added in the end.
    n.rows_per_part = imax(PART_SIZE / n.channels + 1, n.samples / 32 + 1);
    Py_ssize_t parts = ceil_div(n.samples, n.rows_per_part);
    int64_t shape[NPY_MAXDIMS];
    int dims = PyArray_NDIM(ARRAY(x));
    for (int i = 0; i < last; i++) shape[i] = PyArray_DIM(ARRAY(x), dims - last + i);
    float *results[3] = {NULL};
    PyObject *grads[3];
    for (int i = 0; i < 3; i++) {
        grads[i] = needed[i] ? allocate(x, (int)last, i ? shape : NULL, &results[i]) : Py_NewRef(Py_None);
    }
    float *sums = calloc((size_t)(2 * parts * n.channels), 4);
    if (sums && grads[0] && grads[1] && grads[2]) {
        n.out = results[0];
        n.grad_weight = needed[1] ? sums : NULL;
        n.grad_bias = needed[2] ? sums + parts * n.channels : NULL;
        tt_parallel_for(layer_grad_part, &n, parts, size_of(&n), tt_threads());
        if (needed[1]) sum_rows(n.grad_weight, parts, n.channels, results[1]);
        if (needed[2]) sum_rows(n.grad_bias, parts, n.channels, results[2]);
    } else if (!sums) {
        Py_CLEAR(grads[0]);
        PyErr_NoMemory();
    }
    free(sums);
    if (inputs == 2) Py_CLEAR(grads[2]);
    return new_tuple(inputs, grads);
}

KERNEL(layer_norm_grad, g, needs, x, count, weight, mean, scale) {
    return layer_grad(args->g, args->needs, args->x, args->count, args->weight, args->mean, args->scale);
}

KERNEL(rms_norm_grad, g, needs, x, count, weight, scale) {
    return layer_grad(args->g, args->needs, args->x, args->count, args->weight, Py_None, args->scale);
}

// Move running statistics towards those of a batch.
SMALL_KERNEL(blend, array, new, count, momentum) {
    double momentum;
    float *new;
    const Py_ssize_t count = read_int(args->count);
    if (!is_float_array(args->array, true) || !tt_read_double(args->momentum, &momentum) || count < 0) return FALLBACK;
    const Py_ssize_t size = PyArray_SIZE(ARRAY(args->array));
    if (!read_floats(args->new, size, false, &new) || !disjoint(args->array, args->new)) return FALLBACK;
    const float kept = (float)(1 - momentum), moved = (float)momentum;
    float *to = float_data(args->array);
    for (Py_ssize_t i = 0; i < size; i++) {
        to[i] = kept * to[i] + moved * (count ? new[i] * (float)count / (float)(count - 1) : new[i]);
    }
    return Py_NewRef(Py_None);
}

FAMILY(norm, ENTRY(batch_norm), ENTRY(batch_norm_grad), ENTRY(given_norm), ENTRY(group_norm), ENTRY(group_norm_grad),
       ENTRY(layer_norm), ENTRY(layer_norm_grad), ENTRY(rms_norm), ENTRY(rms_norm_grad), ENTRY(blend));
