// Twins of divisions with rounding, and of `rounded`, in kernels/arithmetic.py, for small arrays.
#include "helpers.h"

// Division with rounding, of arrays of one shape or with a 0-d one: larger arrays, zeros among the ints, and the one
// quotient that does not fit 64 bits, are NumPy's. Loops are NULL where a kind is.
typedef void (*DivisionLoop)(const void *a, const void *b, Py_ssize_t step_a, Py_ssize_t step_b, void *out, Py_ssize_t size);

static PyObject *divided(PyObject *a, PyObject *b, DivisionLoop of_ints, DivisionLoop of_floats, DivisionLoop of_doubles) {
    if (!PyArray_CheckExact(a) || !PyArray_CheckExact(b) || PyArray_TYPE(ARRAY(a)) != PyArray_TYPE(ARRAY(b))) return FALLBACK;
    if (!PyArray_ISCARRAY_RO(ARRAY(a)) || !PyArray_ISCARRAY_RO(ARRAY(b))) return FALLBACK;
    const int type = PyArray_TYPE(ARRAY(a));
    const DivisionLoop loop = type == NPY_INT64 ? of_ints : type == NPY_FLOAT ? of_floats : type == NPY_DOUBLE ? of_doubles : NULL;
    const bool one_a = !PyArray_NDIM(ARRAY(a)), one_b = !PyArray_NDIM(ARRAY(b));
    PyObject *like = one_a ? b : a;
    const Py_ssize_t size = PyArray_SIZE(ARRAY(like));
    if (!loop || size > 1 << 12 || !(one_a || one_b || same_shape(a, b))) return FALLBACK;
    const int64_t *ints_a = PyArray_DATA(ARRAY(a)), *ints_b = PyArray_DATA(ARRAY(b));
    for (Py_ssize_t i = 0; loop == of_ints && i < size; i++) {
        const int64_t y = ints_b[one_b ? 0 : i];
        if (!y || (y == -1 && ints_a[one_a ? 0 : i] == INT64_MIN)) return FALLBACK;
    }
    PyObject *out = new_like(like);
    if (out) loop(ints_a, ints_b, !one_a, !one_b, PyArray_DATA(ARRAY(out)), size);
    return out;
}

#define DIVISION_LOOP(name, type, expression)                                                                          \
    static void name(const void *a, const void *b, Py_ssize_t step_a, Py_ssize_t step_b, void *out, Py_ssize_t size) {  \
        for (Py_ssize_t i = 0; i < size; i++) {                                                                         \
            const type x = ((const type *)a)[i * step_a], y = ((const type *)b)[i * step_b];                            \
            ((type *)out)[i] = expression;                                                                              \
        }                                                                                                               \
    }
DIVISION_LOOP(floor_of_ints, int64_t, x / y - (x % y && (x < 0) != (y < 0)))
DIVISION_LOOP(trunc_of_ints, int64_t, x / y)
DIVISION_LOOP(trunc_of_floats, float, truncf(x / y))
DIVISION_LOOP(trunc_of_doubles, double, trunc(x / y))
DIVISION_LOOP(fmod_of_ints, int64_t, x % y)
DIVISION_LOOP(fmod_of_floats, float, fmodf(x, y))
DIVISION_LOOP(fmod_of_doubles, double, fmod(x, y))
DIVISION_LOOP(rest_of_ints, int64_t, x % y + ((x % y && (x < 0) != (y < 0)) ? y : 0))

INLINE float rest_of_float(float rest, float y) { return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest; }
INLINE double rest_of_double(double rest, double y) { return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest; }
DIVISION_LOOP(rest_of_floats, float, rest_of_float(fmodf(x, y), y))
DIVISION_LOOP(rest_of_doubles, double, rest_of_double(fmod(x, y), y))

KERNEL(floor_divide, a, b) { return divided(args->a, args->b, floor_of_ints, NULL, NULL); }
KERNEL(trunc_divide, a, b) { return divided(args->a, args->b, trunc_of_ints, trunc_of_floats, trunc_of_doubles); }
KERNEL(fmod, a, b) { return divided(args->a, args->b, fmod_of_ints, fmod_of_floats, fmod_of_doubles); }
KERNEL(remainder, a, b) { return divided(args->a, args->b, rest_of_ints, rest_of_floats, rest_of_doubles); }

// To whole numbers, or to some decimals, of a small array.
KERNEL(rounded, x, decimals) {
    if (!is_float_array(args->x, false) || PyArray_SIZE(ARRAY(args->x)) > 1 << 15) return FALLBACK;
    const Py_ssize_t decimals = args->decimals == Py_None ? 0 : read_int(args->decimals);
    if (decimals < 0 || decimals > 9) return FALLBACK;
    float unit = 1;
    for (Py_ssize_t k = 0; k < decimals; k++) unit *= 10;
    PyObject *out = new_like(args->x);
    const float *x = float_data(args->x);
    for (Py_ssize_t i = 0; out && i < PyArray_SIZE(ARRAY(out)); i++) {
        float_data(out)[i] = decimals ? rintf(x[i] * unit) / unit : rintf(x[i]);
    }
    return out;
}

FAMILY(division, ENTRY(floor_divide), ENTRY(trunc_divide), ENTRY(fmod), ENTRY(remainder), ENTRY(rounded));
