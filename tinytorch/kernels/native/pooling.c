// Twins of kernels/pool.py, of windows that slide along one to three dimensions: maxima with their indices, averages,
// and the transpose of these. (`place` is in indexing.c.)
#include "helpers.h"

// Sliding windows -------------------------------------------------------------------------------

enum {
    MAX_AXES = 3,
    MAX_WINDOWS = 1 << 10,    // windows in a row
    WORK_PER_PART = 1 << 15,  // comparisons
};

// The windows along one dimension of the input.
typedef struct {
    Py_ssize_t length, windows, start, stride, kernel, dilation;
} WindowAxis;

// The windows of an array viewed as planes of slices, rows and columns, and how many elements a plane has at most.
typedef struct {
    WindowAxis slices, rows, columns;
    Py_ssize_t planes, planes_per_part, plane;
} Windows;

typedef struct {
    Windows windows;
    const float *x;
    float *out;
    int64_t *indices;  // NULL: only the maxima
} MaxPool;

// Read a `Windows` of kernels/pool.py; false if the windows are not alike, or one of them lies in the padding.
COMPACT static bool read_axis(PyObject *windows, Py_ssize_t length, WindowAxis *axis) {
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

// Read the windows of an array: `lengths` are its lengths where it has one element for each window, or else NULL.
// `shape` becomes that of the result.
COMPACT static bool read_windows(PyObject *x, PyObject *windows, PyObject *lengths, int64_t *shape, Windows *w) {
    const WindowAxis one = {1, 1, 0, 1, 1, 1};
    WindowAxis axes[MAX_AXES] = {one, one, one};
    int64_t spatial[MAX_AXES];
    if (!is_float_array(x, false) || !PyTuple_Check(windows) || !PyArray_SIZE(ARRAY(x))) return false;
    const int count = (int)PyTuple_Size(windows), dims = PyArray_NDIM(ARRAY(x));
    if (count < 1 || count > MAX_AXES || dims < count) return false;
    if (lengths && !tt_read_sizes(lengths, count, spatial)) return false;
    *w = (Windows){.planes = 1};
    for (int d = 0; d < dims; d++) shape[d] = PyArray_DIM(ARRAY(x), d);
    for (int d = 0; d < dims - count; d++) w->planes *= shape[d];
    int64_t elements = 1, many = 1;
    for (int k = 0; k < count; k++) {
        int64_t *size = &shape[dims - count + k];
        WindowAxis *axis = &axes[MAX_AXES - count + k];
        if (!read_axis(PyTuple_GetItem(windows, k), lengths ? spatial[k] : *size, axis)) return false;
        if (lengths && *size != axis->windows) return false;
        *size = lengths ? spatial[k] : axis->windows;
        elements *= axis->length;
        many *= axis->windows;
    }
    w->slices = axes[0];
    w->rows = axes[1];
    w->columns = axes[2];
    w->plane = imax(elements, many);
    return w->columns.windows <= MAX_WINDOWS;
}

// The index of a window's first element outside the padding.
static Py_ssize_t first_inside(const WindowAxis *axis, Py_ssize_t window) {
    Py_ssize_t start = axis->start + window * axis->stride;
    return start < 0 ? start + ceil_div(-start, axis->dilation) * axis->dilation : start;
}

// The windows of which element k is inside of the array: `begin` to the result. In the first of them it is `at`.
INLINE Py_ssize_t inside(const WindowAxis *axis, Py_ssize_t k, Py_ssize_t *begin, Py_ssize_t *at) {
    const Py_ssize_t offset = axis->start + k * axis->dilation;
    *begin = offset < 0 ? ceil_div(-offset, axis->stride) : 0;
    *at = offset + *begin * axis->stride;
    return offset < axis->length ? imin((axis->length - 1 - offset) / axis->stride + 1, axis->windows) : 0;
}

// The elements of a window that are inside: the first one, and the end.
INLINE Py_ssize_t elements_inside(const WindowAxis *axis, Py_ssize_t window, Py_ssize_t *end) {
    *end = imin(axis->length, axis->start + window * axis->stride + axis->kernel * axis->dilation);
    return first_inside(axis, window);
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

// The maxima of one row of windows.
static void maxima_of_row(const MaxPool *m, Py_ssize_t plane, Py_ssize_t slice_window, Py_ssize_t row_window) {
    const WindowAxis slices = m->windows.slices, rows = m->windows.rows, columns = m->windows.columns;
    int32_t best_place[MAX_WINDOWS + WIDTH];
    float best[MAX_WINDOWS + WIDTH];
    const Py_ssize_t size = slices.length * rows.length * columns.length;
    const float *x = m->x + plane * size, *end = m->x + m->windows.planes * size;
    Py_ssize_t end_slice, end_row;
    const Py_ssize_t first_slice = elements_inside(&slices, slice_window, &end_slice);
    const Py_ssize_t first_row = elements_inside(&rows, row_window, &end_row);
    for (Py_ssize_t j = 0; j < columns.windows; j++) {
        best[j] = -INFINITY;
        best_place[j] = (int32_t)((first_slice * rows.length + first_row) * columns.length + first_inside(&columns, j));
    }
    for (Py_ssize_t slice = first_slice; slice < end_slice; slice += slices.dilation) {
        for (Py_ssize_t row = first_row; row < end_row; row += rows.dilation) {
            for (Py_ssize_t k = 0; k < columns.kernel; k++) {
                Py_ssize_t begin, at;
                const Py_ssize_t stop = inside(&columns, k, &begin, &at), stride = columns.stride;
                if (begin >= stop) continue;
                const Py_ssize_t place = (slice * rows.length + row) * columns.length + at, count = stop - begin;
                const float *from = x + place;
                if (stride == 1) update_maxima(1, from, end, place, best + begin, best_place + begin, count);
                else if (stride == 2) update_maxima(2, from, end, place, best + begin, best_place + begin, count);
                else update_maxima(stride, from, end, place, best + begin, best_place + begin, count);
            }
        }
    }
    const Py_ssize_t to = ((plane * slices.windows + slice_window) * rows.windows + row_window) * columns.windows;
    copy_floats(m->out + to, best, columns.windows);
    for (Py_ssize_t j = 0; m->indices && j < columns.windows; j++) m->indices[to + j] = best_place[j];
}

static void maxima_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const MaxPool *m = context;
    const Windows *w = &m->windows;
    const Py_ssize_t last_plane = imin((part + 1) * w->planes_per_part, w->planes);
    for (Py_ssize_t plane = part * w->planes_per_part; plane < last_plane; plane++) {
        for (Py_ssize_t i = 0; i < w->slices.windows; i++) {
            for (Py_ssize_t j = 0; j < w->rows.windows; j++) maxima_of_row(m, plane, i, j);
        }
    }
}

// The maxima of windows, and with `indexed` a tuple of them and their indices.
COMPACT static PyObject *maxima_of_windows(PyObject *x, PyObject *windows, bool indexed) {
    MaxPool m;
    int64_t shape[NPY_MAXDIMS];
    npy_intp sizes[NPY_MAXDIMS];
    Windows *w = &m.windows;
    if (!read_windows(x, windows, NULL, shape, w) || PyArray_SIZE(ARRAY(x)) > INT32_MAX) return FALLBACK;
    const int dims = PyArray_NDIM(ARRAY(x));
    for (int d = 0; d < dims; d++) sizes[d] = shape[d];
    PyObject *values = PyArray_SimpleNew(dims, sizes, NPY_FLOAT);
    PyObject *indices = indexed ? PyArray_SimpleNew(dims, sizes, NPY_INT64) : NULL;
    if (values && (indices || !indexed)) {
        m.x = float_data(x);
        m.out = float_data(values);
        m.indices = indexed ? PyArray_DATA(ARRAY(indices)) : NULL;
        const Py_ssize_t many = w->slices.windows * w->rows.windows * w->columns.windows;
        const Py_ssize_t plane = many * w->slices.kernel * w->rows.kernel * w->columns.kernel;
        w->planes_per_part = 1 + WORK_PER_PART / plane;
        tt_parallel_for(maxima_part, &m, ceil_div(w->planes, w->planes_per_part), w->planes * plane, tt_threads());
    }
    return indexed ? new_tuple(2, (PyObject *[]){values, indices}) : values;
}

KERNEL(maxima, x, windows, indexed) {
    return args->indexed == Py_True ? maxima_of_windows(args->x, args->windows, true) : FALLBACK;
}
KERNEL(max_pool, x, windows, keeps_format) { return maxima_of_windows(args->x, args->windows, true); }
KERNEL(max_values, x, windows) { return maxima_of_windows(args->x, args->windows, false); }

// Averages --------------------------------------------------------------------------------------

enum { MAX_COLUMNS = 1 << 12 };

typedef struct {
    Windows windows;
    const float *x, *divisors;  // a divisor for each window, or NULL
    float *out;
    float divisor;
} AveragePool;

// The averages of one row of windows; or with `spread`, each of them added to the elements of its window.
INLINE void average_row(const AveragePool *m, Py_ssize_t plane, Py_ssize_t slice_window, Py_ssize_t row_window,
                        bool spread) {
    const WindowAxis slices = m->windows.slices, rows = m->windows.rows, columns = m->windows.columns;
    float total[MAX_COLUMNS], sums[MAX_WINDOWS];
    const Py_ssize_t many = columns.windows, of_window = (slice_window * rows.windows + row_window) * many;
    const Py_ssize_t of_plane = plane * slices.windows * rows.windows * many + of_window;
    const float *divisors = m->divisors ? m->divisors + of_window : NULL;
    Py_ssize_t end_slice, end_row, begin, at;
    const Py_ssize_t first_slice = elements_inside(&slices, slice_window, &end_slice);
    const Py_ssize_t first_row = elements_inside(&rows, row_window, &end_row);
    if (spread) {
        for (Py_ssize_t j = 0; j < many; j++) sums[j] = m->x[of_plane + j] / (divisors ? divisors[j] : m->divisor);
        fill_zero(total, columns.length);
        for (Py_ssize_t k = 0; k < columns.kernel; k++) {
            const Py_ssize_t stop = inside(&columns, k, &begin, &at);
            for (Py_ssize_t j = begin; j < stop; j++, at += columns.stride) total[at] += sums[j];
        }
    }
    for (Py_ssize_t slice = first_slice; slice < end_slice; slice += slices.dilation) {
        for (Py_ssize_t row = first_row; row < end_row; row += rows.dilation) {
            const Py_ssize_t place = ((plane * slices.length + slice) * rows.length + row) * columns.length;
            if (spread) {
                for (Py_ssize_t j = 0; j < columns.length; j++) m->out[place + j] += total[j];
            } else if (slice == first_slice && row == first_row) {
                copy_floats(total, m->x + place, columns.length);
            } else {
                for (Py_ssize_t j = 0; j < columns.length; j++) total[j] += m->x[place + j];
            }
        }
    }
    if (spread) return;
    fill_zero(sums, many);
    for (Py_ssize_t k = 0; k < columns.kernel; k++) {
        const Py_ssize_t stop = inside(&columns, k, &begin, &at);
        for (Py_ssize_t j = begin; j < stop; j++, at += columns.stride) sums[j] += total[at];
    }
    for (Py_ssize_t j = 0; j < many; j++) m->out[of_plane + j] = sums[j] / (divisors ? divisors[j] : m->divisor);
}

INLINE void average_planes(const AveragePool *m, Py_ssize_t part, bool spread) {
    const Windows *w = &m->windows;
    const Py_ssize_t last_plane = imin((part + 1) * w->planes_per_part, w->planes);
    const Py_ssize_t size = w->slices.length * w->rows.length * w->columns.length;
    for (Py_ssize_t plane = part * w->planes_per_part; plane < last_plane; plane++) {
        if (spread) fill_zero(m->out + plane * size, size);
        for (Py_ssize_t i = 0; i < w->slices.windows; i++) {
            for (Py_ssize_t j = 0; j < w->rows.windows; j++) average_row(m, plane, i, j, spread);
        }
    }
}

static void averages_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    average_planes(context, part, false);
}

static void spread_averages_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    average_planes(context, part, true);
}

// Pool `x`, or with `lengths` spread it: the arguments are those of `avg_pool` and `spread_averages`.
COMPACT static PyObject *average(PyObject *x, PyObject *windows, PyObject *lengths, PyObject *divisor) {
    AveragePool m = {0};
    int64_t shape[NPY_MAXDIMS];
    Windows *w = &m.windows;
    if (!read_windows(x, windows, lengths, shape, w) || w->columns.length > MAX_COLUMNS) return FALLBACK;
    double number;
    if (tt_read_double(divisor, &number)) {
        m.divisor = (float)number;
    } else {
        float *divisors;
        const int64_t many = w->slices.windows * w->rows.windows * w->columns.windows;
        if (!read_floats(divisor, many, false, &divisors)) return FALLBACK;
        m.divisors = divisors;
    }
    PyObject *result = tt_new_array(x, PyArray_NDIM(ARRAY(x)), shape);
    if (!result) return NULL;
    m.x = float_data(x);
    m.out = float_data(result);
    w->planes_per_part = 1 + WORK_PER_PART / w->plane;
    tt_parallel_for(lengths ? spread_averages_part : averages_part, &m, ceil_div(w->planes, w->planes_per_part),
                    w->planes * w->plane, tt_threads());
    return result;
}

KERNEL(avg_pool, x, windows, divisor, keeps_format) { return average(args->x, args->windows, NULL, args->divisor); }
KERNEL(spread_averages, g, windows, spatial, divisor) {
    return average(args->g, args->windows, args->spatial, args->divisor);
}

FAMILY(pooling, ENTRY(maxima), ENTRY(max_pool), ENTRY(max_values), ENTRY(avg_pool), ENTRY(spread_averages));
