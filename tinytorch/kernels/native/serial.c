// Twins that vectors do not make faster, since each number depends on the one before or takes its own way: of
// kernels/rejection.py, random.py, implicit.py, gamma.py, reduce.py and pool.py.
#include "drawing.h"
#include "helpers.h"

// Which candidates are rejected must not depend on the compiler: no product is contracted with a sum.
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=off")
#endif

enum { NUMBERS_OF_PART = 1 << 9 };

// A contiguous array of float64, in native byte order.
static bool is_double_array(PyObject *x) {
    return PyArray_CheckExact(x) && PyArray_TYPE(ARRAY(x)) == NPY_DOUBLE && PyArray_ISCARRAY_RO(ARRAY(x));
}

// Rejection: numbers one after the other ---------------------------------------------------------

static const double tau = 2 * M_PI;

static double gamma_number(bitgen_t *engine, double power, bool boosted, double d, double *waiting, bool *waits) {
    const double scale = boosted ? pow(1 - next_double(engine), power) : 1, c = d > 0 ? 1 / sqrt(9 * d) : NAN;
    for (;;) {
        double x, y;
        do {
            if (*waits) {
                x = *waiting;
            } else {
                const double angle = tau * next_double(engine), radius = sqrt(-2 * log1p(-next_double(engine)));
                x = radius * cos(angle);
                *waiting = radius * sin(angle);
            }
            *waits = !*waits;
            y = 1 + c * x;
        } while (y <= 0);
        const double v = y * y * y, u = 1 - next_double(engine), xx = x * x;
        if (u < 1 - (double)0.0331f * xx * xx || v != v || log(u) < 0.5 * xx + d * (1 - v + log(v))) return scale * d * v;
    }
}

KERNEL(gammas, alpha, source) {
    const bool single = is_float_array(args->alpha, false);
    if (!single && !is_double_array(args->alpha)) return FALLBACK;
    const npy_intp size = PyArray_SIZE(ARRAY(args->alpha));
    const void *alpha = PyArray_DATA(ARRAY(args->alpha));
    npy_intp draws = 0;
    for (npy_intp i = 0; i < size; i++) draws += (single ? ((const float *)alpha)[i] : ((const double *)alpha)[i]) != 0;
    PyObject *normal = draws ? PyObject_GetAttrString(args->source, "normal") : NULL;
    bitgen_t *engine = normal ? engine_of(args->source) : NULL;
    if (!engine) {
        Py_XDECREF(normal);
        return FALLBACK;
    }
    bool waits = normal != Py_None;
    double waiting = waits ? PyFloat_AsDouble(normal) : 0;
    Py_DECREF(normal);
    PyObject *result = PyArray_SimpleNew(PyArray_NDIM(ARRAY(args->alpha)), PyArray_DIMS(ARRAY(args->alpha)), NPY_DOUBLE);
    if (!result) return NULL;
    double *out = PyArray_DATA(ARRAY(result));
    for (npy_intp i = 0; i < size; i++) {
        double a, d, power;
        if (single) {  // in float32, as PyTorch does
            const float x = ((const float *)alpha)[i];
            a = x, power = 1 / x, d = (x < 1 ? x + 1 : x) - (float)(1 / 3.);
        } else {
            a = ((const double *)alpha)[i], power = 1 / a, d = (a < 1 ? a + 1 : a) - (double)(float)(1 / 3.);
        }
        out[i] = a == 0 ? 0 : gamma_number(engine, power, a < 1, d, &waiting, &waits);
    }
    normal = waits ? PyFloat_FromDouble(waiting) : Py_NewRef(Py_None);
    const int failed = !normal || PyObject_SetAttrString(args->source, "normal", normal);
    Py_XDECREF(normal);
    if (failed) Py_CLEAR(result);
    return result;
}

static double log_gamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

static double poisson_number(bitgen_t *engine, double mean) {
    double number = 0;
    if (mean < 10) {
        const double least = exp(-mean);
        for (double product = next_double(engine); product > least; number++) product *= next_double(engine);
        return number;
    }
    const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, log_mean = log(mean);
    const double inverse = log(1.1239 + 1.1328 / (b - 3.4)), box = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = next_double(engine) - 0.5, v = next_double(engine), edge = 0.5 - fabs(u);
        if (edge == 0) continue;
        number = floor((2 * a / edge + b) * u + mean + 0.43);
        if (edge >= 0.07 && v <= box) return number;
        if (number < 0 || (edge < 0.013 && v > edge)) continue;
        const double bound = -mean + number * log_mean - log_gamma(number + 1);
        if (v == 0 || log(v) + inverse - log(a / (edge * edge) + b) <= bound) return number;
    }
}

// log(k!) minus Stirling's formula.
static double tail_of_factorial(double k) {
    static const double first[] = {
        0.08106146679532733,  0.04134069595540946,  0.027677925684997717, 0.02079067210376584,  0.01664469118982126,
        0.013876128823072875, 0.011896709945893313, 0.010411265261973668, 0.00925546218270945,  0.008330563433359472};
    if (k < 10) return first[(int)k];
    const double square = (k + 1) * (k + 1);
    return (1 / 12. - (1 / 360. - 1 / 1260. / square) / square) / (k + 1);
}

static double binomial_number(bitgen_t *engine, double count, double p) {
    if (count * p < 10) {  // waiting times between successes
        const double scale = log1p(-p);
        double total = 0, successes = 0;
        if (scale == 0) {
            next_double(engine);
            return 0;
        }
        for (;; successes++) {
            const double u = next_double(engine);
            total += u != 0 ? ceil(log(u) / scale) : INFINITY;
            if (total > count) return successes;
        }
    }
    const double spread = sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * spread, a = -0.0873 + 0.0248 * b + 0.01 * p;
    const double center = count * p + 0.5, box = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * spread;
    const double mode = floor((count + 1) * p);
    for (;;) {
        const double u = next_double(engine) - 0.5, v = next_double(engine), edge = 0.5 - fabs(u);
        if (edge == 0) continue;
        const double k = floor((2 * a / edge + b) * u + center);
        if (edge >= 0.07 && v <= box) return k;
        if (k < 0 || k > count) continue;
        const double w = v * (alpha / (a / (edge * edge) + b));
        const double bound = (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1))) +
                             (count + 1) * log((count - mode + 1) / (count - k + 1)) +
                             (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) + tail_of_factorial(mode) +
                             tail_of_factorial(count - mode) - tail_of_factorial(k) - tail_of_factorial(count - k);
        if (w == 0 || log(w) <= bound) return k;
    }
}

KERNEL(poissons, rate, source) {
    if (!is_double_array(args->rate)) return FALLBACK;
    PyArrayObject *rate = ARRAY(args->rate);
    const double *means = PyArray_DATA(rate);
    npy_intp draws = 0;
    for (npy_intp i = 0; i < PyArray_SIZE(rate); i++) draws += means[i] != 0;
    bitgen_t *engine = draws ? engine_of(args->source) : NULL;
    if (!engine) return FALLBACK;
    PyObject *result = PyArray_SimpleNew(PyArray_NDIM(rate), PyArray_DIMS(rate), NPY_DOUBLE);
    if (!result) return NULL;
    double *out = PyArray_DATA(ARRAY(result));
    for (npy_intp i = 0; i < PyArray_SIZE(rate); i++) out[i] = means[i] == 0 ? 0 : poisson_number(engine, means[i]);
    return result;
}

KERNEL(binomials, count, p, source) {
    if (!is_double_array(args->count) || !is_double_array(args->p) || !same_shape(args->count, args->p)) return FALLBACK;
    PyArrayObject *counts = ARRAY(args->count);
    const npy_intp size = PyArray_SIZE(counts);
    const double *count = PyArray_DATA(counts), *p = PyArray_DATA(ARRAY(args->p));
    npy_intp draws = 0;
    for (npy_intp i = 0; i < size; i++) draws += count[i] > 0 && p[i] > 0 && p[i] < 1;
    bitgen_t *engine = draws ? engine_of(args->source) : NULL;
    if (!engine) return FALLBACK;
    PyObject *result = PyArray_SimpleNew(PyArray_NDIM(counts), PyArray_DIMS(counts), NPY_DOUBLE);
    if (!result) return NULL;
    double *out = PyArray_DATA(ARRAY(result));
    for (npy_intp i = 0; i < size; i++) {
        if (count[i] <= 0 || p[i] <= 0) out[i] = 0;
        else if (p[i] >= 1) out[i] = count[i];
        else if (p[i] != p[i] || count[i] != count[i]) out[i] = NAN;
        else if (p[i] <= 0.5) out[i] = binomial_number(engine, count[i], p[i]);
        else out[i] = count[i] - binomial_number(engine, count[i], 1 - p[i]);
    }
    return result;
}

KERNEL(picks, rows, n, source) {
    const Py_ssize_t n = read_int(args->n);
    if (!is_float_array(args->rows, false) || PyArray_NDIM(ARRAY(args->rows)) != 2 || n < 1) return FALLBACK;
    const npy_intp count = PyArray_DIM(ARRAY(args->rows), 0), length = PyArray_DIM(ARRAY(args->rows), 1);
    bitgen_t *engine = count && length ? engine_of(args->source) : NULL;
    if (!engine) return FALLBACK;
    npy_intp shape[] = {count, n};
    PyObject *result = PyArray_SimpleNew(2, shape, NPY_INT64);
    float *sums = malloc(sizeof(float) * (size_t)length);
    if (!result || !sums) {
        free(sums);
        Py_XDECREF(result);
        return PyErr_NoMemory();
    }
    int64_t *out = PyArray_DATA(ARRAY(result));
    for (npy_intp row = 0; row < count; row++) {
        const float *x = float_data(args->rows) + row * length;
        float sum = 0;
        for (npy_intp i = 0; i < length; i++) sums[i] = sum += x[i];
        for (npy_intp i = 0; i < length; i++) sums[i] /= sum;
        sums[length - 1] = 1;
        for (Py_ssize_t k = 0; k < n; k++) {
            const double u = next_double(engine);
            npy_intp begin = 0, end = length;
            while (begin < end) {
                const npy_intp middle = (begin + end) / 2;
                if ((double)sums[middle] < u) begin = middle + 1;
                else end = middle;
            }
            *out++ = begin;
        }
    }
    free(sums);
    return result;
}

// Series, whose lengths differ -------------------------------------------------------------------

static const double smallest = 0x1p-53;
enum { MAX_TERMS = 20000 };

typedef struct {
    const void *x[3];
    void *out;
    int64_t size;
    double (*of_doubles)(const double *);
    float (*of_floats)(double, double);
} Numbers;

static void numbers_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Numbers *n = context;
    const int64_t last = imin((part + 1) * NUMBERS_OF_PART, n->size);
    for (int64_t i = part * NUMBERS_OF_PART; i < last; i++) {
        double x[3];
        if (n->of_floats) {
            ((float *)n->out)[i] = n->of_floats(((const float *)n->x[0])[i], ((const float *)n->x[1])[i]);
            continue;
        }
        for (int k = 0; k < 3; k++) x[k] = n->x[k] ? ((const double *)n->x[k])[i] : 0;
        ((double *)n->out)[i] = n->of_doubles(x);
    }
}

// Compute numbers from arrays of one shape.
static PyObject *each_number(PyObject *const *arrays, int count, Numbers n) {
    for (int k = 0; k < count; k++) {
        if (!(n.of_floats ? is_float_array(arrays[k], false) : is_double_array(arrays[k]))) return FALLBACK;
        if (!same_shape(arrays[0], arrays[k])) return FALLBACK;
        n.x[k] = PyArray_DATA(ARRAY(arrays[k]));
    }
    PyObject *result = new_like(arrays[0]);
    if (!result) return NULL;
    n.out = PyArray_DATA(ARRAY(result));
    n.size = PyArray_SIZE(ARRAY(result));
    tt_parallel_for(numbers_part, &n, ceil_div(n.size, NUMBERS_OF_PART), 256 * n.size, tt_threads());
    return result;
}

// digamma(x) for x > 0, by its recurrence and DLMF 5.11.2.
static double psi(double x) {
    double sum = 0;
    for (; x < 10; x++) sum -= 1 / x;
    const double s = 1 / (x * x), rest = 1 / 252. - s * (1 / 240. - s * (1 / 132. - s * (691 / 32760. - s / 12)));
    return sum + log(x) - 0.5 / x - s * (1 / 12. - s * (1 / 120. - s * rest));
}

static double gamma_slope_of(const double *arguments) {
    const double alpha = arguments[0], x = arguments[1];
    if (x < alpha + 1.5) {
        double term = 1 / alpha, bracket = log(x) - psi(alpha + 1), total = term * bracket;
        for (int n = 1; n < MAX_TERMS; n++) {
            const double inverse = 1 / (alpha + n);
            term *= x * inverse;
            bracket -= inverse;
            total += term * bracket;
            if (n > 2 && !(fabs(term * bracket) > smallest * fabs(total))) break;
        }
        return x > 0 ? -x * total : 0;
    }
    double b = x + 1 - alpha, c = 1e300, dc = 0, d = 1 / b, dd = d * d, h = d, dh = dd;
    for (int n = 1; n < MAX_TERMS; n++) {
        const double a = -n * (n - alpha), du = -1 + n * d + a * dd;
        b += 2;
        d = 1 / (b + a * d);
        dd = -du * d * d;
        dc = -1 + n / c - a * dc / (c * c);
        c = b + a / c;
        const double ratio = c * d, moved = dh * ratio + h * (dc * d + c * dd), step = fabs(moved - dh);
        dh = moved;
        h *= ratio;
        if (!(fabs(ratio - 1) > 4 * smallest || step > 4 * smallest * fabs(dh))) break;
    }
    return x * (h * (log(x) - psi(alpha)) + dh);
}

KERNEL(gamma_slope, alpha, x) {
    if (!is_double_array(args->alpha)) return FALLBACK;
    const double *alpha = PyArray_DATA(ARRAY(args->alpha));
    for (npy_intp i = 0; i < PyArray_SIZE(ARRAY(args->alpha)); i++) {
        if (!(alpha[i] > 0 && alpha[i] <= 2000)) return FALLBACK;
    }
    return each_number(&args->alpha, 2, (Numbers){.of_doubles = gamma_slope_of});
}

static double beta_slope_of(const double *arguments) {
    const double alpha = arguments[1], total = arguments[2], beta = total - alpha;
    const bool low = arguments[0] <= alpha / total;
    const double x = low ? arguments[0] : 1 - arguments[0], down = 1 + (low ? alpha : beta);
    double term = 1, bracket = log(arguments[0]) - psi(low ? alpha + 1 : alpha) + psi(total), sum = bracket;
    for (int n = 0; n < MAX_TERMS; n++) {
        term *= x * (total + n) / (down + n);
        bracket += 1 / (total + n) - (low ? 1 / (down + n) : 0);
        sum += term * bracket;
        if (n > 2 && !(fabs(term * bracket) > smallest * fabs(sum))) break;
    }
    return arguments[0] * (low ? -sum / alpha : sum / beta);
}

KERNEL(beta_slope, x, alpha, total) {
    if (!is_double_array(args->alpha) || !is_double_array(args->total)) return FALLBACK;
    const double *alpha = PyArray_DATA(ARRAY(args->alpha)), *total = PyArray_DATA(ARRAY(args->total));
    if (!same_shape(args->alpha, args->total)) return FALLBACK;
    for (npy_intp i = 0; i < PyArray_SIZE(ARRAY(args->alpha)); i++) {
        if (!(alpha[i] > 0 && total[i] > alpha[i] && total[i] < 1e5)) return FALLBACK;
    }
    return each_number(&args->x, 3, (Numbers){.of_doubles = beta_slope_of});
}

// P(a, x) (DLMF 8.7.1) or 1 - P(a, x) (DLMF 8.9.2), in `upper` which.
static double incomplete_gamma(double a, double x, bool *upper) {
    const double prefix = exp(a * log(x) - x - log_gamma(a + 1));
    *upper = x >= a + 1;
    if (!*upper) {
        double term = 1, total = 1;
        for (int n = 1; n < MAX_TERMS && term > smallest * total; n++) total += term *= x / (a + n);
        return x > 0 ? prefix * total : 0;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (int n = 1; n < MAX_TERMS; n++) {
        const double factor = n * (a - n);
        b += 2;
        d = 1 / (b + factor * d);
        c = b + factor / c;
        h *= c * d;
        if (fabs(c * d - 1) <= 4 * smallest) break;
    }
    return prefix * a * h;
}

static float igamma_of(double a, double x) {
    bool upper;
    const double part = incomplete_gamma(a, x, &upper);
    return (float)(upper ? 1 - part : part);
}

static float igammac_of(double a, double x) {
    bool upper;
    const double part = incomplete_gamma(a, x, &upper);
    return (float)(upper ? part : 1 - part);
}

// The functions of numbers where the series are short, and lose nothing that float32 has.
static PyObject *incomplete_gammas(PyObject *const *arrays, float (*function)(double, double)) {
    if (!is_float_array(arrays[0], false) || !is_float_array(arrays[1], false) || !same_shape(arrays[0], arrays[1])) {
        return FALLBACK;
    }
    const float *a = float_data(arrays[0]), *x = float_data(arrays[1]);
    for (npy_intp i = 0; i < PyArray_SIZE(ARRAY(arrays[0])); i++) {
        if (!(a[i] > 1e-4f && a[i] < 1e4f && x[i] >= 0 && x[i] < 1e4f)) return FALLBACK;
    }
    return each_number(arrays, 2, (Numbers){.of_floats = function});
}

KERNEL(igamma, a, x) { return incomplete_gammas(&args->a, igamma_of); }
KERNEL(igammac, a, x) { return incomplete_gammas(&args->a, igammac_of); }

// Running extremes -------------------------------------------------------------------------------

typedef struct {
    const float *x;
    float *values;
    int64_t *indices;
    int64_t length, after;
    bool least;
} Running;

INLINE void running_extreme(const float *x, float *values, int64_t *indices, int64_t length, int64_t step, bool least) {
    float best = x[0];
    int64_t place = 0;
    for (int64_t k = 0; k < length; k++) {
        const float number = x[k * step];
        if (__builtin_expect((least ? number <= best : number >= best) || number != number, 0)) {  // of equal ones the last
            if (number != best && best == best) best = number;
            place = k;
        }
        values[k * step] = best;
        indices[k * step] = place;
    }
}

static void running_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Running *r = context;
    for (int64_t j = 0; j < r->after; j++) {
        const int64_t first = part * r->length * r->after + j;
        const float *x = r->x + first;
        if (r->least) running_extreme(x, r->values + first, r->indices + first, r->length, r->after, true);
        else running_extreme(x, r->values + first, r->indices + first, r->length, r->after, false);
    }
}

KERNEL(running_extremes, x, dim, least) {
    if (!is_float_array(args->x, false)) return FALLBACK;
    PyArrayObject *x = ARRAY(args->x);
    const int dims = PyArray_NDIM(x), dim = read_dim(args->dim, dims);
    if (dim < 0) return FALLBACK;
    Running r = {.x = float_data(args->x), .length = PyArray_DIM(x, dim), .after = 1};
    r.least = PyObject_IsTrue(args->least) == 1;
    for (int d = dim + 1; d < dims; d++) r.after *= PyArray_DIM(x, d);
    PyObject *values = new_like(args->x), *indices = PyArray_SimpleNew(dims, PyArray_DIMS(x), NPY_INT64);
    if (values && indices) {
        r.values = float_data(values);
        r.indices = PyArray_DATA(ARRAY(indices));
        const npy_intp size = PyArray_SIZE(x);
        if (size) tt_parallel_for(running_part, &r, size / (r.length * r.after), 4 * size, tt_threads());
    }
    return new_tuple(2, (PyObject *[]){values, indices});
}

// Maxima of windows that differ -------------------------------------------------------------------

enum { MAX_POOLED = 3, MAX_WINDOW = 64 };

// The windows along one dimension: element k of a window is `where[k]` of the window and the plane, or `start` and k times
// `dilation`.
typedef struct {
    int64_t length, windows, kernel, dilation, per_plane;
    const int64_t *start, *where[MAX_WINDOW];
} PoolAxis;

typedef struct {
    const float *x;
    float *values;
    int64_t *indices, size;  // of a plane
    PoolAxis axes[MAX_POOLED];
} Pool;

// Read a `Windows` of kernels/pool.py.
static bool read_pool_axis(PyObject *windows, int64_t length, int64_t planes, PoolAxis *axis) {
    PyObject *start = PyTuple_GetItem(windows, 0), *parts = PyTuple_GetItem(windows, 1);
    if (!start || !parts || !is_index_array(start) || !PyTuple_Check(parts)) return false;
    const int dims = PyArray_NDIM(ARRAY(start));
    *axis = (PoolAxis){.length = length, .start = PyArray_DATA(ARRAY(start)), .kernel = PyTuple_Size(parts)};
    axis->windows = PyArray_DIM(ARRAY(start), dims - 1);
    axis->dilation = read_int(PyTuple_GetItem(windows, 2));
    axis->per_plane = dims == 2 ? axis->windows : 0;
    if (dims > 2 || (dims == 2 && PyArray_DIM(ARRAY(start), 0) != planes)) return false;
    for (int64_t k = 0; k < axis->kernel && !axis->dilation; k++) {
        PyObject *where = PyTuple_GetItem(PyTuple_GetItem(parts, k), 2);
        if (k >= MAX_WINDOW || !where || !is_index_array(where) || !same_shape(where, start)) return false;
        axis->where[k] = PyArray_DATA(ARRAY(where));
        for (int64_t i = 0; i < PyArray_SIZE(ARRAY(where)); i++) {
            if ((uint64_t)axis->where[k][i] >= (uint64_t)length) return false;
        }
    }
    return axis->kernel > 0 && axis->windows > 0 && axis->dilation >= 0;
}

// Where element k of a window is; not less than `length` where it is in the padding.
INLINE uint64_t element_of(const PoolAxis *axis, int64_t plane, int64_t window, int64_t k) {
    const int64_t at = plane * axis->per_plane + window;
    return (uint64_t)(axis->dilation ? axis->start[at] + k * axis->dilation : axis->where[k][at]);
}

static void pool_part(void *context, Py_ssize_t plane, int worker) {
    (void)worker;
    const Pool *p = context;
    const PoolAxis *slices = &p->axes[0], *rows = &p->axes[1], *columns = &p->axes[2];
    const float *x = p->x + plane * p->size;
    int64_t to = plane * slices->windows * rows->windows * columns->windows;
    for (int64_t i = 0; i < slices->windows * rows->windows; i++) {
        for (int64_t j = 0; j < columns->windows; j++, to++) {
            float best = -INFINITY;
            int64_t place = -1;
            for (int64_t a = 0; a < slices->kernel; a++) {
                const uint64_t slice = element_of(slices, plane, i / rows->windows, a);
                for (int64_t b = 0; b < rows->kernel && slice < (uint64_t)slices->length; b++) {
                    const uint64_t row = element_of(rows, plane, i % rows->windows, b);
                    const int64_t line = ((int64_t)slice * rows->length + (int64_t)row) * columns->length;
                    for (int64_t c = 0; c < columns->kernel && row < (uint64_t)rows->length; c++) {
                        const uint64_t column = element_of(columns, plane, j, c);
                        if (column >= (uint64_t)columns->length) continue;
                        const float value = x[line + (int64_t)column];
                        if (place < 0 || value > best || value != value) best = value, place = line + (int64_t)column;
                    }
                }
            }
            p->values[to] = best;
            if (p->indices) p->indices[to] = place;
        }
    }
}

KERNEL(maxima_at, x, windows, indexed) {
    PyArrayObject *x = ARRAY(args->x);
    if (!is_float_array(args->x, false) || !PyTuple_Check(args->windows) || !PyArray_SIZE(x)) return FALLBACK;
    const int dims = (int)PyTuple_Size(args->windows);
    if (dims < 1 || dims > MAX_POOLED || PyArray_NDIM(x) != dims + 1) return FALLBACK;
    static const int64_t zero = 0;
    const PoolAxis one = {.length = 1, .windows = 1, .kernel = 1, .dilation = 1, .start = &zero};
    Pool p = {.x = float_data(args->x), .size = PyArray_SIZE(x) / PyArray_DIM(x, 0), .axes = {one, one, one}};
    npy_intp shape[MAX_POOLED + 1] = {PyArray_DIM(x, 0)};
    int64_t many = 1;
    for (int d = 0; d < dims; d++) {
        PoolAxis *axis = &p.axes[MAX_POOLED - dims + d];
        PyObject *windows = PyTuple_GetItem(args->windows, d);
        if (!PyTuple_Check(windows) || !read_pool_axis(windows, PyArray_DIM(x, d + 1), shape[0], axis)) return FALLBACK;
        many *= (shape[d + 1] = axis->windows) * axis->kernel;
    }
    const bool indexed = args->indexed == Py_True;
    PyObject *values = PyArray_SimpleNew(dims + 1, shape, NPY_FLOAT);
    PyObject *indices = indexed ? PyArray_SimpleNew(dims + 1, shape, NPY_INT64) : Py_NewRef(Py_None);
    if (values && indices) {
        p.values = float_data(values);
        p.indices = indexed ? PyArray_DATA(ARRAY(indices)) : NULL;
        tt_parallel_for(pool_part, &p, shape[0], 2 * many * shape[0], tt_threads());
    }
    return new_tuple(2, (PyObject *[]){values, indices});
}

// Bytes resampled along an axis -------------------------------------------------------------------

typedef struct {
    const uint8_t *x;
    uint8_t *out;
    const int64_t *index;
    const double *weights;
    int64_t length, rows, taps, after;
    int bits;
} Bytes;

static void bytes_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    enum { STRIP = 256 };
    const Bytes *b = context;
    const uint8_t *x = b->x + part * b->length * b->after;
    uint8_t *out = b->out + part * b->rows * b->after;
    int32_t totals[STRIP];
    for (int64_t row = 0; row < b->rows; row++, out += b->after) {
        for (int64_t begin = 0; begin < b->after; begin += STRIP) {
            const int64_t width = imin(STRIP, b->after - begin);
            for (int64_t j = 0; j < width; j++) totals[j] = 1 << b->bits >> 1;
            for (int64_t tap = row * b->taps; tap < (row + 1) * b->taps; tap++) {
                const uint8_t *from = x + b->index[tap] * b->after + begin;
                const int32_t weight = (int32_t)b->weights[tap];
                for (int64_t j = 0; j < width; j++) totals[j] += from[j] * weight;
            }
            for (int64_t j = 0; j < width; j++) {
                const int32_t value = totals[j] >> b->bits;
                out[begin + j] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
            }
        }
    }
}

KERNEL(bytes_along, x, axis, index, weights, bits) {
    PyArrayObject *x = ARRAY(args->x);
    if (!PyArray_CheckExact(args->x) || PyArray_TYPE(x) != NPY_UBYTE || !PyArray_ISCARRAY_RO(x)) return FALLBACK;
    if (!is_index_array(args->index) || !is_double_array(args->weights) || !same_shape(args->index, args->weights)) {
        return FALLBACK;
    }
    const int dims = PyArray_NDIM(x), axis = read_dim(args->axis, dims);
    const Py_ssize_t bits = read_int(args->bits);
    if (axis < 0 || bits < 0 || bits > 30 || PyArray_NDIM(ARRAY(args->index)) != 2) return FALLBACK;
    Bytes b = {.x = PyArray_DATA(x), .index = PyArray_DATA(ARRAY(args->index)), .length = PyArray_DIM(x, axis)};
    b.weights = PyArray_DATA(ARRAY(args->weights)), b.bits = (int)bits, b.after = 1;
    b.rows = PyArray_DIM(ARRAY(args->index), 0), b.taps = PyArray_DIM(ARRAY(args->index), 1);
    for (int64_t i = 0; i < b.rows * b.taps; i++) {
        if ((uint64_t)b.index[i] >= (uint64_t)b.length) return FALLBACK;
    }
    int64_t shape[NPY_MAXDIMS], before = 1;
    for (int d = 0; d < dims; d++) {
        shape[d] = d == axis ? b.rows : PyArray_DIM(x, d);
        if (d < axis) before *= shape[d];
        if (d > axis) b.after *= shape[d];
    }
    PyObject *result = tt_new_array(args->x, dims, shape);
    if (!result) return NULL;
    b.out = PyArray_DATA(ARRAY(result));
    tt_parallel_for(bytes_part, &b, before, before * b.rows * b.after * b.taps, tt_threads());
    return result;
}

FAMILY(serial, ENTRY(bytes_along), ENTRY(gammas), ENTRY(poissons), ENTRY(binomials), ENTRY(picks), ENTRY(gamma_slope), ENTRY(beta_slope),
       ENTRY(igamma), ENTRY(igammac), ENTRY(running_extremes),
       ENTRY(maxima_at));

#ifdef __clang__
#pragma STDC FP_CONTRACT ON
#else
#pragma GCC pop_options
#endif
