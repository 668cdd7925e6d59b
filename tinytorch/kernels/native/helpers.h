// What kernel families are written with: the declaration of kernels, their array arguments, integer arithmetic.
#ifndef TINYTORCH_HELPERS_H
#define TINYTORCH_HELPERS_H

#include "vectors.h"

// Integers --------------------------------------------------------------------------------------

static inline int64_t imin(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t imax(int64_t x, int64_t y) { return x > y ? x : y; }
static inline int64_t ceil_div(int64_t x, int64_t y) { return (x + y - 1) / y; }
static inline int64_t floor_div(int64_t x, int64_t y) { return x >= 0 ? x / y : -((-x + y - 1) / y); }

// Memory ----------------------------------------------------------------------------------------

// Scratch space is rounded up to whole cache lines.
enum { CACHE_LINE = 16 };  // floats

// Allocate floats on a cache line; freed by `free`.
static inline float *alloc_floats(size_t count) {
    void *memory;
    return posix_memalign(&memory, 64, sizeof(float) * count + 64) ? NULL : memory;
}

static inline int64_t round_to_lines(int64_t floats) { return ceil_div(floats, CACHE_LINE) * CACHE_LINE; }

// What is called for small arrays is compiled for size.
#define COMPACT __attribute__((cold, unused))

// Arguments -------------------------------------------------------------------------------------

// A contiguous float32 array; if `writable`, one that may be written to.
static inline bool is_float_array(PyObject *x, bool writable) {
    return tt_is_float32(x) && tt_is_contiguous(x) && (!writable || PyArray_ISWRITEABLE(ARRAY(x)));
}

// A contiguous array of numbers or booleans of NumPy's.
static inline bool holds_numbers(PyObject *x, bool writable) {
    if (!PyArray_CheckExact(x) || !(writable ? PyArray_ISCARRAY(ARRAY(x)) : PyArray_ISCARRAY_RO(ARRAY(x)))) return false;
    return PyTypeNum_ISNUMBER(PyArray_TYPE(ARRAY(x))) || PyTypeNum_ISBOOL(PyArray_TYPE(ARRAY(x)));
}

// A contiguous array of int64.
static inline bool is_index_array(PyObject *x) {
    return PyArray_CheckExact(x) && PyArray_TYPE(ARRAY(x)) == NPY_INT64 && PyArray_ISCARRAY_RO(ARRAY(x));
}

static inline float *float_data(PyObject *x) { return PyArray_DATA(ARRAY(x)); }

// True if two contiguous arrays share no memory.
static inline bool disjoint(PyObject *x, PyObject *y) {
    const char *a = PyArray_DATA(ARRAY(x)), *b = PyArray_DATA(ARRAY(y));
    return a + PyArray_NBYTES(ARRAY(x)) <= b || b + PyArray_NBYTES(ARRAY(y)) <= a;
}

// Read the data of a contiguous float32 array of `size` elements. None is NULL, if the argument is `optional`. False
// for anything else.
static inline bool read_floats(PyObject *object, int64_t size, bool optional, float **data) {
    *data = NULL;
    if (object == Py_None) return optional;
    if (!is_float_array(object, false) || PyArray_SIZE(ARRAY(object)) != size) return false;
    *data = float_data(object);
    return true;
}

// Read an int; -1 for anything else.
static inline Py_ssize_t read_int(PyObject *object) {
    Py_ssize_t value = PyLong_Check(object) ? PyLong_AsSsize_t(object) : -1;
    if (value == -1 && PyErr_Occurred()) PyErr_Clear();
    return value;
}

// Read a dimension, and count a negative one from the end; -1 for anything else.
static inline int read_dim(PyObject *object, int dims) {
    if (!PyLong_CheckExact(object)) return -1;
    long dim = PyLong_AsLong(object);
    if (dim == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return -1;
    }
    if (dim < 0) dim += dims;
    return dim >= 0 && dim < dims ? (int)dim : -1;
}

// A reduction of a contiguous array that is not empty, over one dimension or all: the array as (before, count, after),
// and the shape of the result.
typedef struct {
    int64_t before, count, after;
    int dims;
    npy_intp shape[NPY_MAXDIMS];
} Reduction;

// Each row of the array, of `count` elements that are `after` elements apart; where it begins.
#define EACH_ROW(r, row) for (int64_t row = 0; row < (r).before * (r).after; row++)
#define ROW(r, x, row) (x) + (row) / (r).after * (r).count * (r).after + (row) % (r).after

// Read the dimension, an int, or None, or a tuple of one of them, none, or all in order. False for anything else.
COMPACT static bool read_reduction(PyObject *object, PyObject *dim, PyObject *keepdim, Reduction *r) {
    PyArrayObject *x = ARRAY(object);
    if (!PyArray_CheckExact(object) || !PyArray_ISCARRAY_RO(x) || !PyArray_SIZE(x)) return false;
    const int dims = PyArray_NDIM(x), kept = PyObject_IsTrue(keepdim) == 1;
    bool all = dim == Py_None;
    if (PyTuple_CheckExact(dim)) {
        const Py_ssize_t given = PyTuple_Size(dim);
        all = !given || given == dims;
        for (int d = 0; all && d < given; d++) all = read_dim(PyTuple_GetItem(dim, d), dims) == d;
        if (!all && given != 1) return false;
        if (!all) dim = PyTuple_GetItem(dim, 0);
    }
    const int at = all ? 0 : read_dim(dim, dims);
    if (at < 0) return false;
    *r = (Reduction){.before = 1, .count = all ? PyArray_SIZE(x) : PyArray_DIM(x, at), .after = 1};
    for (int d = 0; d < dims; d++) {
        const npy_intp length = PyArray_DIM(x, d);
        if (!all && d != at) *(d < at ? &r->before : &r->after) *= length;
        if (kept || !(all || d == at)) r->shape[r->dims++] = all || d == at ? 1 : length;
    }
    return true;
}

// A new array of the shape of a reduction.
static inline PyObject *new_reduced(const Reduction *r, int type) {
    return PyArray_SimpleNew(r->dims, (npy_intp *)r->shape, type);
}

static inline bool is_string(PyObject *object, const char *string) {
    return PyUnicode_Check(object) && !PyUnicode_CompareWithASCIIString(object, string);
}

// Results ---------------------------------------------------------------------------------------

// An uninitialised contiguous array of the shape and dtype of `like`.
static inline PyObject *new_like(PyObject *like) { return PyArray_NewLikeArray(ARRAY(like), NPY_CORDER, NULL, 0); }

// A tuple of new arrays, which takes over their references; NULL if one of them is NULL, since its allocation failed.
static inline PyObject *new_tuple(int count, PyObject *const *arrays) {
    bool complete = true;
    for (int i = 0; i < count; i++) complete = complete && arrays[i];
    PyObject *tuple = complete ? PyTuple_New(count) : NULL;
    for (int i = 0; i < count; i++) {
        if (tuple) {
            PyTuple_SetItem(tuple, i, arrays[i]);
        } else {
            Py_XDECREF(arrays[i]);
        }
    }
    return tuple;
}

// Kernels ---------------------------------------------------------------------------------------

typedef PyObject *Argument;

// Begin a kernel, with the names of its parameters in the order of the Python definition: `args->x` is argument `x`.
#define KERNEL(name, ...) KERNEL_AS(, name, __VA_ARGS__)
// One for small arrays, compiled for size.
#define SMALL_KERNEL(name, ...) KERNEL_AS(COMPACT, name, __VA_ARGS__)
#define KERNEL_AS(how, name, ...)                                                                                      \
    typedef struct {                                                                                                   \
        Argument __VA_ARGS__;                                                                                          \
    } name##_arguments;                                                                                                \
    how static PyObject *name##_kernel(const name##_arguments *args);                                                  \
    static PyObject *name##_call(PyObject *const *args) { return name##_kernel((const name##_arguments *)args); }      \
    static const char name##_parameters[] = #__VA_ARGS__;                                                              \
    static PyObject *name##_kernel(const name##_arguments *args)

// Define a pointwise kernel of arrays of one shape, `inputs`, and of numbers: both are names in parentheses, at most
// three. `expression` computes a vector of the result from vectors of the inputs and from the numbers. The kernel takes
// `out=`.
#define POINTWISE(name, inputs, numbers, expression)                                                                   \
    POINTWISE_BLOCK(name, inputs, numbers, expression)                                                                 \
    static const char name##_parameters[] = TEXT inputs ", " TEXT numbers ", out";                                     \
    static PyObject *name##_call(PyObject *const *args) {                                                              \
        return tt_pointwise(args, COUNT inputs, COUNT numbers, args[COUNT inputs + COUNT numbers], name##_block);      \
    }

// The loop of a pointwise kernel alone, `name##_block`.
#define POINTWISE_BLOCK(name, inputs, numbers, expression)                                                             \
    static void name##_block(const float *const *all_inputs, const double *all_numbers, float *result,                  \
                             Py_ssize_t length) {                                                                      \
        (void)all_numbers;                                                                                             \
        DECLARE(COUNT numbers, double, NUMBER, UNPACK numbers)                                                          \
        Py_ssize_t at = 0;                                                                                             \
        for (; at + WIDTH <= length; at += WIDTH) {                                                                    \
            DECLARE(COUNT inputs, vec, WHOLE_VECTOR, UNPACK inputs)                                                    \
            store(result + at, expression);                                                                            \
        }                                                                                                              \
        if (at < length) {                                                                                             \
            DECLARE(COUNT inputs, vec, PARTIAL_VECTOR, UNPACK inputs)                                                  \
            store_partial(result + at, expression, length - at);                                                       \
        }                                                                                                              \
    }

#define NUMBER(k) all_numbers[k]
#define WHOLE_VECTOR(k) load(all_inputs[k] + at)
#define PARTIAL_VECTOR(k) load_partial(all_inputs[k] + at, length - at)

#define UNPACK(...) __VA_ARGS__
#define TEXT(...) #__VA_ARGS__
#define COUNT(...) FOURTH_AFTER(0, ##__VA_ARGS__, 3, 2, 1, 0)
#define FOURTH_AFTER(first, a, b, c, fourth, ...) fourth
#define DECLARE(count, ...) DECLARE_COUNTED(count, __VA_ARGS__)
#define DECLARE_COUNTED(count, ...) DECLARE_##count(__VA_ARGS__)
#define DECLARE_0(...)
#define DECLARE_1(type, value, x) type x = value(0);
#define DECLARE_2(type, value, x, y) type x = value(0), y = value(1);
#define DECLARE_3(type, value, x, y, z) type x = value(0), y = value(1), z = value(2);

// The table of a family's kernels, which families.h collects: FAMILY(norm, ENTRY(batch_norm), ...);
#define ENTRY(name) {#name, name##_parameters, name##_call}
#define ENTRY_WITH_NUMPY(name) {#name, name##_parameters, name##_call, true}
#define FAMILY(name, ...) static const Kernel name##_kernels[] __attribute__((unused)) = {__VA_ARGS__, {0}}

#endif
