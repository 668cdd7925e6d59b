// What Python sees: `twin(definition, name, set)`, a callable that tries the kernel and leaves the rest to the
// definition.
#define TINYTORCH_MODULE
#include "native.h"

#include <stddef.h>
#include <structmember.h>

enum { MOST_ARGUMENTS = 16, MOST_DIMS = 64, BLOCK = 1 << 15 };

extern const Kernel tt_baseline[];
#if defined(__x86_64__)
extern const Kernel tt_avx2[], tt_avx512[];
#endif
void tt_begin_threads(void);

static struct {
    const char *name;
    const Kernel *kernels;
} sets[3];  // that this processor has, the best one last
static int set_count;

static void find_sets(void) {
    sets[set_count].name = "baseline";
    sets[set_count++].kernels = tt_baseline;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        sets[set_count].name = "avx2";
        sets[set_count++].kernels = tt_avx2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
            sets[set_count].name = "avx512";
            sets[set_count++].kernels = tt_avx512;
        }
    }
#endif
}

// Arrays ----------------------------------------------------------------------------------------

#define ARRAY(object) ((PyArrayObject *)(object))

bool tt_float32(PyObject *object) {
    return PyArray_CheckExact(object) && PyArray_TYPE(ARRAY(object)) == NPY_FLOAT &&
           PyArray_ISBEHAVED_RO(ARRAY(object));
}

bool tt_contiguous(PyObject *object) { return PyArray_IS_C_CONTIGUOUS(ARRAY(object)); }

bool tt_sizes(PyObject *tuple, Py_ssize_t count, int64_t *sizes) {
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != count) return false;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (!PyLong_Check(item)) return false;
        sizes[i] = PyLong_AsLongLong(item);
        if (sizes[i] == -1 && PyErr_Occurred()) {
            PyErr_Clear();
            return false;
        }
    }
    return true;
}

PyObject *tt_new(PyObject *like, int dims, const int64_t *shape) {
    npy_intp sizes[MOST_DIMS];
    for (int i = 0; i < dims; i++) sizes[i] = shape[i];
    return PyArray_SimpleNew(dims, sizes, PyArray_TYPE(ARRAY(like)));
}

typedef struct {
    const float *inputs[MOST_ARGUMENTS];
    float numbers[MOST_ARGUMENTS], *out;
    int count;
    Py_ssize_t size;
    Pointwise block;
} Pieces;

static void pointwise_block(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Pieces *pieces = context;
    Py_ssize_t begin = block * BLOCK, left = pieces->size - begin;
    const float *inputs[MOST_ARGUMENTS];
    for (int i = 0; i < pieces->count; i++) inputs[i] = pieces->inputs[i] + begin;
    pieces->block(inputs, pieces->numbers, pieces->out + begin, left < BLOCK ? left : BLOCK);
}

static bool same_shape(PyObject *x, PyObject *y) {
    int dims = PyArray_NDIM(ARRAY(x));
    return PyArray_NDIM(ARRAY(y)) == dims && PyArray_CompareLists(PyArray_DIMS(ARRAY(x)), PyArray_DIMS(ARRAY(y)), dims);
}

// Do the elements of both stand in one order, side by side? `out` is dense.
static bool in_order(PyObject *x, PyObject *out) {
    if (tt_contiguous(x) && tt_contiguous(out)) return true;
    for (int dim = PyArray_NDIM(ARRAY(x)); dim--;) {
        if (PyArray_DIM(ARRAY(x), dim) > 1 && PyArray_STRIDE(ARRAY(x), dim) != PyArray_STRIDE(ARRAY(out), dim)) {
            return false;
        }
    }
    return true;
}

static bool apart(const char *x, const char *y, Py_ssize_t size) { return x == y || x + size <= y || y + size <= x; }

PyObject *tt_pointwise(PyObject *const *args, Py_ssize_t count, PyObject *out, int inputs, int numbers,
                       Pointwise block) {
    if (count != inputs + numbers) return PASS;
    for (int i = 0; i < inputs; i++) {
        if (!tt_float32(args[i]) || !same_shape(args[0], args[i])) return PASS;
    }
    if (!PyArray_NDIM(ARRAY(args[0]))) return PASS;  // NumPy makes a number of it
    if (out &&
        !(tt_float32(out) && PyArray_ISWRITEABLE(ARRAY(out)) && same_shape(args[0], out) && tt_contiguous(out))) {
        return PASS;
    }
    Pieces pieces = {.count = inputs, .size = PyArray_SIZE(ARRAY(args[0])), .block = block};
    for (int i = 0; i < numbers; i++) {
        PyObject *number = args[inputs + i];
        if (!PyFloat_Check(number) && !PyLong_Check(number)) return PASS;
        double value = PyFloat_AsDouble(number);
        if (value == -1 && PyErr_Occurred()) return NULL;
        pieces.numbers[i] = (float)value;
    }
    if (out) {
        Py_INCREF(out);
    } else {
        out = PyArray_NewLikeArray(ARRAY(args[0]), NPY_KEEPORDER, NULL, 0);
        if (!out) return NULL;
    }
    pieces.out = PyArray_DATA(ARRAY(out));
    for (int i = 0; i < inputs; i++) {
        pieces.inputs[i] = PyArray_DATA(ARRAY(args[i]));
        if (!in_order(args[i], out) || !apart((const char *)pieces.inputs[i], (char *)pieces.out, 4 * pieces.size)) {
            Py_DECREF(out);
            return PASS;
        }
    }
    tt_share(pointwise_block, &pieces, (pieces.size + BLOCK - 1) / BLOCK, pieces.size, tt_threads());
    return out;
}

// Twins -----------------------------------------------------------------------------------------

typedef struct {
    PyObject_HEAD PyObject *definition, *attributes;
    Call call;
} Twin;

static PyObject *twin_call(PyObject *self, PyObject *args, PyObject *keywords) {
    Twin *twin = (Twin *)self;
    PyObject *given[MOST_ARGUMENTS], *out = NULL;
    Py_ssize_t count = PyTuple_Size(args), named = keywords ? PyDict_Size(keywords) : 0;
    if (named == 1) out = PyDict_GetItemString(keywords, "out");
    if (count <= MOST_ARGUMENTS && named == (out != NULL)) {
        for (Py_ssize_t i = 0; i < count; i++) given[i] = PyTuple_GetItem(args, i);
        PyObject *result = twin->call(given, count, out == Py_None ? NULL : out);
        if (result != PASS) return result;
    }
    return PyObject_Call(twin->definition, args, keywords);
}

static void twin_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((Twin *)self)->definition);
    Py_XDECREF(((Twin *)self)->attributes);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMemberDef twin_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Twin, attributes), READONLY, NULL},
    {NULL},
};
static PyGetSetDef twin_getters[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};
static PyType_Slot twin_slots[] = {
    {Py_tp_call, twin_call},
    {Py_tp_dealloc, twin_free},
    {Py_tp_members, twin_members},
    {Py_tp_getset, twin_getters},
    {0},
};
static PyType_Spec twin_spec = {"tinytorch.kernels.native.Twin", sizeof(Twin), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, twin_slots};
static PyTypeObject *twin_type;

static PyObject *make_twin(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *definition;
    const char *name, *set;
    if (!PyArg_ParseTuple(args, "Oss", &definition, &name, &set)) return NULL;
    for (int i = 0; i < set_count; i++) {
        if (strcmp(sets[i].name, set)) continue;
        for (const Kernel *kernel = sets[i].kernels; kernel->name; kernel++) {
            if (strcmp(kernel->name, name)) continue;
            Twin *twin = (Twin *)((allocfunc)PyType_GetSlot(twin_type, Py_tp_alloc))(twin_type, 0);
            if (!twin) return NULL;
            Py_INCREF(definition);
            twin->definition = definition;
            twin->call = kernel->call;
            return (PyObject *)twin;
        }
    }
    return PyErr_Format(PyExc_LookupError, "there is no kernel %s for %s", name, set);
}

static PyObject *set_threads(PyObject *module, PyObject *count) {
    (void)module;
    long threads = PyLong_AsLong(count);
    if (threads == -1 && PyErr_Occurred()) return NULL;
    tt_set_threads(threads < 1 ? 1 : threads > 1024 ? 1024 : (int)threads);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"twin", make_twin, METH_VARARGS, NULL},
    {"set_threads", set_threads, METH_O, NULL},
    {NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_native", .m_size = -1, .m_methods = methods};

// A tuple of names under `name`.
static int add_names(PyObject *module, const char *name, Py_ssize_t count, const char *(*nth)(Py_ssize_t)) {
    PyObject *names = PyTuple_New(count);
    for (Py_ssize_t i = 0; names && i < count; i++) PyTuple_SetItem(names, i, PyUnicode_FromString(nth(i)));
    int failed = names ? PyModule_AddObjectRef(module, name, names) : -1;
    Py_XDECREF(names);
    return failed;
}

static const char *nth_set(Py_ssize_t i) { return sets[i].name; }
static const char *nth_kernel(Py_ssize_t i) { return tt_baseline[i].name; }

PyMODINIT_FUNC PyInit__native(void) {
    import_array();
    find_sets();
    tt_begin_threads();
    Py_ssize_t kernels = 0;
    while (tt_baseline[kernels].name) kernels++;
    PyObject *module = PyModule_Create(&definition);
    twin_type = (PyTypeObject *)PyType_FromSpec(&twin_spec);
    if (!module || !twin_type || add_names(module, "SETS", set_count, nth_set) ||
        add_names(module, "KERNELS", kernels, nth_kernel)) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
