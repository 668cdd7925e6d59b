// The Python module: `twin(definition, name, set, defaults)` returns a callable that tries a kernel, and calls the
// definition for arguments that the kernel leaves to it; `direct(definition)` one that tries the kernel of a twin, and
// the loop of a ufunc, and returns NotImplemented for other arguments.
#define TINYTORCH_MODULE
#include "calls.h"

#include <numpy/ufuncobject.h>
#include <stddef.h>
#include <structmember.h>

enum {
    MAX_DIMS = 64,
    MAX_INPUTS = 3,      // arrays that a pointwise kernel takes
    BLOCK = 1 << 15,     // elements of a part of its work
    GATHERED = 1 << 10,  // elements of an array in another order that are brought together at a time
};

extern const Kernel *const tt_baseline[];
#if defined(__x86_64__)
extern const Kernel *const tt_avx2[], *const tt_avx512[];
#endif
void tt_install_fork_handler(void);

// Instruction sets that this processor has, the best one last.
static struct {
    const char *name;
    const Kernel *const *families;
} sets[3];
static int set_count;

static void detect_sets(void) {
    sets[set_count].name = "baseline";
    sets[set_count++].families = tt_baseline;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        sets[set_count].name = "avx2";
        sets[set_count++].families = tt_avx2;
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
            sets[set_count].name = "avx512";
            sets[set_count++].families = tt_avx512;
        }
    }
#endif
}

// Arrays ----------------------------------------------------------------------------------------

bool tt_is_float32(PyObject *object) {
    return PyArray_CheckExact(object) && PyArray_TYPE(ARRAY(object)) == NPY_FLOAT &&
           PyArray_ISBEHAVED_RO(ARRAY(object));
}

bool tt_is_contiguous(PyObject *object) { return PyArray_IS_C_CONTIGUOUS(ARRAY(object)); }

bool tt_read_sizes(PyObject *tuple, Py_ssize_t count, int64_t *sizes) {
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

bool tt_read_double(PyObject *object, double *number) {
    if (!PyFloat_Check(object) && !PyLong_Check(object)) return false;
    *number = PyFloat_AsDouble(object);
    if (*number != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
}

bool tt_read_number(PyObject *object, float *number) {
    double value;
    bool read = tt_read_double(object, &value);
    if (read) *number = (float)value;
    return read;
}

PyObject *tt_new_array(PyObject *like, int dims, const int64_t *shape) {
    npy_intp sizes[MAX_DIMS];
    for (int i = 0; i < dims; i++) sizes[i] = shape[i];
    return PyArray_SimpleNew(dims, sizes, PyArray_TYPE(ARRAY(like)));
}

PyObject *tt_view_of(PyArrayObject *array, int dims, const npy_intp *shape, const npy_intp *strides, npy_intp offset) {
    PyArray_Descr *description = PyArray_DESCR(array);
    Py_INCREF((PyObject *)description);
    PyObject *made = PyArray_NewFromDescr(&PyArray_Type, description, dims, (npy_intp *)shape, (npy_intp *)strides,
                                          PyArray_BYTES(array) + offset, PyArray_FLAGS(array), NULL);
    if (made && PyArray_SetBaseObject(ARRAY(made), Py_NewRef((PyObject *)array))) Py_CLEAR(made);
    return made;
}

// Pointwise kernels -----------------------------------------------------------------------------

// How an array is walked in the order of the result's memory: dimensions, the outermost first, and strides in floats.
typedef struct {
    int dims;
    Py_ssize_t shape[MAX_DIMS], strides[MAX_DIMS];
} Walk;

typedef struct {
    const float *inputs[MAX_INPUTS];
    const Walk *walks[MAX_INPUTS];  // NULL for an array in the order of the result
    double numbers[MAX_PARAMETERS];
    float *out;
    int input_count;
    Py_ssize_t size, step;
    Pointwise block;
} PointwiseCall;

// Copy `count` elements of an array, from element `begin` of the walk on.
static void gather(const float *from, const Walk *walk, Py_ssize_t begin, Py_ssize_t count, float *to) {
    const Py_ssize_t *shape = walk->shape, *strides = walk->strides;
    Py_ssize_t place[MAX_DIMS];
    const int inner = walk->dims - 1;
    for (int d = inner; d >= 0; begin /= shape[d--]) from += strides[d] * (place[d] = begin % shape[d]);
    for (const Py_ssize_t stride = strides[inner];;) {
        Py_ssize_t left = shape[inner] - place[inner], run = left < count ? left : count;
        const float first = *from;
        if (stride) {
            for (Py_ssize_t i = 0; i < run; i++) to[i] = from[i * stride];
        } else {
            for (Py_ssize_t i = 0; i < run; i++) to[i] = first;
        }
        if (!(count -= run)) return;
        to += run;
        from += run * stride;
        place[inner] = shape[inner];
        for (int d = inner; place[d] == shape[d]; d--) {
            from += strides[d - 1] - shape[d] * strides[d];
            place[d] = 0;
            place[d - 1]++;
        }
    }
}

static void pointwise_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const PointwiseCall *call = context;
    Py_ssize_t begin = part * BLOCK, end = call->size - begin < BLOCK ? call->size : begin + BLOCK;
    const float *inputs[MAX_INPUTS];
    float gathered[MAX_INPUTS][GATHERED];
    for (; begin < end; begin += call->step) {
        Py_ssize_t count = end - begin < call->step ? end - begin : call->step;
        for (int i = 0; i < call->input_count; i++) {
            inputs[i] = call->walks[i] ? gathered[i] : call->inputs[i] + begin;
            if (call->walks[i]) gather(call->inputs[i], call->walks[i], begin, count, gathered[i]);
        }
        call->block(inputs, call->numbers, call->out + begin, count);
    }
}

// True if the elements of `x` have the same order in memory as those of `out`, without gaps. `out` has no gaps.
static bool same_layout(PyObject *x, PyObject *out) {
    if (tt_is_contiguous(x) && tt_is_contiguous(out)) return true;
    for (int dim = PyArray_NDIM(ARRAY(x)); dim--;) {
        if (PyArray_DIM(ARRAY(x), dim) > 1 && PyArray_STRIDE(ARRAY(x), dim) != PyArray_STRIDE(ARRAY(out), dim)) {
            return false;
        }
    }
    return true;
}

// True if two ranges of `size` bytes are disjoint, or the same range.
static bool disjoint_or_same(const char *x, const char *y, Py_ssize_t size) {
    return x == y || x + size <= y || y + size <= x;
}

// True if a kernel may write into `out` while it reads `x`.
static bool may_write(PyObject *out, PyObject *x) {
    return tt_is_contiguous(out) && same_layout(x, out) &&
           disjoint_or_same(PyArray_DATA(ARRAY(x)), PyArray_DATA(ARRAY(out)), PyArray_NBYTES(ARRAY(out)));
}

// True if `x` repeats its elements along a dimension: it has been expanded.
static bool repeats(PyArrayObject *x) {
    for (int dim = PyArray_IS_C_CONTIGUOUS(x) ? 0 : PyArray_NDIM(x); dim-- > 0;) {
        if (PyArray_DIM(x, dim) > 1 && !PyArray_STRIDE(x, dim)) return true;
    }
    return false;
}

// Find how `x`, of several elements, is walked in the order of `out`. Dimensions that are one in `x` are joined.
static void find_walk(Walk *walk, PyArrayObject *x, PyArrayObject *out) {
    int order[MAX_DIMS], count = 0;
    for (int dim = 0; dim < PyArray_NDIM(out); dim++) {
        if (PyArray_DIM(out, dim) == 1) continue;
        int at = count++;
        for (; at && PyArray_STRIDE(out, order[at - 1]) < PyArray_STRIDE(out, dim); at--) order[at] = order[at - 1];
        order[at] = dim;
    }
    walk->dims = 0;
    for (int k = 0; k < count; k++) {
        Py_ssize_t length = PyArray_DIM(x, order[k]), stride = PyArray_STRIDE(x, order[k]) / (int)sizeof(float);
        if (walk->dims && walk->strides[walk->dims - 1] == length * stride) length *= walk->shape[--walk->dims];
        walk->shape[walk->dims] = length;
        walk->strides[walk->dims++] = stride;
    }
}

PyObject *tt_pointwise(PyObject *const *args, int inputs, int numbers, PyObject *out, Pointwise block) {
    for (int i = 0; i < inputs; i++) {
        if (!tt_is_float32(args[i]) || !same_shape(args[0], args[i])) return FALLBACK;
    }
    PointwiseCall call = {
        .input_count = inputs, .size = PyArray_SIZE(ARRAY(args[0])), .step = BLOCK, .block = block};
    for (int i = 0; i < numbers; i++) {
        if (!tt_read_double(args[inputs + i], &call.numbers[i])) return FALLBACK;
    }
    PyObject *result;
    if (out != Py_None) {
        if (!tt_is_float32(out) || !PyArray_ISWRITEABLE(ARRAY(out)) || !same_shape(args[0], out)) return FALLBACK;
        for (int i = 0; i < inputs; i++) {
            if (may_write(out, args[i])) continue;
            if (inputs > 1) return FALLBACK;
            result = tt_pointwise(args, inputs, numbers, Py_None, block);
            if (!result) return NULL;
            int failed = PyArray_CopyInto(ARRAY(out), ARRAY(result));
            Py_DECREF(result);
            return failed ? NULL : Py_NewRef(out);
        }
        result = Py_NewRef(out);
    } else {
        int like = 0;  // the first array that tells the order of all dimensions
        while (like < inputs - 1 && repeats(ARRAY(args[like]))) like++;
        NPY_ORDER order = repeats(ARRAY(args[like])) ? NPY_CORDER : NPY_KEEPORDER;
        result = PyArray_NewLikeArray(ARRAY(args[like]), order, NULL, 0);
        if (!result) return NULL;
    }
    Walk walks[MAX_INPUTS];
    call.out = PyArray_DATA(ARRAY(result));
    for (int i = 0; i < inputs; i++) {
        call.inputs[i] = PyArray_DATA(ARRAY(args[i]));
        if (!call.size || same_layout(args[i], result)) continue;
        find_walk(&walks[i], ARRAY(args[i]), ARRAY(result));
        call.walks[i] = &walks[i];
        call.step = GATHERED;
    }
    tt_parallel_for(pointwise_part, &call, (call.size + BLOCK - 1) / BLOCK, call.size, tt_threads());
    return result;
}

// Kernels by name -------------------------------------------------------------------------------

// A kernel of an instruction set; one that gains nothing from these is in the first set alone.
static const Kernel *find_kernel(const char *set, const char *name) {
    for (int i = set_count - 1; i >= 0; i--) {
        if (i && strcmp(sets[i].name, set)) continue;
        for (const Kernel *const *family = sets[i].families; *family; family++) {
            for (const Kernel *kernel = *family; kernel->name; kernel++) {
                if (!strcmp(kernel->name, name)) return kernel;
            }
        }
    }
    return NULL;
}

// The names of a kernel's parameters, as a tuple of interned strings.
static PyObject *parameter_names(const Kernel *kernel) {
    PyObject *names[MAX_PARAMETERS];
    Py_ssize_t count = 0;
    for (const char *name = kernel->parameters; *(name += strspn(name, ", ")); name += strcspn(name, ", ")) {
        PyObject *string =
            count < MAX_PARAMETERS ? PyUnicode_FromStringAndSize(name, (Py_ssize_t)strcspn(name, ", ")) : NULL;
        if (!string) {
            while (count) Py_DECREF(names[--count]);
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "a native kernel has too many parameters");
            return NULL;
        }
        PyUnicode_InternInPlace(&string);
        names[count++] = string;
    }
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; i < count; i++) {
        if (tuple) {
            PyTuple_SetItem(tuple, i, names[i]);
        } else {
            Py_DECREF(names[i]);
        }
    }
    return tuple;
}

// Loops of ufuncs -------------------------------------------------------------------------------

// Call a ufunc's own loop for contiguous arrays of one dtype, which have one shape or are 0-d: without NumPy's search
// for the loop, and its look at floating-point errors.
static PyObject *by_loop(PyObject *definition, PyObject *args) {
    const PyUFuncObject *ufunc = (const PyUFuncObject *)definition;
    int count = ufunc->nin, loop = 0;
    if (PyTuple_Size(args) != count || count > 2 || ufunc->nout != 1 || ufunc->core_enabled) return FALLBACK;
    PyObject *x[2], *like = NULL;
    char *data[3];
    npy_intp strides[3];
    for (int i = 0; i < count; i++) {
        x[i] = PyTuple_GetItem(args, i);
        if (!PyArray_CheckExact(x[i]) || !PyArray_ISCARRAY_RO(ARRAY(x[i]))) return FALLBACK;
        if (!like || !PyArray_NDIM(ARRAY(like))) like = x[i];
        data[i] = PyArray_DATA(ARRAY(x[i]));
        strides[i] = PyArray_NDIM(ARRAY(x[i])) ? PyArray_ITEMSIZE(ARRAY(x[i])) : 0;
    }
    int type = PyArray_TYPE(ARRAY(like));
    if (!PyTypeNum_ISNUMBER(type)) return FALLBACK;
    for (int i = 0; i < count; i++) {
        if (PyArray_TYPE(ARRAY(x[i])) != type || (strides[i] && !same_shape(x[i], like))) return FALLBACK;
    }
    const char *types = ufunc->types;
    while (loop < ufunc->ntypes && (types[0] != type || types[count - 1] != type)) loop++, types += count + 1;
    if (loop == ufunc->ntypes) return FALLBACK;
    PyObject *out = PyArray_SimpleNew(PyArray_NDIM(ARRAY(like)), PyArray_DIMS(ARRAY(like)), types[count]);
    if (!out) return NULL;
    data[count] = PyArray_DATA(ARRAY(out));
    strides[count] = PyArray_ITEMSIZE(ARRAY(out));
    npy_intp size = PyArray_SIZE(ARRAY(out));
    NPY_BEGIN_THREADS_DEF;
    NPY_BEGIN_THREADS_THRESHOLDED(size);
    if (size) ufunc->functions[loop](data, &size, strides, ufunc->data[loop]);
    NPY_END_THREADS;
    if (!PyErr_Occurred()) return out;
    Py_DECREF(out);
    return NULL;
}

// Twins -----------------------------------------------------------------------------------------

typedef struct {
    PyObject_HEAD PyObject *definition, *attributes;
    PyObject *names, *owned_defaults;                           // of the parameters; a dict that keeps `defaults` alive
    PyObject *name[MAX_PARAMETERS], *defaults[MAX_PARAMETERS];  // borrowed; NULL where there is no default
    Py_ssize_t count;
    Call call;         // NULL: there is no kernel
    bool of_gradient;  // the first parameter is a gradient
    bool direct;       // whether other arguments are left to the caller
    bool calls_numpy;  // as of the kernel
} Twin;

// Bind a call's arguments to the kernel's parameters, as Python would. False where it would raise an error, or where
// the definition has a parameter that the kernel has not.
static bool bind(const Twin *twin, PyObject *args, PyObject *keywords, PyObject **bound) {
    Py_ssize_t positional = PyTuple_Size(args), found = 0;
    if (positional > twin->count) return false;
    for (Py_ssize_t i = 0; i < positional; i++) bound[i] = PyTuple_GetItem(args, i);
    for (Py_ssize_t i = positional; i < twin->count; i++) bound[i] = NULL;
    if (keywords) {
        PyObject *keyword, *value;
        for (Py_ssize_t position = 0; PyDict_Next(keywords, &position, &keyword, &value); found++) {
            Py_ssize_t i = positional;
            while (i < twin->count && keyword != twin->name[i]) i++;
            if (i == twin->count) {  // an unknown name, or an equal string that has not been interned
                for (i = positional; i < twin->count && PyUnicode_Compare(keyword, twin->name[i]); i++);
                if (i == twin->count) return false;
            }
            bound[i] = value;
        }
    }
    for (Py_ssize_t i = positional; found < twin->count - positional && i < twin->count; i++) {
        if (bound[i]) continue;
        if (!twin->defaults[i]) return false;
        bound[i] = twin->defaults[i];
    }
    return true;
}

// Call a kernel that has left an expanded gradient (as that of a mean is) to the definition with a copy of it.
static PyObject *call_with_copy(const Twin *twin, PyObject **bound) {
    PyObject *copy = PyArray_NewCopy(ARRAY(bound[0]), NPY_CORDER);
    if (!copy) return NULL;
    bound[0] = copy;
    PyObject *result = twin->call(bound);
    Py_DECREF(copy);
    return result;
}

PyObject *tt_call_twin(PyObject *self, PyObject **bound) {
    const Twin *twin = (Twin *)self;
    PyObject *result = twin->call(bound);
    if (result == FALLBACK && twin->of_gradient && tt_is_float32(bound[0]) && repeats(ARRAY(bound[0]))) {
        result = call_with_copy(twin, bound);
    }
    return result;
}

static PyObject *twin_call(PyObject *self, PyObject *args, PyObject *keywords) {
    const Twin *twin = (Twin *)self;
    PyObject *bound[MAX_PARAMETERS];
    if (twin->call && bind(twin, args, keywords, bound)) {
        PyObject *result = tt_call_twin(self, bound);
        if (result != FALLBACK) return result;
    }
    if (!twin->direct) return PyObject_Call(twin->definition, args, keywords);
    bool loops = !keywords && PyObject_TypeCheck(twin->definition, &PyUFunc_Type);
    PyObject *result = loops ? by_loop(twin->definition, args) : FALLBACK;
    return result == FALLBACK ? Py_NewRef(result) : result;
}

static void twin_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Twin *twin = (Twin *)self;
    Py_XDECREF(twin->definition);
    Py_XDECREF(twin->attributes);
    Py_XDECREF(twin->names);
    Py_XDECREF(twin->owned_defaults);
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

bool tt_is_quiet_twin(PyObject *object) {
    return Py_TYPE(object) == twin_type && ((Twin *)object)->call && !((Twin *)object)->calls_numpy;
}

Py_ssize_t tt_place_of(PyObject *twin, PyObject *name) {
    const Twin *of = (Twin *)twin;
    for (Py_ssize_t i = 0; i < of->count; i++) {
        if (!PyUnicode_Compare(of->name[i], name)) return i;
    }
    return -1;
}

PyObject *const *tt_defaults_of(PyObject *twin, Py_ssize_t *count) {
    *count = ((Twin *)twin)->count;
    return ((Twin *)twin)->defaults;
}

static PyObject *make_twin(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *definition, *defaults = NULL;
    const char *name, *set;
    if (!PyArg_ParseTuple(args, "Oss|O!", &definition, &name, &set, &PyDict_Type, &defaults)) return NULL;
    const Kernel *kernel = find_kernel(set, name);
    if (!kernel) return PyErr_Format(PyExc_LookupError, "there is no kernel %s for %s", name, set);
    PyObject *names = parameter_names(kernel);
    if (!names) return NULL;
    Twin *twin = (Twin *)((allocfunc)PyType_GetSlot(twin_type, Py_tp_alloc))(twin_type, 0);
    if (!twin) {
        Py_DECREF(names);
        return NULL;
    }
    twin->definition = Py_NewRef(definition);
    twin->names = names;
    twin->owned_defaults = Py_XNewRef(defaults);
    twin->count = PyTuple_Size(names);
    twin->call = kernel->call;
    twin->calls_numpy = kernel->calls_numpy;
    twin->of_gradient = kernel->parameters[0] == 'g' && kernel->parameters[1] == ',';
    for (Py_ssize_t i = 0; i < twin->count; i++) {
        twin->name[i] = PyTuple_GetItem(names, i);
        if (defaults) twin->defaults[i] = PyDict_GetItemWithError(defaults, twin->name[i]);
        // A kernel that takes `out` last makes a new array without it.
        bool last_out = i == twin->count - 1 && !PyUnicode_CompareWithASCIIString(twin->name[i], "out");
        if (!twin->defaults[i] && last_out) twin->defaults[i] = Py_None;
    }
    return (PyObject *)twin;
}

// `direct(definition)` of a twin or a ufunc; None for other functions, and for what may warn of floating-point errors.
static PyObject *direct(PyObject *module, PyObject *definition) {
    (void)module;
    bool is_twin = Py_TYPE(definition) == twin_type;
    if (is_twin ? ((Twin *)definition)->calls_numpy : !PyObject_TypeCheck(definition, &PyUFunc_Type)) Py_RETURN_NONE;
    Twin *twin = (Twin *)((allocfunc)PyType_GetSlot(twin_type, Py_tp_alloc))(twin_type, 0);
    if (!twin) return NULL;
    if (is_twin) {
        const Twin *other = (const Twin *)definition;
        twin->names = Py_NewRef(other->names);
        twin->owned_defaults = Py_XNewRef(other->owned_defaults);
        memcpy(twin->name, other->name, sizeof twin->name);
        memcpy(twin->defaults, other->defaults, sizeof twin->defaults);
        twin->count = other->count;
        twin->call = other->call;
        twin->of_gradient = other->of_gradient;
        definition = other->definition;
    }
    twin->definition = Py_NewRef(definition);
    twin->direct = true;
    return (PyObject *)twin;
}

static PyObject *set_threads(PyObject *module, PyObject *count) {
    (void)module;
    long threads = PyLong_AsLong(count);
    if (threads == -1 && PyErr_Occurred()) return NULL;
    tt_set_threads(threads < 1 ? 1 : threads > 1024 ? 1024 : (int)threads);
    Py_RETURN_NONE;
}

// Twin of `settled` of kernels/layouts.py, as a plain function: every call of an elementwise op calls it.
static PyObject *settled(PyObject *module, PyObject *const *args, Py_ssize_t count) {
    (void)module;
    if (!count || !PyArray_CheckExact(args[0])) Py_RETURN_FALSE;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyArray_Check(args[i]) && !tt_is_contiguous(args[i])) Py_RETURN_FALSE;
    }
    Py_RETURN_TRUE;
}

// The module ------------------------------------------------------------------------------------

static PyMethodDef methods[] = {
    {"twin", make_twin, METH_VARARGS, NULL},
    {"direct", direct, METH_O, NULL},
    {"set_threads", set_threads, METH_O, NULL},
    {"settled", (PyCFunction)(void (*)(void))settled, METH_FASTCALL, NULL},
    {NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_native", .m_size = -1, .m_methods = methods};

// SETS: the names of the instruction sets.
static int add_sets(PyObject *module) {
    PyObject *names = PyTuple_New(set_count);
    for (Py_ssize_t i = 0; names && i < set_count; i++) PyTuple_SetItem(names, i, PyUnicode_FromString(sets[i].name));
    int failed = names ? PyModule_AddObjectRef(module, "SETS", names) : -1;
    Py_XDECREF(names);
    return failed;
}

// KERNELS: the parameters of each kernel, by its name.
static int add_kernels(PyObject *module) {
    PyObject *kernels = PyDict_New();
    bool failed = !kernels;
    for (const Kernel *const *family = tt_baseline; !failed && *family; family++) {
        for (const Kernel *kernel = *family; !failed && kernel->name; kernel++) {
            PyObject *names = parameter_names(kernel);
            failed = !names || PyDict_SetItemString(kernels, kernel->name, names);
            Py_XDECREF(names);
        }
    }
    failed = failed || PyModule_AddObjectRef(module, "KERNELS", kernels);
    Py_XDECREF(kernels);
    return failed ? -1 : 0;
}

// What the library was built from: scripts/build_native.py looks for it in the file, to build it only once.
#ifdef SOURCES
__attribute__((used)) static const char sources[] = SOURCES;
#endif

PyMODINIT_FUNC PyInit__native(void) {
    import_array();
    import_umath();
    detect_sets();
    tt_install_fork_handler();
    PyObject *module = PyModule_Create(&definition);
    twin_type = (PyTypeObject *)PyType_FromSpec(&twin_spec);
    if (!module || !twin_type || add_sets(module) || add_kernels(module) || tt_add_calls(module) ||
        PyModule_AddIntConstant(module, "MIN_PRODUCT", MIN_PRODUCT)) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
