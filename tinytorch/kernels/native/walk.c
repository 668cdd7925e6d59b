// The twin of the loop of `walk` (core/engine.py): nodes wait on a heap, the latest first, each with the sum of the
// gradients that have arrived. A leaf is visited as soon as the last node that contributes to it was: a look ahead finds
// which one that is, and that no node has hooks, which are Python's. It is for walks without targets and modes. Nodes that
// are no recorded calls of ops, and gradients that are no plain tensors, go through Python's methods one by one.
#include "calls.h"

enum { MAX_EDGES = 8, MAX_VALUES = 12 };

// A node that the walk leads to, with its gradient: NULL for none; a list for a node with several outputs.
typedef struct {
    PyObject *node, *g;
    PyObject *edges;  // those that the look ahead has seen
    double number;
    double last;   // of a leaf, the number of the last node that contributes to it
    uint64_t own;  // per output, whether its gradient is a sum that this walk has computed
    int targets;   // where the entries of its edges begin in `targets` of the walk
    bool waiting;
} Entry;

// A walk: its nodes, and Python's functions for what is unusual (see `HELPERS` in core/engine.py).
typedef struct {
    Entry *entries;
    int *heap;     // indices of entries, by number
    int *table;    // indices of entries by node, -1 for none; its size is a power of 2
    int *targets;  // by edge, the index of an entry, -1 for none
    int count, capacity, waiting, mask, target_count, target_capacity;
    PyObject *state, *helpers;
    bool retain, hooked;
} Walk;
enum { BACKWARD, HOOKS_BEFORE, HOOKS_AFTER, FIT, ADD, RAISING };

static inline unsigned hash_of(PyObject *node) { return (unsigned)(((uintptr_t)node >> 4) * 0x9E3779B1u); }

static void insert(Walk *w, int index) {
    unsigned place = hash_of(w->entries[index].node) & (unsigned)w->mask;
    while (w->table[place] >= 0) place = (place + 1) & (unsigned)w->mask;
    w->table[place] = index;
}

static bool grow(Walk *w) {
    int capacity = w->capacity ? 4 * w->capacity : 64;
    Entry *entries = realloc(w->entries, sizeof(Entry) * (size_t)capacity);
    if (entries) w->entries = entries;
    int *heap = realloc(w->heap, sizeof(int) * (size_t)capacity);
    if (heap) w->heap = heap;
    int *table = realloc(w->table, sizeof(int) * 2 * (size_t)capacity);
    if (table) w->table = table;
    if (!entries || !heap || !table) return false;
    w->capacity = capacity;
    w->mask = 2 * capacity - 1;
    memset(w->table, 0xff, sizeof(int) * 2 * (size_t)capacity);
    for (int k = 0; k < w->count; k++) insert(w, k);
    return true;
}

// The index of the entry of a node; -1 after an error.
static int entry_of(Walk *w, PyObject *node) {
    for (unsigned place = hash_of(node);; place++) {
        int index = w->capacity ? w->table[place & (unsigned)w->mask] : -1;
        if (index < 0) break;
        if (w->entries[index].node == node) return index;
    }
    if (w->count == w->capacity && !grow(w)) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *number = SLOT(node, of_node.number);
    double value = PyLong_CheckExact(number) ? (double)PyLong_AsLongLong(number) : PyFloat_AsDouble(number);
    if (value == -1 && PyErr_Occurred()) return -1;
    w->hooked |= SLOT(node, of_node.hooks) != Py_None;
    w->entries[w->count] = (Entry){.node = Py_NewRef(node), .number = value, .last = value};
    insert(w, w->count);
    return w->count++;
}

// Enter the nodes that the edges of an entry lead to; false after an error.
static bool look_at(Walk *w, int index) {
    PyObject *edges = SLOT(w->entries[index].node, of_node.edges);
    int count = (int)SIZE(edges), first = w->target_count;
    if (first + count > w->target_capacity) {
        int capacity = 4 * w->target_capacity + count + 64, *targets = realloc(w->targets, sizeof(int) * (size_t)capacity);
        if (!targets) {
            PyErr_NoMemory();
            return false;
        }
        w->targets = targets;
        w->target_capacity = capacity;
    }
    w->target_count += count;
    Py_XDECREF(w->entries[index].edges);
    w->entries[index].edges = Py_NewRef(edges);
    w->entries[index].targets = first;
    double number = w->entries[index].number;
    for (int k = 0; k < count; k++) {
        PyObject *edge = ITEM(edges, k);
        int target = w->targets[first + k] = edge == Py_None ? -1 : entry_of(w, ITEM(edge, 0));
        if (target >= 0) {
            Entry *entry = &w->entries[target];
            if (entry->number < 0 && (entry->last < 0 || number < entry->last)) entry->last = number;
        } else if (edge != Py_None) {
            return false;
        }
    }
    return true;
}

// Enter all nodes that those of an entry lead to.
static bool look_ahead(Walk *w, int index) {
    int next = w->count;
    bool done = index >= 0 && look_at(w, index);
    while (done && next < w->count) done = look_at(w, next++);
    return done;
}

static void push(Walk *w, int index) {
    int place = w->waiting++;
    double number = w->entries[index].number;
    while (place && w->entries[w->heap[(place - 1) / 2]].number < number) {
        w->heap[place] = w->heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    w->heap[place] = index;
}

// Let a node be visited: a leaf when its gradient is complete, others in the order of their numbers.
static void let_wait(Walk *w, int index) {
    Entry *entry = &w->entries[index];
    if (!entry->waiting && entry->number >= 0) push(w, index);
    entry->waiting = true;
}

// Take the entry with the greatest number from the heap.
static int pop(Walk *w) {
    int top = w->heap[0], last = w->heap[--w->waiting], place = 0;
    for (;;) {
        int child = 2 * place + 1;
        if (child >= w->waiting) break;
        bool next = child + 1 < w->waiting;
        if (next && w->entries[w->heap[child + 1]].number > w->entries[w->heap[child]].number) child++;
        if (w->entries[w->heap[child]].number <= w->entries[last].number) break;
        w->heap[place] = w->heap[child];
        place = child;
    }
    w->heap[place] = last;
    return top;
}

static void free_walk(Walk *w) {
    for (int k = 0; k < w->count; k++) {
        Py_XDECREF(w->entries[k].node);
        Py_XDECREF(w->entries[k].g);
        Py_XDECREF(w->entries[k].edges);
    }
    free(w->targets);
    free(w->entries);
    free(w->heap);
    free(w->table);
}

// Nodes -----------------------------------------------------------------------------------------

// A saved value as a formula takes it: a new reference, or NULL after an error.
static PyObject *unpacked(Walk *w, PyObject *node, PyObject *source, PyObject *item) {
    long kind = PyLong_AsLong(ITEM(source, 0));
    if (kind == PLAIN || kind == SHAPE || kind == PROPERTY) return Py_NewRef(item);
    if (kind == INPUT) {
        PyObject *tensor = ITEM(item, 0);
        if (is_plain(tensor)) {
            PyObject *cell = SLOT(tensor, of_tensor.cell);
            if (PyList_Check(cell) && PyList_GetItem(cell, 0) == ITEM(item, 1)) return Py_NewRef(tensor);
        }
    } else if (kind == OUTPUT || kind == RESIDUAL) {
        PyObject *cell = ITEM(item, 1);
        if (cell == Py_None) return tt_new_tensor(Py_NewRef(ITEM(item, 0)), tt_new_cell(w->state));
        if (PyList_GetItem(cell, 0) == ITEM(item, 2)) return tt_new_tensor(Py_NewRef(ITEM(item, 0)), Py_NewRef(cell));
    } else if (kind == KEPT) {
        if (item == Py_None || PyList_GetItem(ITEM(item, 1), 0) != ITEM(item, 2)) return Py_NewRef(Py_None);
        return tt_new_tensor(Py_NewRef(ITEM(item, 0)), tt_new_cell(w->state));
    }
    return PyObject_CallMethod(node, "_unpack", "OOO", source, item, Py_False);  // or its error
}

// Call a formula with a gradient, a second argument that may be NULL, and saved values.
static PyObject *call_formula(PyObject *rule, PyObject *g, PyObject *needs, PyObject *const *values) {
    PyObject *indices = ITEM(rule, 2), *args[MAX_VALUES + 3] = {NULL, g, needs};
    Py_ssize_t given = SIZE(indices), before = needs ? 2 : 1;
    for (Py_ssize_t i = 0; i < given; i++) args[i + 1 + before] = values[PyLong_AsLong(ITEM(indices, i))];
    return PyObject_Vectorcall(ITEM(rule, 1), args + 1, (size_t)(given + before) | PLACE_BEFORE, NULL);
}

// Take the gradients of a sequence that Python returned.
static bool take_gradients(PyObject *result, PyObject **grads, Py_ssize_t count) {
    Py_ssize_t given = result ? PySequence_Size(result) : -1;
    for (Py_ssize_t k = 0; k < given && k < count; k++) {
        grads[k] = PySequence_GetItem(result, k);
        if (grads[k] == Py_None) Py_CLEAR(grads[k]);
    }
    Py_XDECREF(result);
    return given >= 0;
}

// Whether `op_backward` computes the gradients of the inputs of an op's node.
static bool is_usual(PyObject *node) {
    PyObject *plan = SLOT(node, of_node.plan), *saved = SLOT(node, of_node.saved);
    return saved != Py_None && SLOT(plan, of_plan.any_number) == Py_False && PyList_Size(saved) <= MAX_VALUES;
}

// The gradients of the inputs by the op's formulas, as `OpNode.backward`; false after an error.
static bool op_backward(Walk *w, PyObject *node, PyObject *g, PyObject **grads, Py_ssize_t count) {
    PyObject *plan = SLOT(node, of_node.plan), *saved = SLOT(node, of_node.saved);
    PyObject *sources = SLOT(plan, of_plan.sources), *rules = SLOT(plan, of_plan.rules), *values[MAX_VALUES] = {NULL};
    Py_ssize_t value_count = PyList_Size(saved), rule_count = PyList_Size(rules);
    // A formula may release its node: what it needs is held.
    Py_INCREF(saved);
    Py_INCREF(plan);
    bool done = true, joint = SLOT(plan, of_plan.joint) == Py_True, many = SLOT(plan, of_plan.many) == Py_True;
    for (Py_ssize_t k = 0; done && k < value_count; k++) {
        values[k] = unpacked(w, node, PyList_GetItem(sources, k), PyList_GetItem(saved, k));
        done = values[k] != NULL;
    }
    if (done && (joint || many)) {
        PyObject *needs = joint ? PyTuple_New(count) : NULL, *edges = SLOT(node, of_node.edges);
        for (Py_ssize_t k = 0; needs && k < count; k++) {
            PyTuple_SetItem(needs, k, PyBool_FromLong(ITEM(edges, k) != Py_None));
        }
        done = (needs || !joint) &&
               take_gradients(call_formula(PyList_GetItem(rules, 0), g, needs, values), grads, count);
        Py_XDECREF(needs);
    } else {
        for (Py_ssize_t k = 0; done && k < rule_count; k++) {
            PyObject *rule = PyList_GetItem(rules, k), *result = call_formula(rule, g, NULL, values);
            done = result != NULL;
            if (result == Py_None) {
                Py_DECREF(result);
            } else if (done) {
                grads[PyLong_AsLong(ITEM(rule, 0))] = result;
            }
        }
    }
    for (Py_ssize_t k = 0; k < value_count; k++) Py_XDECREF(values[k]);
    Py_DECREF(saved);
    Py_DECREF(plan);
    return done;
}

static PyObject *help(Walk *w, int which, PyObject *x, PyObject *y, PyObject *z) {
    return PyObject_CallFunctionObjArgs(ITEM(w->helpers, which), x, y, z, NULL);
}

static bool add_arrays(PyObject *x, PyObject *y) {
    PyObject *to = SLOT(x, of_tensor.array), *array = SLOT(y, of_tensor.array);
    if (tt_add_in_place(to, array)) return true;
    PyObject *sum = PyObject_CallFunctionObjArgs(package.add_into, to, array, NULL);
    if (sum) set_slot(x, of_tensor.array, sum);
    return sum != NULL;
}

// Whether a leaf may take a gradient over: nothing but this walk refers to it, or to its array.
static bool is_own(PyObject *g, PyObject *leaf) {
    PyObject *array = SLOT(g, of_tensor.array), *like = SLOT(leaf, of_tensor.array);
    return Py_REFCNT(g) == 1 && Py_REFCNT(array) == 1 && !PyArray_BASE(ARRAY(array)) &&
           PyArray_ISWRITEABLE(ARRAY(array)) && SLOT(g, of_tensor.requires_grad) == Py_False &&
           PyArray_NDIM(ARRAY(array)) == PyArray_NDIM(ARRAY(like)) &&
           PyArray_CompareLists(PyArray_STRIDES(ARRAY(array)), PyArray_STRIDES(ARRAY(like)), PyArray_NDIM(ARRAY(array)));
}

// Add a gradient (stolen) into a leaf's `.grad`, as `AccumulateGrad.backward`; false after an error. What does not happen
// at once is Python's, which locks out other threads.
static bool accumulate(Walk *w, PyObject *node, PyObject *g) {
    PyObject *leaf = SLOT(node, of_leaf);
    bool usual = is_plain(leaf) && Py_TYPE(g) == package.tensor && SLOT(leaf, of_tensor.hooks) == Py_None &&
                 SLOT(leaf, of_tensor.requires_grad) == Py_True && PyArray_CheckExact(SLOT(g, of_tensor.array)) &&
                 PyArray_CheckExact(SLOT(leaf, of_tensor.array));
    PyObject *grad = SLOT(leaf, of_tensor.grad);
    if (usual && grad == Py_None && is_own(g, leaf)) {
        set_slot(leaf, of_tensor.grad, g);
        return true;
    }
    PyObject *cell = usual && is_plain(grad) ? SLOT(grad, of_tensor.cell) : Py_None;
    if (PyList_Check(cell) && tt_add_in_place(SLOT(grad, of_tensor.array), SLOT(g, of_tensor.array))) {
        Py_DECREF(g);
        return tt_count_write(cell);
    }
    PyObject *done = help(w, BACKWARD, node, g, NULL);
    Py_DECREF(g);
    Py_XDECREF(done);
    return done != NULL;
}

// Sums ------------------------------------------------------------------------------------------

// Whether the gradient has the shape and the dtype (NumPy's) of its target.
static bool fits(PyObject *array, PyObject *shape, PyObject *dtype) {
    int dims = PyArray_NDIM(ARRAY(array));
    if ((PyObject *)PyArray_DESCR(ARRAY(array)) != dtype || SIZE(shape) != dims) return false;
    for (int d = 0; d < dims; d++) {
        if (PyLong_AsSsize_t(ITEM(shape, d)) != PyArray_DIM(ARRAY(array), d)) return false;
    }
    return true;
}

// Add a gradient (stolen) to the sum in a place. `own` says whether the walk has computed the sum: then it writes into it.
static bool add_to(Walk *w, PyObject **sum, PyObject *g, uint64_t *own, uint64_t bit) {
    if (!*sum) {
        *sum = g;
        return true;
    }
    bool plain = is_plain(*sum) && is_plain(g);
    if (plain && *own & bit) {
        bool added = add_arrays(*sum, g);
        Py_DECREF(g);
        return added;
    }
    PyObject *total = plain ? PyNumber_Add(*sum, g) : help(w, ADD, *sum, g, NULL);
    *own = plain ? *own | bit : *own & ~bit;
    Py_DECREF(g);
    if (!total) return false;
    Py_DECREF(*sum);
    *sum = total;
    return true;
}

// Hand a gradient (stolen, or NULL) to the node at an edge, which has the entry `to`.
static bool send(Walk *w, PyObject *node, PyObject *edge, int to, PyObject *g) {
    PyObject *target = ITEM(edge, 0), *dtype = SLOT(target, of_node.dtype), *shape = SLOT(target, of_node.shape);
    if (!g) {  // the node is visited all the same: hooks and a `Function` run
        PyObject *unreached = PyObject_GetAttrString(node, "unreached");
        int absent = unreached ? PySequence_Contains(unreached, edge) : -1;
        Py_XDECREF(unreached);
        if (absent == 0) let_wait(w, to);
        return absent >= 0;
    }
    long number = PyLong_AsLong(ITEM(edge, 1));
    bool several = PyTuple_Check(dtype);
    if (several) {
        shape = ITEM(shape, number);
        dtype = ITEM(dtype, number);
    }
    bool plain = is_plain(g) && PyArray_CheckExact(SLOT(g, of_tensor.array));
    if (!plain || !fits(SLOT(g, of_tensor.array), shape, dtype)) {
        PyObject *fitted = help(w, FIT, node, g, edge);
        Py_DECREF(g);
        if (!(g = fitted)) return false;
    }
    let_wait(w, to);
    // (The sum is taken out meanwhile: an addition may run anything.)
    PyObject *sums = NULL, *sum = w->entries[to].g;
    if (several) {
        Py_ssize_t count = sum ? 0 : SIZE(SLOT(target, of_node.dtype));
        if (!sum && !(w->entries[to].g = PyList_New(count))) {
            Py_DECREF(g);
            return false;
        }
        sums = w->entries[to].g;
        for (Py_ssize_t k = 0; k < count; k++) PyList_SetItem(sums, k, Py_NewRef(Py_None));
        sum = PyList_GetItem(sums, number);
        sum = sum == Py_None ? NULL : Py_NewRef(sum);
    } else {
        w->entries[to].g = NULL;
    }
    uint64_t bit = number < 64 ? (uint64_t)1 << number : 0, own = w->entries[to].own;
    if (!add_to(w, &sum, g, &own, bit)) {
        Py_XDECREF(sum);
        return false;
    }
    w->entries[to].own = own;
    if (several) {
        PyList_SetItem(sums, number, sum);
    } else {
        w->entries[to].g = sum;
    }
    return true;
}

// Visit a node; false after an error.
static bool visit(Walk *w, int index) {
    Entry *entry = &w->entries[index];
    PyObject *node = entry->node, *g = entry->g, *edges = NULL, *few[MAX_EDGES] = {NULL}, **grads = few;
    double number = entry->number;
    entry->g = NULL;
    entry->own = 0;
    entry->waiting = false;
    bool done = false, hooks = SLOT(node, of_node.hooks) != Py_None;
    if (hooks) {  // they were added during the walk
        PyObject *before = g ? g : Py_NewRef(Py_None);
        g = help(w, HOOKS_BEFORE, node, before, NULL);
        Py_DECREF(before);
        if (!g) goto end;
        if (g == Py_None) Py_CLEAR(g);
    } else if (Py_TYPE(node) == package.accumulate_grad && g) {
        return accumulate(w, node, g);
    }
    bool of_op = PyType_IsSubtype(Py_TYPE(node), package.op_node);
    PyObject *result = NULL;
    if (!g || !of_op || !is_usual(node)) {
        result = help(w, BACKWARD, node, g ? g : Py_None, NULL);
        if (!result) goto end;
    }
    edges = Py_NewRef(SLOT(node, of_node.edges));
    Py_ssize_t count = SIZE(edges);
    if (count > MAX_EDGES && !(grads = calloc((size_t)count, sizeof(PyObject *)))) {
        Py_XDECREF(result);
        PyErr_NoMemory();
        goto end;
    }
    done = result ? take_gradients(result, grads, count) : op_backward(w, node, g, grads, count);
    if (done && edges != w->entries[index].edges) done = look_ahead(w, index);  // (it has got others when it ran)
    if (done && !w->retain) {
        if (of_op) {
            if (SLOT(SLOT(node, of_node.plan), of_plan.holds_tensors) == Py_True) {
                set_slot(node, of_node.saved, Py_NewRef(Py_None));
            }
        } else {
            PyObject *released = PyObject_CallMethod(node, "release", NULL);
            done = released != NULL;
            Py_XDECREF(released);
        }
    }
    if (done && SLOT(node, of_node.hooks) != Py_None) {
        PyObject *all = PyList_New(count);
        for (Py_ssize_t k = 0; all && k < count; k++) {
            PyList_SetItem(all, k, grads[k] ? grads[k] : Py_NewRef(Py_None));
            grads[k] = NULL;
        }
        done = all && take_gradients(help(w, HOOKS_AFTER, node, all, g ? g : Py_None), grads, count);
        Py_XDECREF(all);
    }
    Py_CLEAR(g);
    int first = w->entries[index].targets, to;
    bool completes = false;
    for (Py_ssize_t k = 0; done && k < count; k++) {
        if ((to = w->targets[first + k]) < 0) continue;
        PyObject *sent = grads[k];
        grads[k] = NULL;
        done = send(w, node, ITEM(edges, k), to, sent);
        completes |= w->entries[to].last == number;
    }
    for (Py_ssize_t k = 0; completes && done && k < count; k++) {
        to = w->targets[first + k];
        if (to >= 0 && w->entries[to].waiting && w->entries[to].last == number) done = visit(w, to);
    }
    for (Py_ssize_t k = 0; k < count; k++) Py_XDECREF(grads[k]);
end:
    if (grads != few) free(grads);
    Py_XDECREF(g);
    Py_XDECREF(edges);
    return done;
}

static bool visit_all(Walk *w) {
    for (;;) {
        // Leaves may wait for nodes that the walk did not visit after all (`Node.unreached`).
        bool none = !w->waiting;
        for (int k = 0; none && k < w->count; k++) {
            if (w->entries[k].waiting) push(w, k);
        }
        if (!w->waiting) return true;
        if (!visit(w, pop(w))) return false;
    }
}

// run_walk(start, retain_graph, helpers): visit all nodes that a node leads to; False where the walk is Python's.
PyObject *tt_run_walk(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *start;
    int retain;
    Walk walk = {.state = tt_state()};
    if (!walk.state || !PyArg_ParseTuple(args, "OpO!:run_walk", &start, &retain, &PyTuple_Type, &walk.helpers)) return NULL;
    walk.retain = retain;
    bool done = look_ahead(&walk, entry_of(&walk, start)), hooked = walk.hooked;
    if (done && !hooked) {
        let_wait(&walk, 0);
        done = visit_all(&walk);
    }
    free_walk(&walk);
    return done ? PyBool_FromLong(!hooked) : NULL;
}

// The gradient of a tensor of one element, or the given one if it needs no check; NULL where it is Python's.
static PyObject *first_gradient(PyObject *x, PyObject *given, PyObject *state) {
    PyObject *array = SLOT(x, of_tensor.array);
    int kind = kind_of(array);
    if (kind != F32 && kind != F64) return NULL;
    if (given != Py_None) {
        bool alike = is_plain(given) && kind_of(SLOT(given, of_tensor.array)) == kind &&
                     same_shape(SLOT(given, of_tensor.array), array);
        return alike ? Py_NewRef(given) : NULL;
    }
    if (PyArray_SIZE(ARRAY(array)) != 1) return NULL;
    PyObject *g = PyArray_SimpleNew(PyArray_NDIM(ARRAY(array)), PyArray_DIMS(ARRAY(array)), PyArray_TYPE(ARRAY(array)));
    if (g && kind == F32) *(float *)PyArray_DATA(ARRAY(g)) = 1;
    if (g && kind == F64) *(double *)PyArray_DATA(ARRAY(g)) = 1;
    return tt_new_tensor(g, tt_new_cell(state));
}

// Bind the arguments of `backward` after the tensor; false where they are unusual.
static bool bind_backward(PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **gradient, bool *retain) {
    PyObject *bound[] = {Py_None, Py_None, Py_False, Py_None};
    static const char *const parameters[] = {"gradient", "retain_graph", "create_graph", "inputs"};
    if (count < 1 || count > 5) return false;
    for (Py_ssize_t i = 1; i < count; i++) bound[i - 1] = args[i];
    for (Py_ssize_t k = names ? SIZE(names) : 0; k-- > 0;) {
        int i = 0;
        while (i < 4 && PyUnicode_CompareWithASCIIString(ITEM(names, k), parameters[i])) i++;
        if (i == 4 || i < count - 1) return false;
        bound[i] = args[count + k];
    }
    *gradient = bound[0];
    *retain = bound[1] == Py_True;
    return (bound[1] == Py_None || PyBool_Check(bound[1])) && bound[2] == Py_False && bound[3] == Py_None;
}

// tensor.backward(gradient, retain_graph): `others` are the names of the module of `backward`, which may have an observer,
// and the helpers of a walk.
PyObject *tt_backward(Callable *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *state = tt_state(), *given, *x;
    bool retain;
    if (!state || !bind_backward(args, count, names, &given, &retain)) return FALLBACK;
    if (!is_plain(x = args[0]) || !no_function_modes()) return FALLBACK;
    if (SLOT(state, of_state.modes) != Py_None) return FALLBACK;
    if (PyDict_GetItemString(ITEM(self->others, 0), "observer") != Py_None) return FALLBACK;
    if (SLOT(x, of_tensor.requires_grad) != Py_True || SLOT(x, of_tensor.view) != Py_None) return FALLBACK;
    long depth = PyLong_AsLong(SLOT(state, of_state.depth));
    if (depth >= PyLong_AsLong(package.deepest)) return FALLBACK;
    PyObject *g = first_gradient(x, given, state), *edge = g ? tt_edge_of(x) : NULL, *callbacks = PyList_New(0);
    Walk walk = {.state = state, .helpers = ITEM(self->others, 1), .retain = retain};
    if (!edge || !callbacks || !look_ahead(&walk, entry_of(&walk, ITEM(edge, 0))) || walk.hooked) {
        PyErr_Clear();
        free_walk(&walk);
        Py_XDECREF(g);
        Py_XDECREF(edge);
        Py_XDECREF(callbacks);
        return FALLBACK;
    }
    Py_INCREF(state);
    PyObject *recording = SLOT(state, of_state.grad), *callbacks_before = SLOT(state, of_state.callbacks);
    PyObject *depth_before = SLOT(state, of_state.depth);
    SLOT(state, of_state.grad) = Py_NewRef(Py_False);
    SLOT(state, of_state.callbacks) = Py_NewRef(callbacks);
    SLOT(state, of_state.depth) = PyLong_FromLong(depth + 1);
    bool done = send(&walk, ITEM(edge, 0), edge, 0, g) && visit_all(&walk);
    for (Py_ssize_t k = 0; done && k < PyList_Size(callbacks); k++) {  // (one may add another)
        PyObject *called = PyObject_CallNoArgs(PyList_GetItem(callbacks, k));
        done = called != NULL;
        Py_XDECREF(called);
    }
    set_slot(state, of_state.grad, recording);
    set_slot(state, of_state.callbacks, callbacks_before);
    set_slot(state, of_state.depth, depth_before);
    free_walk(&walk);
    Py_DECREF(edge);
    Py_DECREF(callbacks);
    Py_DECREF(state);
    if (done) Py_RETURN_NONE;
    // The error gets its notes where it leaves the package.
    PyObject *class, *error, *trace;
    PyErr_Fetch(&class, &error, &trace);
    PyErr_NormalizeException(&class, &error, &trace);
    if (trace) PyException_SetTraceback(error, trace);
    PyObject *raise = PyObject_CallFunctionObjArgs(ITEM(walk.helpers, RAISING), error, NULL);
    PyObject *result = raise ? PyObject_CallFunctionObjArgs(raise, x, NULL) : NULL;
    Py_XDECREF(raise);
    Py_XDECREF(class);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return result;  // NULL: it has raised the error again
}
