// The engine of a generator (`Source` of kernels/random.py), and the numbers that it draws.
#ifndef TINYTORCH_DRAWING_H
#define TINYTORCH_DRAWING_H

#include "native.h"

#include <numpy/random/bitgen.h>

// The engine of a source, which has drawn by then; NULL where it is left to Python.
static inline bitgen_t *engine_of(PyObject *source) {
    static PyObject *bits_name, *capsule_name, *fresh_name;
    PyObject *bits = attribute_of(source, &bits_name, "_bits"), *capsule = NULL;
    if (bits == Py_None) {  // (it is created at the first draw)
        Py_DECREF(bits);
        bits = PyObject_CallMethod(source, "_engine", NULL);
    }
    if (bits) capsule = attribute_of(bits, &capsule_name, "capsule");
    bitgen_t *engine = capsule ? PyCapsule_GetPointer(capsule, "BitGenerator") : NULL;  // (which the source holds)
    if (!fresh_name) fresh_name = PyUnicode_InternFromString("_fresh");
    if (engine && PyObject_SetAttr(source, fresh_name, Py_False)) engine = NULL;
    Py_XDECREF(bits);
    Py_XDECREF(capsule);
    if (!engine) PyErr_Clear();
    return engine;
}

static inline float float_of(uint32_t word) { return (float)(int32_t)(word & ((1 << 24) - 1)) * 0x1p-24f; }

static inline float next_float(bitgen_t *engine) { return float_of(engine->next_uint32(engine->state)); }

static inline uint64_t next_word64(bitgen_t *engine) {
    uint64_t high = engine->next_uint32(engine->state);
    return high << 32 | engine->next_uint32(engine->state);
}

static inline double next_double(bitgen_t *engine) {
    return (double)(next_word64(engine) & (((uint64_t)1 << 53) - 1)) * 0x1p-53;
}

#endif
