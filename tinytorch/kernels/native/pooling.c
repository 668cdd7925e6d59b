// Twins of kernels/pool.py: `maxima` over windows that slide along one or two dimensions, with the indices of the
// maxima; and max pooling of 2 x 2 blocks. (`place` is in indexing.c.)
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
    int64_t *indices;  // NULL if they are not wanted
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
        ints places = lane * (int32_t)stride + (int32_t)(place + i * stride);
        store(best + i, where(higher, value, old));
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
            for (Py_ssize_t j = 0; m->indices && j < columns.windows; j++) m->indices[to + j] = best_place[j];
        }
    }
}

KERNEL(maxima, x, windows, indexed) {
    if (!is_float_array(args->x, false) || !PyTuple_Check(args->windows)) return FALLBACK;
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
    bool indexed = args->indexed == Py_True;
    PyObject *indices = indexed ? PyArray_SimpleNew(dims + 1, shape, NPY_INT64) : Py_NewRef(Py_None);
    if (values && indices) {
        m.out = float_data(values);
        if (indexed) m.indices = PyArray_DATA(ARRAY(indices));
        const Py_ssize_t plane = m.rows.windows * m.columns.windows * m.rows.kernel * m.columns.kernel;
        m.planes_per_part = 1 + WORK_PER_PART / plane;
        tt_parallel_for(maxima_part, &m, ceil_div(m.planes, m.planes_per_part), m.planes * plane, tt_threads());
    }
    return new_tuple(2, (PyObject *[]){values, indices});
}

// Blocks of 2 x 2 -------------------------------------------------------------------------------

// The corner of a maximum is two booleans: in the right column, in the lower row.
typedef struct {
    const float *x;  // forward the input; backward the gradient by the maxima
    float *out;
    uint8_t *right, *lower;                          // NULL if the corners are not wanted
    int64_t planes, rows, columns, planes_per_part;  // rows and columns of blocks
    int64_t plane_stride, row_stride;                // of the input
} Corners;

static Py_ssize_t cut_planes(Corners *c) {
    c->planes_per_part = ceil_div(PART_SIZE, c->rows * c->columns);
    return ceil_div(c->planes, c->planes_per_part);
}

INLINE void store_booleans(uint8_t *to, ints mask, int64_t count) {
    byte_vec booleans = __builtin_convertvector(-mask, byte_vec);
    memcpy(to, &booleans, (size_t)imin(count, WIDTH));
}

INLINE ints load_booleans(const uint8_t *from, int64_t count) {
    byte_vec booleans = {0};
    memcpy(&booleans, from, (size_t)imin(count, WIDTH));
    return -__builtin_convertvector(booleans, ints);
}

// The larger of two; the second one if it is NaN. `second` says which it is.
INLINE vec larger_of(vec x, vec y, ints *second) {
    *second = (y > x) | (y != y);
    return where(*second, y, x);
}

// Load `count` adjacent pairs (at most WIDTH) as two vectors, of the left and of the right elements.
INLINE void load_pairs(const float *from, int64_t count, vec *left, vec *right) {
    vec x, y;
    if (count >= WIDTH) x = load(from), y = load(from + WIDTH);
    else {
        float pairs[2 * WIDTH] = {0};
        copy_floats(pairs, from, 2 * count);
        x = load(pairs), y = load(pairs + WIDTH);
    }
    *left = DEINTERLEAVE(0, x, y), *right = DEINTERLEAVE(1, x, y);
}

static void max_corners_part(void *context, Py_ssize_t part, int worker) {
    const Corners *s = context;
    int64_t end = imin((part + 1) * s->planes_per_part, s->planes) * s->rows;
    (void)worker;
    for (int64_t row = part * s->planes_per_part * s->rows; row < end; row++) {
        const float *x = s->x + row / s->rows * s->plane_stride + row % s->rows * 2 * s->row_stride;
        for (int64_t j = 0, at = row * s->columns; j < s->columns; j += WIDTH, at += WIDTH, x += 2 * WIDTH) {
            int64_t left = s->columns - j;
            vec a, b, c, d;  // a b
                             // c d
            ints upper_right, lower_right, lower;
            load_pairs(x, left, &a, &b);
            load_pairs(x + s->row_stride, left, &c, &d);
            vec upper_max = larger_of(a, b, &upper_right), lower_max = larger_of(c, d, &lower_right);
            store_up_to(s->out + at, larger_of(upper_max, lower_max, &lower), left);
            if (!s->right) continue;
            store_booleans(s->right + at, (lower & lower_right) | (~lower & upper_right), left);
            store_booleans(s->lower + at, lower, left);
        }
    }
}

KERNEL(max_corners, x, known) {
    if (!is_float_array(args->x, false) || PyArray_NDIM(ARRAY(args->x)) != 3) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    Corners c = {.x = float_data(args->x), .planes = PyArray_DIM(x, 0)};
    c.row_stride = PyArray_DIM(x, 2), c.plane_stride = PyArray_DIM(x, 1) * c.row_stride;
    c.rows = PyArray_DIM(x, 1) / 2, c.columns = c.row_stride / 2;
    if (!c.planes || !c.rows || !c.columns) return FALLBACK;
    npy_intp shape[] = {c.planes, c.rows, c.columns};
    bool known = args->known == Py_True;
    PyObject *best = PyArray_SimpleNew(3, shape, NPY_FLOAT);
    PyObject *right = known ? PyArray_SimpleNew(3, shape, NPY_BOOL) : Py_NewRef(Py_None);
    PyObject *lower = known ? PyArray_SimpleNew(3, shape, NPY_BOOL) : Py_NewRef(Py_None);
    if (best && right && lower) {
        c.out = float_data(best);
        if (known) c.right = PyArray_DATA(ARRAY(right)), c.lower = PyArray_DATA(ARRAY(lower));
        tt_parallel_for(max_corners_part, &c, cut_planes(&c), 4 * c.planes * c.rows * c.columns, tt_threads());
    }
    return new_tuple(3, (PyObject *[]){best, right, lower});
}

static void corner_grad_part(void *context, Py_ssize_t part, int worker) {
    const Corners *c = context;
    int64_t end = imin((part + 1) * c->planes_per_part, c->planes) * c->rows;
    (void)worker;
    for (int64_t row = part * c->planes_per_part * c->rows; row < end; row++) {
        float *to = c->out + row * 2 * c->row_stride;
        for (int64_t j = 0, at = row * c->columns; j < c->columns; j += WIDTH, at += WIDTH, to += 2 * WIDTH) {
            int64_t left = imin(c->columns - j, WIDTH);
            vec g = load_up_to(c->x + at, left), zero = {0};
            ints right = load_booleans(c->right + at, left), lower = load_booleans(c->lower + at, left);
            for (int k = 0; k < 2; k++) {
                vec grad = where(k ? lower : ~lower, g, zero);
                vec x = where(right, zero, grad), y = where(right, grad, zero);
                float pairs[2 * WIDTH];
                store(pairs, INTERLEAVE_LOW(x, y));
                store(pairs + WIDTH, INTERLEAVE_HIGH(x, y));
                copy_floats(to + k * c->row_stride, pairs, 2 * left);
            }
        }
    }
}

// Read a contiguous array of booleans, one per block.
static bool read_booleans(PyObject *object, const Corners *c, uint8_t **data) {
    if (!PyArray_Check(object) || PyArray_TYPE(ARRAY(object)) != NPY_BOOL || !tt_is_contiguous(object)) return false;
    *data = PyArray_DATA(ARRAY(object));
    return PyArray_SIZE(ARRAY(object)) == c->planes * c->rows * c->columns;
}

KERNEL(corner_grad, g, right, lower, spatial) {
    int64_t spatial[2];
    if (!is_float_array(args->g, false) || PyArray_NDIM(ARRAY(args->g)) != 3) return FALLBACK;
    PyArrayObject *g = ARRAY(args->g);
    Corners c = {.x = float_data(args->g), .planes = PyArray_DIM(g, 0)};
    c.rows = PyArray_DIM(g, 1), c.columns = PyArray_DIM(g, 2), c.row_stride = 2 * c.columns;
    if (!tt_read_sizes(args->spatial, 2, spatial)) return FALLBACK;
    if (spatial[0] != 2 * c.rows || spatial[1] != c.row_stride || !PyArray_SIZE(g)) return FALLBACK;
    if (!read_booleans(args->right, &c, &c.right) || !read_booleans(args->lower, &c, &c.lower)) return FALLBACK;
    int64_t shape[] = {c.planes, spatial[0], spatial[1]};
    PyObject *result = tt_new_array(args->g, 3, shape);
    if (!result) return NULL;
    c.out = float_data(result);
    tt_parallel_for(corner_grad_part, &c, cut_planes(&c), 4 * c.planes * c.rows * c.columns, tt_threads());
    return result;
}

FAMILY(pooling, ENTRY(maxima), ENTRY(max_corners), ENTRY(corner_grad));
