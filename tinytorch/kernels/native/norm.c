// Twins of kernels/norm.py and kernels/layer_norm.py. Arrays are (samples, channels, places), those of a layer (rows,
// channels); each channel of a sample is a plane. Without places the columns of a matrix are worked on as vectors.

typedef struct {
    const float *x, *g, *weight, *bias, *mean, *scale, *variance;  // what is given
    float *out, *means, *variances, *scales, *sums, *dots;         // what is written
    Py_ssize_t samples, channels, places, groups, rows;            // rows of a block
    float eps;
} Norm;

// The sum of a row; or, `squared`, of the squares of its differences from `mean`.
INLINE float sum_of_part(const float *x, Py_ssize_t count, float mean, bool squared) {
    Ends ends = ends_of(count);
    vec sums[TOGETHER] = {{0}}, last = load_last(x, &ends) - mean;
    Py_ssize_t i = 0;
    for (; i + ABREAST <= ends.whole; i += ABREAST) {
        for (int k = 0; k < TOGETHER; k++) {
            vec distance = load(x + i + k * WIDTH) - mean;
            sums[k] += squared ? distance * distance : distance;
        }
    }
    for (; i < ends.whole; i += WIDTH) {
        vec distance = load(x + i) - mean;
        sums[0] += squared ? distance * distance : distance;
    }
    return sum_of(sums[0] + sums[1] + (sums[2] + sums[3]) + own_of(squared ? last * last : last, &ends));
}

INLINE double sum_of_row(const float *x, Py_ssize_t count, float mean, bool squared) {
    const Py_ssize_t part = 1 << 12;  // of more numbers, float32 would lose digits
    if (count <= part) return sum_of_part(x, count, mean, squared);
    double sum = 0;
    for (Py_ssize_t i = 0; i < count; i += part) {
        sum += sum_of_part(x + i, count - i < part ? count - i : part, mean, squared);
    }
    return sum;
}

// Add the sums of g and of g (x - mean) of a plane.
INLINE void products_of_plane(const float *g, const float *x, Py_ssize_t count, float mean, float *sum, float *dot) {
    Ends ends = ends_of(count);
    vec sums = {0}, more = {0}, dots = {0}, more_dots = {0}, last = own_of(load_last(g, &ends), &ends);
    Py_ssize_t i = 0;
    for (; i + 2 * WIDTH <= ends.whole; i += 2 * WIDTH) {
        vec first = load(g + i), second = load(g + i + WIDTH);
        sums += first;
        more += second;
        dots += first * (load(x + i) - mean);
        more_dots += second * (load(x + i + WIDTH) - mean);
    }
    for (; i < ends.whole; i += WIDTH) {
        sums += load(g + i);
        dots += load(g + i) * (load(x + i) - mean);
    }
    *sum += sum_of(sums + more + last);
    *dot += sum_of(dots + more_dots + own_of(last * (load_last(x, &ends) - mean), &ends));
}

INLINE void scale_plane(const float *x, float *out, Py_ssize_t count, float factor, float summand) {
    Ends ends = ends_of(count);
    for (Py_ssize_t i = 0; i < ends.whole; i += WIDTH) store(out + i, load(x + i) * factor + summand);
    store_last(out, load_last(x, &ends) * factor + summand, &ends);
}

INLINE void combine_plane(
    const float *g, const float *x, float *out, Py_ssize_t count, float of_g, float of_x, float summand) {
    Ends ends = ends_of(count);
    for (Py_ssize_t i = 0; i < ends.whole; i += WIDTH) store(out + i, load(g + i) * of_g + (load(x + i) * of_x + summand));
    store_last(out, load_last(g, &ends) * of_g + (load_last(x, &ends) * of_x + summand), &ends);
}

INLINE float at_or(const float *numbers, Py_ssize_t index, float other) { return numbers ? numbers[index] : other; }

// By the statistics of a batch ------------------------------------------------------------------

static void batch_channel(void *context, Py_ssize_t channel, int worker) {
    (void)worker;
    const Norm *of = context;
    Py_ssize_t step = of->channels * of->places, count = of->places;
    const float *x = of->x + channel * count;
    float mean, variance;
    if (of->mean) {
        mean = of->mean[channel], variance = of->variance[channel];
    } else {  // by Chan's formula, of planes one after another
        double whole = 0, squares = 0;
        for (Py_ssize_t n = 0; n < of->samples; n++) {
            double of_plane = sum_of_row(x + n * step, count, 0, false) / (double)count, difference = of_plane - whole;
            squares += sum_of_row(x + n * step, count, (float)of_plane, true);
            squares += difference * difference * (double)count * (double)n / (double)(n + 1);
            whole += difference / (double)(n + 1);
        }
        of->means[channel] = mean = (float)whole;
        of->variances[channel] = variance = (float)(squares / (double)(count * of->samples));
        of->scales[channel] = 1 / sqrtf(variance + of->eps);
    }
    float factor = at_or(of->weight, channel, 1) / sqrtf(variance + of->eps);
    float summand = at_or(of->bias, channel, 0) - mean * factor;
    for (Py_ssize_t n = 0; n < of->samples; n++) {
        scale_plane(x + n * step, of->out + channel * count + n * step, count, factor, summand);
    }
}

INLINE vec columns_or(const float *numbers, const Columns *columns, int k, float other) {
    return numbers ? load_columns(numbers + columns->begin, columns, k) : all(other);
}

INLINE vec inverse_root_of(vec x) {
    for (int lane = 0; lane < WIDTH; lane++) x[lane] = 1 / sqrtf(x[lane]);
    return x;
}

enum { STRETCH = 64 };  // rows whose columns stay in the cache, and whose sums lose no digits

INLINE void batch_columns(const Norm *of, const Columns *columns) {
    Py_ssize_t step = of->channels;
    const float *x = of->x + columns->begin;
    vec mean[TOGETHER], variance[TOGETHER], factor[TOGETHER], summand[TOGETHER];
    for (int k = 0; k < TOGETHER; k++) {
        mean[k] = columns_or(of->mean, columns, k, 0);
        variance[k] = columns_or(of->variance, columns, k, 0);
    }
    for (Py_ssize_t begin = 0; !of->mean && begin < of->samples; begin += STRETCH) {
        Py_ssize_t end = begin + STRETCH < of->samples ? begin + STRETCH : of->samples;
        float count = (float)(end - begin), before = (float)begin;
        vec own[TOGETHER] = {{0}};
        for (Py_ssize_t n = begin; n < end; n++) {
            for (int k = 0; k < TOGETHER; k++) own[k] += load_columns(x + n * step, columns, k);
        }
        for (int k = 0; k < TOGETHER; k++) own[k] /= count;
        for (Py_ssize_t n = begin; n < end; n++) {
            for (int k = 0; k < TOGETHER; k++) {
                vec distance = load_columns(x + n * step, columns, k) - own[k];
                variance[k] += distance * distance;
            }
        }
        for (int k = 0; k < TOGETHER; k++) {
            vec difference = own[k] - mean[k];
            variance[k] += difference * difference * (before * (count / (before + count)));
            mean[k] += difference * (count / (before + count));
        }
    }
    for (int k = 0; k < TOGETHER; k++) {
        if (!of->mean) variance[k] /= (float)of->samples;
        vec scale = inverse_root_of(variance[k] + of->eps);
        factor[k] = scale * columns_or(of->weight, columns, k, 1);
        summand[k] = columns_or(of->bias, columns, k, 0) - mean[k] * factor[k];
        if (!of->mean) {
            store_columns(of->means + columns->begin, mean[k], columns, k);
            store_columns(of->variances + columns->begin, variance[k], columns, k);
            store_columns(of->scales + columns->begin, scale, columns, k);
        }
    }
    for (Py_ssize_t n = 0; n < of->samples; n++) {
        for (int k = 0; k < TOGETHER; k++) {
            vec value = load_columns(x + n * step, columns, k) * factor[k] + summand[k];
            store_columns(of->out + columns->begin + n * step, value, columns, k);
        }
    }
}

// The gradient (g - sum(g) / count - distance scale^2 sum(g distance) / count) scale weight.
static void batch_grad_channel(void *context, Py_ssize_t channel, int worker) {
    (void)worker;
    const Norm *of = context;
    Py_ssize_t step = of->channels * of->places, count = of->places, at = channel * count;
    float mean = of->mean[channel], scale = of->scale[channel];
    double sum = 0, dot = 0;
    for (Py_ssize_t n = 0; n < of->samples; n++) {
        float of_plane = 0, of_distance = 0;
        products_of_plane(of->g + at + n * step, of->x + at + n * step, count, mean, &of_plane, &of_distance);
        sum += of_plane;
        dot += of_distance;
    }
    of->sums[channel] = (float)sum;
    of->dots[channel] = (float)dot * scale;
    if (!of->out) return;
    float of_g = scale * at_or(of->weight, channel, 1), each = of_g / (float)(of->samples * count);
    float of_x = -each * scale * scale * (float)dot, summand = -each * (float)sum - of_x * mean;
    for (Py_ssize_t n = 0; n < of->samples; n++) {
        combine_plane(of->g + at + n * step, of->x + at + n * step, of->out + at + n * step, count, of_g, of_x, summand);
    }
}

INLINE void batch_grad_columns(const Norm *of, const Columns *columns) {
    Py_ssize_t step = of->channels;
    const float *x = of->x + columns->begin, *g = of->g + columns->begin;
    vec sums[TOGETHER] = {{0}}, dots[TOGETHER] = {{0}}, mean[TOGETHER], of_g[TOGETHER], of_x[TOGETHER], summand[TOGETHER];
    for (int k = 0; k < TOGETHER; k++) mean[k] = columns_or(of->mean, columns, k, 0);
    for (Py_ssize_t begin = 0; begin < of->samples; begin += STRETCH) {
        Py_ssize_t end = begin + STRETCH < of->samples ? begin + STRETCH : of->samples;
        vec own[TOGETHER] = {{0}}, own_dots[TOGETHER] = {{0}};
        for (Py_ssize_t n = begin; n < end; n++) {
            for (int k = 0; k < TOGETHER; k++) {
                vec slope = load_columns(g + n * step, columns, k);
                own[k] += slope;
                own_dots[k] += slope * (load_columns(x + n * step, columns, k) - mean[k]);
            }
        }
        for (int k = 0; k < TOGETHER; k++) {
            sums[k] += own[k];
            dots[k] += own_dots[k];
        }
    }
    for (int k = 0; k < TOGETHER; k++) {
        vec scale = columns_or(of->scale, columns, k, 0);
        store_columns(of->sums + columns->begin, sums[k], columns, k);
        store_columns(of->dots + columns->begin, dots[k] * scale, columns, k);
        of_g[k] = scale * columns_or(of->weight, columns, k, 1);
        vec each = of_g[k] / (float)of->samples;
        of_x[k] = -each * scale * scale * dots[k];
        summand[k] = -each * sums[k] - of_x[k] * mean[k];
    }
    for (Py_ssize_t n = 0; of->out && n < of->samples; n++) {
        for (int k = 0; k < TOGETHER; k++) {
            vec value = load_columns(x + n * step, columns, k) * of_x[k] + summand[k];
            value += load_columns(g + n * step, columns, k) * of_g[k];
            store_columns(of->out + columns->begin + n * step, value, columns, k);
        }
    }
}

static void batch_columns_block(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Norm *of = context;
    Columns columns = {block * ABREAST, of->channels - block * ABREAST};
    if (columns.count >= ABREAST) {
        columns.count = ABREAST;  // which the compiler sees
        of->g ? batch_grad_columns(of, &columns) : batch_columns(of, &columns);
    } else {
        of->g ? batch_grad_columns(of, &columns) : batch_columns(of, &columns);
    }
}

// By those of groups of channels ----------------------------------------------------------------

static void group_block(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Norm *of = context;
    Py_ssize_t size = of->channels / of->groups, length = size * of->places, first = block % of->groups * size;
    const float *x = of->x + block * length;
    float mean = (float)(sum_of_row(x, length, 0, false) / (double)length);
    float scale = 1 / sqrtf((float)(sum_of_row(x, length, mean, true) / (double)length) + of->eps);
    of->means[block] = mean;
    of->scales[block] = scale;
    for (Py_ssize_t c = 0; c < size; c++) {
        float factor = scale * at_or(of->weight, first + c, 1), summand = at_or(of->bias, first + c, 0) - mean * factor;
        scale_plane(x + c * of->places, of->out + block * length + c * of->places, of->places, factor, summand);
    }
}

static void group_grad_block(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Norm *of = context;
    Py_ssize_t size = of->channels / of->groups, count = of->places, first = block % of->groups * size;
    const float *x = of->x + block * size * count, *g = of->g + block * size * count;
    float mean = of->mean[block], scale = of->scale[block], sum = 0, dot = 0;
    for (Py_ssize_t c = 0; c < size; c++) {
        float *of_plane = of->sums + block * size + c, *of_distance = of->dots + block * size + c;
        *of_plane = *of_distance = 0;
        products_of_plane(g + c * count, x + c * count, count, mean, of_plane, of_distance);
        sum += *of_plane * at_or(of->weight, first + c, 1);
        dot += *of_distance * at_or(of->weight, first + c, 1);
        *of_distance *= scale;
    }
    if (!of->out) return;
    float each = scale / (float)(size * count), of_x = -each * scale * scale * dot, summand = -each * sum - of_x * mean;
    for (Py_ssize_t c = 0; c < size; c++) {
        float of_g = scale * at_or(of->weight, first + c, 1);
        float *out = of->out + (block * size + c) * count;
        combine_plane(g + c * count, x + c * count, out, count, of_g, of_x, summand);
    }
}

// Of layers -------------------------------------------------------------------------------------

INLINE vec load_part(const float *x, Py_ssize_t i, const Ends *ends) { return ends ? load_last(x, ends) : load(x + i); }

INLINE void store_part(float *x, Py_ssize_t i, vec value, const Ends *ends) {
    if (ends) {
        store_last(x, value, ends);
    } else {
        store(x + i, value);
    }
}

INLINE void layer_part(const Norm *of, const float *x, float *out, Py_ssize_t i, const Ends *ends, float mean, float scale) {
    vec value = (load_part(x, i, ends) - mean) * scale;
    if (of->weight) value *= load_part(of->weight, i, ends);
    if (of->bias) value += load_part(of->bias, i, ends);
    store_part(out, i, value, ends);
}

static void layer_block(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Norm *of = context;
    Py_ssize_t count = of->channels, end = (block + 1) * of->rows < of->samples ? (block + 1) * of->rows : of->samples;
    Ends ends = ends_of(count);
    for (Py_ssize_t row = block * of->rows; row < end; row++) {
        const float *x = of->x + row * count;
        float mean = of->means ? (float)(sum_of_row(x, count, 0, false) / (double)count) : 0, *out = of->out + row * count;
        float scale = 1 / sqrtf((float)(sum_of_row(x, count, mean, true) / (double)count) + of->eps);
        if (of->means) of->means[row] = mean;
        of->scales[row] = scale;
        for (Py_ssize_t i = 0; i < ends.whole; i += WIDTH) layer_part(of, x, out, i, NULL, mean, scale);
        layer_part(of, x, out, 0, &ends, mean, scale);
    }
}

typedef struct {
    vec sums, dots;  // of g weight, and that times the distance from the mean
    float mean, scale;
} Slopes;

INLINE void layer_grad_part(
    const Norm *of, const float *g, const float *x, Py_ssize_t i, const Ends *ends, float *of_weight, float *of_bias,
    Slopes *slopes) {
    vec slope = load_part(g, i, ends), distance = load_part(x, i, ends) - slopes->mean;
    if (ends) slope = own_of(slope, ends);
    if (of_bias) store_part(of_bias, i, load_part(of_bias, i, ends) + slope, ends);
    vec along = slope * distance;
    if (ends) along = own_of(along, ends);
    if (of_weight) store_part(of_weight, i, load_part(of_weight, i, ends) + along * slopes->scale, ends);
    vec weight = of->weight ? load_part(of->weight, i, ends) : all(1);
    slopes->sums += slope * weight;
    slopes->dots += along * weight;
}

INLINE void layer_grad_out(
    const Norm *of, const float *g, const float *x, float *out, Py_ssize_t i, const Ends *ends, float scale, float of_x,
    float summand) {
    vec slope = load_part(g, i, ends) * scale;
    if (of->weight) slope *= load_part(of->weight, i, ends);
    store_part(out, i, slope + (load_part(x, i, ends) * of_x + summand), ends);
}

static void layer_grad_block(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Norm *of = context;
    Py_ssize_t count = of->channels, end = (block + 1) * of->rows < of->samples ? (block + 1) * of->rows : of->samples;
    Ends ends = ends_of(count);
    float *of_weight = of->dots ? of->dots + block * count : NULL, *of_bias = of->sums ? of->sums + block * count : NULL;
    for (Py_ssize_t row = block * of->rows; row < end; row++) {
        const float *x = of->x + row * count, *g = of->g + row * count;
        Slopes slopes = {{0}, {0}, at_or(of->mean, row, 0), of->scale[row]};
        for (Py_ssize_t i = 0; i < ends.whole; i += WIDTH) {
            layer_grad_part(of, g, x, i, NULL, of_weight, of_bias, &slopes);
        }
        layer_grad_part(of, g, x, 0, &ends, of_weight, of_bias, &slopes);
        if (!of->out) continue;
        float *out = of->out + row * count, scale = slopes.scale, each = scale / (float)count;
        float of_x = -each * scale * scale * sum_of(slopes.dots);
        float summand = of->mean ? -each * sum_of(slopes.sums) - of_x * slopes.mean : 0;
        for (Py_ssize_t i = 0; i < ends.whole; i += WIDTH) layer_grad_out(of, g, x, out, i, NULL, scale, of_x, summand);
        layer_grad_out(of, g, x, out, 0, &ends, scale, of_x, summand);
    }
}

// Calls -----------------------------------------------------------------------------------------

// The numbers of an array of a given size; of None, none. False for what the kernels do not take.
static bool numbers_of(PyObject *object, Py_ssize_t size, const float **numbers) {
    if (object == Py_None) return true;
    if (!tt_float32(object) || !tt_contiguous(object) || PyArray_SIZE((PyArrayObject *)object) != size) return false;
    *numbers = PyArray_DATA((PyArrayObject *)object);
    return true;
}

// See an input as (samples, channels, places); of a layer, whose last `count` dimensions are normalised, as (rows, channels).
static bool see_norm(Norm *of, PyObject *x, Py_ssize_t count, PyObject *weight, PyObject *bias) {
    if (!tt_float32(x) || !tt_contiguous(x) || !PyArray_SIZE((PyArrayObject *)x)) return false;
    int dims = PyArray_NDIM((PyArrayObject *)x);
    of->samples = of->channels = of->places = 1;
    for (int dim = 0; dim < dims; dim++) {
        Py_ssize_t length = PyArray_DIM((PyArrayObject *)x, dim);
        if (count) {
            *(dim < dims - count ? &of->samples : &of->channels) *= length;
        } else {
            *(dim == 0 ? &of->samples : dim == 1 ? &of->channels : &of->places) *= length;
        }
    }
    of->x = PyArray_DATA((PyArrayObject *)x);
    return dims >= (count ? count : 2) && numbers_of(weight, of->channels, &of->weight) && numbers_of(bias, of->channels, &of->bias);
}

static int64_t size_of(const Norm *of) { return of->samples * of->channels * of->places; }

static bool eps_of(PyObject *number, float *eps) {
    if (!PyFloat_Check(number) && !PyLong_Check(number)) return false;
    double value = PyFloat_AsDouble(number);
    *eps = (float)value;
    return value != -1 || !PyErr_Occurred() || (PyErr_Clear(), false);
}

static PyObject *made(PyObject *like, int dims, const int64_t *shape, float **data) {
    PyObject *out = shape ? tt_new(like, dims, shape) : PyArray_NewLikeArray((PyArrayObject *)like, NPY_CORDER, NULL, 0);
    if (out) *data = PyArray_DATA((PyArrayObject *)out);
    return out;
}

// A tuple of arrays, whose references it takes; NULL if one was not made.
static PyObject *tuple_of(int count, PyObject **arrays) {
    bool whole = true;
    for (int i = 0; i < count; i++) whole = whole && arrays[i];
    PyObject *tuple = whole ? PyTuple_New(count) : NULL;
    for (int i = 0; i < count; i++) {
        if (tuple) {
            PyTuple_SetItem(tuple, i, arrays[i]);
        } else {
            Py_XDECREF(arrays[i]);
        }
    }
    return tuple;
}

static void share_channels(Norm *of, Work of_channel) {
    bool planes = of->places > 1;
    Py_ssize_t blocks = planes ? of->channels : (of->channels + ABREAST - 1) / ABREAST;
    tt_share(planes ? of_channel : batch_columns_block, of, blocks, size_of(of), tt_threads());
}

// The array's numbers as one dimension.
static PyObject *flat(PyObject *array) {
    npy_intp size = PyArray_SIZE((PyArrayObject *)array);
    PyArray_Dims shape = {&size, 1};
    return PyArray_Newshape((PyArrayObject *)array, &shape, NPY_CORDER);
}

KERNEL(batch_norm) {  // (x, weight, bias, eps)
    Norm of = {0};
    if (out || count != 4 || !eps_of(args[3], &of.eps) || !see_norm(&of, args[0], 0, args[1], args[2])) return PASS;
    int64_t shape[] = {1, of.channels};
    PyObject *y = made(args[0], 0, NULL, &of.out), *mean = made(args[0], 2, shape, &of.means);
    PyObject *variance = made(args[0], 1, shape + 1, &of.variances), *scale = made(args[0], 2, shape, &of.scales);
    if (y && mean && variance && scale) share_channels(&of, batch_channel);
    return tuple_of(5, (PyObject *[]){y, mean ? flat(mean) : NULL, variance, mean, scale});
}

KERNEL(given_norm) {  // (x, weight, bias, mean, variance, eps)
    Norm of = {0};
    if (out || count != 6 || !eps_of(args[5], &of.eps) || !see_norm(&of, args[0], 0, args[1], args[2])) return PASS;
    if (!numbers_of(args[3], of.channels, &of.mean) || !numbers_of(args[4], of.channels, &of.variance)) return PASS;
    if (!of.mean || !of.variance) return PASS;
    PyObject *y = made(args[0], 0, NULL, &of.out);
    if (y) share_channels(&of, batch_channel);
    return y;
}

// (g, x, weight, mean, scale, wanted) of `count` means.
static bool see_gradient(Norm *of, PyObject *const *args, Py_ssize_t means) {
    if (!numbers_of(args[0], size_of(of), &of->g) || !numbers_of(args[3], means, &of->mean)) return false;
    return numbers_of(args[4], means, &of->scale) && of->g && of->mean && of->scale && PyBool_Check(args[5]);
}

KERNEL(batch_norm_grad) {
    Norm of = {0};
    if (out || count != 6 || !see_norm(&of, args[1], 0, args[2], Py_None) || !see_gradient(&of, args, of.channels)) return PASS;
    int64_t shape[] = {of.channels, 0};
    PyObject *grad = made(args[1], 1, args[5] == Py_True ? NULL : shape + 1, &of.out);
    PyObject *of_weight = made(args[1], 1, shape, &of.dots), *of_bias = made(args[1], 1, shape, &of.sums);
    if (args[5] != Py_True) of.out = NULL;
    if (grad && of_weight && of_bias) share_channels(&of, batch_grad_channel);
    return tuple_of(3, (PyObject *[]){grad, of_weight, of_bias});
}

KERNEL(group_norm) {  // (x, groups, weight, bias, eps)
    Norm of = {0};
    if (out || count != 5 || !eps_of(args[4], &of.eps) || !see_norm(&of, args[0], 0, args[2], args[3])) return PASS;
    if (!PyLong_Check(args[1]) || of.places == 1) return PASS;
    of.groups = PyLong_AsSsize_t(args[1]);
    if (of.groups < 1 || of.channels % of.groups) return PyErr_Clear(), PASS;
    int64_t shape[] = {of.samples, of.groups};
    PyObject *y = made(args[0], 0, NULL, &of.out), *mean = made(args[0], 2, shape, &of.means);
    PyObject *scale = made(args[0], 2, shape, &of.scales);
    if (y && mean && scale) tt_share(group_block, &of, of.samples * of.groups, size_of(&of), tt_threads());
    return tuple_of(3, (PyObject *[]){y, mean, scale});
}

KERNEL(group_norm_grad) {
    Norm of = {0};
    if (out || count != 6 || !see_norm(&of, args[1], 0, args[2], Py_None) || of.places == 1) return PASS;
    if (!PyArray_CheckExact(args[3]) || PyArray_NDIM((PyArrayObject *)args[3]) != 2) return PASS;
    of.groups = PyArray_DIM((PyArrayObject *)args[3], 1);
    if (of.groups < 1 || of.channels % of.groups || !see_gradient(&of, args, of.samples * of.groups)) return PASS;
    int64_t shape[] = {of.channels, 0};
    float *weights, *biases;
    PyObject *grad = made(args[1], 1, args[5] == Py_True ? NULL : shape + 1, &of.out);
    PyObject *of_weight = made(args[1], 1, shape, &weights), *of_bias = made(args[1], 1, shape, &biases);
    if (args[5] != Py_True) of.out = NULL;
    of.sums = malloc(8 * (size_t)(of.samples * of.channels));
    if (grad && of_weight && of_bias && of.sums) {
        of.dots = of.sums + of.samples * of.channels;
        tt_share(group_grad_block, &of, of.samples * of.groups, size_of(&of), tt_threads());
        memset(weights, 0, 4 * (size_t)of.channels);
        memset(biases, 0, 4 * (size_t)of.channels);
        for (Py_ssize_t i = 0; i < of.samples * of.channels; i++) {
            weights[i % of.channels] += of.dots[i];
            biases[i % of.channels] += of.sums[i];
        }
    } else if (!of.sums) {
        Py_CLEAR(grad);
        PyErr_NoMemory();
    }
    free(of.sums);
    return tuple_of(3, (PyObject *[]){grad, of_weight, of_bias});
}

// (x, count, weight, bias, eps); `centred`, or by the root of the mean square.
static PyObject *layer_of(PyObject *const *args, bool centred) {
    Norm of = {0};
    if (!PyLong_Check(args[1]) || !eps_of(args[4], &of.eps)) return PASS;
    Py_ssize_t last = PyLong_AsSsize_t(args[1]);
    int64_t shape[NPY_MAXDIMS];
    if (last < 1 || !see_norm(&of, args[0], last, args[2], args[3])) return PyErr_Clear(), PASS;
    int dims = PyArray_NDIM((PyArrayObject *)args[0]);
    for (int i = 0; i < dims; i++) shape[i] = i < dims - last ? PyArray_DIM((PyArrayObject *)args[0], i) : 1;
    of.rows = PART / of.channels + 1;
    PyObject *y = made(args[0], 0, NULL, &of.out), *scale = made(args[0], dims, shape, &of.scales);
    PyObject *mean = centred ? made(args[0], dims, shape, &of.means) : NULL;
    if (y && scale && (mean || !centred)) tt_share(layer_block, &of, (of.samples + of.rows - 1) / of.rows, size_of(&of), tt_threads());
    return centred ? tuple_of(3, (PyObject *[]){y, mean, scale}) : tuple_of(2, (PyObject *[]){y, scale});
}

KERNEL(layer_norm) { return out || count != 5 ? PASS : layer_of(args, true); }

KERNEL(rms_norm) {  // (x, count, weight, eps)
    return out || count != 4 ? PASS : layer_of((PyObject *[]){args[0], args[1], args[2], Py_None, args[3]}, false);
}

// Add the rows of a matrix.
static void add_all_rows(const float *x, Py_ssize_t rows, Py_ssize_t columns, float *out) {
    memcpy(out, x, 4 * (size_t)columns);
    for (Py_ssize_t row = 1; row < rows; row++) {
        for (Py_ssize_t i = 0; i < columns; i++) out[i] += x[row * columns + i];
    }
}

// (g, needs, x, count, weight, mean, scale); without a mean, the gradients of two.
static PyObject *layer_grad_of(PyObject *const *args) {
    Norm of = {0};
    int inputs = args[5] == Py_None ? 2 : 3;
    if (!PyLong_Check(args[3]) || !PyTuple_Check(args[1]) || PyTuple_Size(args[1]) != inputs) return PASS;
    Py_ssize_t last = PyLong_AsSsize_t(args[3]);
    if (last < 1 || !see_norm(&of, args[2], last, args[4], Py_None)) return PyErr_Clear(), PASS;
    if (!numbers_of(args[0], size_of(&of), &of.g) || !numbers_of(args[5], of.samples, &of.mean)) return PASS;
    if (!numbers_of(args[6], of.samples, &of.scale) || !of.g || !of.scale) return PASS;
    bool needs[3] = {false};
    for (int i = 0; i < inputs; i++) needs[i] = PyTuple_GetItem(args[1], i) == Py_True;
    of.rows = PART / of.channels + 1;
    if (of.rows < of.samples / 32 + 1) of.rows = of.samples / 32 + 1;  // few sums to be added in the end
    Py_ssize_t blocks = (of.samples + of.rows - 1) / of.rows;
    int64_t shape[NPY_MAXDIMS];
    int dims = PyArray_NDIM((PyArrayObject *)args[2]);
    for (int i = 0; i < last; i++) shape[i] = PyArray_DIM((PyArrayObject *)args[2], dims - last + i);
    float *results[3] = {NULL};
    PyObject *grads[3];
    for (int i = 0; i < 3; i++) {
        grads[i] = needs[i] ? made(args[2], (int)last, i ? shape : NULL, &results[i]) : Py_NewRef(Py_None);
    }
    float *parts = calloc((size_t)(2 * blocks * of.channels), 4);
    if (parts && grads[0] && grads[1] && grads[2]) {
        of.out = results[0];
        of.dots = needs[1] ? parts : NULL;
        of.sums = needs[2] ? parts + blocks * of.channels : NULL;
        tt_share(layer_grad_block, &of, blocks, size_of(&of), tt_threads());
        if (needs[1]) add_all_rows(of.dots, blocks, of.channels, results[1]);
        if (needs[2]) add_all_rows(of.sums, blocks, of.channels, results[2]);
    } else if (!parts) {
        Py_CLEAR(grads[0]);
        PyErr_NoMemory();
    }
    free(parts);
    if (inputs == 2) Py_CLEAR(grads[2]);
    return tuple_of(inputs, grads);
}

KERNEL(layer_norm_grad) { return out || count != 7 ? PASS : layer_grad_of(args); }

KERNEL(rms_norm_grad) {  // (g, needs, x, count, weight, scale)
    if (out || count != 6) return PASS;
    return layer_grad_of((PyObject *[]){args[0], args[1], args[2], args[3], args[4], Py_None, args[5]});
}
