// Twins of kernels/resample.py: `sample`, `spread_at` and `slopes_at` of the points of a grid, for linear interpolation
// and the nearest element. A block of points at a time gets its taps: the elements that a point lies between, and their
// weights. What is computed of them then is a loop over the channels.
#include "elementary.h"

enum {
    POINTS = 64,  // of a block: a whole number of vectors
    MAX_PLACE_DIMS = 3,
    MAX_TAPS = 1 << MAX_PLACE_DIMS,
    PRODUCTS_OF_PART = 1 << 13,  // products of elements and weights
};

typedef struct {
    const float *x, *g, *grid;
    float *out;
    Py_ssize_t batch, channels, size, points;  // elements of a channel, and points of a sample
    Py_ssize_t blocks, blocks_per_part, channels_per_part;
    int dims, padding;
    int64_t lengths[MAX_PLACE_DIMS];
    bool nearest, corners;
} Sampling;

typedef struct {
    int32_t at[MAX_TAPS][POINTS];  // the place in a channel, or -1 outside
    float weight[MAX_TAPS][POINTS];
    float slope[MAX_PLACE_DIMS][MAX_TAPS][POINTS];  // the derivative of the weight by a coordinate of the grid
} Taps;

INLINE vec vfloor(vec x) {
    for (int lane = 0; lane < WIDTH; lane++) x[lane] = __builtin_floorf(x[lane]);
    return x;
}
INLINE vec vrint(vec x) {
    for (int lane = 0; lane < WIDTH; lane++) x[lane] = __builtin_rintf(x[lane]);
    return x;
}
// Reflect coordinates at the borders until they lie between them; change the sign of `slope` with each reflection.
INLINE vec reflected(vec at, float low, float high, vec *slope) {
    const float span = high - low;
    if (span == 0) {
        *slope = broadcast(0);
        return broadcast(0);
    }
    vec away = at - low, positive = vabs(away), turns = vfloor(positive / span);
    vec extra = positive - vtimes(turns, broadcast(span));
    ints even = turns - vfloor(turns * 0.5f) * 2 == 0;
    *slope = where(even == (away < 0), -*slope, *slope);
    return where(even, extra + low, span - extra + low);
}

// Find where points lie along one dimension: the element before (as a float), how far past it, and the derivative of
// the place by the coordinate. (Products are rounded as in NumPy, so that the nearest element is the same.)
INLINE void find_places(const Sampling *s, int dim, const float *grid, Py_ssize_t count, float *low, float *after,
                        float *slope) {
    const float length = (float)s->lengths[dim], scale = (s->corners ? length - 1 : length) * 0.5f;
    float coordinates[POINTS];
    for (Py_ssize_t p = 0; p < POINTS; p++) coordinates[p] = p < count ? grid[p * s->dims + s->dims - 1 - dim] : 0;
    for (Py_ssize_t p = 0; p < count; p += WIDTH) {
        vec at = load(coordinates + p) + 1, sign = broadcast(1);
        at = s->corners ? vtimes(at, broadcast(scale)) : (vtimes(at, broadcast(length)) - 1) * 0.5f;
        if (s->padding == 2) at = reflected(at, s->corners ? 0 : -0.5f, s->corners ? length - 1 : length - 0.5f, &sign);
        if (s->padding) {
            sign = where((at > 0) & (at < length - 1), sign, broadcast(0));
            at = clamp_min(clamp_max(where(at == at, at, broadcast(0)), length - 1), 0);
        }
        if (s->nearest) at = vrint(at);
        vec before = vfloor(at);
        store(after + p, at - before);
        store(low + p, where(before == before, clamp_min(clamp_max(before, length), -2), broadcast(-1)));
        store(slope + p, sign * scale);
    }
}

// Find the element of one tap for each of `count` points, and its weight. (Of two bits, for two dimensions, each says
// whether it is the one past a point.)
INLINE void find_tap(const Sampling *s, int dims, bool nearest, bool sloped, int tap, Py_ssize_t count,
                     float (*low)[POINTS], float (*after)[POINTS], float (*slope)[POINTS], Taps *taps) {
    for (Py_ssize_t p = 0; p < count; p++) {
        float part[MAX_PLACE_DIMS], weight = 1;
        uint32_t at = 0;
        int32_t inside = -1;
        for (int k = 0; k < dims; k++) {
            const int past = tap >> (dims - 1 - k) & 1;
            const int32_t place = (int32_t)low[k][p] + past, length = (int32_t)s->lengths[k];
            inside &= -(int32_t)(place >= 0) & -(int32_t)(place < length);
            at = at * (uint32_t)length + (uint32_t)place;
            part[k] = nearest ? 1 : past ? after[k][p] : 1 - after[k][p];
            weight *= part[k];
        }
        taps->at[tap][p] = inside ? (int32_t)at : -1;
        taps->weight[tap][p] = inside ? weight : 0;
        for (int k = 0; sloped && k < dims; k++) {
            float product = tap >> (dims - 1 - k) & 1 ? slope[k][p] : -slope[k][p];
            for (int other = 0; other < dims; other++) product *= other == k ? 1 : part[other];
            taps->slope[k][tap][p] = inside && !nearest ? product : 0;
        }
    }
}

// Find the taps of `count` points of a sample, from `first` on; return how many each point has.
static int find_points(const Sampling *s, Py_ssize_t sample, Py_ssize_t first, Py_ssize_t count, bool sloped,
                       Taps *taps) {
    float low[MAX_PLACE_DIMS][POINTS], after[MAX_PLACE_DIMS][POINTS], slope[MAX_PLACE_DIMS][POINTS];
    const float *grid = s->grid + (sample * s->points + first) * s->dims;
    for (int k = 0; k < s->dims; k++) find_places(s, k, grid, count, low[k], after[k], slope[k]);
    const int several = s->nearest ? 1 : 1 << s->dims;
    for (int tap = 0; tap < several; tap++) {
        if (s->nearest) find_tap(s, s->dims, true, sloped, tap, count, low, after, slope, taps);
        else if (s->dims == 3) find_tap(s, 3, false, sloped, tap, count, low, after, slope, taps);
        else if (sloped) find_tap(s, 2, false, true, tap, count, low, after, slope, taps);
        else find_tap(s, 2, false, false, tap, count, low, after, slope, taps);
    }
    return several;
}

// Add an element of each point times a weight. (Outside, elements count as 0, whatever the weight is.)
INLINE void add_elements(float *sums, const float *x, const int32_t *at, const float *weight, Py_ssize_t count) {
    for (Py_ssize_t p = 0; p < count; p++) sums[p] += at[p] < 0 ? 0 : x[at[p]] * weight[p];
}

static void sample_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Sampling *s = context;
    Taps taps;
    const Py_ssize_t end = imin((part + 1) * s->blocks_per_part, s->batch * s->blocks);
    for (Py_ssize_t block = part * s->blocks_per_part; block < end; block++) {
        const Py_ssize_t sample = block / s->blocks, first = block % s->blocks * POINTS;
        const Py_ssize_t count = imin(POINTS, s->points - first);
        const int several = find_points(s, sample, first, count, false, &taps);
        for (Py_ssize_t channel = sample * s->channels; channel < (sample + 1) * s->channels; channel++) {
            const float *x = s->x + channel * s->size;
            float *out = s->out + channel * s->points + first;
            fill_zero(out, count);
            for (int tap = 0; tap < several; tap++) add_elements(out, x, taps.at[tap], taps.weight[tap], count);
        }
    }
}

static void slopes_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Sampling *s = context;
    Taps taps;
    const Py_ssize_t end = imin((part + 1) * s->blocks_per_part, s->batch * s->blocks);
    for (Py_ssize_t block = part * s->blocks_per_part; block < end; block++) {
        const Py_ssize_t sample = block / s->blocks, first = block % s->blocks * POINTS;
        const Py_ssize_t count = imin(POINTS, s->points - first);
        const int several = find_points(s, sample, first, count, true, &taps);
        float totals[MAX_PLACE_DIMS][POINTS] = {0};
        for (Py_ssize_t channel = sample * s->channels; channel < (sample + 1) * s->channels; channel++) {
            const float *x = s->x + channel * s->size, *g = s->g + channel * s->points + first;
            for (int k = 0; k < s->dims; k++) {
                float sums[POINTS] = {0};
                for (int tap = 0; tap < several; tap++) add_elements(sums, x, taps.at[tap], taps.slope[k][tap], count);
                for (Py_ssize_t p = 0; p < count; p++) totals[k][p] += g[p] * sums[p];
            }
        }
        float *out = s->out + (sample * s->points + first) * s->dims;
        for (Py_ssize_t p = 0; p < count; p++) {
            for (int k = 0; k < s->dims; k++) out[p * s->dims + s->dims - 1 - k] = totals[k][p];
        }
    }
}

// (A part is some channels of a sample, whose elements no other part adds to.)
static void spread_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Sampling *s = context;
    Taps taps;
    const Py_ssize_t groups = ceil_div(s->channels, s->channels_per_part), sample = part / groups;
    const Py_ssize_t begin = part % groups * s->channels_per_part;
    const Py_ssize_t end = imin(begin + s->channels_per_part, s->channels);
    fill_zero(s->out + (sample * s->channels + begin) * s->size, (end - begin) * s->size);
    for (Py_ssize_t first = 0; first < s->points; first += POINTS) {
        const Py_ssize_t count = imin(POINTS, s->points - first);
        const int several = find_points(s, sample, first, count, false, &taps);
        for (Py_ssize_t channel = sample * s->channels + begin; channel < sample * s->channels + end; channel++) {
            const float *g = s->g + channel * s->points + first;
            float *out = s->out + channel * s->size;
            for (Py_ssize_t p = 0; p < count; p++) {
                for (int tap = 0; tap < several; tap++) {
                    if (taps.at[tap][p] >= 0) out[taps.at[tap][p]] += g[p] * taps.weight[tap][p];
                }
            }
        }
    }
}

// Read the arguments: the input, or its lengths alone; the gradient, or NULL. False for what is left to the definition:
// cubic convolution, and derivatives by the grid (`orders`).
static bool read_sampling(Sampling *s, PyObject *x, PyObject *g, PyObject *grid, PyObject *const *options,
                          PyObject *lengths) {
    PyObject *mode = options[0], *padding = options[1], *corners = options[2], *orders = options[3];
    int64_t order[MAX_PLACE_DIMS];
    if (!is_float_array(grid, false) || (x && !is_float_array(x, false)) || (g && !is_float_array(g, false))) {
        return false;
    }
    PyArrayObject *first = ARRAY(x ? x : g);
    s->dims = PyArray_NDIM(ARRAY(grid)) - 2;
    if (s->dims < 2 || s->dims > MAX_PLACE_DIMS || PyArray_NDIM(first) != s->dims + 2 ||
        PyArray_DIM(ARRAY(grid), s->dims + 1) != s->dims || !tt_read_sizes(orders, s->dims, order) ||
        (!x && !tt_read_sizes(lengths, s->dims, s->lengths)) || read_int(mode) < 0 || read_int(mode) > 1) {
        return false;
    }
    s->nearest = read_int(mode) == 1;
    s->padding = (int)read_int(padding);
    s->corners = PyObject_IsTrue(corners) == 1;
    s->batch = PyArray_DIM(first, 0);
    s->channels = PyArray_DIM(first, 1);
    s->size = s->points = 1;
    bool fits = PyArray_DIM(ARRAY(grid), 0) == s->batch;
    for (int k = 0; k < s->dims; k++) {
        if (x) s->lengths[k] = PyArray_DIM(ARRAY(x), k + 2);
        s->size *= s->lengths[k];
        s->points *= PyArray_DIM(ARRAY(grid), k + 1);
        fits &= !order[k] && (!g || PyArray_DIM(ARRAY(g), k + 2) == PyArray_DIM(ARRAY(grid), k + 1));
    }
    if (g) fits &= PyArray_DIM(ARRAY(g), 0) == s->batch && PyArray_DIM(ARRAY(g), 1) == s->channels;
    s->x = x ? float_data(x) : NULL;
    s->g = g ? float_data(g) : NULL;
    s->grid = float_data(grid);
    s->blocks = ceil_div(s->points, POINTS);
    s->blocks_per_part = 1 + PRODUCTS_OF_PART / (POINTS * imax(s->channels, 1) << s->dims);
    s->channels_per_part = 8 + PRODUCTS_OF_PART / (imax(s->points, 1) << s->dims);  // (they share the taps)
    return fits && s->size > 0 && s->size <= INT32_MAX / 4;
}

static PyObject *sampled(PyObject *x, PyObject *g, PyObject *grid, PyObject *const *options, PyObject *lengths) {
    Sampling s = {0};
    if ((g && PyArray_NDIM(ARRAY(g)) != PyArray_NDIM(ARRAY(grid))) ||
        !read_sampling(&s, x, g, grid, options, lengths)) {
        return FALLBACK;
    }
    Work work = !g ? sample_part : x ? slopes_part : spread_part;
    int64_t shape[MAX_PLACE_DIMS + 2] = {s.batch, s.channels};
    for (int k = 0; k < s.dims; k++) shape[k + 2] = x ? PyArray_DIM(ARRAY(grid), k + 1) : s.lengths[k];
    PyObject *result = x && g ? new_like(grid) : tt_new_array(grid, s.dims + 2, shape);
    if (!result) return NULL;
    s.out = float_data(result);
    Py_ssize_t parts = ceil_div(s.batch * s.blocks, s.blocks_per_part);
    if (work == spread_part) parts = s.batch * ceil_div(s.channels, s.channels_per_part);
    tt_parallel_for(work, &s, parts, s.batch * s.channels * s.points << s.dims, tt_threads());
    return result;
}

// The same with copies of what is not contiguous: grids are often permuted, and gradients expanded. `options` are the
// mode, the padding, the corners and the orders.
static PyObject *sampled_densely(PyObject *x, PyObject *g, PyObject *grid, PyObject *const *options,
                                 PyObject *lengths) {
    PyObject *arrays[] = {x, g, grid}, *dense[3] = {0}, *result = FALLBACK;
    for (int i = 0; i < 3 && result; i++) {
        if (!arrays[i]) continue;
        if (!tt_is_float32(arrays[i])) goto done;
        dense[i] = PyArray_FromArray(ARRAY(arrays[i]), NULL, NPY_ARRAY_CARRAY_RO);
        if (!dense[i]) result = NULL;
    }
    if (result) result = sampled(dense[0], dense[1], dense[2], options, lengths);
done:
    for (int i = 0; i < 3; i++) Py_XDECREF(dense[i]);
    return result;
}

KERNEL(sample, x, grid, mode, padding, align_corners, orders) {
    return sampled_densely(args->x, NULL, args->grid, &args->mode, NULL);
}

KERNEL(spread_at, g, grid, mode, padding, align_corners, orders, spatial) {
    return sampled_densely(NULL, args->g, args->grid, &args->mode, args->spatial);
}

KERNEL(slopes_at, g, x, grid, mode, padding, align_corners, orders) {
    return sampled_densely(args->x, args->g, args->grid, &args->mode, NULL);
}

// Maps along axes -------------------------------------------------------------------------------

enum { MAX_MAPPED = 1 << 14 };  // elements (of more, NumPy's loops are faster)

// Apply a `Map` of kernels/resample.py to the middle one of three dimensions. No element is multiplied by a weight of
// 0.
COMPACT static bool apply_map(const float *x, int64_t outer, int64_t length, int64_t inner, PyObject *map, float *out) {
    PyObject *rows = PyTuple_GetItem(map, 0), *cols = PyTuple_GetItem(map, 1), *weights = PyTuple_GetItem(map, 2);
    int64_t shape[2];
    if (!tt_read_sizes(PyTuple_GetItem(map, 3), 2, shape) || shape[1] != length) return false;
    if (!is_index_array(rows) || !is_index_array(cols) || !PyArray_CheckExact(weights)) return false;
    const int type = PyArray_TYPE(ARRAY(weights));
    if ((type != NPY_DOUBLE && type != NPY_FLOAT) || !PyArray_ISCARRAY_RO(ARRAY(weights))) return false;
    const int64_t *row = PyArray_DATA(ARRAY(rows)), *col = PyArray_DATA(ARRAY(cols));
    const int64_t entries = PyArray_SIZE(ARRAY(rows));
    const void *weight = PyArray_DATA(ARRAY(weights));
    memset(out, 0, sizeof(float) * (size_t)(outer * shape[0] * inner));
    int64_t last = -1;
    for (int64_t e = 0; e < entries; e++) {
        const float w = type == NPY_DOUBLE ? (float)((const double *)weight)[e] : ((const float *)weight)[e];
        if (w == 0) continue;
        for (int64_t o = 0; o < outer; o++) {
            const float *from = x + (o * length + col[e]) * inner;
            float *to = out + (o * shape[0] + row[e]) * inner;
            if (row[e] == last) {
                for (int64_t i = 0; i < inner; i++) to[i] += w * from[i];
            } else {
                for (int64_t i = 0; i < inner; i++) to[i] = w * from[i];
            }
        }
        last = row[e];
    }
    return true;
}

SMALL_KERNEL(resample, x, maps, keeps_format) {
    if (!is_float_array(args->x, false) || !PyTuple_Check(args->maps) || !PyArray_SIZE(ARRAY(args->x))) return FALLBACK;
    const int dims = PyArray_NDIM(ARRAY(args->x)), count = (int)PyTuple_Size(args->maps);
    int64_t shape[NPY_MAXDIMS];
    if (dims < count) return FALLBACK;
    for (int d = 0; d < dims; d++) shape[d] = PyArray_DIM(ARRAY(args->x), d);
    PyObject *out = Py_NewRef(args->x);
    for (int k = count; k-- > 0;) {  // the last axis first: most maps enlarge
        PyObject *map = PyTuple_GetItem(args->maps, k);
        const int at = dims - count + k;
        int64_t outer = 1, inner = 1, length = shape[at], sizes[2] = {0, 0};
        if (map == Py_None) continue;
        for (int d = 0; d < dims; d++) *(d < at ? &outer : &inner) *= d == at ? 1 : shape[d];
        bool usual = PyTuple_Check(map) && PyTuple_Size(map) == 4 && tt_read_sizes(PyTuple_GetItem(map, 3), 2, sizes);
        shape[at] = sizes[0];
        usual = usual && sizes[0] && outer * inner * imax(length, sizes[0]) <= MAX_MAPPED;
        PyObject *next = usual ? tt_new_array(args->x, dims, shape) : FALLBACK;
        if (usual && next && !apply_map(float_data(out), outer, length, inner, map, float_data(next))) {
            Py_DECREF(next);
            next = FALLBACK;
        }
        Py_DECREF(out);
        out = next;
        if (!out || out == FALLBACK) return out;
    }
    if (out != args->x) return out;
    Py_DECREF(out);
    return FALLBACK;  // (a copy)
}

FAMILY(resample, ENTRY(resample), ENTRY(sample), ENTRY(spread_at), ENTRY(slopes_at));
