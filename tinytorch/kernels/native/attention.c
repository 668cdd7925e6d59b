// Twins of kernels/attention.py: the softmax of scores and its gradient, row by row in the cache.

typedef struct {
    float *scores;
    const float *other;  // the bias, or the softmax
    Py_ssize_t rows, keys, step;
    int dims;  // those of the rows, and by them the bias's
    Py_ssize_t sizes[8], strides[8];
    float scale;
} Scores;

INLINE float lanes_sum(vec x) {
    float sum = 0;
    for (int i = 0; i < WIDTH; i++) sum += x[i];
    return sum;
}

INLINE vec beyond(vec x, Py_ssize_t count, float fill) {
    for (int i = 0; i < WIDTH; i++) x[i] = i < count ? x[i] : fill;
    return x;
}

static void softmax_scores_row(float *x, const float *bias, Py_ssize_t keys, float scale) {
    vec most = all(-INFINITY), sums = all(0);
    Py_ssize_t i = 0;
    for (; i + WIDTH <= keys; i += WIDTH) {
        vec score = load(x + i) * scale;
        if (bias) score += load(bias + i);
        store(x + i, score);
        most = where(score > most, score, most);
    }
    if (i < keys) {
        vec score = load_some(x + i, keys - i) * scale;
        if (bias) score += load_some(bias + i, keys - i);
        store_some(x + i, score, keys - i);
        score = beyond(score, keys - i, -INFINITY);
        most = where(score > most, score, most);
    }
    float highest = -INFINITY;
    for (int k = 0; k < WIDTH; k++) highest = most[k] > highest ? most[k] : highest;
    if (highest == -INFINITY) highest = 0;  // it may attend to nothing
    for (i = 0; i + WIDTH <= keys; i += WIDTH) {
        vec weight = exp_of(load(x + i) - highest);
        store(x + i, weight);
        sums += weight;
    }
    if (i < keys) {
        vec weight = exp_of(load_some(x + i, keys - i) - highest);
        store_some(x + i, weight, keys - i);
        sums += beyond(weight, keys - i, 0);
    }
    float sum = lanes_sum(sums), factor = sum == 0 ? 1 : 1 / sum;
    for (i = 0; i < keys; i++) x[i] *= factor;
}

static void softmax_scores_rows(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Scores *scores = context;
    Py_ssize_t begin = block * scores->step, end = begin + scores->step < scores->rows ? begin + scores->step : scores->rows;
    for (Py_ssize_t row = begin; row < end; row++) {
        const float *bias = scores->other;
        Py_ssize_t left = row;
        for (int d = bias ? scores->dims : 0; d--; left /= scores->sizes[d]) {
            bias += left % scores->sizes[d] * scores->strides[d];
        }
        softmax_scores_row(scores->scores + row * scores->keys, bias, scores->keys, scores->scale);
    }
}

static bool read_scores(Scores *scores, PyObject *x, PyObject *scale) {
    PyArrayObject *array = (PyArrayObject *)x;
    if (!tt_float32(x) || !tt_contiguous(x) || !PyArray_ISWRITEABLE(array) || !PyFloat_Check(scale)) return false;
    scores->dims = PyArray_NDIM(array) - 1;
    if (scores->dims < 0 || scores->dims > 8) return false;
    scores->keys = PyArray_DIM(array, scores->dims);
    scores->rows = scores->keys ? PyArray_SIZE(array) / scores->keys : 0;
    scores->step = scores->keys < 1 << 14 ? (1 << 14) / (scores->keys + 1) + 1 : 1;
    scores->scores = PyArray_DATA(array);
    scores->scale = (float)PyFloat_AsDouble(scale);
    return true;
}

static PyObject *do_scores(Work work, Scores *scores) {
    tt_share(work, scores, (scores->rows + scores->step - 1) / scores->step, scores->rows * scores->keys, tt_threads());
    Py_INCREF(Py_None);
    return Py_None;
}

KERNEL(softmax_scores) {
    Scores scores = {0};
    if (count != 3 || out || !read_scores(&scores, args[0], args[2])) return PASS;
    if (args[1] != Py_None) {
        PyArrayObject *x = (PyArrayObject *)args[0], *bias = (PyArrayObject *)args[1];
        if (!tt_float32(args[1]) || PyArray_NDIM(bias) != PyArray_NDIM(x) ||
            !PyArray_CompareLists(PyArray_DIMS(bias), PyArray_DIMS(x), PyArray_NDIM(x)) ||
            (scores.keys > 1 && scores.rows && PyArray_STRIDE(bias, scores.dims) != 4)) {
            return PASS;
        }
        for (int d = 0; d < scores.dims; d++) {
            scores.sizes[d] = PyArray_DIM(x, d);
            scores.strides[d] = PyArray_STRIDE(bias, d) / 4;
        }
        scores.other = PyArray_DATA(bias);
    }
    return do_scores(softmax_scores_rows, &scores);
}

static void slope_rows(void *context, Py_ssize_t block, int worker) {
    (void)worker;
    const Scores *scores = context;
    const Py_ssize_t keys = scores->keys;
    Py_ssize_t begin = block * scores->step, end = begin + scores->step < scores->rows ? begin + scores->step : scores->rows;
    for (Py_ssize_t row = begin; row < end; row++) {
        float *slope = scores->scores + row * keys;
        const float *weights = scores->other + row * keys;
        vec sums = all(0);
        Py_ssize_t i = 0;
        for (; i + WIDTH <= keys; i += WIDTH) sums += load(slope + i) * load(weights + i);
        if (i < keys) sums += load_some(slope + i, keys - i) * load_some(weights + i, keys - i);
        const float sum = lanes_sum(sums), scale = scores->scale;
        for (i = 0; i + WIDTH <= keys; i += WIDTH) {
            store(slope + i, (load(slope + i) - sum) * load(weights + i) * scale);
        }
        if (i < keys) {
            store_some(slope + i, (load_some(slope + i, keys - i) - sum) * load_some(weights + i, keys - i) * scale, keys - i);
        }
    }
}

KERNEL(softmax_slopes) {
    Scores scores = {0};
    if (count != 5 || out || !read_scores(&scores, args[0], args[4]) || !tt_float32(args[1]) || !tt_contiguous(args[1]) ||
        PyArray_NDIM((PyArrayObject *)args[1]) != PyArray_NDIM((PyArrayObject *)args[0]) ||
        !PyArray_CompareLists(PyArray_DIMS((PyArrayObject *)args[0]), PyArray_DIMS((PyArrayObject *)args[1]),
                              PyArray_NDIM((PyArrayObject *)args[0]))) {
        return PASS;
    }
    scores.other = PyArray_DATA((PyArrayObject *)args[1]);
    return do_scores(slope_rows, &scores);
}
