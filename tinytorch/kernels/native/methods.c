// Twins of short members of Tensor: what Python computes in less time than it takes to call and to return. Each gets the
// arguments of the member, the tensor first, and declines all but the usual ones.
#include "calls.h"

enum { MAX_DIMS = 64 };

// The tensor of a call with so many arguments at most, if it is plain and nobody sees the call; NULL otherwise.
static PyObject *self_of(PyObject *const *args, Py_ssize_t count, PyObject *names, Py_ssize_t most) {
    bool usual = count >= 1 && count <= most && !names && is_plain(args[0]) && no_function_modes();
    return usual && PyArray_CheckExact(SLOT(args[0], of_tensor.array)) ? args[0] : NULL;
}

#define ARRAY_OF(x) ARRAY(SLOT(x, of_tensor.array))

// Read an int, counted from the end where it is negative; false if it is none, or not below `size`.
static bool read_index(PyObject *object, npy_intp size, npy_intp *index) {
    if (!PyLong_CheckExact(object)) return false;
    int overflow;
    long long read = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow || read < -size || read >= size) return false;
    *index = (npy_intp)(read < 0 ? read + size : read);
    return true;
}

// Attributes ------------------------------------------------------------------------------------

static PyObject *size_of(PyObject *x) {
    int dims = PyArray_NDIM(ARRAY_OF(x));
    PyObject *size = PyType_GenericAlloc(package.size, dims);
    for (int d = 0; size && d < dims; d++) PyTuple_SetItem(size, d, PyLong_FromSsize_t(PyArray_DIM(ARRAY_OF(x), d)));
    return size;
}

static PyObject *shape(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 1);
    return x ? size_of(x) : FALLBACK;
}

static PyObject *size(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 2);
    npy_intp dim;
    if (!x) return FALLBACK;
    if (count == 1) return size_of(x);
    if (!read_index(args[1], PyArray_NDIM(ARRAY_OF(x)), &dim)) return FALLBACK;
    return PyLong_FromSsize_t(PyArray_DIM(ARRAY_OF(x), dim));
}

static PyObject *dim(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 1);
    return x ? PyLong_FromLong(PyArray_NDIM(ARRAY_OF(x))) : FALLBACK;
}

static PyObject *numel(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 1);
    return x ? PyLong_FromSsize_t(PyArray_SIZE(ARRAY_OF(x))) : FALLBACK;
}

static PyObject *dtype(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 1);
    int kind = x ? kind_of(SLOT(x, of_tensor.array)) : -1;
    return kind < 0 ? FALLBACK : Py_NewRef(ITEM(package.dtypes, kind));
}

static PyObject *requires_grad(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 1);
    if (!x || SLOT(x, of_tensor.view) != Py_None) return FALLBACK;
    return Py_NewRef(SLOT(x, of_tensor.requires_grad));
}

// The gradient of a leaf: that of other tensors is read with a warning.
static PyObject *grad(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 1);
    if (!x || (SLOT(x, of_tensor.grad) == Py_None && SLOT(x, of_tensor.edge) != Py_None)) return FALLBACK;
    return Py_NewRef(SLOT(x, of_tensor.grad));
}

// `others`: the CPU.
static PyObject *device(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    return self_of(args, count, names, 1) ? Py_NewRef(ITEM(self->others, 0)) : FALLBACK;
}

// The number in a tensor of one element.
static PyObject *item(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 1), *state = x ? tt_state() : NULL;
    if (!state || SLOT(state, of_state.modes) != Py_None || PyArray_SIZE(ARRAY_OF(x)) != 1) return FALLBACK;
    const void *data = PyArray_DATA(ARRAY_OF(x));
    switch (kind_of(SLOT(x, of_tensor.array))) {
        case F32: return PyFloat_FromDouble(*(const float *)data);
        case F64: return PyFloat_FromDouble(*(const double *)data);
        case I64: return PyLong_FromLongLong(*(const int64_t *)data);
    }
    return FALLBACK;
}

// x.contiguous() of a contiguous tensor.
static PyObject *contiguous(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 1);
    return x && PyArray_IS_C_CONTIGUOUS(ARRAY_OF(x)) ? Py_NewRef(x) : FALLBACK;
}

// The tensor in one of the usual dtypes: itself, or a copy of integers or booleans, which no gradient flows through.
static PyObject *in_dtype(PyObject *x, PyObject *dtype) {
    PyObject *array = SLOT(x, of_tensor.array), *state = tt_state();
    const int own = kind_of(array), types[KINDS] = {NPY_FLOAT, NPY_DOUBLE, NPY_INT64};
    if (own >= 0 && dtype == ITEM(package.dtypes, own)) return Py_NewRef(x);
    if (!state || SLOT(state, of_state.modes) != Py_None) return FALLBACK;
    if (!PyArray_ISCARRAY(ARRAY(array)) || PyArray_TYPE(ARRAY(array)) > NPY_ULONGLONG) return FALLBACK;
    for (int kind = 0; kind < KINDS; kind++) {
        if (dtype != ITEM(package.dtypes, kind)) continue;
        PyObject *made = PyArray_Cast(ARRAY(array), types[kind]);
        return made ? tt_new_tensor(made, tt_new_cell(state)) : NULL;
    }
    return FALLBACK;
}

// x.to(dtype or device); `others`: the CPU.
static PyObject *to(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (names && SIZE(names) == 1 && !PyUnicode_CompareWithASCIIString(ITEM(names, 0), "dtype")) count++, names = NULL;
    PyObject *x = self_of(args, count, names, 2);
    if (!x || count != 2) return FALLBACK;
    bool same = args[1] == ITEM(self->others, 0) ||
                (PyUnicode_CheckExact(args[1]) && !PyUnicode_CompareWithASCIIString(args[1], "cpu"));
    return same ? Py_NewRef(x) : in_dtype(x, args[1]);
}

// x.float(); `others`: the dtype.
static PyObject *convert(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, 1);
    return x ? in_dtype(x, ITEM(self->others, 0)) : FALLBACK;
}

// Views -----------------------------------------------------------------------------------------

static PyObject *detach(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 1), *state = x ? tt_state() : NULL;
    if (!state || SLOT(state, of_state.modes) != Py_None) return FALLBACK;
    PyObject *cell = SLOT(x, of_tensor.cell);
    if (PyList_Check(cell)) {  // (counts an alias, as reading `.data` does)
        long aliases = PyList_Size(cell) > 2 ? PyLong_AsLong(PyList_GetItem(cell, 2)) : 0;
        PyObject *more = PyLong_FromLong(aliases + 1);
        if (!more) return NULL;
        if (PyList_Size(cell) > 2) {
            PyList_SetItem(cell, 2, more);
        } else {
            int failed = PyList_Append(cell, more);
            Py_DECREF(more);
            if (failed) return NULL;
        }
    }
    return tt_new_tensor(Py_NewRef(SLOT(x, of_tensor.array)), Py_NewRef(cell));
}

// A view of an array's memory: a new reference, or NULL after an error.
static PyObject *view_of(PyArrayObject *array, int dims, const npy_intp *shape, const npy_intp *strides, npy_intp offset) {
    PyArray_Descr *description = PyArray_DESCR(array);
    Py_INCREF((PyObject *)description);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, description, dims, (npy_intp *)shape, (npy_intp *)strides,
                                          PyArray_BYTES(array) + offset, PyArray_FLAGS(array), NULL);
    if (made && PyArray_SetBaseObject(ARRAY(made), Py_NewRef((PyObject *)array))) Py_CLEAR(made);
    return made;
}

// Read the lengths of a shape, given as ints or as one sequence of them; the number of them, or -1.
static int read_shape(PyObject *const *args, Py_ssize_t count, npy_intp size, npy_intp *shape) {
    PyObject *sequence = NULL;
    if (count == 1 && (PyTuple_CheckExact(args[0]) || Py_TYPE(args[0]) == package.size)) sequence = args[0];
    Py_ssize_t dims = sequence ? SIZE(sequence) : count;
    if (dims < 1 || dims > MAX_DIMS) return -1;
    npy_intp known = 1, inferred = -1;
    for (int d = 0; d < dims; d++) {
        PyObject *length = sequence ? ITEM(sequence, d) : args[d];
        if (!PyLong_CheckExact(length)) return -1;
        shape[d] = PyLong_AsSsize_t(length);
        if (shape[d] == -1 && !PyErr_Occurred() && inferred < 0) {
            inferred = d;
        } else if (shape[d] < 0 || (shape[d] && known > size / shape[d])) {
            PyErr_Clear();
            return -1;
        } else {
            known *= shape[d];
        }
    }
    if (!known || (inferred < 0 ? known != size : size % known)) return -1;
    if (inferred >= 0) shape[inferred] = size / known;
    return (int)dims;
}

// `view` and `reshape` of contiguous tensors; `others`: the op of the view.
static PyObject *view(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, MAX_DIMS);
    if (!x || !PyArray_IS_C_CONTIGUOUS(ARRAY_OF(x))) return FALLBACK;
    npy_intp lengths[MAX_DIMS], strides[MAX_DIMS], step = PyArray_ITEMSIZE(ARRAY_OF(x));
    int dims = read_shape(args + 1, count - 1, PyArray_SIZE(ARRAY_OF(x)), lengths);
    PyObject *given = dims < 0 ? NULL : PyTuple_New(dims);
    if (!given) return dims < 0 ? FALLBACK : NULL;
    for (int d = dims; d-- > 0; step *= lengths[d]) {
        strides[d] = step;
        PyTuple_SetItem(given, d, PyLong_FromSsize_t(lengths[d]));
    }
    PyObject *values[] = {x, given};
    PyObject *made = tt_result_of(ITEM(self->others, 0), values, 2, view_of(ARRAY_OF(x), dims, lengths, strides, 0));
    Py_DECREF(given);
    return made;
}

// Read a slice whose bounds and step are ints or None; false for another one, and for an error. `full`: it is `:`.
static bool read_slice(PyObject *slice, npy_intp size, Py_ssize_t *start, Py_ssize_t *step, npy_intp *length, bool *full) {
    static const char *const bounds[] = {"start", "stop", "step"};
    bool ints = true;
    *full = true;
    for (int i = 0; i < 3; i++) {
        PyObject *bound = PyObject_GetAttrString(slice, bounds[i]);
        if (bound != Py_None) {
            *full = false;
            ints = ints && bound && PyLong_CheckExact(bound);
        }
        Py_XDECREF(bound);
    }
    Py_ssize_t stop;
    if (!ints || PySlice_Unpack(slice, start, &stop, step) || *step < 1) {
        PyErr_Clear();
        return false;
    }
    *length = PySlice_AdjustIndices(size, start, &stop, *step);
    if (!*length) *start = 0;
    return true;
}

// x[key] for a tuple of ints, slices, None and at most one Ellipsis. The op is that of the last part which is not `:`.
static PyObject *by_tuple(PyObject *ops, PyObject *x, PyObject *key) {
    PyArrayObject *of = ARRAY_OF(x);
    Py_ssize_t parts = SIZE(key), used = 0, ellipses = 0;
    int dims = PyArray_NDIM(of), kept = 0, d = 0, which = -1;
    for (Py_ssize_t i = 0; i < parts; i++) {
        ellipses += ITEM(key, i) == Py_Ellipsis;
        used += ITEM(key, i) != Py_Ellipsis && ITEM(key, i) != Py_None;
    }
    if (ellipses > 1 || used > dims || parts + dims - used > MAX_DIMS) return FALLBACK;
    npy_intp shape[MAX_DIMS], strides[MAX_DIMS], offset = 0, index;
    PyObject *all = ellipses ? PySlice_New(NULL, NULL, NULL) : NULL;
    Py_ssize_t steps = parts - ellipses + (ellipses ? dims - used : 0), next = 0;
    PyObject *given = ellipses && !all ? NULL : PyTuple_New(steps + 1);
    bool declined = false;
    for (Py_ssize_t i = 0; given && !declined && i < parts; i++) {
        PyObject *part = ITEM(key, i);
        if (part == Py_Ellipsis) {
            for (Py_ssize_t j = used; j < dims; j++, d++) {
                shape[kept] = PyArray_DIM(of, d);
                strides[kept++] = PyArray_STRIDE(of, d);
                PyTuple_SetItem(given, next++, Py_NewRef(all));
            }
            continue;
        }
        if (part == Py_None) {
            shape[kept] = 1;
            strides[kept++] = 0;
            which = 2;
        } else if (PySlice_Check(part)) {
            Py_ssize_t start, step;
            bool full;
            declined = !read_slice(part, PyArray_DIM(of, d), &start, &step, &shape[kept], &full);
            if (declined) break;
            if (!full || parts == 1) which = 1;
            offset += start * PyArray_STRIDE(of, d);
            strides[kept] = (shape[kept] ? step : 1) * PyArray_STRIDE(of, d);
            kept++;
            d++;
        } else {
            declined = !read_index(part, PyArray_DIM(of, d), &index);
            if (declined) break;
            offset += index * PyArray_STRIDE(of, d++);
            which = 0;
        }
        PyTuple_SetItem(given, next++, Py_NewRef(part));
    }
    PyObject *made = NULL;
    if (given && (declined || which < 0)) {
        made = FALLBACK;
    } else if (given) {
        PyTuple_SetItem(given, next, Py_NewRef(Py_Ellipsis));
        for (; d < dims; d++) {
            shape[kept] = PyArray_DIM(of, d);
            strides[kept++] = PyArray_STRIDE(of, d);
        }
        PyObject *values[] = {x, given};
        made = tt_result_of(ITEM(ops, which), values, 2, view_of(of, kept, shape, strides, offset));
    }
    Py_XDECREF(all);
    Py_XDECREF(given);
    return made;
}

// x[key] for an int, a slice, None, or a tuple of them; `others`: the ops "select", "slice" and "unsqueeze".
static PyObject *getitem(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, 2), *key = count == 2 ? args[1] : NULL, *given, *array;
    if (!x || !key) return FALLBACK;
    if (PyTuple_CheckExact(key)) return by_tuple(self->others, x, key);
    PyArrayObject *of = ARRAY_OF(x);
    int dims = PyArray_NDIM(of), which = 0;
    npy_intp shape[MAX_DIMS], strides[MAX_DIMS], index;
    if (PyLong_CheckExact(key) && dims) {
        if (!read_index(key, PyArray_DIM(of, 0), &index)) return FALLBACK;
        given = PyTuple_Pack(2, key, Py_Ellipsis);
        array = view_of(of, dims - 1, PyArray_DIMS(of) + 1, PyArray_STRIDES(of) + 1, index * PyArray_STRIDE(of, 0));
    } else if (PySlice_Check(key) && dims) {
        Py_ssize_t start, step;
        bool full;
        memcpy(shape, PyArray_DIMS(of), sizeof(npy_intp) * (size_t)dims);
        if (!read_slice(key, shape[0], &start, &step, &shape[0], &full) || step != 1) return FALLBACK;
        given = PyTuple_Pack(1, key);
        array = view_of(of, dims, shape, PyArray_STRIDES(of), start * PyArray_STRIDE(of, 0));
        which = 1;
    } else if (key == Py_None && dims < MAX_DIMS) {
        shape[0] = 1;
        strides[0] = 0;
        for (int d = 0; d < dims; d++) {
            shape[d + 1] = PyArray_DIM(of, d);
            strides[d + 1] = PyArray_STRIDE(of, d);
        }
        given = PyTuple_Pack(2, Py_None, Py_Ellipsis);
        array = view_of(of, dims + 1, shape, strides, 0);
        which = 2;
    } else {
        return FALLBACK;
    }
    PyObject *values[] = {x, given};
    PyObject *made = given ? tt_result_of(ITEM(self->others, which), values, 2, array) : NULL;
    Py_XDECREF(given);
    return made;
}

// x[index] = value of a contiguous tensor where nothing is recorded: a number, or a tensor of the row's shape.
static PyObject *setitem(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 3), *state = x && count == 3 ? tt_state() : NULL;
    if (!state || SLOT(state, of_state.modes) != Py_None || SLOT(state, of_state.run) != Py_None) return FALLBACK;
    PyArrayObject *to = ARRAY_OF(x);
    PyObject *value = args[2], *cell = SLOT(x, of_tensor.cell);
    int kind = kind_of(SLOT(x, of_tensor.array)), dims = PyArray_NDIM(to);
    npy_intp index;
    if (kind < 0 || !dims || !PyArray_ISCARRAY(to) || !PyList_Check(cell)) return FALLBACK;
    if (!read_index(args[1], PyArray_DIM(to, 0), &index)) return FALLBACK;
    if (SLOT(state, of_state.grad) == Py_True && (tt_may_need_grad(x) || (is_plain(value) && tt_may_need_grad(value)))) {
        return FALLBACK;
    }
    npy_intp row = PyArray_SIZE(to) / PyArray_DIM(to, 0), itemsize = PyArray_ITEMSIZE(to), bytes = row * itemsize;
    char *place = PyArray_BYTES(to) + index * bytes;
    if (is_plain(value)) {
        PyObject *given = SLOT(value, of_tensor.array);
        if (kind_of(given) != kind || !PyArray_ISCARRAY_RO(ARRAY(given)) || PyArray_NDIM(ARRAY(given)) != dims - 1 ||
            !PyArray_CompareLists(PyArray_DIMS(ARRAY(given)), PyArray_DIMS(to) + 1, dims - 1)) {
            return FALLBACK;
        }
        memmove(place, PyArray_DATA(ARRAY(given)), (size_t)bytes);
    } else {
        int64_t number;
        if (!tt_read_as(value, kind, &number)) return FALLBACK;
        for (npy_intp i = 0; i < row; i++) memcpy(place + i * itemsize, &number, (size_t)itemsize);
    }
    return tt_count_write(cell) ? Py_NewRef(Py_None) : NULL;
}

// Choices between ops ---------------------------------------------------------------------------

// The products of matrices and vectors; `others`: of two matrices by whether the first, and the second, has its rows in
// order, as four ops; then of a matrix and a vector, two vectors, and two stacks of matrices (None: not by this function).
static PyObject *matmul(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, 2);
    if (!x || count != 2 || !is_plain(args[1])) return FALLBACK;
    PyObject *a = SLOT(x, of_tensor.array), *b = SLOT(args[1], of_tensor.array);
    int kind = kind_of(a), m = PyArray_NDIM(ARRAY(a));
    if (kind < 0 || kind != kind_of(b)) return FALLBACK;
    int n = PyArray_NDIM(ARRAY(b)), which = m == 2 && n == 1 ? 4 : m == 1 && n == 1 ? 5 : m == 3 && n == 3 ? 6 : -1;
    if (m == 2 && n == 2) {
        bool a_rows = PyArray_IS_C_CONTIGUOUS(ARRAY(a)) || !PyArray_IS_F_CONTIGUOUS(ARRAY(a));
        bool b_rows = PyArray_IS_C_CONTIGUOUS(ARRAY(b)) || !PyArray_IS_F_CONTIGUOUS(ARRAY(b));
        which = (a_rows ? 0 : 2) + (b_rows ? 0 : 1);
    }
    if (which < 0 || PyArray_DIM(ARRAY(a), m - 1) != PyArray_DIM(ARRAY(b), n > 1 ? n - 2 : 0)) return FALLBACK;
    if (m == 3 && PyArray_DIM(ARRAY(a), 0) != PyArray_DIM(ARRAY(b), 0)) return FALLBACK;
    return tt_call_of(ITEM(self->others, which), args, 2, NULL);
}

// An op of a tensor of floats and of numbers, any of which may be None; `others`: the op.
static PyObject *of_floats(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = count ? self_of(args, 1, NULL, 1) : NULL;
    int kind = x ? kind_of(SLOT(x, of_tensor.array)) : -1;
    Py_ssize_t all = count + (names ? SIZE(names) : 0), numbers = 0;
    if (kind != F32 && kind != F64) return FALLBACK;
    for (Py_ssize_t i = 1; i < all; i++) {
        if (PyFloat_CheckExact(args[i]) || PyLong_CheckExact(args[i])) numbers++;
        else if (args[i] != Py_None) return FALLBACK;
    }
    return numbers ? tt_call_of(ITEM(self->others, 0), args, count, names) : FALLBACK;
}

// Creation --------------------------------------------------------------------------------------

// What the keywords of a creation function say.
typedef struct {
    int kind;
    bool requires_grad;
} Options;

// `others` of a creation function: the number that fills the tensor, None for one that is given, NotImplemented for none;
// the lists whose last elements are the default dtype and the default device; the CPU; and the list that says first
// whether new memory is filled.
enum { FILLING, DEFAULT_DTYPE, DEFAULT_DEVICE, CPU, DETERMINISTIC };

static int kind_of_dtype(PyObject *dtype) {
    for (int kind = 0; kind < KINDS; kind++) {
        if (dtype == ITEM(package.dtypes, kind)) return kind;
    }
    return -1;
}

static PyObject *last_of(Callable *self, int which) {
    PyObject *list = ITEM(self->others, which);
    return PyList_GetItem(list, PyList_Size(list) - 1);
}

// Read the keywords; `kind` is of the result unless they say it, -1 for the default dtype. False where they are unusual.
static bool read_options(Callable *self, PyObject *const *values, PyObject *names, int kind, Options *options) {
    PyObject *cpu = ITEM(self->others, CPU), *device = Py_None;
    if (kind < 0) kind = kind_of_dtype(last_of(self, DEFAULT_DTYPE));
    *options = (Options){kind, false};
    for (Py_ssize_t k = names ? SIZE(names) : 0; k-- > 0;) {
        PyObject *name = ITEM(names, k), *value = values[k];
        if (!PyUnicode_CompareWithASCIIString(name, "dtype")) {
            if (value != Py_None) options->kind = kind_of_dtype(value);
        } else if (!PyUnicode_CompareWithASCIIString(name, "requires_grad")) {
            if (!PyBool_Check(value)) return false;
            options->requires_grad = value == Py_True;
        } else if (!PyUnicode_CompareWithASCIIString(name, "device")) {
            device = value;
        } else {
            return false;
        }
    }
    if (device == Py_None) device = last_of(self, DEFAULT_DEVICE);
    if (device != cpu && !(PyUnicode_CheckExact(device) && !PyUnicode_CompareWithASCIIString(device, "cpu"))) return false;
    return options->kind >= 0 && !(options->requires_grad && options->kind == I64);
}

// A new tensor filled with a number (NULL: with none); FALLBACK where Python must say what becomes of the number.
static PyObject *new_filled(Options options, int dims, const npy_intp *shape, PyObject *number) {
    PyObject *state = tt_state();
    union {
        float f32;
        double f64;
        int64_t i64;
    } value = {.i64 = 0};
    if (!state || SLOT(state, of_state.modes) != Py_None || !no_function_modes()) return FALLBACK;
    if (number && !tt_read_as(number, options.kind, &value)) return FALLBACK;
    const int types[KINDS] = {NPY_FLOAT, NPY_DOUBLE, NPY_INT64};
    bool zero = number && !value.i64;
    PyObject *array = zero ? PyArray_ZEROS(dims, (npy_intp *)shape, types[options.kind], 0)
                           : PyArray_SimpleNew(dims, (npy_intp *)shape, types[options.kind]);
    if (array && number && !zero) {
        npy_intp size = PyArray_SIZE(ARRAY(array));
        if (options.kind == F32) {
            float *to = PyArray_DATA(ARRAY(array));
            for (npy_intp i = 0; i < size; i++) to[i] = value.f32;
        } else {
            int64_t *to = PyArray_DATA(ARRAY(array));  // (or float64)
            for (npy_intp i = 0; i < size; i++) to[i] = value.i64;
        }
    }
    PyObject *out = tt_new_tensor(array, tt_new_cell(state));
    if (out && options.requires_grad) set_slot(out, of_tensor.requires_grad, Py_NewRef(Py_True));
    return out;
}

// Read the lengths of a new tensor, given as ints or as one sequence of them; the number of them, or -1.
static int read_lengths(PyObject *const *args, Py_ssize_t count, npy_intp *shape) {
    bool in_tuple = count == 1 && (PyTuple_CheckExact(args[0]) || Py_TYPE(args[0]) == package.size);
    bool in_list = count == 1 && PyList_CheckExact(args[0]);
    Py_ssize_t dims = in_tuple ? SIZE(args[0]) : in_list ? PyList_Size(args[0]) : count;
    npy_intp size = 1;
    if (dims > MAX_DIMS / 2 || !count) return -1;
    for (Py_ssize_t d = 0; d < dims; d++) {
        PyObject *length = in_tuple ? ITEM(args[0], d) : in_list ? PyList_GetItem(args[0], d) : args[d];
        if (!PyLong_CheckExact(length)) return -1;
        shape[d] = PyLong_AsSsize_t(length);
        if (shape[d] < 0 || (shape[d] && size > ((npy_intp)1 << 40) / shape[d])) {
            PyErr_Clear();
            return -1;
        }
        size *= shape[d] ? shape[d] : 1;  // (strides, too, have to fit)
    }
    return (int)dims;
}

// The number that fills a new tensor: NULL for none, which Python declines where new memory is filled all the same.
static bool read_filling(Callable *self, PyObject **number) {
    *number = ITEM(self->others, FILLING);
    if (*number != Py_NotImplemented) return true;
    *number = NULL;
    return PyList_GetItem(ITEM(self->others, DETERMINISTIC), 0) == Py_False;
}

// zeros(*sizes), ones, empty
static PyObject *create(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    npy_intp shape[MAX_DIMS];
    Options options;
    PyObject *number;
    int dims = read_lengths(args, count, shape);
    if (dims < 0 || !read_filling(self, &number) || !read_options(self, args + count, names, -1, &options)) return FALLBACK;
    return new_filled(options, dims, shape, number);
}

// full(size, number)
static PyObject *full(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    npy_intp shape[MAX_DIMS];
    Options options;
    if (count != 2 || PyLong_CheckExact(args[0])) return FALLBACK;
    int kind = PyLong_CheckExact(args[1]) ? I64 : -1, dims = read_lengths(args, 1, shape);
    if (dims < 0 || !read_options(self, args + 2, names, kind, &options)) return FALLBACK;
    return new_filled(options, dims, shape, args[1]);
}

// Whether the strides are those of a new array, also where a dimension of size 1 leaves them open: `empty_like` keeps them.
static bool in_order(PyArrayObject *array) {
    npy_intp step = PyArray_ITEMSIZE(array);
    for (int d = PyArray_NDIM(array); d-- > 0; step *= PyArray_DIM(array, d)) {
        if (PyArray_STRIDE(array, d) != step) return false;
    }
    return true;
}

// zeros_like(x), ones_like, empty_like, full_like(x, number)
static PyObject *create_like(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Options options;
    PyObject *x = count ? self_of(args, 1, NULL, 1) : NULL, *number;
    if (!x || !read_filling(self, &number) || count != 1 + (number == Py_None)) return FALLBACK;
    int kind = kind_of(SLOT(x, of_tensor.array));
    if (kind < 0 || !in_order(ARRAY_OF(x)) || !read_options(self, args + count, names, kind, &options)) return FALLBACK;
    return new_filled(options, PyArray_NDIM(ARRAY_OF(x)), PyArray_DIMS(ARRAY_OF(x)), number == Py_None ? args[1] : number);
}

// x.new_zeros(*sizes), new_ones, new_empty
static PyObject *create_new(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    npy_intp shape[MAX_DIMS];
    Options options;
    PyObject *x = count > 1 ? self_of(args, 1, NULL, 1) : NULL, *number;
    int kind = x ? kind_of(SLOT(x, of_tensor.array)) : -1, dims = kind < 0 ? -1 : read_lengths(args + 1, count - 1, shape);
    if (dims < 0 || !read_filling(self, &number) || !read_options(self, args + count, names, kind, &options)) {
        return FALLBACK;
    }
    return new_filled(options, dims, shape, number);
}

// Random numbers --------------------------------------------------------------------------------

// `others` of a random function: as of a creation function, then the default generator, the kernel that fills an array,
// and its numbers.
enum { GENERATOR = DETERMINISTIC + 1, KERNEL_OF_FILL, FIRST_NUMBER, SECOND_NUMBER };

// Fill an array with random numbers; false where it is left to Python. (Python may hold the generator's lock.)
static bool draw(Callable *self, PyObject *array, PyObject *first, PyObject *second) {
    PyObject *state = tt_state(), *kernel = ITEM(self->others, KERNEL_OF_FILL), *result = FALLBACK;
    if (!state || SLOT(state, of_state.trial) != Py_None || !tt_is_quiet_twin(kernel)) return false;
    static PyObject *source_name, *lock_name, *acquire_name, *release_name;
    PyObject *source = attribute_of(ITEM(self->others, GENERATOR), &source_name, "_source");
    PyObject *lock = source ? attribute_of(source, &lock_name, "lock") : NULL;
    PyObject *acquire = lock ? attribute_of(lock, &acquire_name, "acquire") : NULL;
    PyObject *release = acquire ? attribute_of(lock, &release_name, "release") : NULL;
    PyObject *free = release ? PyObject_CallFunctionObjArgs(acquire, Py_False, NULL) : NULL;
    if (free == Py_True) {
        result = tt_call_twin(kernel, (PyObject *[]){array, source, first, second});
        PyObject *released = PyObject_CallNoArgs(release);
        Py_XDECREF(released);
    }
    Py_XDECREF(source);
    Py_XDECREF(lock);
    Py_XDECREF(acquire);
    Py_XDECREF(release);
    Py_XDECREF(free);
    PyErr_Clear();
    if (result && result != FALLBACK) Py_DECREF(result);
    return result && result != FALLBACK;
}

// Fill a new tensor, which is stolen.
static PyObject *drawn(Callable *self, PyObject *out, PyObject *first, PyObject *second) {
    if (!out || out == FALLBACK || draw(self, SLOT(out, of_tensor.array), first, second)) return out;
    Py_DECREF(out);
    return FALLBACK;
}

// rand(*sizes), randn
static PyObject *random_of_size(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    npy_intp shape[MAX_DIMS];
    Options options;
    int dims = read_lengths(args, count, shape);
    if (dims < 0 || !read_options(self, args + count, names, -1, &options) || options.kind == I64) return FALLBACK;
    return drawn(self, new_filled(options, dims, shape, NULL), ITEM(self->others, FIRST_NUMBER),
                 ITEM(self->others, SECOND_NUMBER));
}

// rand_like(x), randn_like
static PyObject *random_like(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Options options;
    PyObject *x = count == 1 ? self_of(args, 1, NULL, 1) : NULL;
    int kind = x ? kind_of(SLOT(x, of_tensor.array)) : -1;
    if (kind < 0 || !in_order(ARRAY_OF(x)) || !read_options(self, args + count, names, kind, &options)) return FALLBACK;
    if (options.kind == I64) return FALLBACK;
    return drawn(self, new_filled(options, PyArray_NDIM(ARRAY_OF(x)), PyArray_DIMS(ARRAY_OF(x)), NULL),
                 ITEM(self->others, FIRST_NUMBER), ITEM(self->others, SECOND_NUMBER));
}

// randint(high, size), randint(low, high, size)
static PyObject *random_integers(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    npy_intp shape[MAX_DIMS];
    Options options;
    if (names && SIZE(names) == 1 && !PyUnicode_CompareWithASCIIString(ITEM(names, 0), "size")) {
        count++;  // (its value follows the positional arguments)
        names = NULL;
    }
    if (count < 2 || count > 3 || PyLong_CheckExact(args[count - 1])) return FALLBACK;
    PyObject *low = count == 3 ? args[0] : tt_zero, *high = args[count - 2];
    int dims = read_lengths(args + count - 1, 1, shape), overflow_low = 1, overflow_high = 1;
    if (dims < 0 || !PyLong_CheckExact(low) || !PyLong_CheckExact(high)) return FALLBACK;
    long long first = PyLong_AsLongLongAndOverflow(low, &overflow_low);
    long long last = PyLong_AsLongLongAndOverflow(high, &overflow_high);
    if (overflow_low || overflow_high || first >= last || first < -((int64_t)1 << 62) || last > (int64_t)1 << 62) {
        return FALLBACK;
    }
    if (!read_options(self, args + count, names, I64, &options) || options.kind != I64) return FALLBACK;
    PyObject *range = PyLong_FromLongLong(last - first);
    PyObject *out = range ? drawn(self, new_filled(options, dims, shape, NULL), low, range) : NULL;
    Py_XDECREF(range);
    return out;
}

// randperm(n)
static PyObject *random_order(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    npy_intp shape[MAX_DIMS];
    Options options;
    if (count != 1 || !PyLong_CheckExact(args[0]) || read_lengths(args, 1, shape) < 0 || shape[0] < 2) return FALLBACK;
    if (!read_options(self, args + 1, names, I64, &options) || options.kind != I64) return FALLBACK;
    return drawn(self, new_filled(options, 1, shape, NULL), NULL, NULL);
}

// normal(mean, std, size)
static PyObject *random_normals(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    npy_intp shape[MAX_DIMS];
    Options options;
    double mean, std;
    if (count != 3 || PyLong_CheckExact(args[2]) || !PyFloat_CheckExact(args[0]) || !PyFloat_CheckExact(args[1])) {
        return FALLBACK;
    }
    int dims = read_lengths(args + 2, 1, shape);
    if (dims < 0 || !tt_read_double(args[0], &mean) || !tt_read_double(args[1], &std)) return FALLBACK;
    if (!(std >= 0 && std < 1e30 && fabs(mean) < 1e30)) return FALLBACK;
    if (!read_options(self, args + 3, names, -1, &options) || options.kind == I64) return FALLBACK;
    return drawn(self, new_filled(options, dims, shape, NULL), args[0], args[1]);
}

// x.uniform_(from, to), x.normal_(mean, std) where nothing is recorded
static PyObject *refill(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, 3), *state = x ? tt_state() : NULL;
    PyObject *first = count > 1 ? args[1] : ITEM(self->others, FIRST_NUMBER);
    PyObject *second = count > 2 ? args[2] : ITEM(self->others, SECOND_NUMBER), *cell = x ? SLOT(x, of_tensor.cell) : NULL;
    double a, b;
    if (!state || SLOT(state, of_state.modes) != Py_None || SLOT(state, of_state.run) != Py_None) return FALLBACK;
    int kind = kind_of(SLOT(x, of_tensor.array));
    if ((kind != F32 && kind != F64) || !PyArray_ISCARRAY(ARRAY_OF(x)) || !PyList_Check(cell)) return FALLBACK;
    if (SLOT(state, of_state.grad) == Py_True && tt_may_need_grad(x)) return FALLBACK;
    if (!tt_read_double(first, &a) || !tt_read_double(second, &b) || fabs(a) > 1e30 || fabs(b) > 1e30) return FALLBACK;
    // (Bounds in order; and no standard deviation is negative.)
    bool of_bounds = ITEM(self->others, FILLING) == Py_True;
    if (of_bounds ? !(a <= b) : !(b >= 0)) return FALLBACK;
    if (!draw(self, SLOT(x, of_tensor.array), first, second)) return FALLBACK;
    return tt_count_write(cell) ? Py_NewRef(x) : NULL;
}

// The kind of a number of Python's: int64, or a dtype of floats (F32 stands for the default one); -1 for others.
static int kind_of_number(PyObject *number) {
    return PyFloat_CheckExact(number) ? F32 : PyLong_CheckExact(number) ? I64 : -1;
}

static bool is_nested(PyObject *data) { return PyList_CheckExact(data) || PyTuple_CheckExact(data); }
static PyObject *nested_item(PyObject *list, Py_ssize_t i) {
    return PyList_CheckExact(list) ? PyList_GetItem(list, i) : PyTuple_GetItem(list, i);
}

// The lengths of nested lists and tuples of numbers, which have one length at each depth, and their kind: floats, if any number is
// one. -1 for other lists, else the number of dimensions.
static int read_nested(PyObject *list, int depth, npy_intp *shape, int *kind) {
    if (!is_nested(list)) {
        int own = kind_of_number(list);
        if (own < 0) return -1;
        if (*kind != F32) *kind = own;
        return depth;
    }
    Py_ssize_t length = PySequence_Size(list);
    int dims = -1;
    if (!length || depth == 4 || (shape[depth] >= 0 && shape[depth] != length)) return -1;
    shape[depth] = length;
    for (Py_ssize_t i = 0; i < length; i++) {
        int own = read_nested(nested_item(list, i), depth + 1, shape, kind);
        if (own < 0 || (dims >= 0 && own != dims)) return -1;
        dims = own;
    }
    return dims;
}

// Write the numbers of nested lists in order; false where Python must say what becomes of one.
static bool write_nested(PyObject *list, int kind, int itemsize, char **to) {
    if (!is_nested(list)) {
        bool read = tt_read_as(list, kind, *to);
        *to += itemsize;
        return read;
    }
    for (Py_ssize_t i = 0; i < PySequence_Size(list); i++) {
        if (!write_nested(nested_item(list, i), kind, itemsize, to)) return false;
    }
    return true;
}

// tensor(data): of a number, or of nested lists of numbers
static PyObject *tensor(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    npy_intp shape[] = {-1, -1, -1, -1};
    int kind = -1, dims = count == 1 ? read_nested(args[0], 0, shape, &kind) : -1;
    Options options;
    if (dims < 0 || !read_options(self, args + 1, names, kind == I64 ? I64 : -1, &options)) return FALLBACK;
    if (kind == F32 && options.kind == I64) return FALLBACK;
    PyObject *out = new_filled(options, dims, shape, NULL);
    if (!out || out == FALLBACK) return out;
    PyArrayObject *array = ARRAY_OF(out);
    char *to = PyArray_BYTES(array);
    if (write_nested(args[0], options.kind, (int)PyArray_ITEMSIZE(array), &to)) return out;
    Py_DECREF(out);
    return FALLBACK;
}

// from_numpy(array), as_tensor(array): on its memory; as_tensor(list)
static PyObject *from_numpy(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Options options;
    if (count == 1 && is_nested(args[0])) return tensor(self, args, count, names);
    PyObject *state = tt_state(), *array = count == 1 && !names ? args[0] : NULL;
    if (!array || !state || SLOT(state, of_state.modes) != Py_None || !no_function_modes()) return FALLBACK;
    if (kind_of(array) < 0 && !(PyArray_CheckExact(array) && PyArray_TYPE(ARRAY(array)) == NPY_UBYTE)) return FALLBACK;
    if (!PyArray_ISWRITEABLE(ARRAY(array)) || !PyArray_IS_C_CONTIGUOUS(ARRAY(array))) return FALLBACK;
    if (!read_options(self, args, NULL, -1, &options)) return FALLBACK;  // (the default device)
    return tt_new_tensor(Py_NewRef(array), tt_new_cell(state));
}

static const struct {
    const char *name;
    Run run;
} methods[] = {
    {"shape", shape},   {"size", size},     {"dim", dim},       {"numel", numel},       {"dtype", dtype},
    {"requires_grad", requires_grad},       {"grad", grad},     {"detach", detach},     {"view", view},
    {"getitem", getitem},                   {"backward", tt_backward},                  {"create", create},
    {"device", device}, {"item", item},     {"contiguous", contiguous},                 {"to", to},    {"convert", convert},
    {"setitem", setitem},                   {"tensor", tensor}, {"from_numpy", from_numpy},
    {"random_of_size", random_of_size},     {"random_like", random_like},               {"refill", refill},
    {"random_integers", random_integers},   {"random_order", random_order},             {"random_normals", random_normals},
    {"matmul", matmul}, {"of_floats", of_floats},
    {"full", full},     {"create_like", create_like},           {"create_new", create_new},     {NULL, NULL},
};

Run tt_method(const char *name) {
    for (int k = 0; methods[k].name; k++) {
        if (!strcmp(methods[k].name, name)) return methods[k].run;
    }
    return NULL;
}
