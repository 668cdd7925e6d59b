// Twins of kernels/pool.py, of windows that slide along one or two dimensions: `maxima` with their indices, `avg_pool`,
// and its transpose. (`place` is in indexing.c.)
#include "helpers.h"

// Sliding windows -------------------------------------------------------------------------------

enum {
    MAX_WINDOWS = 1 << 10,    // windows in a row
    WORK_PER_PART = 1 << 15,  // comparisons
};

// The windows along one dimension of the input.
typedef struct {
    Py_ssize_t length, windows, start, stride, kernel, dilation;
} WindowAxis;

typedef struct {
    const float *x;
    float *out;
    int64_t *indices;
    WindowAxis rows, columns;
    Py_ssize_t planes, planes_per_part;
} MaxPool;

// Read a `Windows` of kernels/pool.py; false if the windows are not alike, or one of them lies in the padding.
static bool read_axis(PyObject *windows, Py_ssize_t length, WindowAxis *axis) {
    if (!PyTuple_Check(windows) || PyTuple_Size(windows) != 4 || !PyTuple_Check(PyTuple_GetItem(windows, 1)) ||
        !is_index_array(PyTuple_GetItem(windows, 0))) {
        return false;
    }
    PyArrayObject *starts = ARRAY(PyTuple_GetItem(windows, 0));
    if (PyArray_NDIM(starts) != 1 || !PyArray_SIZE(starts)) return false;
    const int64_t *start = PyArray_DATA(starts);
    *axis = (WindowAxis){.length = length, .windows = PyArray_SIZE(starts), .start = start[0], .stride = 1};
    if (axis->windows > 1) axis->stride = start[1] - start[0];
    axis->kernel = PyTuple_Size(PyTuple_GetItem(windows, 1));
    axis->dilation = read_int(PyTuple_GetItem(windows, 2));
    if (axis->stride < 1 || axis->dilation < 1 || axis->kernel < 1) return false;
    for (Py_ssize_t i = 0; i < axis->windows; i++) {
        Py_ssize_t first = start[i] < 0 ? ceil_div(-start[i], axis->dilation) : 0;
        if (start[i] != axis->start + i * axis->stride || first >= axis->kernel ||
            start[i] + first * axis->dilation >= length) {
            return false;
        }
    }
    return true;
}

// The index of a window's first element outside the padding.
static Py_ssize_t first_inside(const WindowAxis *axis, Py_ssize_t window) {
    Py_ssize_t start = axis->start + window * axis->stride;
    return start < 0 ? start + ceil_div(-start, axis->dilation) * axis->dilation : start;
}

// Load `x[0]`, `x[stride]` ...: `count` elements, or a whole vector. Memory may be read up to `end`.
INLINE vec load_strided(Py_ssize_t stride, const float *x, Py_ssize_t count, const float *end) {
    if (stride == 1 && x + WIDTH <= end) return load(x);
    if (stride == 2 && x + 2 * WIDTH <= end) return DEINTERLEAVE(0, load(x), load(x + WIDTH));
    float elements[WIDTH] = {0};
    for (Py_ssize_t i = 0; i < WIDTH && i < count; i++) elements[i] = x[i * stride];
    return load(elements);
}

// Update the maxima of `count` windows by one element each; the first of these elements has index `place`. NaN counts
// as the largest number, and of several NaNs the last one is taken.
INLINE void update_maxima(Py_ssize_t stride, const float *x, const float *end, Py_ssize_t place, float *best,
                          int32_t *best_place, Py_ssize_t count) {
    ints lane;
    for (int i = 0; i < WIDTH; i++) lane[i] = i;
    for (Py_ssize_t i = 0; i < count; i += WIDTH) {
        vec value = load_strided(stride, x + i * stride, count - i, end), old = load(best + i);
        ints higher = ((value > old) | (value != value)) & (lane < (int32_t)imin(WIDTH, count - i));
        store(best + i, where(higher, value, old));
        ints places = lane * (int32_t)stride + (int32_t)(place + i * stride);
        store((float *)best_place + i, where(higher, (vec)places, load((float *)best_place + i)));
    }
}

static void maxima_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const MaxPool *m = context;
    const WindowAxis rows = m->rows, columns = m->columns;
    int32_t best_place[MAX_WINDOWS + WIDTH];
    float best[MAX_WINDOWS + WIDTH];
    const float *end = m->x + m->planes * rows.length * columns.length;
    Py_ssize_t last_plane = imin((part + 1) * m->planes_per_part, m->planes);
    for (Py_ssize_t plane = part * m->planes_per_part; plane < last_plane; plane++) {
        const float *x = m->x + plane * rows.length * columns.length;
        for (Py_ssize_t i = 0; i < rows.windows; i++) {
            const Py_ssize_t to = (plane * rows.windows + i) * columns.windows, top = rows.start + i * rows.stride;
            const Py_ssize_t first_row = first_inside(&rows, i);
            const Py_ssize_t end_row = imin(rows.length, top + rows.kernel * rows.dilation);
            for (Py_ssize_t j = 0; j < columns.windows; j++) {
                best[j] = -INFINITY;
                best_place[j] = (int32_t)(first_row * columns.length + first_inside(&columns, j));
            }
            for (Py_ssize_t row = first_row; row < end_row; row += rows.dilation) {
                for (Py_ssize_t k = 0; k < columns.kernel; k++) {
                    // Element k of windows `begin` to `stop` is outside the padding.
                    const Py_ssize_t offset = columns.start + k * columns.dilation, stride = columns.stride;
                    const Py_ssize_t begin = offset < 0 ? ceil_div(-offset, stride) : 0;
                    Py_ssize_t stop = offset < columns.length ? (columns.length - 1 - offset) / stride + 1 : 0;
                    if (stop > columns.windows) stop = columns.windows;
                    if (begin >= stop) continue;
                    const Py_ssize_t place = row * columns.length + offset + begin * stride, count = stop - begin;
                    const float *from = x + place;
                    if (stride == 1) update_maxima(1, from, end, place, best + begin, best_place + begin, count);
                    else if (stride == 2) update_maxima(2, from, end, place, best + begin, best_place + begin, count);
                    else update_maxima(stride, from, end, place, best + begin, best_place + begin, count);
                }
            }
            copy_floats(m->out + to, best, columns.windows);
            for (Py_ssize_t j = 0; j < columns.windows; j++) m->indices[to + j] = best_place[j];
        }
    }
}

KERNEL(maxima, x, windows, indexed) {
    if (args->indexed != Py_True || !is_float_array(args->x, false) || !PyTuple_Check(args->windows)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    int dims = (int)PyTuple_Size(args->windows);
    MaxPool m = {.x = float_data(args->x), .rows = {1, 1, 0, 1, 1, 1}};
    if (dims < 1 || dims > 2 || PyArray_NDIM(x) != dims + 1 || PyArray_SIZE(x) > INT32_MAX) return FALLBACK;
    if (dims == 2 && !read_axis(PyTuple_GetItem(args->windows, 0), PyArray_DIM(x, 1), &m.rows)) return FALLBACK;
    if (!read_axis(PyTuple_GetItem(args->windows, dims - 1), PyArray_DIM(x, dims), &m.columns)) return FALLBACK;
    if (m.columns.windows > MAX_WINDOWS) return FALLBACK;
    m.planes = PyArray_DIM(x, 0);
    npy_intp shape[] = {m.planes, dims == 2 ? m.rows.windows : m.columns.windows, m.columns.windows};
    PyObject *values = PyArray_SimpleNew(dims + 1, shape, NPY_FLOAT);
    PyObject *indices = PyArray_SimpleNew(dims + 1, shape, NPY_INT64);
    if (values && indices) {
        m.out = float_data(values);
        m.indices = PyArray_DATA(ARRAY(indices));
        const Py_ssize_t plane = m.rows.windows * m.columns.windows * m.rows.kernel * m.columns.kernel;
        m.planes_per_part = 1 + WORK_PER_PART / plane;
        tt_parallel_for(maxima_part, &m, ceil_div(m.planes, m.planes_per_part), m.planes * plane, tt_threads());
    }
    return new_tuple(2, (PyObject *[]){values, indices});
}

// Averages --------------------------------------------------------------------------------------

enum { MAX_COLUMNS = 1 << 12 };

typedef struct {
    const float *x, *divisors;  // a divisor for each window, or NULL
    float *out;
    float divisor;
    WindowAxis rows, columns;
    Py_ssize_t planes, planes_per_part;
} AveragePool;

// The windows of which element k is inside of the array: `begin` to the result. In the first of them it is `at`.
INLINE Py_ssize_t inside(const WindowAxis *axis, Py_ssize_t k, Py_ssize_t *begin, Py_ssize_t *at) {
    const Py_ssize_t offset = axis->start + k * axis->dilation;
    *begin = offset < 0 ? ceil_div(-offset, axis->stride) : 0;
    *at = offset + *begin * axis->stride;
    return offset < axis->length ? imin((axis->length - 1 - offset) / axis->stride + 1, axis->windows) : 0;
}

// The rows of a window that are inside: the first one, and the end.
INLINE Py_ssize_t rows_inside(const WindowAxis *rows, Py_ssize_t window, Py_ssize_t *end) {
    *end = imin(rows->length, rows->start + window * rows->stride + rows->kernel * rows->dilation);
    return first_inside(rows, window);
}

static void averages_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const AveragePool *m = context;
    const WindowAxis rows = m->rows, columns = m->columns;
    float total[MAX_COLUMNS], sums[MAX_WINDOWS];
    const Py_ssize_t last_plane = imin((part + 1) * m->planes_per_part, m->planes);
    for (Py_ssize_t plane = part * m->planes_per_part; plane < last_plane; plane++) {
        for (Py_ssize_t i = 0; i < rows.windows; i++) {
            Py_ssize_t end, begin, at;
            for (Py_ssize_t row = rows_inside(&rows, i, &end), first = row; row < end; row += rows.dilation) {
                const float *x = m->x + (plane * rows.length + row) * columns.length;
                if (row == first) copy_floats(total, x, columns.length);
                else for (Py_ssize_t j = 0; j < columns.length; j++) total[j] += x[j];
            }
            fill_zero(sums, columns.windows);
            for (Py_ssize_t k = 0; k < columns.kernel; k++) {
                const Py_ssize_t stop = inside(&columns, k, &begin, &at);
                for (Py_ssize_t j = begin; j < stop; j++, at += columns.stride) sums[j] += total[at];
            }
            float *out = m->out + (plane * rows.windows + i) * columns.windows;
            const float *divisors = m->divisors ? m->divisors + i * columns.windows : NULL;
            for (Py_ssize_t j = 0; j < columns.windows; j++) out[j] = sums[j] / (divisors ? divisors[j] : m->divisor);
        }
    }
}

static void spread_averages_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const AveragePool *m = context;
    const WindowAxis rows = m->rows, columns = m->columns;
    float total[MAX_COLUMNS], shares[MAX_WINDOWS];
    const Py_ssize_t last_plane = imin((part + 1) * m->planes_per_part, m->planes);
    for (Py_ssize_t plane = part * m->planes_per_part; plane < last_plane; plane++) {
        float *out = m->out + plane * rows.length * columns.length;
        fill_zero(out, rows.length * columns.length);
        for (Py_ssize_t i = 0; i < rows.windows; i++) {
            const float *g = m->x + (plane * rows.windows + i) * columns.windows;
            const float *divisors = m->divisors ? m->divisors + i * columns.windows : NULL;
            for (Py_ssize_t j = 0; j < columns.windows; j++) shares[j] = g[j] / (divisors ? divisors[j] : m->divisor);
            fill_zero(total, columns.length);
            Py_ssize_t end, begin, at;
            for (Py_ssize_t k = 0; k < columns.kernel; k++) {
                const Py_ssize_t stop = inside(&columns, k, &begin, &at);
                for (Py_ssize_t j = begin; j < stop; j++, at += columns.stride) total[at] += shares[j];
            }
            for (Py_ssize_t row = rows_inside(&rows, i, &end); row < end; row += rows.dilation) {
                for (Py_ssize_t j = 0; j < columns.length; j++) out[row * columns.length + j] += total[j];
            }
        }
    }
}

// Pool `x`, or with `lengths` spread it: the arguments are those of `avg_pool` and `spread`.
static PyObject *average(PyObject *x, PyObject *windows, PyObject *lengths, PyObject *divisor) {
    AveragePool m = {.rows = {1, 1, 0, 1, 1, 1}};
    if (!is_float_array(x, false) || !PyTuple_Check(windows)) return FALLBACK;
    const int count = (int)PyTuple_Size(windows), dims = PyArray_NDIM(ARRAY(x));
    int64_t shape[NPY_MAXDIMS], spatial[2];
    if (count < 1 || count > 2 || dims < count || (lengths && !tt_read_sizes(lengths, count, spatial))) return FALLBACK;
    m.planes = 1;
    for (int d = 0; d < dims; d++) shape[d] = PyArray_DIM(ARRAY(x), d);
    for (int d = 0; d < dims - count; d++) m.planes *= shape[d];
    WindowAxis *axes[] = {&m.rows, &m.columns};
    for (int k = 0; k < count; k++) {
        int64_t *size = &shape[dims - count + k];
        WindowAxis *axis = axes[2 - count + k];
        if (!read_axis(PyTuple_GetItem(windows, k), lengths ? spatial[k] : *size, axis)) return FALLBACK;
        if (lengths && *size != axis->windows) return FALLBACK;
        *size = lengths ? spatial[k] : axis->windows;
    }
    if (m.columns.windows > MAX_WINDOWS || m.columns.length > MAX_COLUMNS) return FALLBACK;
    double number;
    if (tt_read_double(divisor, &number)) {
        m.divisor = (float)number;
    } else {
        float *divisors;
        if (!read_floats(divisor, m.rows.windows * m.columns.windows, false, &divisors)) return FALLBACK;
        m.divisors = divisors;
    }
    PyObject *result = tt_new_array(x, dims, shape);
    if (!result) return NULL;
    m.x = float_data(x);
    m.out = float_data(result);
    const Py_ssize_t plane = imax(m.rows.length * m.columns.length, m.rows.windows * m.columns.windows);
    m.planes_per_part = 1 + WORK_PER_PART / plane;
    tt_parallel_for(lengths ? spread_averages_part : averages_part, &m, ceil_div(m.planes, m.planes_per_part),
                    m.planes * plane, tt_threads());
    return result;
}

KERNEL(avg_pool, x, windows, divisor, keeps_format) { return average(args->x, args->windows, NULL, args->divisor); }
KERNEL(spread_averages, g, windows, spatial, divisor) {
    return average(args->g, args->windows, args->spatial, args->divisor);
}

FAMILY(pooling, ENTRY(maxima), ENTRY(avg_pool), ENTRY(spread_averages));
