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

static PyObject *set_grad(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 2), *g = x && count == 2 ? args[1] : NULL;
    if (!g || g == x) return FALLBACK;
    if (g != Py_None) {
        int kind = kind_of(SLOT(x, of_tensor.array));
        if (kind < 0 || !is_plain(g) || kind_of(SLOT(g, of_tensor.array)) != kind) return FALLBACK;
        if (!same_shape(SLOT(g, of_tensor.array), SLOT(x, of_tensor.array))) return FALLBACK;
    }
    set_slot(x, of_tensor.grad, Py_NewRef(g));
    return Py_NewRef(Py_None);
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

// A contiguous tensor in another shape; `others` of the function: the op of the view.
static PyObject *viewed(Callable *self, PyObject *x, int dims, const npy_intp *lengths) {
    npy_intp strides[MAX_DIMS], step = PyArray_ITEMSIZE(ARRAY_OF(x));
    PyObject *given = PyTuple_New(dims);
    if (!given) return NULL;
    for (int d = dims; d-- > 0; step *= lengths[d]) {
        strides[d] = step;
        PyTuple_SetItem(given, d, PyLong_FromSsize_t(lengths[d]));
    }
    PyObject *values[] = {x, given};
    PyObject *made = tt_result_of(ITEM(self->others, 0), values, 2, tt_view_of(ARRAY_OF(x), dims, lengths, strides, 0));
    Py_DECREF(given);
    return made;
}

// `view` and `reshape` of contiguous tensors; `others`: the op of the view.
static PyObject *view(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, MAX_DIMS);
    if (!x || !PyArray_IS_C_CONTIGUOUS(ARRAY_OF(x))) return FALLBACK;
    npy_intp lengths[MAX_DIMS];
    int dims = read_shape(args + 1, count - 1, PyArray_SIZE(ARRAY_OF(x)), lengths);
    return dims < 0 ? FALLBACK : viewed(self, x, dims, lengths);
}

// The arguments of a call after the first, by place or by name: those not given are NULL. False for others.
static bool bind_others(PyObject *const *args, Py_ssize_t count, PyObject *names, int most, const char *const *parameters,
                        PyObject **values) {
    if (count < 1 || count > most + 1) return false;
    for (int i = 0; i < most; i++) values[i] = i + 1 < count ? args[i + 1] : NULL;
    for (Py_ssize_t k = names ? SIZE(names) : 0; k-- > 0;) {
        int i = 0;
        while (i < most && PyUnicode_CompareWithASCIIString(ITEM(names, k), parameters[i])) i++;
        if (i == most || values[i]) return false;
        values[i] = args[count + k];
    }
    return true;
}

// x.flatten(start_dim, end_dim) of a contiguous tensor; `others`: the op of the view.
static PyObject *flatten(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = count ? self_of(args, 1, NULL, 1) : NULL, *ends[2];
    static const char *const parameters[] = {"start_dim", "end_dim"};
    if (!x || !PyArray_IS_C_CONTIGUOUS(ARRAY_OF(x)) || !bind_others(args, count, names, 2, parameters, ends)) return FALLBACK;
    int dims = PyArray_NDIM(ARRAY_OF(x)), kept = 0;
    npy_intp start = 0, end = dims - 1, lengths[MAX_DIMS];
    if (!dims || (ends[0] && !read_index(ends[0], dims, &start)) || (ends[1] && !read_index(ends[1], dims, &end))) {
        return FALLBACK;
    }
    if (start == end) return Py_NewRef(x);
    if (start > end) return FALLBACK;
    for (int d = 0; d < dims; d++) {
        if (d > start && d <= end) lengths[kept - 1] *= PyArray_DIM(ARRAY_OF(x), d);
        else lengths[kept++] = PyArray_DIM(ARRAY_OF(x), d);
    }
    return viewed(self, x, kept, lengths);
}

// An op of a tensor and of ints, which are separate arguments or one sequence; `others`: the op.
static PyObject *of_ints(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, MAX_DIMS);
    if (!x || count == 1) return FALLBACK;
    bool in_tuple = count == 2 && (PyTuple_CheckExact(args[1]) || Py_TYPE(args[1]) == package.size);
    bool in_list = count == 2 && PyList_CheckExact(args[1]);
    Py_ssize_t length = in_tuple ? SIZE(args[1]) : in_list ? PyList_Size(args[1]) : count - 1;
    PyObject *ints = PyTuple_New(length), *made = NULL, *values[] = {x, ints};
    bool usual = ints != NULL;
    for (Py_ssize_t i = 0; usual && i < length; i++) {
        PyObject *each = in_tuple ? ITEM(args[1], i) : in_list ? PyList_GetItem(args[1], i) : args[i + 1];
        usual = PyLong_CheckExact(each);
        PyTuple_SetItem(ints, i, Py_NewRef(each));
    }
    if (ints) made = usual ? tt_call_of(ITEM(self->others, 0), values, 2, NULL) : FALLBACK;
    Py_XDECREF(ints);
    return made;
}

// x.chunk(chunks, dim), and x.split(size or sizes, dim); `others`: the op of pieces of one size; that of given sizes, None
// for `chunk`.
static PyObject *split(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = count ? self_of(args, 1, NULL, 1) : NULL, *given[2], *op = ITEM(self->others, 0);
    bool in_chunks = ITEM(self->others, 1) == Py_None;
    const char *const parameters[] = {in_chunks ? "chunks" : "split_size_or_sections", "dim"};
    if (!x || !bind_others(args, count, names, 2, parameters, given) || !given[0]) return FALLBACK;
    npy_intp dim = 0, length, total = 0;
    if (!PyArray_NDIM(ARRAY_OF(x)) || (given[1] && !read_index(given[1], PyArray_NDIM(ARRAY_OF(x)), &dim))) return FALLBACK;
    length = PyArray_DIM(ARRAY_OF(x), dim);
    PyObject *sizes = NULL;
    if (PyLong_CheckExact(given[0])) {
        npy_intp size = PyLong_AsSsize_t(given[0]);
        if (size > 0 && in_chunks) size = length / size + (length % size != 0);
        if (PyErr_Occurred()) PyErr_Clear();
        if (size <= 0 || !length) return FALLBACK;
        sizes = PyList_New(length / size + (length % size != 0));
        for (Py_ssize_t k = 0; sizes && k < PyList_Size(sizes); k++, total += size) {
            PyList_SetItem(sizes, k, PyLong_FromSsize_t(size < length - total ? size : length - total));
        }
    } else if (!in_chunks && (PyTuple_CheckExact(given[0]) || PyList_CheckExact(given[0]))) {
        sizes = PySequence_Tuple(given[0]);
        for (Py_ssize_t k = 0; sizes && k < SIZE(sizes); k++) {
            npy_intp size;
            if (!read_index(ITEM(sizes, k), length + 1 - total, &size) || PyLong_AsSsize_t(ITEM(sizes, k)) < 0) break;
            total += size;
        }
        if (sizes && (total != length || !length)) Py_CLEAR(sizes);
        op = ITEM(self->others, 1);
    }
    PyObject *axis = sizes ? PyLong_FromSsize_t(dim) : NULL, *values[] = {x, sizes, axis};
    PyObject *made = axis ? tt_call_of(op, values, 3, NULL) : FALLBACK;
    Py_XDECREF(sizes);
    Py_XDECREF(axis);
    PyErr_Clear();
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

// x[key] for a tuple of ints, slices, None and at most one Ellipsis. The op is that of the last part which is not `:`;
// without ops, the array of the view.
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
        made = tt_view_of(of, kept, shape, strides, offset);
        if (ops) made = tt_result_of(ITEM(ops, which), values, 2, made);
    }
    Py_XDECREF(all);
    Py_XDECREF(given);
    return made;
}

// The arrays of a key of tensors of ints or booleans, and of `:`, for which None stands, as a tuple. NULL for other keys.
static PyObject *indices_of(PyObject *x, PyObject *key, bool copied) {
    bool in_tuple = PyTuple_CheckExact(key), usual = is_plain(key);
    for (Py_ssize_t i = in_tuple ? SIZE(key) : 0; !usual && i-- > 0;) usual = is_plain(ITEM(key, i));
    Py_ssize_t parts = !usual ? 0 : in_tuple ? SIZE(key) : 1, used = 0;
    while (parts && in_tuple && PySlice_Check(ITEM(key, parts - 1))) parts--;  // (`:` at the end: the twin sees to it)
    PyObject *indices = parts ? PyTuple_New(parts) : NULL;
    for (Py_ssize_t i = 0; indices && usual && i < (in_tuple ? SIZE(key) : 1); i++) {
        PyObject *part = in_tuple ? ITEM(key, i) : key, *array = NULL;
        if (PySlice_Check(part)) {
            Py_ssize_t start, step;
            npy_intp length;
            usual = used < PyArray_NDIM(ARRAY_OF(x)) &&
                    read_slice(part, PyArray_DIM(ARRAY_OF(x), used), &start, &step, &length, &usual) && usual;
            used++;
            if (i < parts) PyTuple_SetItem(indices, i, Py_NewRef(Py_None));
            continue;
        }
        usual = is_plain(part);
        if (!usual) break;
        array = SLOT(part, of_tensor.array);
        bool mask = PyArray_CheckExact(array) && PyArray_TYPE(ARRAY(array)) == NPY_BOOL;
        usual = PyArray_CheckExact(array) && PyArray_NDIM(ARRAY(array)) && (mask || kind_of(array) == I64);
        used += usual && mask ? PyArray_NDIM(ARRAY(array)) : 1;
        if (usual) PyTuple_SetItem(indices, i, copied ? PyArray_NewCopy(ARRAY(array), NPY_CORDER) : Py_NewRef(array));
    }
    if (indices && !usual) Py_CLEAR(indices);
    return indices;
}

// x[key] for an int, a slice, None, or a tuple of them; `others`: the ops "select", "slice" and "unsqueeze". Then for
// tensors, by the op that follows.
static PyObject *getitem(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, 2), *key = count == 2 ? args[1] : NULL, *given, *array;
    if (!x || !key) return FALLBACK;
    PyObject *state = is_plain(key) || PyTuple_CheckExact(key) ? tt_state() : NULL;
    PyObject *indices = !state ? NULL : indices_of(x, key, SLOT(state, of_state.grad) == Py_True && tt_may_need_grad(x));
    if (indices) {
        PyObject *values[] = {x, indices}, *made = tt_call_of(ITEM(self->others, 3), values, 2, NULL);
        Py_DECREF(indices);
        return made;
    }
    if (PyErr_Occurred()) PyErr_Clear();
    if (PyTuple_CheckExact(key)) return by_tuple(self->others, x, key);
    PyArrayObject *of = ARRAY_OF(x);
    int dims = PyArray_NDIM(of), which = 0;
    npy_intp shape[MAX_DIMS], strides[MAX_DIMS], index;
    if (PyLong_CheckExact(key) && dims) {
        if (!read_index(key, PyArray_DIM(of, 0), &index)) return FALLBACK;
        given = PyTuple_Pack(2, key, Py_Ellipsis);
        array = tt_view_of(of, dims - 1, PyArray_DIMS(of) + 1, PyArray_STRIDES(of) + 1, index * PyArray_STRIDE(of, 0));
    } else if (PySlice_Check(key) && dims) {
        Py_ssize_t start, step;
        bool full;
        memcpy(shape, PyArray_DIMS(of), sizeof(npy_intp) * (size_t)dims);
        if (!read_slice(key, shape[0], &start, &step, &shape[0], &full) || step != 1) return FALLBACK;
        given = PyTuple_Pack(1, key);
        array = tt_view_of(of, dims, shape, PyArray_STRIDES(of), start * PyArray_STRIDE(of, 0));
        which = 1;
    } else if (key == Py_None && dims < MAX_DIMS) {
        shape[0] = 1;
        strides[0] = 0;
        for (int d = 0; d < dims; d++) {
            shape[d + 1] = PyArray_DIM(of, d);
            strides[d + 1] = PyArray_STRIDE(of, d);
        }
        given = PyTuple_Pack(2, Py_None, Py_Ellipsis);
        array = tt_view_of(of, dims + 1, shape, strides, 0);
        which = 2;
    } else {
        return FALLBACK;
    }
    PyObject *values[] = {x, given};
    PyObject *made = given ? tt_result_of(ITEM(self->others, which), values, 2, array) : NULL;
    Py_XDECREF(given);
    return made;
}

// Write a number, or an array of the same dtype that broadcasts, into a view of an array; both are stolen.
static PyObject *assigned(PyObject *view, PyObject *given) {
    PyObject *done = FALLBACK;
    if (view && view != FALLBACK && given) {
        int dims = PyArray_NDIM(ARRAY(view)), own = PyArray_NDIM(ARRAY(given));
        bool fits = own <= dims;
        for (int d = 0; fits && d < own; d++) {
            npy_intp length = PyArray_DIM(ARRAY(given), d);
            fits = length == 1 || length == PyArray_DIM(ARRAY(view), dims - own + d);
        }
        if (fits && !PyArray_CopyInto(ARRAY(view), ARRAY(given))) done = Py_None;
    }
    if (view != FALLBACK) Py_XDECREF(view);
    Py_XDECREF(given);
    return done;
}

// x[key] = value of a contiguous tensor where nothing is recorded: a number, or a tensor of the same dtype. `others`: the
// kernel that writes by index.
static PyObject *setitem(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, 3), *state = x && count == 3 ? tt_state() : NULL;
    if (!state || SLOT(state, of_state.modes) != Py_None || SLOT(state, of_state.run) != Py_None) return FALLBACK;
    PyArrayObject *to = ARRAY_OF(x);
    PyObject *key = args[1], *value = args[2], *cell = SLOT(x, of_tensor.cell), *done = FALLBACK, *given = NULL;
    int kind = kind_of(SLOT(x, of_tensor.array)), dims = PyArray_NDIM(to);
    npy_intp index, itemsize = PyArray_ITEMSIZE(to);
    int64_t number;
    if (kind < 0 || !dims || !PyArray_ISCARRAY(to) || !PyList_Check(cell)) return FALLBACK;
    if (SLOT(state, of_state.grad) == Py_True && (tt_may_need_grad(x) || (is_plain(value) && tt_may_need_grad(value)))) {
        return FALLBACK;
    }
    if (is_plain(value)) {
        given = SLOT(value, of_tensor.array);
        if (kind_of(given) != kind || SLOT(value, of_tensor.cell) == cell) return FALLBACK;
        Py_INCREF(given);
    } else if (!tt_read_as(value, kind, &number)) {
        return FALLBACK;
    } else if (read_index(key, PyArray_DIM(to, 0), &index)) {
        npy_intp row = PyArray_SIZE(to) / PyArray_DIM(to, 0);
        char *place = PyArray_BYTES(to) + index * row * itemsize;
        for (npy_intp i = 0; i < row; i++) memcpy(place + i * itemsize, &number, (size_t)itemsize);
        return tt_count_write(cell) ? Py_NewRef(Py_None) : NULL;
    }
    PyObject *indices = indices_of(x, key, false);
    if (indices) {
        done = tt_call_twin(ITEM(self->others, 0), (PyObject *[]){(PyObject *)to, indices, given ? given : value, Py_False});
        Py_DECREF(indices);
        Py_XDECREF(given);
    } else {
        PyObject *parts = PyTuple_CheckExact(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
        PyObject *view = parts ? by_tuple(NULL, x, parts) : NULL;
        if (!given && (given = PyArray_SimpleNew(0, NULL, PyArray_TYPE(to)))) {
            memcpy(PyArray_DATA(ARRAY(given)), &number, (size_t)itemsize);
        }
        Py_XDECREF(parts);
        done = assigned(view, given);
    }
    if (PyErr_Occurred()) PyErr_Clear();
    return !done || done == FALLBACK ? FALLBACK : tt_count_write(cell) ? Py_NewRef(Py_None) : NULL;
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

// Tensors joined along a dimension, after those of few dimensions have got some; `others`: the op, the dimension, and the
// number of dimensions that all have by then, which the last op inserts: one in front of a vector, others behind.
static PyObject *join(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *tensors = count == 1 && !names ? args[0] : NULL, *dim = ITEM(self->others, 1), *all, *made = NULL;
    bool in_tuple = tensors && PyTuple_CheckExact(tensors);
    if (!in_tuple && !(tensors && PyList_CheckExact(tensors))) return FALLBACK;
    Py_ssize_t length = in_tuple ? SIZE(tensors) : PyList_Size(tensors);
    const long least = PyLong_AsLong(ITEM(self->others, 2));
    if (!no_function_modes() || !(all = PyList_New(length))) return FALLBACK;
    for (Py_ssize_t k = 0; k < length; k++) {
        PyObject *x = Py_NewRef(in_tuple ? ITEM(tensors, k) : PyList_GetItem(tensors, k)), *behind = NULL;
        if (!is_plain(x) || !PyArray_CheckExact(SLOT(x, of_tensor.array)) || !PyArray_NDIM(ARRAY_OF(x))) made = FALLBACK;
        for (int d = made ? least : PyArray_NDIM(ARRAY_OF(x)); !made && d < least; d++) {
            if (!behind) behind = PyLong_FromLong(-1);
            PyObject *values[] = {x, d == 1 ? tt_zero : behind}, *longer = tt_call_of(ITEM(self->others, 3), values, 2, NULL);
            if (!longer || longer == FALLBACK) {
                PyErr_Clear();
                made = FALLBACK;
            } else {
                Py_DECREF(x);
                x = longer;
            }
        }
        Py_XDECREF(behind);
        if (!made && !k && least == 1 && PyArray_NDIM(ARRAY_OF(x)) == 1) dim = tt_zero;  // (vectors have one only)
        PyList_SetItem(all, k, x);
    }
    PyObject *values[] = {all, dim};
    if (!made) made = tt_call_of(ITEM(self->others, 0), values, 2, NULL);
    Py_DECREF(all);
    return made;
}

// Whether the classes of arguments override nothing: tensors, numbers and None.
static bool are_usual(PyObject *const *args, Py_ssize_t count, PyObject *names) {
    for (Py_ssize_t i = count + (names ? SIZE(names) : 0); i-- > 0;) {
        PyObject *x = args[i];
        if (!is_plain(x) && !PyFloat_CheckExact(x) && !PyLong_CheckExact(x) && !PyBool_Check(x) && x != Py_None) return false;
    }
    return true;
}

// An op with arguments that follow by name alone; `others`: the op, and how many arguments may be given by place.
static PyObject *at_most(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    const long most = PyLong_AsLong(ITEM(self->others, 1));
    if (!count || count > most || !are_usual(args, count, names)) return FALLBACK;
    return tt_call_of(ITEM(self->others, 0), args, count, names);
}

// One of two ops, for a number or for a tensor as last argument; `others`: the ops, and whether the tensor is 0-d.
static PyObject *of_value(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    if (!count || names || !is_plain(args[0]) || !are_usual(args, count, NULL)) return FALLBACK;
    PyObject *value = args[count - 1];
    if (is_plain(value) && ITEM(self->others, 2) == Py_True && PyArray_NDIM(ARRAY_OF(value))) return FALLBACK;
    return tt_call_of(ITEM(self->others, is_plain(value)), args, count, NULL);
}

// x + y and x - y, and with `alpha` as factor of y, of tensors of one shape; `others`: the op, the op with a factor (None:
// x is written to, where nothing is recorded), and NumPy's functions for the product and the sum.
static PyObject *plus_scaled(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    static const char *const parameters[] = {"other", "alpha"};
    PyObject *given[2], *x = count ? self_of(args, 1, NULL, 1) : NULL, *op = ITEM(self->others, 1);
    if (!x || !bind_others(args, count, names, 2, parameters, given) || !given[0] || !are_usual(given, 1, NULL)) return FALLBACK;
    PyObject *y = given[0], *alpha = given[1], *values[] = {x, y, alpha};
    if (!alpha) return tt_call_of(ITEM(self->others, 0), values, 2, NULL);
    int64_t number;
    int kind = kind_of(SLOT(x, of_tensor.array));
    if (kind < 0 || !is_plain(y) || kind_of(SLOT(y, of_tensor.array)) != kind || !tt_read_as(alpha, kind, &number)) return FALLBACK;
    PyArrayObject *a = ARRAY_OF(x), *b = ARRAY_OF(y);
    if (!PyArray_ISCARRAY_RO(a) || !PyArray_ISCARRAY_RO(b) || !same_shape((PyObject *)a, (PyObject *)b)) return FALLBACK;
    const npy_intp size = PyArray_SIZE(a), step = PyArray_ITEMSIZE(b);
    PyObject *state = tt_state(), *cell = SLOT(x, of_tensor.cell);
    if (!size || size > 1 << 15 || !state || SLOT(state, of_state.modes) != Py_None) return FALLBACK;
    if (op == Py_None) {
        if (SLOT(state, of_state.run) != Py_None || !PyList_Check(cell) || !PyArray_ISWRITEABLE(a)) return FALLBACK;
        if (SLOT(state, of_state.grad) == Py_True && (tt_may_need_grad(x) || tt_may_need_grad(y))) return FALLBACK;
        if (x != y && cell == SLOT(y, of_tensor.cell)) return FALLBACK;  // (what overlaps may be an error)
    }
    PyObject *product = PyArray_NewLikeArray(a, NPY_CORDER, NULL, 0);
    if (!product) return NULL;
    char *to = PyArray_DATA(op == Py_None ? a : ARRAY(product));
    char *factors[] = {PyArray_DATA(b), (char *)&number, PyArray_DATA(ARRAY(product))};
    char *terms[] = {PyArray_DATA(a), PyArray_DATA(ARRAY(product)), to};
    const npy_intp steps[] = {step, 0, step}, same[] = {step, step, step};
    bool done = tt_run_loop(ITEM(self->others, 2), PyArray_TYPE(a), factors, size, steps) &&
                tt_run_loop(ITEM(self->others, 3), PyArray_TYPE(a), terms, size, same);
    if (done && op != Py_None) return tt_result_of(op, values, 3, product);
    Py_DECREF(product);
    return !done ? FALLBACK : tt_count_write(cell) ? Py_NewRef(x) : NULL;
}

// The indices of elements other than zero: (number of them, dimensions), those of each dimension side by side in memory.
static PyObject *nonzero(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    PyObject *x = self_of(args, count, names, 1), *state = x ? tt_state() : NULL;
    if (!state || SLOT(state, of_state.modes) != Py_None) return FALLBACK;
    PyArrayObject *of = ARRAY_OF(x);
    const int dims = PyArray_NDIM(of), kind = kind_of((PyObject *)of);
    const npy_intp size = PyArray_SIZE(of);
    if (!dims || size > 1 << 15 || !PyArray_ISCARRAY_RO(of) || (kind < 0 && PyArray_TYPE(of) != NPY_BOOL)) return FALLBACK;
    npy_intp *found = malloc(sizeof(npy_intp) * (size_t)(size + 1)), shape[] = {dims, 0};
    const void *data = PyArray_DATA(of);
    for (npy_intp i = 0; found && i < size; i++) {
        found[shape[1]] = i;
        shape[1] += kind == F32 ? ((const float *)data)[i] != 0 : kind == F64 ? ((const double *)data)[i] != 0
                  : kind == I64 ? ((const int64_t *)data)[i] != 0 : ((const npy_bool *)data)[i] != 0;
    }
    if (!shape[1]) {  // (whose strides NumPy chooses)
        free(found);
        return FALLBACK;
    }
    PyObject *array = found ? PyArray_SimpleNew(2, shape, NPY_INT64) : NULL, *turned = NULL;
    if (array) {
        int64_t *to = PyArray_DATA(ARRAY(array));
        npy_intp step = 1;
        for (int d = dims; d-- > 0; step *= PyArray_DIM(of, d)) {
            for (npy_intp k = 0; k < shape[1]; k++) to[d * shape[1] + k] = found[k] / step % PyArray_DIM(of, d);
        }
        const npy_intp lengths[] = {shape[1], dims}, steps[] = {8, 8 * shape[1]};
        turned = tt_view_of(ARRAY(array), 2, lengths, steps, 0);
        Py_DECREF(array);
    }
    free(found);
    return turned ? tt_new_tensor(turned, tt_new_cell(state)) : NULL;
}

// searchsorted(sequence, x), or bucketize(x, sequence); `others`: the kernel, and where the sequence is.
static PyObject *search(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    const long at = PyLong_AsLong(ITEM(self->others, 1));
    PyObject *state = tt_state(), *right = Py_False;
    if (count != 2 || !self_of(args, 1, NULL, 1) || !is_plain(args[1])) return FALLBACK;
    if (!state || SLOT(state, of_state.modes) != Py_None || (names && SIZE(names) > 1)) return FALLBACK;
    if (names) {
        if (PyUnicode_CompareWithASCIIString(ITEM(names, 0), "right") || !PyBool_Check(args[2])) return FALLBACK;
        right = args[2];
    }
    PyObject *sequence = SLOT(args[at], of_tensor.array), *values = SLOT(args[1 - at], of_tensor.array);
    if (!PyArray_CheckExact(values) || PyArray_NDIM(ARRAY(sequence)) != 1) return FALLBACK;
    PyObject *found = tt_call_twin(ITEM(self->others, 0), (PyObject *[]){sequence, values, right});
    return !found || found == FALLBACK ? found : tt_new_tensor(found, tt_new_cell(state));
}

// x.index_put(indices, values), and x.index_put_, where nothing is recorded; `others`: the op.
static PyObject *index_put(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, 3), *state = x && count == 3 ? tt_state() : NULL;
    if (!state || !is_plain(args[2])) return FALLBACK;
    if (SLOT(state, of_state.grad) == Py_True && (tt_may_need_grad(x) || tt_may_need_grad(args[2]))) return FALLBACK;
    PyObject *key = PyList_CheckExact(args[1]) ? PyList_AsTuple(args[1]) : PyTuple_CheckExact(args[1]) ? Py_NewRef(args[1]) : NULL;
    PyObject *indices = key ? indices_of(x, key, false) : NULL, *made = FALLBACK;
    bool of_tensors = indices != NULL;
    for (Py_ssize_t k = 0; of_tensors && k < SIZE(key); k++) of_tensors = is_plain(ITEM(key, k));
    PyObject *values[] = {x, indices, args[2], Py_False};
    if (of_tensors) made = tt_call_of(ITEM(self->others, 0), values, 4, NULL);
    Py_XDECREF(key);
    Py_XDECREF(indices);
    if (PyErr_Occurred()) PyErr_Clear();
    return made;
}

// The gradients of a linear layer, by products of matrices. -------------------------------------

// A tensor as the matrix of its rows, itself if it is one; NULL where it is left to Python.
static PyObject *as_rows(PyObject *x, PyObject *state) {
    PyArrayObject *array = ARRAY_OF(x);
    const int dims = PyArray_NDIM(array);
    if (dims == 2) return Py_NewRef(x);
    if (!dims || !PyArray_SIZE(array) || SLOT(state, of_state.grad) != Py_False) return NULL;
    npy_intp shape[] = {PyArray_SIZE(array) / PyArray_DIM(array, dims - 1), PyArray_DIM(array, dims - 1)};
    return tt_new_tensor(PyArray_Newshape(array, &(PyArray_Dims){shape, 2}, NPY_CORDER), tt_new_cell(state));
}

// With respect to the input, g W, or the weight, gᵀ x; `others`: the op of the product. Whether it is of the weight, whose
// result is a matrix.
static PyObject *linear_gradient(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names, bool of_weight) {
    PyObject *g = self_of(args, 1, NULL, 1), *x = count == 3 && !names ? args[1] : NULL, *state = tt_state();
    if (!g || !x || !state || !is_plain(x) || !PyArray_CheckExact(SLOT(x, of_tensor.array))) return FALLBACK;
    if (SLOT(state, of_state.modes) != Py_None || !PyTuple_CheckExact(args[2])) return FALLBACK;
    if ((of_weight ? SIZE(args[2]) : PyArray_NDIM(ARRAY_OF(x))) != 2) return FALLBACK;
    PyObject *values[] = {as_rows(g, state), of_weight ? as_rows(x, state) : Py_NewRef(x)}, *out = FALLBACK;
    if (values[0] && values[1]) out = tt_call_of(ITEM(self->others, 0), values, 2, NULL);
    const int dims = PyArray_NDIM(ARRAY_OF(g));
    if (out && out != FALLBACK && !of_weight && dims != 2) {
        npy_intp shape[MAX_DIMS];
        memcpy(shape, PyArray_DIMS(ARRAY_OF(g)), sizeof(npy_intp) * (size_t)dims);
        shape[dims - 1] = PyArray_DIM(ARRAY_OF(out), 1);
        PyObject *array = PyArray_Newshape(ARRAY_OF(out), &(PyArray_Dims){shape, dims}, NPY_CORDER);
        if (array) {
            set_slot(out, of_tensor.array, array);
        } else {
            Py_CLEAR(out);
        }
    }
    Py_XDECREF(values[0]);
    Py_XDECREF(values[1]);
    if (PyErr_Occurred()) PyErr_Clear();
    return out ? out : FALLBACK;
}

static PyObject *linear_x(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    return linear_gradient(self, args, count, names, false);
}

static PyObject *linear_weight(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    return linear_gradient(self, args, count, names, true);
}

// With respect to the bias: the sums of the columns; `others`: their op.
static PyObject *linear_bias(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *g = self_of(args, 1, NULL, 1);
    if (!g || count != 2 || names || !PyTuple_CheckExact(args[1]) || SIZE(args[1]) != 1) return FALLBACK;
    const int dims = PyArray_NDIM(ARRAY_OF(g));
    if (!dims || PyLong_AsSsize_t(ITEM(args[1], 0)) != PyArray_DIM(ARRAY_OF(g), dims - 1)) return FALLBACK;
    return dims == 1 ? Py_NewRef(g) : tt_call_of(ITEM(self->others, 0), args, 1, NULL);
}

// Modules ---------------------------------------------------------------------------------------

// A registered parameter, module or buffer of a module.
static PyObject *member(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    static PyObject *registries[3];
    static const char *const texts[] = {"_parameters", "_modules", "_buffers"};
    PyObject *members = count == 2 && !names ? PyObject_GenericGetDict(args[0], NULL) : NULL, *found = NULL;
    for (int i = 0; members && !found && i < 3; i++) {
        if (!registries[i] && !(registries[i] = PyUnicode_InternFromString(texts[i]))) break;
        PyObject *registry = PyDict_GetItemWithError(members, registries[i]);
        if (!registry || !PyDict_Check(registry)) break;
        found = Py_XNewRef(PyDict_GetItemWithError(registry, args[1]));
    }
    Py_XDECREF(members);
    if (!found) PyErr_Clear();
    return found ? found : FALLBACK;
}

// Whether hooks run around the calls of a module; `others`: the dicts of those of all modules.
static PyObject *has_hooks(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    enum { OWN = 4 };
    static PyObject *registries[OWN];
    static const char *const texts[OWN] = {"_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"};
    PyObject *members = count == 1 && !names ? PyObject_GenericGetDict(args[0], NULL) : NULL;
    bool known = members != NULL, any = false;
    for (int i = 0; known && i < OWN; i++) {
        known = registries[i] || (registries[i] = PyUnicode_InternFromString(texts[i]));
        PyObject *hooks = known ? PyDict_GetItemWithError(members, registries[i]) : NULL;
        known = hooks && PyDict_Check(hooks);
        any = any || (known && PyDict_Size(hooks));
    }
    for (Py_ssize_t i = 0; i < SIZE(self->others); i++) any = any || PyDict_Size(ITEM(self->others, i));
    Py_XDECREF(members);
    if (!known) PyErr_Clear();
    return known ? PyBool_FromLong(any) : FALLBACK;
}

// Optimizers ------------------------------------------------------------------------------------

enum { MAX_TOGETHER = 512 };  // parameters that are compared with each other

// Whether a parameter has not come before, and is of the same dtype as the first, as is its gradient; then both arrays are
// put into the lists.
static bool gather_parameter(PyObject *params, Py_ssize_t k, PyObject *arrays, PyObject *slopes) {
    PyObject *p = PyList_GetItem(params, k), *g = is_plain(p) ? SLOT(p, of_tensor.grad) : Py_None;
    if (g == Py_None || !is_plain(g)) return false;
    PyObject *array = SLOT(p, of_tensor.array), *slope = SLOT(g, of_tensor.array);
    const int kind = kind_of(array);
    if ((kind != F32 && kind != F64) || kind_of(slope) != kind) return false;
    if (k && kind_of(PyList_GetItem(arrays, 0)) != kind) return false;
    for (Py_ssize_t i = 0; i < k; i++) {
        if (PyList_GetItem(params, i) == p) return false;
    }
    PyList_SetItem(arrays, k, Py_NewRef(array));
    PyList_SetItem(slopes, k, Py_NewRef(slope));
    return true;
}

// Put the arrays of a parameter's state into lists by name; false if it has not the names of the first's.
static bool gather_state(PyObject *first, PyObject *state, PyObject *lists) {
    PyObject *name, *own;
    Py_ssize_t place = 0;
    if (!state || !PyDict_CheckExact(state) || PyDict_Size(state) != PyDict_Size(first)) return false;
    while (PyDict_Next(state, &place, &name, &own)) {
        if (!is_plain(own) || !PyArray_CheckExact(SLOT(own, of_tensor.array))) return false;
        PyObject *list = PyDict_GetItemWithError(lists, name);
        if (!list && state == first && (list = PyList_New(0))) {
            const int failed = PyDict_SetItem(lists, name, list);
            Py_DECREF(list);
            if (failed) return false;
        }
        if (!list || PyList_Append(list, SLOT(own, of_tensor.array))) return false;
    }
    return true;
}

// Take a list of equal scalars out of the lists, and put a copy in its place; false if they differ.
static bool gather_count(PyObject *lists, PyObject *name, PyObject **list) {
    *list = Py_XNewRef(PyDict_GetItemWithError(lists, name));
    if (!*list) return !PyErr_Occurred();
    PyObject *first = PyList_GetItem(*list, 0);
    for (Py_ssize_t k = 0; k < PyList_Size(*list); k++) {
        PyObject *array = PyList_GetItem(*list, k);
        if (kind_of(array) != F32 || PyArray_NDIM(ARRAY(array)) || !PyArray_ISCARRAY(ARRAY(array))) return false;
        if (*(float *)PyArray_DATA(ARRAY(array)) != *(float *)PyArray_DATA(ARRAY(first))) return false;
    }
    PyObject *copy = PyArray_NewCopy(ARRAY(first), NPY_CORDER);
    const bool done = copy && !PyDict_SetItem(lists, name, copy);
    Py_XDECREF(copy);
    return done;
}

// optimizer._update_together(parameters, group) of parameters that agree.
static PyObject *update_together(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    (void)self;
    enum { MAX_COUNTS = 4 };
    static PyObject *state_name, *counts_name, *new_name, *update_name, *arrays_name;
    if (count != 3 || names || !PyList_CheckExact(args[1]) || !no_function_modes()) return FALLBACK;
    PyObject *params = args[1], *result = FALLBACK, *update = NULL, *kernel = NULL, *counted[MAX_COUNTS] = {NULL};
    const Py_ssize_t number = PyList_Size(params);
    if (!number || number > MAX_TOGETHER) return FALLBACK;
    PyObject *states = attribute_of(args[0], &state_name, "state");
    PyObject *counts = states ? attribute_of(args[0], &counts_name, "_counts") : NULL;
    PyObject *arrays = PyList_New(number), *slopes = PyList_New(number), *lists = PyDict_New();
    bool done = counts && arrays && slopes && lists && PyDict_Check(states) && PyTuple_CheckExact(counts) &&
                SIZE(counts) <= MAX_COUNTS;
    const bool any = done && PyDict_Size(states);
    for (Py_ssize_t k = 0; done && k < number; k++) done = gather_parameter(params, k, arrays, slopes);
    PyObject *first = any && done ? PyDict_GetItemWithError(states, PyList_GetItem(params, 0)) : NULL;
    for (Py_ssize_t k = 0; any && done && k < number; k++) {
        PyObject *own = k ? PyDict_GetItemWithError(states, PyList_GetItem(params, k)) : first;
        done = first && gather_state(first, own, lists);
    }
    if (done && !PyDict_Size(lists)) {  // (a state may begin with this step)
        PyObject *begin = attribute_of(args[0], &new_name, "_new_state");
        PyObject *made = begin ? PyObject_CallFunctionObjArgs(begin, PyList_GetItem(params, 0), args[2], NULL) : NULL;
        done = made && PyDict_Check(made) && !PyDict_Size(made);
        Py_XDECREF(begin);
        Py_XDECREF(made);
    }
    for (Py_ssize_t i = 0; done && i < SIZE(counts); i++) done = gather_count(lists, ITEM(counts, i), &counted[i]);
    if (done && (update = attribute_of(args[0], &update_name, "_update"))) {
        kernel = attribute_of(update, &arrays_name, "on_arrays");
    }
    PyObject *called = kernel ? PyObject_CallFunctionObjArgs(kernel, arrays, slopes, lists, args[2], NULL) : NULL;
    if (called) {
        for (Py_ssize_t i = 0; i < SIZE(counts); i++) {
            const float value = counted[i] ? *(float *)PyArray_DATA(ARRAY(PyDict_GetItem(lists, ITEM(counts, i)))) : 0;
            for (Py_ssize_t k = 0; counted[i] && k < number; k++) {
                *(float *)PyArray_DATA(ARRAY(PyList_GetItem(counted[i], k))) = value;
            }
        }
        bool written = true;
        for (Py_ssize_t k = 0; k < number; k++) {
            PyObject *cell = SLOT(PyList_GetItem(params, k), of_tensor.cell);
            written = written && (!PyList_Check(cell) || tt_count_write(cell));
        }
        result = written ? PyList_New(0) : NULL;
    } else if (kernel && !PyErr_ExceptionMatches(PyExc_KeyError)) {  // (a KeyError: a buffer begins with this step)
        result = NULL;
    }
    if (result == FALLBACK) PyErr_Clear();
    for (int i = 0; i < MAX_COUNTS; i++) Py_XDECREF(counted[i]);
    Py_XDECREF(called);
    Py_XDECREF(kernel);
    Py_XDECREF(update);
    Py_XDECREF(lists);
    Py_XDECREF(slopes);
    Py_XDECREF(arrays);
    Py_XDECREF(counts);
    Py_XDECREF(states);
    return result;
}

// An activation function of an input and `inplace`, if that is False; `others`: the op.
static PyObject *activation(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    bool named = names && SIZE(names) == 1 && !PyUnicode_CompareWithASCIIString(ITEM(names, 0), "inplace");
    if (names ? !named || count != 1 : count != 2) return FALLBACK;
    return args[1] == Py_False ? tt_call_of(ITEM(self->others, 0), args, 1, NULL) : FALLBACK;
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

// One of two ops, by whether the call has a dimension; `others`: the op of all dimensions, and that of one, an int,
// which may be followed by bools.
static PyObject *of_dim(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = count ? self_of(args, 1, NULL, 1) : NULL, *given[MAX_PARAMETERS];
    Py_ssize_t all = count + (names ? SIZE(names) : 0);
    npy_intp dim;
    if (!x || all > MAX_PARAMETERS) return FALLBACK;
    if (all == 1) return tt_call_of(ITEM(self->others, 0), args, 1, NULL);
    if (!read_index(args[1], PyArray_NDIM(ARRAY_OF(x)), &dim)) return FALLBACK;
    if (count == 1 && PyUnicode_CompareWithASCIIString(ITEM(names, 0), "dim")) return FALLBACK;
    for (Py_ssize_t i = 0; i < all; i++) {
        if (i > 1 && !PyBool_Check(args[i])) return FALLBACK;
        given[i] = args[i];
    }
    PyObject *number = given[1] = PyLong_FromSsize_t(dim);
    PyObject *result = number ? tt_call_of(ITEM(self->others, 1), given, count, names) : NULL;
    Py_XDECREF(number);
    return result;
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

// Sequences -------------------------------------------------------------------------------------

// The kind of a number of Python's: int64, or a dtype of floats (F32 stands for the default one); -1 for others.
static int kind_of_number(PyObject *number) {
    return PyFloat_CheckExact(number) ? F32 : PyLong_CheckExact(number) ? I64 : -1;
}

// Read the ends of a sequence: ints of 32 bits, or floats that the dtype holds; false for other numbers.
static bool read_ends(PyObject *const *args, int count, int kind, double *ends) {
    for (int i = 0; i < count; i++) {
        int own = kind_of_number(args[i]);
        if (own < 0 || (own != I64 && kind == I64) || !tt_read_double(args[i], &ends[i])) return false;
        if (!(fabs(ends[i]) < (own == I64 ? 0x1p31 : kind == F32 ? 3e38 : 1e300))) return false;
    }
    return true;
}

// arange(end), arange(start, end, step): floats are rounded as `_progression` of ops/sequences.py says.
static PyObject *arange(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Options options;
    PyObject *given[] = {tt_zero, NULL, tt_one};
    int kind = I64;
    if (count < 1 || count > 3) return FALLBACK;
    for (Py_ssize_t i = 0; i < count; i++) {
        given[count == 1 ? 1 : i] = args[i];
        if (kind_of_number(args[i]) != I64) kind = -1;
    }
    double ends[3];
    if (!read_options(self, args + count, names, kind, &options) || !read_ends(given, 3, options.kind, ends)) return FALLBACK;
    const double start = ends[0], step = ends[2], length = ceil((ends[1] - start) / step);
    if (!(length >= 0 && length < 0x1p40 && step && (ends[1] - start) * step >= 0)) return FALLBACK;
    const npy_intp size = (npy_intp)length, lanes = options.kind == F32 ? 8 : 4, vectors = size / (2 * lanes) * 2 * lanes;
    PyObject *out = new_filled(options, 1, &size, NULL);
    if (!out || out == FALLBACK) return out;
    void *data = PyArray_DATA(ARRAY_OF(out));
    for (npy_intp i = 0; i < size; i++) {
        const npy_intp lane = i < vectors ? i % lanes : 0;
        if (options.kind == I64) {
            ((int64_t *)data)[i] = (int64_t)start + i * (int64_t)step;
        } else if (options.kind == F32) {
            const float first = (float)fma((double)(i - lane), step, start);
            ((float *)data)[i] = i < vectors ? (float)fma((double)lane, step, first) : first;
        } else {
            const double first = fma((double)(i - lane), step, start);
            ((double *)data)[i] = i < vectors ? fma((double)lane, step, first) : first;
        }
    }
    return out;
}

// linspace(start, end, steps) and logspace(start, end, steps, base=10), whose exponents it computes; see `_steps` of
// ops/sequences.py. `others`: as of a creation function, with NumPy's power in place of the number.
static PyObject *linspace(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Options options;
    PyObject *power = ITEM(self->others, FILLING);
    double ends[2], base = 10;
    if (count < 3 || count > 3 + (power != Py_None) || !PyLong_CheckExact(args[2])) return FALLBACK;
    if (!read_options(self, args + count, names, -1, &options) || (options.kind == I64 && power != Py_None)) return FALLBACK;
    npy_intp size;
    if (!read_ends(args, 2, options.kind, ends) || read_lengths(args + 2, 1, &size) < 0 || size < 2) return FALLBACK;
    if (count > 3 && (kind_of_number(args[3]) < 0 || !tt_read_double(args[3], &base))) return FALLBACK;
    PyObject *out = new_filled(options, 1, &size, NULL);
    double *numbers = out && out != FALLBACK ? malloc(sizeof(double) * (size_t)size) : NULL;
    if (!numbers) return out == FALLBACK ? FALLBACK : (Py_XDECREF(out), NULL);
    const float first = (float)ends[0], last = (float)ends[1], step = (last - first) / (float)(size - 1);
    const double wide_step = (ends[1] - ends[0]) / (double)(size - 1);
    for (npy_intp i = 0; i < size; i++) {  // the first half from the start, the second from the end, where -0.0 stays
        const bool from_start = i < size / 2;
        const double distance = from_start ? (double)i : i == size - 1 ? -0.0 : (double)(i - (size - 1));
        numbers[i] = options.kind == F32 ? fmaf((float)distance, step, from_start ? first : last)
                                         : fma(distance, wide_step, ends[from_start ? 0 : 1]);
    }
    const npy_intp steps[] = {0, sizeof(double), sizeof(double)};
    if (power != Py_None && !tt_run_loop(power, NPY_DOUBLE, (char *[]){(char *)&base, (char *)numbers, (char *)numbers},
                                         size, steps)) {
        Py_DECREF(out);
        out = FALLBACK;
    }
    void *data = out == FALLBACK ? NULL : PyArray_DATA(ARRAY_OF(out));
    for (npy_intp i = 0; data && i < size; i++) {
        if (options.kind == F32) ((float *)data)[i] = (float)numbers[i];
        else if (options.kind == F64) ((double *)data)[i] = numbers[i];
        else ((int64_t *)data)[i] = (int64_t)numbers[i];
    }
    free(numbers);
    return out;
}

// eye(n, m=n)
static PyObject *eye(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Options options;
    npy_intp shape[MAX_DIMS];
    if (count < 1 || count > 2 || !PyLong_CheckExact(args[0]) || read_lengths(args, count, shape) < 0) return FALLBACK;
    if (count == 1) shape[1] = shape[0];
    if (shape[0] > 1 << 20 || shape[1] > 1 << 20 || !read_options(self, args + count, names, -1, &options)) return FALLBACK;
    PyObject *out = new_filled(options, 2, shape, tt_zero);
    int64_t one;
    if (!out || out == FALLBACK || !tt_read_as(tt_one, options.kind, &one)) return out;
    const npy_intp itemsize = PyArray_ITEMSIZE(ARRAY_OF(out)), least = shape[0] < shape[1] ? shape[0] : shape[1];
    for (npy_intp i = 0; i < least; i++) {
        memcpy(PyArray_BYTES(ARRAY_OF(out)) + i * (shape[1] + 1) * itemsize, &one, (size_t)itemsize);
    }
    return out;
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

// bernoulli(x); `others`: as of a random function, with the op in place of its numbers.
static PyObject *bernoulli(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = self_of(args, count, names, 1), *state = x ? tt_state() : NULL;
    int kind = x ? kind_of(SLOT(x, of_tensor.array)) : -1;
    if (!state || SLOT(state, of_state.modes) != Py_None || (kind != F32 && kind != F64)) return FALLBACK;
    static PyObject *source_name;
    PyObject *source = attribute_of(ITEM(self->others, GENERATOR), &source_name, "_source");
    PyObject *out = source ? PyArray_NewLikeArray(ARRAY_OF(x), NPY_CORDER, NULL, 0) : NULL;
    PyObject *made = FALLBACK, *values[] = {x, x, source};
    if (out && draw(self, out, SLOT(x, of_tensor.array), NULL)) {
        made = tt_result_of(ITEM(self->others, FIRST_NUMBER), values, 3, Py_NewRef(out));
    }
    Py_XDECREF(source);
    Py_XDECREF(out);
    return made;
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

// Whether the only keyword, if there is any, is this one with None.
static bool is_without(PyObject *const *values, PyObject *names, const char *name) {
    return !names || (SIZE(names) == 1 && values[0] == Py_None && !PyUnicode_CompareWithASCIIString(ITEM(names, 0), name));
}

// x.uniform_(from, to), x.normal_(mean, std) where nothing is recorded
static PyObject *refill(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *x = count <= 3 && is_without(args + count, names, "generator") ? self_of(args, count, NULL, 3) : NULL;
    PyObject *state = x ? tt_state() : NULL;
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
    PyObject *state = tt_state(), *array = count == 1 && !names ? args[0] : NULL;
    if (!array || !state || SLOT(state, of_state.modes) != Py_None || !no_function_modes()) return FALLBACK;
    if (kind_of(array) < 0 && !(PyArray_CheckExact(array) && PyArray_TYPE(ARRAY(array)) == NPY_UBYTE)) return FALLBACK;
    if (!PyArray_ISWRITEABLE(ARRAY(array)) || !PyArray_IS_C_CONTIGUOUS(ARRAY(array))) return FALLBACK;
    if (!read_options(self, args, NULL, -1, &options)) return FALLBACK;  // (the default device)
    return tt_new_tensor(Py_NewRef(array), tt_new_cell(state));
}

static PyObject *as_tensor(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    return (count == 1 && is_nested(args[0]) ? tensor : from_numpy)(self, args, count, names);
}

static const struct {
    const char *name;
    Run run;
} methods[] = {
    {"shape", shape},   {"size", size},     {"dim", dim},       {"numel", numel},       {"dtype", dtype},
    {"requires_grad", requires_grad},       {"grad", grad},     {"detach", detach},     {"view", view},
    {"getitem", getitem},                   {"backward", tt_backward},                  {"create", create},
    {"linear_x", linear_x},                 {"linear_weight", linear_weight},           {"linear_bias", linear_bias},
    {"member", member}, {"has_hooks", has_hooks},               {"activation", activation},
    {"set_grad", set_grad},                 {"update_together", update_together},
    {"device", device}, {"item", item},     {"contiguous", contiguous},                 {"to", to},    {"convert", convert},
    {"setitem", setitem},                   {"tensor", tensor}, {"from_numpy", from_numpy},                 {"as_tensor", as_tensor},
    {"random_of_size", random_of_size},     {"random_like", random_like},               {"refill", refill},
    {"random_integers", random_integers},   {"random_order", random_order},             {"random_normals", random_normals},
    {"arange", arange}, {"linspace", linspace},                 {"eye", eye},       {"bernoulli", bernoulli},
    {"flatten", flatten},                   {"of_ints", of_ints},                       {"split", split},   {"join", join},
    {"at_most", at_most},                   {"of_value", of_value},     {"plus_scaled", plus_scaled},
    {"nonzero", nonzero},                   {"search", search},         {"index_put", index_put},
    {"matmul", matmul}, {"of_floats", of_floats},           {"of_dim", of_dim},
    {"full", full},     {"create_like", create_like},           {"create_new", create_new},     {NULL, NULL},
};

Run tt_method(const char *name) {
    for (int k = 0; methods[k].name; k++) {
        if (!strcmp(methods[k].name, name)) return methods[k].run;
    }
    return NULL;
}
