// What every C file of the library shares with the others: the signature of a kernel, threads (threads.c) and NumPy
// arrays (module.c). Nothing here depends on an instruction set.
#ifndef TINYTORCH_NATIVE_H
#define TINYTORCH_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tinytorch_native_numpy
#ifndef TINYTORCH_MODULE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// A product and a sum in one expression are contracted (to FMA), so that copies of an expression, in tiles of different
// sizes for example, round alike. Clang's `-ffp-contract=fast` leaves that to the instruction selection, which sees one
// basic block: in one tile it contracts, in another it does not, and the last digit depends on how the work is cut. GCC,
// which does not know the pragma, contracts by default.
#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#endif

// A kernel gets one argument for each of its parameters: keywords have been bound and defaults filled in. It returns a
// new reference, NULL after an error, or FALLBACK (a borrowed reference) for arguments that it leaves to the definition
// in NumPy.
typedef PyObject *(*Call)(PyObject *const *args);
#define FALLBACK Py_NotImplemented

typedef struct {
    const char *name;
    const char *parameters;  // their names, separated by commas, in the order of the Python definition
    Call call;
    bool calls_numpy;  // whether it calls functions of NumPy that look for floating-point errors
} Kernel;

enum { MAX_PARAMETERS = 16 };

// Multiplications of a matrix product below which `product` and `linear` leave the product to BLAS. Python reads it:
// the compiler calls BLAS directly for such products (kernels/products.py).
enum { MIN_PRODUCT = 1 << 15 };

// Whether BLAS computes NumPy's products of matrices: it is faster than short vectors. In a browser NumPy has none.
#ifdef __wasm__
enum { HAS_BLAS = 0 };
#else
enum { HAS_BLAS = 1 };
#endif

// Threads (threads.c) ------------------------------------------------------------------------------

// Run part `part` of a parallel loop. `worker` is below the number of threads; no two parts that run at the same time
// have the same worker, so scratch space is indexed by it.
typedef void (*Work)(void *context, Py_ssize_t part, int worker);

int tt_threads(void);
void tt_set_threads(int count);

// Run parts 0 to `parts` - 1 on at most `threads` threads, and wait for all of them. Results must not depend on the
// number of threads, so no sum may be cut differently for another number. `elements` estimates the amount of work:
// small work runs on the calling thread, without releasing the GIL.
void tt_parallel_for(Work work, void *context, Py_ssize_t parts, int64_t elements, int threads);
// The same, to be called inside a parallel loop, where the GIL has been released already.
void tt_parallel_for_unlocked(Work work, void *context, Py_ssize_t parts, int64_t elements, int threads);

// Arrays (module.c) -----------------------------------------------------------------------------

#define ARRAY(object) ((PyArrayObject *)(object))

static inline bool same_shape(PyObject *x, PyObject *y) {
    return PyArray_NDIM(ARRAY(x)) == PyArray_NDIM(ARRAY(y)) &&
           PyArray_CompareLists(PyArray_DIMS(ARRAY(x)), PyArray_DIMS(ARRAY(y)), PyArray_NDIM(ARRAY(x)));
}

// True for an aligned float32 array in native byte order (not of a subclass of ndarray).
bool tt_is_float32(PyObject *object);
bool tt_is_contiguous(PyObject *object);
// Read a tuple of `count` ints; false for anything else.
bool tt_read_sizes(PyObject *tuple, Py_ssize_t count, int64_t *sizes);
// Read a Python float or int; false for anything else.
bool tt_read_double(PyObject *object, double *number);
bool tt_read_number(PyObject *object, float *number);
// A text as an interned string, which `name` keeps; NULL after an error. The attribute of an object of that name.
static inline PyObject *interned(PyObject **name, const char *text) {
    return *name ? *name : (*name = PyUnicode_InternFromString(text));
}
static inline PyObject *attribute_of(PyObject *object, PyObject **name, const char *text) {
    return interned(name, text) ? PyObject_GetAttr(object, *name) : NULL;
}
// An uninitialised array of the dtype of `like`.
PyObject *tt_new_array(PyObject *like, int dims, const int64_t *shape);

// The kinds of numbers of most tensors.
enum { F32, F64, I64, KINDS };
// Read a number in the dtype of a kind; false where Python must say what becomes of it.
bool tt_read_as(PyObject *number, int kind, void *into);
// Whether the strides are those of a new array, also where a dimension of size 1 leaves them open: results may keep them.
static inline bool in_order(PyArrayObject *array) {
    npy_intp step = PyArray_ITEMSIZE(array);
    for (int d = PyArray_NDIM(array); d-- > 0; step *= PyArray_DIM(array, d)) {
        if (PyArray_STRIDE(array, d) != step) return false;
    }
    return true;
}
// A view of an array's memory: a new reference, or NULL after an error.
PyObject *tt_view_of(PyArrayObject *array, int dims, const npy_intp *shape, const npy_intp *strides, npy_intp offset);

// Compute `count` elements of a pointwise kernel.
typedef void (*Pointwise)(const float *const *inputs, const double *numbers, float *out, Py_ssize_t count);
// Call a pointwise kernel: `args` are `inputs` arrays of one shape, followed by `numbers` numbers; `out` is an array or
// None.
PyObject *tt_pointwise(PyObject *const *args, int inputs, int numbers, PyObject *out, Pointwise block);

#endif
