// What call.c (the call of an op), methods.c (short members of Tensor) and walk.c (the walk backward) share: where the
// slots of the package's Python objects lie, and the few steps that all take with tensors. These files are twins of
// Python functions, like kernels: they do the common case of a call (tensors of the class Tensor or Parameter on the CPU,
// no mode), and leave all else to the definition in Python before they have changed anything.
#ifndef TINYTORCH_CALLS_H
#define TINYTORCH_CALLS_H

#include "native.h"

// Python's vectorcall. `PyObject_Vectorcall` is exported since 3.9 and in the limited API since 3.12, as is the flag.
PyAPI_FUNC(PyObject *) PyObject_Vectorcall(PyObject *callable, PyObject *const *args, size_t count, PyObject *names);
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
typedef PyObject *(*vectorcallfunc)(PyObject *callable, PyObject *const *args, size_t count, PyObject *names);
#endif
// Says that a callee may write into the place before the arguments.
#define PLACE_BEFORE ((size_t)1 << (8 * sizeof(size_t) - 1))

#define ITEM PyTuple_GetItem
#define SIZE PyTuple_Size

// The classes are ordinary Python classes with `__slots__`; `configure` finds where Python has put each slot.
#define SLOT(object, offset) (*(PyObject **)((char *)(object) + (offset)))

typedef struct {
    Py_ssize_t array, cell, requires_grad, edge, grad, view, hooks, accumulator;
} TensorSlots;
typedef struct {
    Py_ssize_t dtype, edges, hooks, number, plan, saved, shape;
} NodeSlots;
typedef struct {
    Py_ssize_t grad, inference, modes, callbacks, quietly, run, depth, trial;
} StateSlots;
typedef struct {
    Py_ssize_t array, base, kind, own, seen;
} ViewSlots;
typedef struct {
    Py_ssize_t rules, sources, holds_tensors, joint, many, any_number;
} PlanSlots;

// How a value is saved, as in core/node.py.
enum { INPUT, OUTPUT, PLAIN, RESIDUAL, SHAPE, PROPERTY, PACKED, KEPT };

extern TensorSlots of_tensor;
extern NodeSlots of_node;
extern StateSlots of_state;
extern ViewSlots of_view;
extern PlanSlots of_plan;
extern Py_ssize_t of_leaf, of_runs, of_function_modes;  // AccumulateGrad.variable, _Runs.begun, _FunctionModes.on

// What the package has given to `configure`, in the order of `core/native.py`.
typedef struct {
    PyTypeObject *tensor, *parameter, *size, *dtype, *view, *op_node, *accumulate_grad, *weak_reference;
    PyObject *local, *runs, *function_modes, *numbers, *add, *deepest, *dtypes;
    PyObject *refresh, *leaf_edge, *plan_of, *node_of, *record_several, *add_tail, *method, *arranged;  // of calls
    PyObject *add_into;  // of walks
} Package;
extern Package package;

extern PyArray_Descr *tt_descriptions[KINDS];
extern PyObject *tt_zero, *tt_one;

// Whether an array is of one of the kinds that ufuncs are called with directly; -1 otherwise.
static inline int kind_of(PyObject *array) {
    if (!PyArray_CheckExact(array)) return -1;
    PyArray_Descr *description = PyArray_DESCR(ARRAY(array));
    for (int kind = 0; kind < KINDS; kind++) {
        if (description == tt_descriptions[kind]) return kind;
    }
    return -1;
}

// A tensor whose slots hold what they are named after: not of a subclass, which may answer for them by properties.
static inline bool is_plain(PyObject *x) {
    return Py_TYPE(x) == package.tensor || Py_TYPE(x) == package.parameter;
}

static inline void set_slot(PyObject *object, Py_ssize_t offset, PyObject *stolen) {
    PyObject *before = SLOT(object, offset);
    SLOT(object, offset) = stolen;
    Py_XDECREF(before);
}

static inline bool no_function_modes(void) { return SLOT(package.function_modes, of_function_modes) == tt_zero; }

// A function of Python's with a twin: calls `run`, and the definition with the arguments that `run` leaves to it. As an
// attribute of a class it is a method. What `run` reads follows in the same memory.
typedef struct Callable Callable;
typedef PyObject *(*Run)(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
struct Callable {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject *attributes, *weak_references, *definition;
    PyObject *others;  // a tuple: what `run` calls
    struct Facts *facts;
    Callable *owner;  // the callable that `facts` belongs to, NULL if that is this one
    bool of_tensors;  // whether a number in the place of a tensor is an error
    Run run;
};

// The twin of a kernel of Python, called with its arguments in order: see `twin_call` in module.c.
PyObject *tt_call_twin(PyObject *twin, PyObject **bound);
bool tt_is_quiet_twin(PyObject *object);  // of a kernel that never warns of floating-point errors
Py_ssize_t tt_place_of(PyObject *twin, PyObject *name);
PyObject *const *tt_defaults_of(PyObject *twin, Py_ssize_t *count);

// The state of this thread (borrowed), or NULL.
PyObject *tt_state(void);
// A leaf that does not require grad; both arguments are stolen, also after an error.
PyObject *tt_new_tensor(PyObject *array, PyObject *cell);
// A version counter, or None inside of inference mode.
PyObject *tt_new_cell(PyObject *state);
// The shape of an array as a tuple of ints.
PyObject *tt_shape(PyObject *array);
// The edge of a tensor that requires grad: a new reference.
PyObject *tt_edge_of(PyObject *x);
// Make `out`, whose version counter is None, a view of a tensor's memory; false after an error. `several`: it is one of
// several views that an op returns.
bool tt_make_view(PyObject *out, PyObject *source, PyObject *state, bool several);
// Add an array to another one of its shape, in place; false where it is left to Python.
bool tt_add_in_place(PyObject *total, PyObject *array);
// Run a ufunc's loop of a type over elements with these steps in bytes; false where it has none.
bool tt_run_loop(PyObject *ufunc, int type, char **places, npy_intp count, const npy_intp *steps);
// The function of an op, as `run` of a callable; that of any object, which may be such a callable; and for what an op's
// kernel has returned: `array` is stolen. All return FALLBACK where it is left to Python.
PyObject *tt_call_op(Callable *call, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *tt_call_of(PyObject *call, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *tt_result_of(PyObject *call, PyObject *const *args, Py_ssize_t count, PyObject *array);
// Count a write to the memory of a version counter (core/view.py `count_write`); false after an error.
bool tt_count_write(PyObject *cell);
// Whether a tensor requires grad, by itself or by the tensor that it is a view of; true where Python must say it.
bool tt_may_need_grad(PyObject *x);
// Bring the edge of a view up to date (`refresh`); usually nothing was written to its memory. False after an error.
bool tt_refreshed(PyObject *x);

// The function of a member of Tensor (methods.c), or of the walk (walk.c), by its name; NULL if there is none.
Run tt_method(const char *name);
PyObject *tt_backward(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *tt_run_walk(PyObject *module, PyObject *args);
int tt_add_calls(PyObject *module);

#endif
