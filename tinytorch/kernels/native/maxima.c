// Twin of `maxima` in kernels/pool.py, for windows that slide over one or two dimensions and whose maxima are placed.

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

// Enter the elements `x[0]`, `x[stride]` ..., which lie at `place`, and so on, where they are higher. The last NaN stays.
INLINE void enter(const float *restrict x, int32_t place, int32_t stride, float *restrict out, int32_t *restrict at,
                  Py_ssize_t count) {
    for (Py_ssize_t i = 0; i < count; i++) {
        float value = x[i * stride];
        bool higher = !(value <= out[i]);
        higher &= (value > out[i]) | (value != value);
        out[i] = higher ? value : out[i];
        at[i] = higher ? place + (int32_t)i * stride : at[i];
    }
}

static void maxima_planes(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Maxima *maxima = context;
    const Slide rows = maxima->rows, columns = maxima->columns;
    int32_t at[WIDEST];
    Py_ssize_t end = (block + 1) * maxima->step < maxima->planes ? (block + 1) * maxima->step : maxima->planes;
    for (Py_ssize_t plane = block * maxima->step; plane < end; plane++) {
        const float *x = maxima->x + plane * rows.length * columns.length;
        for (Py_ssize_t i = 0; i < rows.many; i++) {
            const Py_ssize_t to = (plane * rows.many + i) * columns.many, top = rows.start + i * rows.stride;
            float *out = maxima->out + to;
            for (Py_ssize_t j = 0; j < columns.many; j++) {
                out[j] = -INFINITY;
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
                    if (stride == 1) enter(x + place, (int32_t)place, 1, out + begin, at + begin, stop - begin);
                    else if (stride == 2) enter(x + place, (int32_t)place, 2, out + begin, at + begin, stop - begin);
                    else enter(x + place, (int32_t)place, (int32_t)stride, out + begin, at + begin, stop - begin);
                }
            }
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
        tt_share(maxima_planes, &maxima, (maxima.planes + maxima.step - 1) / maxima.step, maxima.planes * plane, tt_threads());
    }
    Py_XDECREF(values);
    Py_XDECREF(places);
    return both;
}
