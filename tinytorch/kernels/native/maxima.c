// Twins of kernels/pool.py: `maxima`, for windows that slide over one or two dimensions and whose maxima are placed;
// and squares of 2 x 2.

enum { WIDEST = 1 << 10 };  // windows in a row

typedef struct {
    Py_ssize_t length, many, start, stride, kernel, dilation;
} Slide;

typedef struct {
    const float *x;
    float *out;
    int64_t *index;
    Slide rows, columns;
    Py_ssize_t planes, step;
} Maxima;

static Py_ssize_t int_of(PyObject *number) {
    Py_ssize_t value = PyLong_Check(number) ? PyLong_AsSsize_t(number) : -1;
    if (value == -1 && PyErr_Occurred()) PyErr_Clear();
    return value;
}

// Read a `Windows`; false if its windows do not slide, or one of them has no element.
static bool read_slide(PyObject *windows, Py_ssize_t length, Slide *slide) {
    if (!PyTuple_Check(windows) || PyTuple_Size(windows) != 6 || PyTuple_GetItem(windows, 1) != Py_None ||
        !PyTuple_Check(PyTuple_GetItem(windows, 3)) || !index_array(PyTuple_GetItem(windows, 0))) {
        return false;
    }
    PyArrayObject *starts = (PyArrayObject *)PyTuple_GetItem(windows, 0);
    if (PyArray_NDIM(starts) != 1 || !PyArray_SIZE(starts)) return false;
    const int64_t *start = PyArray_DATA(starts);
    *slide = (Slide){.length = length, .many = PyArray_SIZE(starts), .start = start[0], .stride = 1};
    if (slide->many > 1) slide->stride = start[1] - start[0];
    slide->kernel = PyTuple_Size(PyTuple_GetItem(windows, 3));
    slide->dilation = int_of(PyTuple_GetItem(windows, 4));
    if (slide->stride < 1 || slide->dilation < 1 || slide->kernel < 1) return false;
    for (Py_ssize_t i = 0; i < slide->many; i++) {
        Py_ssize_t first = start[i] < 0 ? (-start[i] + slide->dilation - 1) / slide->dilation : 0;
        if (start[i] != slide->start + i * slide->stride || first >= slide->kernel ||
            start[i] + first * slide->dilation >= length) {
            return false;
        }
    }
    return true;
}

// The place of a window's first element.
static Py_ssize_t first_of(const Slide *slide, Py_ssize_t window) {
    Py_ssize_t start = slide->start + window * slide->stride;
    return start < 0 ? start + (-start + slide->dilation - 1) / slide->dilation * slide->dilation : start;
}

// Every second lane of two vectors that follow each other, from lane i on.
#define SECOND(i) (i), (i) + 2, (i) + 4, (i) + 6
#if WIDTH == 16
#define FROM(i, x, y) __builtin_shufflevector(x, y, SECOND(i), SECOND(i + 8), SECOND(i + 16), SECOND(i + 24))
#elif WIDTH == 8
#define FROM(i, x, y) __builtin_shufflevector(x, y, SECOND(i), SECOND(i + 8))
#else
#define FROM(i, x, y) __builtin_shufflevector(x, y, SECOND(i))
#endif

// Return the elements `x[0]`, `x[stride]` ..., of which `count` are asked for; up to `end` something may be read.
INLINE vec apart_by(Py_ssize_t stride, const float *x, Py_ssize_t count, const float *end) {
    if (stride == 1 && x + WIDTH <= end) return load(x);
    if (stride == 2 && x + 2 * WIDTH <= end) return FROM(0, load(x), load(x + WIDTH));
    float some[WIDTH] = {0};
    for (Py_ssize_t i = 0; i < WIDTH && i < count; i++) some[i] = x[i * stride];
    return load(some);
}

// Enter elements, the first of which lies at `place`, where they are higher. The last NaN stays.
INLINE void enter(Py_ssize_t stride, const float *x, const float *end, Py_ssize_t place, float *best, int32_t *at,
                  Py_ssize_t count) {
    ints lane;
    for (int i = 0; i < WIDTH; i++) lane[i] = i;
    for (Py_ssize_t i = 0; i < count; i += WIDTH) {
        vec value = apart_by(stride, x + i * stride, count - i, end), old = load(best + i);
        ints higher = ((value > old) | (value != value)) & (lane < (int32_t)least(WIDTH, count - i));
        ints places = lane * (int32_t)stride + (int32_t)(place + i * stride);
        store(best + i, where(higher, value, old));
        store((float *)at + i, where(higher, (vec)places, load((float *)at + i)));
    }
}

static void maxima_planes(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Maxima *maxima = context;
    const Slide rows = maxima->rows, columns = maxima->columns;
    int32_t at[WIDEST + WIDTH];
    float best[WIDEST + WIDTH];
    const float *limit = maxima->x + maxima->planes * rows.length * columns.length;
    Py_ssize_t end = (block + 1) * maxima->step < maxima->planes ? (block + 1) * maxima->step : maxima->planes;
    for (Py_ssize_t plane = block * maxima->step; plane < end; plane++) {
        const float *x = maxima->x + plane * rows.length * columns.length;
        for (Py_ssize_t i = 0; i < rows.many; i++) {
            const Py_ssize_t to = (plane * rows.many + i) * columns.many, top = rows.start + i * rows.stride;
            for (Py_ssize_t j = 0; j < columns.many; j++) {
                best[j] = -INFINITY;
                at[j] = (int32_t)(first_of(&rows, i) * columns.length + first_of(&columns, j));
            }
            for (Py_ssize_t row = first_of(&rows, i); row < rows.length && row < top + rows.kernel * rows.dilation;
                 row += rows.dilation) {
                for (Py_ssize_t k = 0; k < columns.kernel; k++) {
                    const Py_ssize_t offset = columns.start + k * columns.dilation, stride = columns.stride;
                    const Py_ssize_t begin = offset < 0 ? (-offset + stride - 1) / stride : 0;
                    Py_ssize_t stop = offset < columns.length ? (columns.length - 1 - offset) / stride + 1 : 0;
                    if (stop > columns.many) stop = columns.many;
                    if (begin >= stop) continue;
                    const Py_ssize_t place = row * columns.length + offset + begin * stride;
                    const Py_ssize_t some = stop - begin;
                    if (stride == 1) enter(1, x + place, limit, place, best + begin, at + begin, some);
                    else if (stride == 2) enter(2, x + place, limit, place, best + begin, at + begin, some);
                    else enter(stride, x + place, limit, place, best + begin, at + begin, some);
                }
            }
            copy(maxima->out + to, best, columns.many);
            for (Py_ssize_t j = 0; j < columns.many; j++) maxima->index[to + j] = at[j];
        }
    }
}

KERNEL(maxima) {
    if (count != 3 || out || args[2] != Py_True || !float_array(args[0], false) || !PyTuple_Check(args[1])) return PASS;
    PyArrayObject *x = (PyArrayObject *)args[0];
    int dims = (int)PyTuple_Size(args[1]);
    Maxima maxima = {.x = floats_of(args[0]), .rows = {1, 1, 0, 1, 1, 1}};
    if (dims < 1 || dims > 2 || PyArray_NDIM(x) != dims + 1 || PyArray_SIZE(x) > INT32_MAX) return PASS;
    if (dims == 2 && !read_slide(PyTuple_GetItem(args[1], 0), PyArray_DIM(x, 1), &maxima.rows)) return PASS;
    if (!read_slide(PyTuple_GetItem(args[1], dims - 1), PyArray_DIM(x, dims), &maxima.columns)) return PASS;
    if (maxima.columns.many > WIDEST) return PASS;
    maxima.planes = PyArray_DIM(x, 0);
    int64_t shape[] = {maxima.planes, dims == 2 ? maxima.rows.many : maxima.columns.many, maxima.columns.many};
    npy_intp sizes[] = {(npy_intp)shape[0], (npy_intp)shape[1], (npy_intp)shape[2]};
    PyObject *values = tt_new(args[0], dims + 1, shape), *places = PyArray_SimpleNew(dims + 1, sizes, NPY_INT64);
    PyObject *both = values && places ? PyTuple_Pack(2, values, places) : NULL;
    if (both) {
        maxima.out = floats_of(values);
        maxima.index = PyArray_DATA((PyArrayObject *)places);
        const Py_ssize_t plane = maxima.rows.many * maxima.columns.many * maxima.rows.kernel * maxima.columns.kernel;
        maxima.step = 1 + (1 << 15) / plane;
        tt_share(maxima_planes, &maxima, (maxima.planes + maxima.step - 1) / maxima.step, maxima.planes * plane,
                 tt_threads());
    }
    Py_XDECREF(values);
    Py_XDECREF(places);
    return both;
}

// Squares ---------------------------------------------------------------------------------------

typedef struct {
    const float *x;  // planes, or gradients of squares
    float *out;
    uint8_t *right, *lower;  // of squares: which corner; may be NULL
    int64_t planes, rows, columns, step;
    int64_t plane_at, row_at;  // of the planes
} Squares;

enum { OF_SQUARES = 1 << 13 };  // that are worth a part

static Py_ssize_t parts_of(Squares *s) {
    s->step = over(OF_SQUARES, s->rows * s->columns);
    return over(s->planes, s->step);
}

INLINE void put_truths(uint8_t *to, ints truths, int64_t count) {
    bytes found = __builtin_convertvector(-truths, bytes);
    memcpy(to, &found, (size_t)least(count, WIDTH));
}

INLINE ints truths_at(const uint8_t *from, int64_t count) {
    bytes found = {0};
    memcpy(&found, from, (size_t)least(count, WIDTH));
    return -__builtin_convertvector(found, ints);
}

// The higher of two, the second one if it is NaN.
INLINE vec higher_of(vec x, vec y, ints *second) {
    *second = (y > x) | (y != y);
    return where(*second, y, x);
}

// Load `count` pairs that follow each other, at most WIDTH.
INLINE void load_pairs(const float *from, int64_t count, vec *left, vec *right) {
    vec x, y;
    if (count >= WIDTH) x = load(from), y = load(from + WIDTH);
    else {
        float some[2 * WIDTH] = {0};
        copy(some, from, 2 * count);
        x = load(some), y = load(some + WIDTH);
    }
    *left = FROM(0, x, y), *right = FROM(1, x, y);
}

static void highest_corners(void *context, Py_ssize_t part, int worker) {
    const Squares *s = context;
    int64_t end = least((part + 1) * s->step, s->planes) * s->rows;
    (void)worker;
    for (int64_t row = part * s->step * s->rows; row < end; row++) {
        const float *x = s->x + row / s->rows * s->plane_at + row % s->rows * 2 * s->row_at;
        for (int64_t j = 0, at = row * s->columns; j < s->columns; j += WIDTH, at += WIDTH, x += 2 * WIDTH) {
            int64_t left = s->columns - j;
            vec a, b, c, d;
            ints second, beside, down;
            load_pairs(x, left, &a, &b);
            load_pairs(x + s->row_at, left, &c, &d);
            vec upper = higher_of(a, b, &second), under = higher_of(c, d, &beside), best;
            best = higher_of(upper, under, &down);
            put_part(s->out + at, best, left);
            if (!s->right) continue;
            put_truths(s->right + at, (down & beside) | (~down & second), left);
            put_truths(s->lower + at, down, left);
        }
    }
}

KERNEL(max_corners) {
    if (count != 2 || out || !float_array(args[0], false) || PyArray_NDIM((PyArrayObject *)args[0]) != 3) return PASS;
    PyArrayObject *x = (PyArrayObject *)args[0];
    Squares s = {.x = floats_of(args[0]), .planes = PyArray_DIM(x, 0)};
    s.row_at = PyArray_DIM(x, 2), s.plane_at = PyArray_DIM(x, 1) * s.row_at;
    s.rows = PyArray_DIM(x, 1) / 2, s.columns = s.row_at / 2;
    if (!s.planes || !s.rows || !s.columns) return PASS;
    int64_t shape[] = {s.planes, s.rows, s.columns};
    npy_intp sizes[] = {(npy_intp)s.planes, (npy_intp)s.rows, (npy_intp)s.columns};
    bool known = args[1] == Py_True;
    PyObject *best = tt_new(args[0], 3, shape), *right = Py_None, *lower = Py_None, *found = NULL;
    if (known) right = PyArray_SimpleNew(3, sizes, NPY_BOOL), lower = PyArray_SimpleNew(3, sizes, NPY_BOOL);
    if (best && right && lower) found = PyTuple_Pack(3, best, right, lower);
    if (found) {
        s.out = floats_of(best);
        if (known) s.right = PyArray_DATA((PyArrayObject *)right), s.lower = PyArray_DATA((PyArrayObject *)lower);
        tt_share(highest_corners, &s, parts_of(&s), 4 * s.planes * s.rows * s.columns, tt_threads());
    }
    Py_XDECREF(best);
    if (known) {
        Py_XDECREF(right);
        Py_XDECREF(lower);
    }
    return found;
}

static void spread_corners(void *context, Py_ssize_t part, int worker) {
    const Squares *s = context;
    int64_t end = least((part + 1) * s->step, s->planes) * s->rows;
    (void)worker;
    for (int64_t row = part * s->step * s->rows; row < end; row++) {
        float *to = s->out + row * 2 * s->row_at;
        for (int64_t j = 0, at = row * s->columns; j < s->columns; j += WIDTH, at += WIDTH, to += 2 * WIDTH) {
            int64_t left = least(s->columns - j, WIDTH);
            vec g = part_of(s->x + at, left), zero = {0};
            ints right = truths_at(s->right + at, left), lower = truths_at(s->lower + at, left);
            for (int k = 0; k < 2; k++) {
                vec own = where(k ? lower : ~lower, g, zero), x = where(right, zero, own), y = where(right, own, zero);
                float both[2 * WIDTH];
                store(both, LOW(x, y));
                store(both + WIDTH, HIGH(x, y));
                copy(to + k * s->row_at, both, 2 * left);
            }
        }
    }
}

static bool truths(PyObject *object, const Squares *s, uint8_t **data) {
    PyArrayObject *array = (PyArrayObject *)object;
    if (!PyArray_Check(object) || PyArray_TYPE(array) != NPY_BOOL || !tt_contiguous(object)) return false;
    *data = PyArray_DATA(array);
    return PyArray_SIZE(array) == s->planes * s->rows * s->columns;
}

KERNEL(corner_grad) {
    int64_t spatial[2];
    if (count != 4 || out || !float_array(args[0], false) || PyArray_NDIM((PyArrayObject *)args[0]) != 3) return PASS;
    PyArrayObject *g = (PyArrayObject *)args[0];
    Squares s = {.x = floats_of(args[0]), .planes = PyArray_DIM(g, 0)};
    s.rows = PyArray_DIM(g, 1), s.columns = PyArray_DIM(g, 2), s.row_at = 2 * s.columns;
    if (!tt_sizes(args[3], 2, spatial) || spatial[0] != 2 * s.rows || spatial[1] != s.row_at) return PASS;
    if (!PyArray_SIZE(g) || !truths(args[1], &s, &s.right) || !truths(args[2], &s, &s.lower)) return PASS;
    int64_t shape[] = {s.planes, spatial[0], spatial[1]};
    PyObject *result = tt_new(args[0], 3, shape);
    if (!result) return NULL;
    s.out = floats_of(result);
    tt_share(spread_corners, &s, parts_of(&s), 4 * s.planes * s.rows * s.columns, tt_threads());
    return result;
}
