// The twin of the call of an op (core/call.py): binds the arguments, unwraps the tensors, calls the kernel, makes the
// tensor and its node. It is for calls of plain tensors with no mode on, and of kernels with one output.
#include "calls.h"

#define NO_IMPORT_UFUNC
#define PY_UFUNC_UNIQUE_SYMBOL tinytorch_native_ufunc
#include <numpy/ufuncobject.h>
#include <stddef.h>
#include <structmember.h>

enum { MAX_INPUTS = 8, MAX_PLANS = 8, SMALL = 1 << 15, MAX_ROWS = 64 };

TensorSlots of_tensor;
NodeSlots of_node;
StateSlots of_state;
ViewSlots of_view;
PlanSlots of_plan;
Py_ssize_t of_leaf, of_runs, of_function_modes;
Package package;
PyArray_Descr *tt_descriptions[KINDS];
PyObject *tt_zero, *tt_one;

static PyTypeObject *callable_type;

// Threads ---------------------------------------------------------------------------------------

// A look-up in `threading.local` takes a tenth of a call, so each thread's dictionary is remembered; by the number of the
// interpreter's thread, since a thread that Python did not create may have several of these one after another.
PyObject *tt_state(void) {
    static _Thread_local uint64_t known_thread;
    static _Thread_local PyObject *known;
    static PyObject *name;
    uint64_t thread = PyThreadState_GetID(PyThreadState_Get());
    if (thread != known_thread) {
        PyObject *attributes = PyObject_GetAttrString(package.local, "__dict__");
        if (!attributes || (!name && !(name = PyUnicode_InternFromString("state")))) {
            PyErr_Clear();
            return NULL;
        }
        Py_DECREF(attributes);  // `local` holds it as long as the thread lives
        known = attributes;
        known_thread = thread;
    }
    return PyDict_GetItemWithError(known, name);
}

// Tensors and nodes -----------------------------------------------------------------------------

PyObject *tt_new_cell(PyObject *state) {
    if (SLOT(state, of_state.inference) == Py_True) return Py_NewRef(Py_None);
    PyObject *cell = PyList_New(2);
    if (cell) {
        PyList_SetItem(cell, 0, Py_NewRef(tt_zero));
        PyList_SetItem(cell, 1, Py_NewRef(SLOT(package.runs, of_runs)));
    }
    return cell;
}

bool tt_count_write(PyObject *cell) {
    PyObject *version = PyNumber_Add(PyList_GetItem(cell, 0), tt_one);
    return version && !PyList_SetItem(cell, 0, version);
}

PyObject *tt_new_tensor(PyObject *array, PyObject *cell) {
    PyObject *out = array && cell ? PyType_GenericAlloc(package.tensor, 0) : NULL;
    if (!out) {
        Py_XDECREF(array);
        Py_XDECREF(cell);
        return NULL;
    }
    SLOT(out, of_tensor.array) = array;
    SLOT(out, of_tensor.cell) = cell;
    SLOT(out, of_tensor.requires_grad) = Py_NewRef(Py_False);
    SLOT(out, of_tensor.edge) = Py_NewRef(Py_None);
    SLOT(out, of_tensor.grad) = Py_NewRef(Py_None);
    SLOT(out, of_tensor.view) = Py_NewRef(Py_None);
    SLOT(out, of_tensor.hooks) = Py_NewRef(Py_None);
    SLOT(out, of_tensor.accumulator) = Py_NewRef(Py_None);
    return out;
}

PyObject *tt_shape(PyObject *array) {
    int dims = PyArray_NDIM(ARRAY(array));
    PyObject *shape = PyTuple_New(dims);
    for (int d = 0; shape && d < dims; d++) PyTuple_SetItem(shape, d, PyLong_FromSsize_t(PyArray_DIM(ARRAY(array), d)));
    return shape;
}

bool tt_refreshed(PyObject *x) {
    PyObject *view = SLOT(x, of_tensor.view);
    if (view == Py_None) return true;
    PyObject *cell = SLOT(x, of_tensor.cell);
    if (Py_TYPE(view) == package.view && PyList_Check(cell)) {
        PyObject *base = SLOT(view, of_view.base);
        if (PyList_GetItem(cell, 0) == SLOT(view, of_view.seen) && is_plain(base) &&
            SLOT(x, of_tensor.requires_grad) == SLOT(base, of_tensor.requires_grad)) {
            return true;
        }
    }
    PyObject *done = PyObject_CallFunctionObjArgs(package.refresh, x, NULL);
    Py_XDECREF(done);
    return done != NULL;
}

// The edge to a new node of a leaf that has no hooks, as `_accumulator` of core/graph.py makes it. (No other thread runs
// meanwhile, so no two make one.)
static PyObject *new_leaf_edge(PyObject *x) {
    PyObject *array = SLOT(x, of_tensor.array), *edge = NULL;
    if (!PyArray_CheckExact(array)) return PyObject_CallFunctionObjArgs(package.leaf_edge, x, NULL);
    PyObject *shape = tt_shape(array), *count = PyIter_Next(package.numbers);
    PyObject *number = count ? PyNumber_Negative(count) : NULL;
    PyObject *node = shape && number ? PyType_GenericAlloc(package.accumulate_grad, 0) : NULL;
    Py_XDECREF(count);
    if (!node) {
        Py_XDECREF(shape);
        Py_XDECREF(number);
        return NULL;
    }
    SLOT(node, of_leaf) = Py_NewRef(x);
    SLOT(node, of_node.shape) = shape;
    SLOT(node, of_node.number) = number;
    SLOT(node, of_node.dtype) = Py_NewRef((PyObject *)PyArray_DESCR(ARRAY(array)));
    SLOT(node, of_node.edges) = PyTuple_New(0);
    SLOT(node, of_node.saved) = PyTuple_New(0);
    SLOT(node, of_node.hooks) = Py_NewRef(Py_None);
    PyObject *reference = PyWeakref_NewRef(node, NULL);
    if (reference) {
        set_slot(x, of_tensor.accumulator, reference);
        edge = PyTuple_Pack(2, node, tt_zero);
    }
    Py_DECREF(node);
    return edge;
}

PyObject *tt_edge_of(PyObject *x) {
    PyObject *edge = SLOT(x, of_tensor.edge);
    if (edge != Py_None) return Py_NewRef(edge);
    PyObject *reference = SLOT(x, of_tensor.accumulator);
    bool of_python = reference != Py_None || SLOT(x, of_tensor.hooks) != Py_None;
    if (Py_TYPE(reference) == package.weak_reference) {
        PyObject *node = PyObject_CallNoArgs(reference);
        if (!node) return NULL;
        if (node != Py_None) {
            edge = PyTuple_Pack(2, node, tt_zero);
            Py_DECREF(node);
            return edge;
        }
        Py_DECREF(node);
        of_python = SLOT(x, of_tensor.hooks) != Py_None;  // (the last graph with this leaf is gone)
    }
    if (of_python) return PyObject_CallFunctionObjArgs(package.leaf_edge, x, NULL);
    return new_leaf_edge(x);
}

bool tt_make_view(PyObject *out, PyObject *source, PyObject *state, bool several) {
    PyObject *cell = SLOT(source, of_tensor.cell);
    set_slot(out, of_tensor.cell, Py_NewRef(cell));
    if (!PyList_Check(cell)) return true;
    static PyObject *usual, *of_several, *without_grad, *of_inference;  // as in core/view.py
    if (!usual) {
        usual = tt_zero;
        of_several = tt_one;
        without_grad = PyLong_FromLong(3);
        of_inference = PyLong_FromLong(4);
    }
    PyObject *kind = several ? of_several : usual, *parent = SLOT(source, of_tensor.view);
    if (SLOT(state, of_state.grad) != Py_True) {
        kind = SLOT(state, of_state.inference) == Py_True ? of_inference : without_grad;
    }
    PyObject *view = PyType_GenericAlloc(package.view, 0);
    if (!view) return false;
    SLOT(view, of_view.array) = Py_NewRef(SLOT(out, of_tensor.array));
    SLOT(view, of_view.seen) = Py_NewRef(PyList_GetItem(cell, 0));
    SLOT(view, of_view.own) = Py_NewRef(Py_False);
    if (parent == Py_None) {
        SLOT(view, of_view.base) = Py_NewRef(source);
        SLOT(view, of_view.kind) = Py_NewRef(kind);
    } else {
        PyObject *kind_of_parent = SLOT(parent, of_view.kind);
        SLOT(view, of_view.base) = Py_NewRef(SLOT(parent, of_view.base));
        bool inherited = kind == usual || kind_of_parent == of_inference;
        SLOT(view, of_view.kind) = Py_NewRef(inherited ? kind_of_parent : kind);
    }
    set_slot(out, of_tensor.view, view);
    return true;
}

// Loops of ufuncs -------------------------------------------------------------------------------

// NumPy's own loop over contiguous elements, without the choice of the loop, of the order of memory and of the casts
// that a call of the ufunc makes. Nor does it look for floating-point errors.
typedef struct {
    PyUFuncGenericFunction function;
    void *data;
    int result;  // the type number of the result
} Loop;

static Loop additions[KINDS];

static void find_loop(const PyUFuncObject *ufunc, int type, Loop *loop) {
    loop->function = NULL;
    if (ufunc->nout != 1 || ufunc->core_enabled) return;
    for (int k = 0; k < ufunc->ntypes; k++) {
        const char *types = ufunc->types + k * ufunc->nargs;
        bool fits = ufunc->functions[k] != NULL;
        for (int i = 0; i < ufunc->nin; i++) fits = fits && types[i] == type;
        if (fits) {
            *loop = (Loop){ufunc->functions[k], ufunc->data ? (void *)ufunc->data[k] : NULL, types[ufunc->nin]};
            return;
        }
    }
}

bool tt_run_loop(PyObject *ufunc, int type, char **places, npy_intp count, const npy_intp *steps) {
    Loop loop;
    if (Py_TYPE(ufunc) != Py_TYPE(package.add)) return false;
    find_loop((PyUFuncObject *)ufunc, type, &loop);
    if (loop.function) loop.function(places, &count, steps, loop.data);
    return loop.function != NULL;
}

// An array, or a number in the array's dtype.
typedef struct {
    char *data;
    PyArrayObject *array;  // NULL: a number
    npy_intp size;
    int dims;
} Operand;

static Operand of_array(PyObject *array) {
    return (Operand){PyArray_DATA(ARRAY(array)), ARRAY(array), PyArray_SIZE(ARRAY(array)), PyArray_NDIM(ARRAY(array))};
}

static bool same_strides(PyArrayObject *x, PyObject *y) {
    return PyArray_CompareLists(PyArray_STRIDES(x), PyArray_STRIDES(ARRAY(y)), PyArray_NDIM(x));
}

// Whether a loop may write into its first operand: another one lies elsewhere in memory, or in the same places.
static bool may_write(PyObject *into, const Operand *x, const Operand *y, bool same, int type) {
    if (!PyArray_ISCARRAY(ARRAY(into)) || PyArray_TYPE(ARRAY(into)) != type) return false;
    if (!y || !y->array || (same && y->data == x->data)) return true;
    return y->data + PyArray_NBYTES(y->array) <= x->data || x->data + PyArray_NBYTES(x->array) <= y->data;
}

// Run a loop over one or two operands (`y` may be NULL). The result is a new array, or the first operand if it is `into`.
// FALLBACK for layouts that are not contiguous.
static PyObject *run_loop(const Loop *loop, const Operand *x, const Operand *y, int itemsize, PyObject *into) {
    const Operand *large = x, *small = y;
    if (!x->size || (y && !y->size)) return FALLBACK;
    if (y && (y->size > x->size || (y->size == x->size && y->dims > x->dims))) {
        if (into) return FALLBACK;
        large = y;
        small = x;
    }
    if (!large->array || large->size > SMALL || !PyArray_ISALIGNED(large->array)) return FALLBACK;
    npy_intp rows = 1, columns = 1, step = itemsize;  // (columns: those that one number of `small` is for)
    bool by_rows = PyArray_IS_C_CONTIGUOUS(large->array), same = false;
    if (!by_rows && !PyArray_IS_F_CONTIGUOUS(large->array)) return FALLBACK;
    if (small) {
        if (small->dims > large->dims || (small->array && !PyArray_ISALIGNED(small->array))) return FALLBACK;
        npy_intp *last = PyArray_DIMS(large->array) + large->dims - small->dims;
        same = small->array && small->dims == large->dims &&
               PyArray_CompareLists(PyArray_DIMS(small->array), last, small->dims);
        if (same) {  // elements in the same order of memory
            if (by_rows ? !PyArray_IS_C_CONTIGUOUS(small->array)
                        : !same_strides(small->array, (PyObject *)large->array)) {
                return FALLBACK;
            }
        } else if (small->size == 1 && (by_rows || !small->dims)) {
            step = 0;
        } else {  // a row that is repeated, or one number for each row
            if (!by_rows || !small->array || !PyArray_IS_C_CONTIGUOUS(small->array)) return FALLBACK;
            int dims = small->dims;
            for (; dims && PyArray_DIM(small->array, dims - 1) == 1; dims--) columns *= last[dims - 1];
            if (!PyArray_CompareLists(PyArray_DIMS(small->array), last, dims)) return FALLBACK;
            rows = large->size / (columns > 1 ? columns : small->size);
            if (columns > 1) step = 0;
            if (rows > MAX_ROWS) return FALLBACK;
        }
    }
    if (into && !may_write(into, large, small, same, loop->result)) return FALLBACK;
    PyObject *out = into ? Py_NewRef(into)
                         : PyArray_New(&PyArray_Type, large->dims, PyArray_DIMS(large->array), loop->result, NULL, NULL,
                                       0, !by_rows, NULL);
    if (!out) return NULL;
    if (!by_rows && !same_strides(large->array, out)) {  // (lengths of 1 may have any stride, which tells an order)
        if (PyArray_ITEMSIZE(large->array) == PyArray_ITEMSIZE(ARRAY(out))) {
            Py_DECREF(out);
            return FALLBACK;
        }
    }
    npy_intp count = large->size / rows, out_step = PyArray_ITEMSIZE(ARRAY(out));
    char *to = PyArray_DATA(ARRAY(out)), *from = large->data;
    bool swapped = small && small == x;
    for (npy_intp row = 0; row < rows; row++, from += count * itemsize, to += count * out_step) {
        if (!small) {
            char *places[] = {from, to};
            npy_intp steps[] = {itemsize, out_step};
            loop->function(places, &count, steps, loop->data);
        } else {
            char *other = small->data + (columns > 1 ? row % small->size * itemsize : 0);
            char *places[] = {swapped ? other : from, swapped ? from : other, to};
            npy_intp steps[] = {swapped ? step : itemsize, swapped ? itemsize : step, out_step};
            loop->function(places, &count, steps, loop->data);
        }
    }
    return out;
}

// The same over two contiguous arrays whose shapes broadcast, in a few rows; FALLBACK for others.
static PyObject *run_broadcast(const Loop *loop, PyArrayObject *x, PyArrayObject *y) {
    enum { MOST = 8 };
    const int m = PyArray_NDIM(x), n = PyArray_NDIM(y), dims = m > n ? m : n;
    npy_intp shape[MOST], steps[2][MOST], place[MOST] = {0}, size = 1, of_x = PyArray_ITEMSIZE(x), of_y = of_x;
    if (!dims || dims > MOST || !PyArray_ISCARRAY_RO(x) || !PyArray_ISCARRAY_RO(y)) return FALLBACK;
    for (int d = dims - 1; d >= 0; d--) {
        const npy_intp a = d < dims - m ? 1 : PyArray_DIM(x, d - dims + m);
        const npy_intp b = d < dims - n ? 1 : PyArray_DIM(y, d - dims + n);
        if (a != b && a != 1 && b != 1) return FALLBACK;
        shape[d] = a == 1 ? b : a;
        steps[0][d] = a == 1 ? 0 : of_x;
        steps[1][d] = b == 1 ? 0 : of_y;
        of_x *= a;
        of_y *= b;
        size *= shape[d];
    }
    npy_intp row = shape[dims - 1];
    if (!size || size > SMALL || size / row > MAX_ROWS) return FALLBACK;
    PyObject *out = PyArray_SimpleNew(dims, shape, loop->result);
    if (!out) return NULL;
    char *from_x = PyArray_BYTES(x), *from_y = PyArray_BYTES(y), *to = PyArray_BYTES(ARRAY(out));
    npy_intp step = PyArray_ITEMSIZE(ARRAY(out)), each[] = {steps[0][dims - 1], steps[1][dims - 1], step};
    for (npy_intp k = size / row; k-- > 0; to += row * step) {
        char *places[] = {from_x, from_y, to};
        loop->function(places, &row, each, loop->data);
        for (int d = dims - 2; d >= 0; d--) {  // the next row
            from_x += steps[0][d];
            from_y += steps[1][d];
            if (++place[d] < shape[d]) break;
            from_x -= steps[0][d] * shape[d];
            from_y -= steps[1][d] * shape[d];
            place[d] = 0;
        }
    }
    return out;
}

bool tt_add_in_place(PyObject *total, PyObject *array) {
    int kind = kind_of(total);
    if (kind < 0 || kind_of(array) != kind || !same_shape(total, array) || PyArray_SIZE(ARRAY(total)) > SMALL) return false;
    if (!PyArray_ISCARRAY(ARRAY(total)) || !PyArray_ISCARRAY_RO(ARRAY(array))) return false;
    npy_intp count = PyArray_SIZE(ARRAY(total)), step = PyArray_ITEMSIZE(ARRAY(total)), steps[] = {step, step, step};
    char *places[] = {PyArray_DATA(ARRAY(total)), PyArray_DATA(ARRAY(array)), PyArray_DATA(ARRAY(total))};
    if (count) additions[kind].function(places, &count, steps, additions[kind].data);
    return true;
}

// The call --------------------------------------------------------------------------------------

// A saved value: its kind, and its position.
typedef struct {
    int kind, position;
} Source;
typedef struct {
    long key;
    PyObject *plan;
    int count;  // of the sources; -1 for a plan whose values Python collects
    Source *sources;
} Plan;

// What is known of an op.
typedef struct Facts {
    PyObject *op, *kernel, *twin, *node_class, *overload_class;
    PyObject *names, *defaults, *by_name;  // of the arguments; names of those that are passed by name, or NULL
    int operands, arguments, positional, input_count, inputs[MAX_INPUTS], overload;
    bool constant[MAX_INPUTS], records, view, floating, laid, has_loops, many, several, numbers;
    bool copies;  // whether the twin writes into a copy of the first argument, which is the result
    int outputs, residuals;
    unsigned long nondiff;  // bit k: output k is not differentiable
    PyObject *result;  // converts the list of outputs; NULL if nothing does
    Loop loops[KINDS];
    int places[MAX_PARAMETERS];  // of the arguments among the twin's parameters
    Py_ssize_t twin_count;
    PyObject *const *twin_defaults;
    int plan_count;
    Plan plans[MAX_PLANS];
} Facts;

// The plan for a set of inputs (see `Op.plan_of`; -1 of an op of a sequence); NULL where it is left to Python, or after an error.
static Plan *plan_of(Facts *facts, long key) {
    for (int k = 0; k < facts->plan_count; k++) {
        if (facts->plans[k].key == key) return &facts->plans[k];
    }
    if (facts->plan_count == MAX_PLANS) return NULL;
    PyObject *number = key < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(key);
    PyObject *plan = number ? PyObject_CallFunctionObjArgs(package.plan_of, facts->op, number, NULL) : NULL;
    Py_XDECREF(number);
    if (!plan) return NULL;
    Plan *known = &facts->plans[facts->plan_count++];
    *known = (Plan){.key = key, .plan = plan, .count = -1};
    PyObject *sources = SLOT(plan, of_plan.sources);
    Py_ssize_t count = PyList_Size(sources);
    if (!(known->sources = malloc(sizeof(Source) * (size_t)(count + 1)))) return known;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *source = PyList_GetItem(sources, k);
        long kind = PyLong_AsLong(ITEM(source, 0));
        if (kind == PROPERTY || kind == PACKED || !PyLong_Check(ITEM(source, 1))) return known;
        known->sources[k] = (Source){(int)kind, (int)PyLong_AsLong(ITEM(source, 1))};
    }
    known->count = (int)count;
    return known;
}

// The results of a kernel as tensors: one, or a list; and a tuple of residuals.
typedef struct {
    PyObject *one, *several, *residuals;
} Results;

static PyObject *result_at(const Results *results, Py_ssize_t k) {
    return results->several ? PyList_GetItem(results->several, k) : results->one;
}

// The saved values of a call, as `Plan.keep` returns them. NULL without an error for an inference tensor.
static PyObject *saved_values(const Plan *plan, PyObject *const *values, const Results *results) {
    PyObject *saved = PyList_New(plan->count);
    for (int k = 0; saved && k < plan->count; k++) {
        int kind = plan->sources[k].kind, position = plan->sources[k].position;
        PyObject *item = NULL, *value = kind == OUTPUT     ? result_at(results, position)
                                        : kind == RESIDUAL ? ITEM(results->residuals, position)
                                                           : values[position];
        if (kind == PLAIN) {
            item = Py_NewRef(value);
        } else if (kind == SHAPE) {
            item = tt_shape(SLOT(value, of_tensor.array));
        } else if (kind == RESIDUAL) {
            if (PyArray_CheckExact(value)) item = PyTuple_Pack(3, value, Py_None, tt_zero);
        } else {
            PyObject *cell = SLOT(value, of_tensor.cell);
            if (PyList_Check(cell)) {
                PyObject *version = PyList_GetItem(cell, 0);
                item = kind == INPUT ? PyTuple_Pack(2, value, version)
                                     : PyTuple_Pack(3, SLOT(value, of_tensor.array), cell, version);
            }
        }
        if (item) {
            PyList_SetItem(saved, k, item);
        } else {
            Py_CLEAR(saved);
        }
    }
    return saved;
}

// The shapes of the results, or their dtypes, as a node has them.
static PyObject *each_result(const Results *results, PyObject *(*fact)(PyObject *array)) {
    Py_ssize_t count = results->several ? PyList_Size(results->several) : 1;
    if (count == 1) return fact(SLOT(result_at(results, 0), of_tensor.array));
    PyObject *all = PyTuple_New(count);
    for (Py_ssize_t k = 0; all && k < count; k++) {
        PyTuple_SetItem(all, k, fact(SLOT(result_at(results, k), of_tensor.array)));
    }
    return all;
}

static PyObject *description_of(PyObject *array) { return Py_NewRef((PyObject *)PyArray_DESCR(ARRAY(array))); }

// A new node with its saved values. `edges` is stolen. NULL if it is left to Python's `Op.node`, or after an error.
static PyObject *new_node(Facts *facts, const Plan *plan, PyObject *edges, PyObject *const *values,
                          const Results *results) {
    PyObject *node_class = facts->node_class;
    if (facts->overload >= 0 && values[facts->overload] != Py_None) node_class = facts->overload_class;
    PyObject *saved = saved_values(plan, values, results);
    PyObject *shape = saved ? each_result(results, tt_shape) : NULL;
    PyObject *dtype = shape ? each_result(results, description_of) : NULL;
    PyObject *number = dtype ? PyIter_Next(package.numbers) : NULL;
    PyObject *node = number ? PyType_GenericAlloc((PyTypeObject *)node_class, 0) : NULL;
    if (!node) {
        Py_DECREF(edges);
        Py_XDECREF(saved);
        Py_XDECREF(shape);
        Py_XDECREF(dtype);
        Py_XDECREF(number);
        return NULL;
    }
    SLOT(node, of_node.edges) = edges;
    SLOT(node, of_node.hooks) = Py_NewRef(Py_None);
    SLOT(node, of_node.number) = number;
    SLOT(node, of_node.shape) = shape;
    SLOT(node, of_node.dtype) = dtype;
    SLOT(node, of_node.plan) = Py_NewRef(plan->plan);
    SLOT(node, of_node.saved) = saved;
    if (package.add_tail != Py_None) {
        PyObject *done = PyObject_CallFunctionObjArgs(package.add_tail, node, NULL);
        if (!done) Py_CLEAR(node);
        Py_XDECREF(done);
    }
    return node;
}

// Bind a call's arguments to the op's, as Python would; false where Python must do it.
static bool bind(const Facts *facts, PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **values) {
    if (count > facts->positional) return false;
    for (Py_ssize_t i = 0; i < count; i++) values[i] = args[i];
    for (int i = (int)count; i < facts->arguments; i++) values[i] = NULL;
    Py_ssize_t named = names ? SIZE(names) : 0;
    for (Py_ssize_t k = 0; k < named; k++) {
        PyObject *name = ITEM(names, k);
        int i = (int)count;
        while (i < facts->arguments && ITEM(facts->names, i) != name) i++;
        if (i == facts->arguments) return false;
        values[i] = args[count + k];
    }
    for (int i = (int)count; i < facts->arguments; i++) {
        if (!values[i] && !(values[i] = ITEM(facts->defaults, i))) return false;
        if (values[i] == facts->op) return false;  // stands for an argument without a default
    }
    return true;
}

static bool is_number(PyObject *x) { return PyFloat_CheckExact(x) || PyLong_CheckExact(x) || PyBool_Check(x); }

// Whether no class of an option can override the call: numbers, None, strings, dtypes, tensors, and lists of such.
static bool is_usual(PyObject *x, bool in_list) {
    if (x == Py_None || is_number(x) || is_plain(x) || PyUnicode_CheckExact(x)) return true;
    if (Py_TYPE(x) == package.dtype) return true;
    if (in_list) return false;
    if (PyTuple_CheckExact(x) || Py_TYPE(x) == package.size) {
        for (Py_ssize_t i = SIZE(x); i-- > 0;) {
            if (!is_usual(ITEM(x, i), true)) return false;
        }
        return true;
    }
    if (!PyList_CheckExact(x)) return false;
    for (Py_ssize_t i = PyList_Size(x); i-- > 0;) {
        if (!is_usual(PyList_GetItem(x, i), true)) return false;
    }
    return true;
}

bool tt_read_as(PyObject *number, int kind, void *into) {
    int overflow = 0;
    double value = 0;
    if (PyLong_CheckExact(number)) {
        int64_t integer = PyLong_AsLongLongAndOverflow(number, &overflow);
        if (kind == I64) *(int64_t *)into = integer;
        value = (double)integer;
    } else if (PyFloat_CheckExact(number) && kind != I64) {
        value = PyFloat_AsDouble(number);
    } else {
        return false;
    }
    if (overflow || kind == I64) return !overflow;  // (what does not fit 64 bits is an error, whatever the dtype)
    if (kind == F64) {
        *(double *)into = value;
    } else {
        *(float *)into = (float)value;
        if (isinf(*(float *)into) && !isinf(value)) return false;
    }
    return true;
}

// Call the twin of a kernel: what it returns; FALLBACK; or NULL after an error.
static PyObject *call_twin(const Facts *facts, PyObject *const *arrays) {
    PyObject *bound[MAX_PARAMETERS];
    for (Py_ssize_t i = 0; i < facts->twin_count; i++) bound[i] = facts->twin_defaults[i];
    for (int i = 0; i < facts->arguments; i++) bound[facts->places[i]] = arrays[i];
    for (Py_ssize_t i = 0; i < facts->twin_count; i++) {
        if (!bound[i]) return FALLBACK;
    }
    return tt_call_twin(facts->twin, bound);
}

// The same, of a twin that writes: a copy of the first argument into which it has written.
static PyObject *written_copy(const Facts *facts, PyObject *const *arrays) {
    PyObject *changed[MAX_PARAMETERS];
    for (int i = 1; i < facts->arguments; i++) changed[i] = arrays[i];
    if (!in_order(ARRAY(arrays[0]))) return FALLBACK;
    PyObject *copy = changed[0] = PyArray_NewCopy(ARRAY(arrays[0]), NPY_CORDER);
    PyObject *done = copy ? call_twin(facts, changed) : NULL;
    if (done && done != FALLBACK) {
        Py_DECREF(done);
        return copy;
    }
    Py_XDECREF(copy);
    return done;
}

// Call the twin of a kernel, or else the kernel in Python. What it returns; FALLBACK; or NULL after an error.
static PyObject *call_kernel(const Facts *facts, PyObject *state, PyObject **arrays) {
    PyObject *result = facts->twin ? (facts->copies ? written_copy : call_twin)(facts, arrays) : FALLBACK;
    if (result == FALLBACK) {
        if (facts->has_loops) return FALLBACK;  // (its loops are next)
        if (facts->view) {
            result = PyObject_Vectorcall(facts->kernel, arrays, (size_t)facts->positional, facts->by_name);
        } else {
            PyObject *all[MAX_PARAMETERS + 1] = {facts->kernel}, *quietly = Py_NewRef(SLOT(state, of_state.quietly));
            for (int i = 0; i < facts->arguments; i++) all[i + 1] = arrays[i];
            result = PyObject_Vectorcall(quietly, all, (size_t)facts->positional + 1, facts->by_name);
            Py_DECREF(quietly);
        }
    }
    return result;
}

// A result in the order of dimensions that PyTorch derives from the operands; `array` is stolen.
static PyObject *laid_out(const Facts *facts, PyObject *array, PyObject *const *arrays) {
    bool settled = PyArray_IS_C_CONTIGUOUS(ARRAY(array));
    for (int i = 0; i < facts->arguments; i++) {
        if (PyArray_Check(arrays[i]) && !PyArray_IS_C_CONTIGUOUS(ARRAY(arrays[i]))) settled = false;
    }
    if (settled) return array;
    PyObject *all[MAX_PARAMETERS + 1] = {array};
    for (int i = 0; i < facts->arguments; i++) all[i + 1] = arrays[i];
    PyObject *arranged = PyObject_Vectorcall(package.arranged, all, (size_t)facts->arguments + 1, NULL);
    Py_DECREF(array);
    return arranged;
}

// The array of a call of one or two operands by NumPy's loops; FALLBACK; or NULL after an error.
static PyObject *by_loops(const Facts *facts, int kind, PyObject *const *values, PyObject *const *arrays,
                          PyObject *into) {
    if (kind < 0 || !facts->loops[kind].function) return FALLBACK;
    Operand x = of_array(arrays[0]), y;
    double number;
    int itemsize = kind == F32 ? 4 : 8;
    if (facts->operands == 1) return run_loop(&facts->loops[kind], &x, NULL, itemsize, into);
    if (arrays[1] != values[1]) {
        y = of_array(arrays[1]);
    } else if (tt_read_as(values[1], kind, &number)) {
        y = (Operand){(char *)&number, NULL, 1, 0};
    } else {
        return FALLBACK;
    }
    PyObject *out = run_loop(&facts->loops[kind], &x, &y, itemsize, into);
    return out == FALLBACK && !into && y.array ? run_broadcast(&facts->loops[kind], x.array, y.array) : out;
}

// Whether ops of one tensor and options compute with an array's dtype: not complex, 8-bit or wide unsigned numbers.
static bool is_usual_array(PyObject *array) {
    if (!PyArray_CheckExact(array) || !PyArray_ISNOTSWAPPED(ARRAY(array))) return false;
    int type = PyArray_TYPE(ARRAY(array));
    return PyTypeNum_ISSIGNED(type) || type == NPY_BOOL || type == NPY_UBYTE || type == NPY_HALF || type == NPY_FLOAT ||
           type == NPY_DOUBLE;
}

// A call on its way: what it was given, and what the function has found out.
typedef struct {
    Facts *facts;
    PyObject *state, *values[MAX_PARAMETERS], *arrays[MAX_PARAMETERS];
    PyObject *held;   // a list of the tensors' arrays: a kernel may run other threads, which may give a tensor another one
    PyObject *edges;  // a tuple, NULL where nothing is recorded
    int kind;         // of the first tensor
    bool has_number;  // in the place of the second operand
    long key;         // see `Op.plan_of`
} OpCall;

static void free_call(OpCall *c) {
    Py_CLEAR(c->held);
    Py_CLEAR(c->edges);
}

// Unwrap the tensors of a sequence; false where the call is Python's.
static bool unwrap_sequence(OpCall *c, int at) {
    PyObject *tensors = c->values[at];
    bool in_tuple = PyTuple_CheckExact(tensors);
    if (!in_tuple && !PyList_CheckExact(tensors)) return false;
    Py_ssize_t count = in_tuple ? SIZE(tensors) : PyList_Size(tensors);
    if (!count || !(c->arrays[at] = c->held = PyList_New(count))) return false;
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *x = in_tuple ? ITEM(tensors, k) : PyList_GetItem(tensors, k);
        if (!is_plain(x) || !is_usual_array(SLOT(x, of_tensor.array))) return false;
        PyList_SetItem(c->held, k, Py_NewRef(SLOT(x, of_tensor.array)));
    }
    return true;
}

// Set the arrays of the arguments; false where the call is Python's.
static bool unwrap(Callable *call, OpCall *c) {
    const Facts *facts = c->facts;
    for (int i = 0; i < facts->arguments; i++) c->arrays[i] = c->values[i];
    if (facts->many) {
        if (!unwrap_sequence(c, facts->inputs[0])) return false;
    } else {
        c->held = PyList_New(0);
    }
    for (int k = 0; k < facts->input_count && !facts->many; k++) {
        PyObject *x = c->values[facts->inputs[k]];
        if (!is_plain(x)) {
            if (!k || !(is_number(x) || (x == Py_None && !facts->operands))) return false;
            continue;
        }
        PyObject *array = c->arrays[facts->inputs[k]] = SLOT(x, of_tensor.array);
        int kind = kind_of(array);
        if (kind < 0 && (facts->operands || !is_usual_array(array))) return false;
        if (!k) c->kind = kind;
        else if (facts->operands && kind != c->kind) return false;
        c->key |= 256L << k;
        if (!c->held || PyList_Append(c->held, array)) return false;
    }
    c->has_number = facts->operands == 2 && !(c->key & 512);
    if ((facts->floating && c->kind == I64) || (c->has_number && call->of_tensors)) return false;
    // A public function or a member asks the classes of all of its arguments.
    for (int i = 0; call->owner && i < facts->arguments; i++) {
        if (c->arrays[i] == c->values[i] && !is_usual(c->values[i], false)) return false;
    }
    return true;
}

// Put the edge of a tensor, if it needs a gradient, into the tuple; false after an error.
static bool find_edge(OpCall *c, PyObject *x, Py_ssize_t k, Py_ssize_t count, bool constant) {
    if (!tt_refreshed(x)) return false;
    if (constant || SLOT(x, of_tensor.requires_grad) != Py_True) return true;
    if (!c->edges) {
        if (!(c->edges = PyTuple_New(count))) return false;
        for (Py_ssize_t i = 0; i < count; i++) PyTuple_SetItem(c->edges, i, Py_NewRef(Py_None));
    }
    PyObject *edge = tt_edge_of(x);
    return edge && !PyTuple_SetItem(c->edges, k, edge);
}

static bool find_edges(OpCall *c) {
    const Facts *facts = c->facts;
    if (!facts->records || SLOT(c->state, of_state.grad) != Py_True) return true;
    if (facts->many) {
        PyObject *tensors = c->values[facts->inputs[0]];
        Py_ssize_t count = PyList_Size(c->held);
        for (Py_ssize_t k = 0; k < count; k++) {
            PyObject *x = PyTuple_CheckExact(tensors) ? ITEM(tensors, k) : PyList_GetItem(tensors, k);
            if (!find_edge(c, x, k, count, false)) return false;
        }
        return true;
    }
    for (int k = 0; k < facts->input_count; k++) {
        if (!(c->key & 256L << k)) continue;
        if (!find_edge(c, c->values[facts->inputs[k]], k, facts->input_count, facts->constant[k])) return false;
        if (c->edges && ITEM(c->edges, k) != Py_None) c->key |= 1L << k;
    }
    return true;
}

// Make the number in the place of the second operand an array of the first one's dtype; false where it is left to Python.
static bool as_operand(OpCall *c) {
    double number;  // (or an int64)
    if (c->kind < 0 || !tt_read_as(c->values[1], c->kind, &number)) return false;
    PyObject *array = PyArray_SimpleNew(0, NULL, tt_descriptions[c->kind]->type_num);
    if (!array) return false;
    memcpy(PyArray_DATA(ARRAY(array)), &number, (size_t)PyArray_ITEMSIZE(ARRAY(array)));
    bool kept = !PyList_Append(c->held, array);
    if (kept) c->arrays[1] = array;
    Py_DECREF(array);
    return kept;
}

// What the kernel returns; FALLBACK (borrowed) where the call is Python's; or NULL after an error.
static PyObject *compute(OpCall *c) {
    const Facts *facts = c->facts;
    bool in_python = facts->operands && !facts->has_loops && !facts->twin;
    if (in_python && PyArray_SIZE(ARRAY(c->arrays[0])) > SMALL) return FALLBACK;  // (Python shares it among threads)
    PyObject *array = FALLBACK;
    if (facts->has_loops && facts->operands == 2) array = by_loops(facts, c->kind, c->values, c->arrays, NULL);
    bool number = c->has_number && !(facts->numbers && c->kind >= 0 && c->kind != I64 && !PyBool_Check(c->values[1]));
    if (array == FALLBACK && number && !facts->has_loops) number = !as_operand(c);
    if (array == FALLBACK && !number && (facts->twin || !facts->has_loops)) {
        array = call_kernel(facts, c->state, c->arrays);
    }
    if (array == FALLBACK && facts->has_loops && facts->operands == 1) {
        array = by_loops(facts, c->kind, c->values, c->arrays, NULL);
    }
    return array;
}

static bool is_differentiable(PyObject *array) {
    char kind = PyArray_DESCR(ARRAY(array))->kind;
    return kind == 'f' || kind == 'c' || kind == 'V';  // (`DIFFERENTIABLE`)
}

// An array, stolen, as a tensor: a view of the first argument if the op returns views. NULL after an error.
static PyObject *wrapped(OpCall *c, PyObject *array) {
    const Facts *facts = c->facts;
    if (facts->laid) array = laid_out(facts, array, c->arrays);
    PyObject *out = tt_new_tensor(array, facts->view ? Py_NewRef(Py_None) : tt_new_cell(c->state));
    if (out && facts->view && !tt_make_view(out, c->values[facts->inputs[0]], c->state, facts->outputs != 1)) {
        Py_CLEAR(out);
    }
    return out;
}

// The arguments of a call as a tuple.
static PyObject *all_values(const OpCall *c) {
    PyObject *all = PyTuple_New(c->facts->arguments);
    for (int i = 0; all && i < c->facts->arguments; i++) PyTuple_SetItem(all, i, Py_NewRef(c->values[i]));
    return all;
}

// Which inputs need a gradient, for Python's `Op.node`: None where the inputs are a sequence.
static PyObject *key_of(const OpCall *c) { return c->facts->many ? Py_NewRef(Py_None) : PyLong_FromLong(c->key); }

static bool set_edge(PyObject *out, PyObject *node, PyObject *number) {
    PyObject *edge = PyTuple_Pack(2, node, number);
    if (!edge) return false;
    set_slot(out, of_tensor.edge, edge);
    set_slot(out, of_tensor.requires_grad, Py_NewRef(Py_True));
    return true;
}

// Give a result its node; `plan` is NULL where Python makes it. False after an error.
static bool record(OpCall *c, const Plan *plan, PyObject *out) {
    Facts *facts = c->facts;
    PyObject *array = SLOT(out, of_tensor.array), *node = NULL;
    if (plan && plan->count >= 0 && !PyArray_ISCOMPLEX(ARRAY(array))) {
        node = new_node(facts, plan, Py_NewRef(c->edges), c->values, &(Results){.one = out});
        if (!node && PyErr_Occurred()) return false;
    }
    if (!node) {
        PyObject *all = all_values(c), *key = key_of(c);
        if (all && key) {
            node = PyObject_CallFunctionObjArgs(package.node_of, facts->op, key, c->edges, all, array,
                                                SLOT(out, of_tensor.cell), NULL);
        }
        Py_XDECREF(all);
        Py_XDECREF(key);
    }
    bool done = node && set_edge(out, node, tt_zero);
    Py_XDECREF(node);
    return done;
}

// The same for several results: Python's `record_several` says which of them get it.
static bool record_several(OpCall *c, PyObject *outs, PyObject *residuals) {
    static PyObject *last_name;
    Facts *facts = c->facts;
    Py_ssize_t count = PyList_Size(outs), last = -1;
    bool usual = !facts->many && count == facts->outputs;
    PyObject *arrays = PyTuple_New(count), *all = NULL, *key = NULL, *node = NULL, *done = NULL;
    for (Py_ssize_t k = 0; arrays && k < count; k++) {
        PyObject *out = PyList_GetItem(outs, k), *array = out == Py_None ? out : SLOT(out, of_tensor.array);
        if (array != Py_None && is_differentiable(array) && !(facts->nondiff >> k & 1)) last = k;
        usual = usual && array != Py_None && !PyArray_ISCOMPLEX(ARRAY(array));
        PyTuple_SetItem(arrays, k, Py_NewRef(array));
    }
    const Plan *plan = arrays && usual && last >= 0 ? plan_of(facts, c->key) : NULL;
    if (plan && plan->count >= 0) {
        node = new_node(facts, plan, Py_NewRef(c->edges), c->values, &(Results){NULL, outs, residuals});
    }
    for (Py_ssize_t k = 0; k <= last && node; k++) {
        if (!is_differentiable(ITEM(arrays, k)) || facts->nondiff >> k & 1) continue;
        PyObject *number = PyLong_FromSsize_t(k);
        bool set = number && set_edge(PyList_GetItem(outs, k), node, number);
        if (set && k == last) set = !PyObject_SetAttr(facts->op, interned(&last_name, "last"), number);
        Py_XDECREF(number);
        if (!set) Py_CLEAR(node);
    }
    if (!node && !PyErr_Occurred() && last >= 0 && (all = all_values(c)) && (key = key_of(c))) {
        done = PyObject_CallFunctionObjArgs(package.record_several, facts->op, key, c->edges, all, outs, arrays,
                                            residuals, NULL);
    }
    Py_XDECREF(arrays);
    Py_XDECREF(all);
    Py_XDECREF(key);
    Py_XDECREF(node);
    Py_XDECREF(done);
    return !PyErr_Occurred();
}

// What a kernel returns, stolen, as an array: a scalar of NumPy becomes one. NULL for anything else.
static PyObject *as_array(PyObject *returned) {
    if (PyArray_CheckExact(returned)) return returned;
    PyObject *array = PyArray_IsScalar(returned, Generic) ? PyArray_FromScalar(returned, NULL) : NULL;
    Py_DECREF(returned);
    return array;
}

// The results of a kernel that returns several arrays, as tensors: `results` is stolen. NULL after an error.
static PyObject *wrap_several(OpCall *c, PyObject *results) {
    const Facts *facts = c->facts;
    PyObject *single = facts->outputs == 1 && !facts->residuals ? PyTuple_Pack(1, results) : Py_NewRef(results);
    Py_DECREF(results);
    Py_ssize_t count = single ? PySequence_Size(single) - facts->residuals : -1;
    if (count < 0) {
        Py_XDECREF(single);
        return NULL;
    }
    PyObject *outs = PyList_New(count), *made = NULL, *residuals = NULL;
    bool done = outs != NULL;
    for (Py_ssize_t k = 0; done && k < count; k++) {
        PyObject *out = PySequence_GetItem(single, k);
        if (out && out != Py_None && (out = as_array(out))) out = wrapped(c, out);
        if ((done = out != NULL)) PyList_SetItem(outs, k, out);
    }
    if (done && c->edges) {
        residuals = facts->residuals ? PySequence_GetSlice(single, count, count + facts->residuals) : PyTuple_New(0);
        done = residuals && record_several(c, outs, residuals);
        Py_XDECREF(residuals);
    }
    if (done && facts->result) {
        made = PyObject_CallFunctionObjArgs(facts->result, outs, NULL);
    } else if (done) {
        made = facts->outputs == 1 ? Py_NewRef(PyList_GetItem(outs, 0)) : PyList_AsTuple(outs);
    }
    Py_XDECREF(outs);
    Py_DECREF(single);
    return made;
}

// The result of a kernel as a tensor with its node: `array` is stolen. NULL after an error, or where it is Python's.
static PyObject *wrap_one(OpCall *c, PyObject *array) {
    if (!(array = as_array(array))) return NULL;
    PyObject *out = wrapped(c, array);
    if (!out || !c->edges || !is_differentiable(SLOT(out, of_tensor.array))) return out;
    Plan *plan = plan_of(c->facts, c->facts->many ? -1 : c->key);
    if ((!plan && PyErr_Occurred()) || !record(c, plan, out)) Py_CLEAR(out);
    return out;
}

// The result of a call, FALLBACK (borrowed), or NULL after an error. `made` is what the kernel has returned, or NULL.
static PyObject *call_op(Callable *call, PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject *made) {
    Facts *facts = call->facts;
    OpCall c = {.facts = facts, .state = tt_state(), .kind = -1};
    if (!c.state || SLOT(c.state, of_state.modes) != Py_None || !no_function_modes()) return FALLBACK;
    if (!names && count == facts->arguments && count == facts->positional) {
        for (Py_ssize_t i = 0; i < count; i++) c.values[i] = args[i];
    } else if (!bind(facts, args, count, names, c.values)) {
        return FALLBACK;
    }
    PyObject *result = FALLBACK;
    if (unwrap(call, &c) && find_edges(&c)) {
        result = made ? Py_NewRef(made) : compute(&c);
        if (result && result != FALLBACK) result = (facts->several ? wrap_several : wrap_one)(&c, result);
    }
    free_call(&c);
    // The interpreter's own errors are passed on. Python repeats what fails otherwise, for PyTorch's error and its notes.
    if (PyErr_Occurred() &&
        (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError))) {
        return NULL;
    }
    if (!result || result == FALLBACK) PyErr_Clear();
    return result ? result : FALLBACK;
}

bool tt_may_need_grad(PyObject *x) {
    PyObject *view = SLOT(x, of_tensor.view);
    if (SLOT(x, of_tensor.requires_grad) != Py_False) return true;
    if (view == Py_None) return false;
    return Py_TYPE(view) != package.view || !is_plain(SLOT(view, of_view.base)) ||
           SLOT(SLOT(view, of_view.base), of_tensor.requires_grad) != Py_False;
}

// The in-place form of an op of two operands, where nothing is recorded.
static PyObject *write_op(Callable *call, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Facts *facts = call->facts;
    PyObject *state = tt_state();
    if (!state || SLOT(state, of_state.modes) != Py_None || !no_function_modes()) return FALLBACK;
    if (count != 2 || names || SLOT(state, of_state.run) != Py_None || !is_plain(args[0])) return FALLBACK;
    PyObject *x = args[0], *y = args[1], *cell = SLOT(x, of_tensor.cell);
    PyObject *arrays[] = {SLOT(x, of_tensor.array), is_plain(y) ? SLOT(y, of_tensor.array) : y};
    int kind = kind_of(arrays[0]);
    if (kind < 0 || (facts->floating && kind == I64) || !PyList_Check(cell)) return FALLBACK;
    if (is_plain(y) ? kind_of(arrays[1]) != kind : !is_number(y)) return FALLBACK;
    if (SLOT(state, of_state.grad) == Py_True && (tt_may_need_grad(x) || (is_plain(y) && tt_may_need_grad(y)))) return FALLBACK;
    PyObject *done = by_loops(facts, kind, args, arrays, arrays[0]);
    if (done == FALLBACK || !done) return done;
    Py_DECREF(done);
    return tt_count_write(cell) ? Py_NewRef(x) : NULL;
}

// Whether two tensors share one memory: see `on_one_memory` of core/inplace.py.
static bool on_one_memory(PyObject *x, PyObject *y) {
    PyObject *a = SLOT(x, of_tensor.array), *b = SLOT(y, of_tensor.array);
    PyObject *base_of_a = PyArray_BASE(ARRAY(a)), *base_of_b = PyArray_BASE(ARRAY(b));
    return SLOT(x, of_tensor.cell) == SLOT(y, of_tensor.cell) || (base_of_a ? base_of_a : a) == (base_of_b ? base_of_b : b);
}

// The in-place form of an op whose kernel writes into its first argument, by the kernel's twin, where nothing is recorded.
static PyObject *write_twin(Callable *call, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Facts *facts = call->facts;
    OpCall c = {.facts = facts, .state = tt_state(), .kind = -1};
    if (!c.state || SLOT(c.state, of_state.modes) != Py_None || SLOT(c.state, of_state.run) != Py_None) return FALLBACK;
    if (!no_function_modes() || !bind(facts, args, count, names, c.values)) return FALLBACK;
    PyObject *x = c.values[0], *done = FALLBACK;
    if (unwrap(call, &c) && PyList_Check(SLOT(x, of_tensor.cell)) && PyArray_ISCARRAY(ARRAY(c.arrays[0]))) {
        bool usual = true;
        for (int k = 0; usual && k < facts->input_count; k++) {
            PyObject *each = c.values[facts->inputs[k]];
            if (!(c.key & 256L << k)) continue;
            usual = (!k || !on_one_memory(each, x)) && (SLOT(c.state, of_state.grad) != Py_True || !tt_may_need_grad(each));
        }
        if (usual) done = call_twin(facts, c.arrays);
    }
    free_call(&c);
    if (!done) PyErr_Clear();
    if (!done || done == FALLBACK) return FALLBACK;
    Py_DECREF(done);
    return tt_count_write(SLOT(x, of_tensor.cell)) ? Py_NewRef(x) : NULL;
}

PyObject *tt_call_op(Callable *call, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    return call_op(call, args, count, names, NULL);
}

PyObject *tt_call_of(PyObject *call, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    bool of_op = Py_TYPE(call) == callable_type && ((Callable *)call)->facts;
    return of_op ? ((Callable *)call)->run((Callable *)call, args, count, names) : FALLBACK;
}

PyObject *tt_result_of(PyObject *call, PyObject *const *args, Py_ssize_t count, PyObject *array) {
    PyObject *result = FALLBACK;
    if (!array) {
        PyErr_Clear();
        return FALLBACK;
    }
    if (Py_TYPE(call) == callable_type && ((Callable *)call)->facts) {
        result = call_op((Callable *)call, args, count, NULL, array);
    }
    Py_DECREF(array);
    return result;
}

// Callables -------------------------------------------------------------------------------------

static PyObject *callable_vectorcall(PyObject *self, PyObject *const *args, size_t count, PyObject *names) {
    Callable *call = (Callable *)self;
    PyObject *result = call->run(call, args, (Py_ssize_t)(count & ~PLACE_BEFORE), names);
    return result == FALLBACK ? PyObject_Vectorcall(call->definition, args, count, names) : result;
}

// The same through `tp_call`, for callers that know no vectorcall.
static PyObject *callable_call(PyObject *self, PyObject *args, PyObject *keywords) {
    Callable *call = (Callable *)self;
    if (!keywords && PyTuple_Size(args) <= MAX_PARAMETERS) {
        PyObject *items[MAX_PARAMETERS];
        Py_ssize_t count = PyTuple_Size(args);
        for (Py_ssize_t i = 0; i < count; i++) items[i] = PyTuple_GetItem(args, i);
        PyObject *result = call->run(call, items, count, NULL);
        if (result != FALLBACK) return result;
    }
    return PyObject_Call(call->definition, args, keywords);
}

static PyObject *callable_get(PyObject *self, PyObject *instance, PyObject *owner) {
    (void)owner;
    if (!instance || instance == Py_None) return Py_NewRef(self);
    return PyObject_CallFunctionObjArgs(package.method, self, instance, NULL);
}

// All references of the facts of an op.
#define EACH_FACT(do)                                                                                              \
    do(facts->op) do(facts->kernel) do(facts->twin) do(facts->node_class) do(facts->overload_class) do(facts->names) \
    do(facts->defaults) do(facts->by_name) do(facts->result)

static int callable_traverse(PyObject *self, visitproc visit, void *arg) {
    Callable *call = (Callable *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(call->attributes);
    Py_VISIT(call->definition);
    Py_VISIT(call->others);
    Py_VISIT(call->owner);
    Facts *facts = call->owner ? NULL : call->facts;
    if (!facts) return 0;
#define VISIT(object) Py_VISIT(object);
    EACH_FACT(VISIT)
    for (int k = 0; k < facts->plan_count; k++) Py_VISIT(facts->plans[k].plan);
    return 0;
}

static int callable_clear(PyObject *self) {
    Callable *call = (Callable *)self;
    Facts *facts = call->owner ? NULL : call->facts;
    call->facts = NULL;
    if (facts) {
#define CLEAR(object) Py_CLEAR(object);
        EACH_FACT(CLEAR)
        for (int k = 0; k < facts->plan_count; k++) {
            Py_CLEAR(facts->plans[k].plan);
            free(facts->plans[k].sources);
        }
        free(facts);
    }
    Py_CLEAR(call->attributes);
    Py_CLEAR(call->definition);
    Py_CLEAR(call->others);
    Py_CLEAR(call->owner);
    return 0;
}

static void callable_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (((Callable *)self)->weak_references) PyObject_ClearWeakRefs(self);
    callable_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *callable_repr(PyObject *self) {
    PyObject *name = PyObject_GetAttrString(self, "__qualname__");
    PyObject *text = name ? PyUnicode_FromFormat("<function %U at %p>", name, self) : NULL;
    Py_XDECREF(name);
    return text;
}

// Functions are pickled and copied as global names.
static PyObject *callable_reduce(PyObject *self, PyObject *none) {
    (void)none;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyMethodDef callable_methods[] = {{"__reduce__", callable_reduce, METH_NOARGS, NULL}, {0}};

static PyMemberDef callable_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(Callable, attributes), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Callable, weak_references), READONLY, NULL},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Callable, vectorcall), READONLY, NULL},
    {"definition", T_OBJECT, offsetof(Callable, definition), READONLY, NULL},
    {NULL},
};
// To Python's tools it is the function that it stands for: `isinstance` asks an object for its class.
static PyObject *callable_class(PyObject *self, void *context) {
    (void)context;
    return Py_NewRef((PyObject *)Py_TYPE(((Callable *)self)->definition));
}

static PyGetSetDef callable_getters[] = {
    {"__class__", callable_class, NULL, "The class of the definition.", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};
static PyType_Slot callable_slots[] = {
    {Py_tp_call, callable_call},         {Py_tp_dealloc, callable_free},   {Py_tp_traverse, callable_traverse},
    {Py_tp_clear, callable_clear},       {Py_tp_members, callable_members}, {Py_tp_getset, callable_getters},
    {Py_tp_descr_get, callable_get},     {Py_tp_repr, callable_repr},      {Py_tp_methods, callable_methods}, {0},
};
static PyType_Spec callable_spec = {
    "tinytorch.kernels.native.function", sizeof(Callable), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR |
        Py_TPFLAGS_HAVE_VECTORCALL,
    callable_slots};

static Callable *new_callable(PyObject *definition, Run run) {
    Callable *call = (Callable *)PyType_GenericAlloc(callable_type, 0);
    if (!call) return NULL;
    call->vectorcall = callable_vectorcall;
    call->definition = Py_NewRef(definition);
    call->run = run;
    return call;
}

// function_of_op(definition, op, kernel, ufunc, twin, node_class, overload_class, names, defaults, by_name, inputs,
// constant, operands, positional, overload, records, view, floating, laid, writes, result, many, outputs, residuals,
// numbers, of_tensors, copies): see `core/native.py`. Among the defaults the op stands for an argument without one.
static PyObject *function_of_op(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *definition, *op, *kernel, *ufunc, *twin, *node_class, *overload_class, *names, *defaults, *by_name;
    PyObject *inputs, *constant, *converts;
    int operands, positional, overload, records, view, floating, laid, writes, many, outputs, residuals, numbers;
    int of_tensors, copies;
    if (!PyArg_ParseTuple(args, "OOOOOOOO!O!OO!O!iiipppppOpiippp:function_of_op", &definition, &op, &kernel, &ufunc, &twin,
                          &node_class, &overload_class, &PyTuple_Type, &names, &PyTuple_Type, &defaults, &by_name,
                          &PyTuple_Type, &inputs, &PyTuple_Type, &constant, &operands, &positional, &overload, &records,
                          &view, &floating, &laid, &writes, &converts, &many, &outputs, &residuals,
                          &numbers, &of_tensors, &copies)) {
        return NULL;
    }
    if (SIZE(inputs) > MAX_INPUTS || SIZE(names) > MAX_PARAMETERS) Py_RETURN_NONE;
    Callable *call = new_callable(definition, !writes ? tt_call_op : copies ? write_twin : write_op);
    if (!call) return NULL;
    call->of_tensors = of_tensors;
    Facts *facts = call->facts = calloc(1, sizeof(Facts));
    if (!facts) {
        Py_DECREF(call);
        return PyErr_NoMemory();
    }
    *facts = (Facts){
        .op = Py_NewRef(op), .kernel = Py_NewRef(kernel), .node_class = Py_NewRef(node_class),
        .overload_class = Py_NewRef(overload_class), .names = Py_NewRef(names), .defaults = Py_NewRef(defaults),
        .by_name = by_name == Py_None ? NULL : Py_NewRef(by_name), .operands = operands, .arguments = (int)SIZE(names),
        .positional = positional, .overload = overload, .records = records, .view = view, .floating = floating,
        .laid = laid, .input_count = (int)SIZE(inputs), .many = many, .outputs = outputs, .residuals = residuals,
        .numbers = numbers, .copies = copies,
        .result = converts == Py_None ? NULL : Py_NewRef(converts),
        .several = outputs != 1 || residuals || converts != Py_None,
    };
    for (int k = 0; k < facts->input_count; k++) {
        facts->inputs[k] = (int)PyLong_AsLong(ITEM(inputs, k));
        facts->constant[k] = ITEM(constant, k) == Py_True;
    }
    PyObject *nondiff = PyObject_GetAttrString(op, "nondiff");
    for (Py_ssize_t k = nondiff ? SIZE(nondiff) : 0; k-- > 0;) {
        facts->nondiff |= 1UL << PyLong_AsLong(ITEM(nondiff, k));
    }
    Py_XDECREF(nondiff);
    if (operands && Py_TYPE(ufunc) == Py_TYPE(package.add) && ((PyUFuncObject *)ufunc)->nin == operands) {
        facts->has_loops = true;
        for (int kind = 0; kind < (ufunc == kernel ? KINDS : I64); kind++) {
            find_loop((PyUFuncObject *)ufunc, tt_descriptions[kind]->type_num, &facts->loops[kind]);
        }
    }
    if (tt_is_quiet_twin(twin)) {
        facts->twin = Py_NewRef(twin);
        facts->twin_defaults = tt_defaults_of(twin, &facts->twin_count);
        for (int i = 0; facts->twin && i < facts->arguments; i++) {
            Py_ssize_t place = i < positional ? i : tt_place_of(twin, ITEM(names, i));
            facts->places[i] = (int)place;
            if (place < 0 || place >= facts->twin_count) Py_CLEAR(facts->twin);
        }
    }
    if (writes && copies && !facts->twin) {
        Py_DECREF(call);
        Py_RETURN_NONE;
    }
    return (PyObject *)call;
}

// asking(definition, function): the same op, for callers whose arguments' classes are asked: those of a public
// function or a member, the definition.
static PyObject *asking(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *definition, *function;
    if (!PyArg_ParseTuple(args, "OO!:asking", &definition, callable_type, &function)) return NULL;
    Callable *of = (Callable *)function;
    Callable *call = new_callable(definition, of->run);
    if (!call) return NULL;
    call->facts = of->facts;
    call->of_tensors = of->of_tensors;
    call->others = Py_XNewRef(of->others);
    call->owner = (Callable *)Py_NewRef((PyObject *)(of->owner ? of->owner : of));
    return (PyObject *)call;
}

// method(definition, name, others): a short member of Tensor, see methods.c; None where there is none of that name.
static PyObject *method(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *definition, *others;
    const char *name;
    if (!PyArg_ParseTuple(args, "OsO!:method", &definition, &name, &PyTuple_Type, &others)) return NULL;
    Run run = tt_method(name);
    if (!run) return PyErr_Format(PyExc_LookupError, "there is no method %s", name);
    Callable *call = new_callable(definition, run);
    if (call) call->others = Py_NewRef(others);
    return (PyObject *)call;
}

// Configuration ---------------------------------------------------------------------------------

// Where a slot lies in the instances of a class: a new object is written to it, and then looked for.
static bool find_slot(PyObject *instance, const char *name, Py_ssize_t *found) {
    PyObject *mark = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type), *size = NULL;
    PyObject *before = PyObject_GetAttrString(instance, name);
    if (!before) PyErr_Clear();
    *found = -1;
    if (mark && !PyObject_SetAttrString(instance, name, mark) &&
        (size = PyObject_GetAttrString((PyObject *)Py_TYPE(instance), "__basicsize__"))) {
        Py_ssize_t end = PyLong_AsSsize_t(size);
        for (Py_ssize_t place = sizeof(PyObject); place < end && *found < 0; place += sizeof(PyObject *)) {
            if (SLOT(instance, place) == mark) *found = place;
        }
        PyObject_SetAttrString(instance, name, before ? before : Py_None);
    }
    Py_XDECREF(before);
    Py_XDECREF(mark);
    Py_XDECREF(size);
    if (*found < 0 && !PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "no slot %s", name);
    return *found >= 0;
}

// Find the slots of one object per class, in the order of the structs in calls.h.
static bool find_slots(PyObject *instance, Py_ssize_t *to, const char *const *names) {
    for (; *names; names++, to++) {
        if (!find_slot(instance, *names, to)) return false;
    }
    return true;
}
#define FIND(instance, slots, ...) find_slots(instance, (Py_ssize_t *)&(slots), (const char *const[]){__VA_ARGS__, NULL})

// configure(instances, objects, slots of Tensor): see `core/native.py`. False in a second interpreter.
static PyObject *configure(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *instances, *objects, *slots;
    if (!PyArg_ParseTuple(args, "O!O!O!:configure", &PyTuple_Type, &instances, &PyTuple_Type, &objects, &PyTuple_Type,
                          &slots)) {
        return NULL;
    }
    enum { OBJECTS = sizeof(Package) / sizeof(PyObject *), SLOTS = sizeof(TensorSlots) / sizeof(Py_ssize_t) };
    if (SIZE(instances) != 8 || SIZE(objects) != OBJECTS || SIZE(slots) != SLOTS) {
        return PyErr_Format(PyExc_ValueError, "core/native.py and kernels/native/calls.h differ");
    }
    if (package.tensor) Py_RETURN_FALSE;
    if (!FIND(ITEM(instances, 0), of_tensor, "_array", "_cell", "_requires_grad", "_edge", "_grad", "_view", "_hooks",
              "_accumulator") ||
        !FIND(ITEM(instances, 1), of_node, "dtype", "edges", "hooks", "number", "plan", "saved", "shape") ||
        !FIND(ITEM(instances, 2), of_state, "grad", "inference", "modes", "callbacks", "quietly", "run", "depth", "trial") ||
        !FIND(ITEM(instances, 3), of_view, "array", "base", "kind", "own", "seen") ||
        !FIND(ITEM(instances, 4), of_plan, "rules", "sources", "holds_tensors", "joint", "many", "any_number") ||
        !FIND(ITEM(instances, 5), of_leaf, "variable") || !FIND(ITEM(instances, 6), of_runs, "begun") ||
        !FIND(ITEM(instances, 7), of_function_modes, "on")) {
        return NULL;
    }
    for (int k = 0; k < OBJECTS; k++) ((PyObject **)&package)[k] = Py_NewRef(ITEM(objects, k));
    tt_zero = PyLong_FromLong(0);
    tt_one = PyLong_FromLong(1);
    const int numbers[KINDS] = {NPY_FLOAT, NPY_DOUBLE, NPY_INT64};
    for (int kind = 0; kind < KINDS; kind++) {
        tt_descriptions[kind] = PyArray_DescrFromType(numbers[kind]);
        find_loop((PyUFuncObject *)package.add, numbers[kind], &additions[kind]);
    }
    Py_RETURN_TRUE;
}

// set_parameter(class): the class of parameters, which is defined later.
static PyObject *set_parameter(PyObject *module, PyObject *class) {
    (void)module;
    if (package.parameter == (PyTypeObject *)Py_None) package.parameter = (PyTypeObject *)Py_NewRef(class);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"configure", configure, METH_VARARGS, NULL},
    {"set_parameter", set_parameter, METH_O, NULL},
    {"function_of_op", function_of_op, METH_VARARGS, NULL},
    {"asking", asking, METH_VARARGS, NULL},
    {"method", method, METH_VARARGS, NULL},
    {"run_walk", tt_run_walk, METH_VARARGS, NULL},
    {NULL},
};

int tt_add_calls(PyObject *module) {
    callable_type = (PyTypeObject *)PyType_FromSpec(&callable_spec);
    if (!callable_type || PyModule_AddObjectRef(module, "function", (PyObject *)callable_type)) return -1;
    return PyModule_AddFunctions(module, methods);
}
