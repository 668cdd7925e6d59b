// Twins of kernels/conv.py: a convolution and its gradients by the input and the weight, as matrix products whose
// columns (im2col) are never stored.
//
// A correlation that direct.h does not take copies a block of images (correlation.h), and packs panels of TILE_COLUMNS
// positions, which stay in the cache while they meet all rows of the weight.
//
// For the gradient by the weight the copy is read as it is: a tile of some taps by some outputs adds up, over the
// positions, numbers of the image times vectors of the output's gradient, which is transposed for that.
#include "direct.h"

enum {
    MAX_TAP_STEP = 256,         // terms that a tile of panels adds before the next tile of rows: they stay in the cache
    RUN_POSITIONS = 160,        // positions whose gradient is transposed at a time
    MAX_WEIGHT_SUMS = 1 << 21,  // floats of partial sums of the weight's gradient
    DEPTHWISE_GROUPS = 4,       // groups of a part
    DEPTHWISE_UNROLL = 8,       // vectors
    DEPTHWISE_TAPS = 9,         // taps of a channel that are summed together
};

static float *scratch_of(const Correlation *c, int worker) { return c->scratch + worker * c->scratch_size; }

// Panels ----------------------------------------------------------------------------------------

// Positions of a row that are adjacent: from offset `at` on.
typedef struct {
    int64_t at, length;
    int64_t index;   // of the first position, among those of all runs
    Three position;  // of the first position in the image
} Run;

// Find the runs of `count` positions from `begin` on: where they are in the copy of the source, and in the result.
// Return the number of the former.
static int find_runs(const Correlation *c, const Block *b, int64_t begin, int64_t count, Run *runs, Run *results,
                     int *result_runs) {
    const Axis *a = c->axis;
    int64_t width = b->count[2], column = begin % width, row = begin / width, end = count;
    int run_count = 0;
    *result_runs = 0;
    while (count) {
        int64_t h = row % b->count[1], d = row / b->count[1] % b->count[0], n = row / b->count[1] / b->count[0];
        int64_t length = imin(width - column, count), position[3] = {d, h, column};
        int64_t source = n * c->copy_stride[0] + d * c->copy_stride[3] + h * c->copy_stride[4] + column;
        position[c->split] += b->begin;
        runs[run_count++] = (Run){source, length, end - count, {position[0], position[1], position[2]}};
        int64_t at = (b->first + n) * c->result_stride[0];
        for (int k = 0; k < 3; k++)
            at += (a[k].result_start + a[k].result_step * position[k]) * c->result_stride[2 + k];
        Run *previous = results + *result_runs - 1;
        if (*result_runs && a[2].result_step == 1 && c->result_stride[4] == 1 && previous->at + previous->length == at)
            previous->length += length;
        else results[(*result_runs)++] = (Run){.at = at, .length = length};
        count -= length;
        column = 0;
        row++;
    }
    return run_count;
}

INLINE void pack_run(const Correlation *c, const float *from, int64_t length, float *to) {
    for (int64_t channel = 0; channel < c->channels; channel++, from += c->copy_stride[1])
        for (int64_t t = 0; t < c->taps; t++, to += TILE_COLUMNS) copy_floats(to, from + c->tap_offset[t], length);
}

// Pack the numbers that each tap meets at some positions. The cases let the compiler specialise the copies by length.
static void pack_runs(const Correlation *c, const float *copy, const Run *runs, int count, float *panel) {
    for (int r = 0; r < count; panel += runs[r++].length) {
        const float *from = copy + runs[r].at;
        int64_t length = runs[r].length;
        if (length == 3 * WIDTH) pack_run(c, from, 3 * WIDTH, panel);
        else if (length == 2 * WIDTH) pack_run(c, from, 2 * WIDTH, panel);
        else if (length == WIDTH) pack_run(c, from, WIDTH, panel);
        else if (length > WIDTH) pack_run(c, from, length, panel);
        else if (length >= 8) pack_run(c, from, length, panel);
        else if (length >= 4) pack_run(c, from, length, panel);
        else pack_run(c, from, length, panel);
    }
}

// Add to a tile the product of TILE_ROWS rows of the weight and `vectors` vectors of a panel. The tile starts with the
// bias, or with the sums so far.
INLINE void panel_tile(int vectors, const float *weight, const float *panel, int64_t depth, const float *bias,
                       const float *sums, float *to, int64_t to_stride) {
    vec acc[TILE_ROWS][TILE_VECTORS];
    for (int i = 0; i < TILE_ROWS; i++)
        for (int j = 0; j < vectors; j++) {
            acc[i][j] = bias ? broadcast(bias[i]) : load(sums + i * TILE_COLUMNS + j * WIDTH);
        }
    for (int64_t k = 0; k < depth; k++, weight += TILE_ROWS, panel += TILE_COLUMNS) {
        vec b[TILE_VECTORS];
        for (int j = 0; j < vectors; j++) b[j] = load(panel + j * WIDTH);
        for (int i = 0; i < TILE_ROWS; i++)
            for (int j = 0; j < vectors; j++) acc[i][j] += weight[i] * b[j];
    }
    for (int i = 0; i < TILE_ROWS; i++)
        for (int j = 0; j < vectors; j++) store(to + i * to_stride + j * WIDTH, acc[i][j]);
}

static void multiply_panel(int64_t positions, const float *weight, const float *panel, int64_t depth, const float *bias,
                           const float *sums, float *to, int64_t to_stride) {
    if (positions > 2 * WIDTH) panel_tile(3, weight, panel, depth, bias, sums, to, to_stride);
    else if (positions > WIDTH) panel_tile(2, weight, panel, depth, bias, sums, to, to_stride);
    else panel_tile(1, weight, panel, depth, bias, sums, to, to_stride);
}

// Pack a tile of rows of the weight. All of them have the shape (groups, tiles, channels, taps, TILE_ROWS).
static void pack_tile_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Correlation *c = context;
    int64_t tiles = ceil_div(c->rows, TILE_ROWS), length = c->channels * c->taps, first = part % tiles * TILE_ROWS;
    float *to = c->packed_weight + part * length * TILE_ROWS;
    for (int i = 0; i < TILE_ROWS; i++) {
        const float *from = c->weight + part / tiles * c->weight_stride[5] + (first + i) * c->weight_stride[0];
        for (int64_t channel = 0, k = i; channel < c->channels; channel++, from += c->weight_stride[1])
            for (int64_t t = 0; t < c->taps; t++, k += TILE_ROWS)
                to[k] = first + i < c->rows ? from[c->weight_tap_offset[t]] : 0;
    }
}

// Write a run of positions into the result, `step` apart.
INLINE void store_run(float *to, const float *from, int64_t count, int64_t step) {
    if (step == 1) copy_floats(to, from, count);
    else if (step == 2)
        for (int64_t i = 0; i < count; i++) to[2 * i] = from[i];
    else
        for (int64_t i = 0; i < count; i++) to[i * step] = from[i];
}

// Compute a chunk of the rows of a group's result, for a block.
static void correlate_part(void *context, Py_ssize_t part, int worker) {
    const Correlation *c = context;
    int64_t blocks = c->blocks * c->cuts, group = part / blocks % c->groups, tiles = ceil_div(c->rows, TILE_ROWS);
    int64_t begin = part / blocks / c->groups * c->row_chunk, end = imin(begin + c->row_chunk, tiles);
    int64_t length = c->channels * c->taps, step = c->axis[2].result_step;
    Block b = nth_block(c, part % blocks);
    float *all_sums = scratch_of(c, worker), *panel = all_sums + c->row_chunk * TILE_ROWS * TILE_COLUMNS;
    float *copy_buffer = panel + (length + 1) * TILE_COLUMNS;
    const float *copy = copy_buffer, *source = c->source + group * c->channels * c->source_stride[1];
    if (c->in_place) copy = source + b.first * c->source_stride[0] + b.begin;
    else copy_block(c, &b, source, c->channels, copy_buffer);
    int64_t positions = positions_of(&b);
    for (int64_t at = 0; at < positions; at += TILE_COLUMNS) {
        Run runs[TILE_COLUMNS], results[TILE_COLUMNS];
        int64_t count = imin(TILE_COLUMNS, positions - at);
        int result_runs, run_count = find_runs(c, &b, at, count, runs, results, &result_runs);
        pack_runs(c, copy, runs, run_count, panel);
        bool direct = result_runs == 1 && step == 1 && count % WIDTH == 0;
        for (int64_t k = 0; k < imax(length, 1); k += MAX_TAP_STEP) {
            int64_t depth = imin(MAX_TAP_STEP, length - k);
            bool last = k + depth == length;
            for (int64_t t = begin; t < end; t++) {
                const float *weight = c->packed_weight + ((group * tiles + t) * length + k) * TILE_ROWS;
                const float *bias = k ? NULL : c->bias + (group * tiles + t) * TILE_ROWS;
                float *to = c->result + (group * c->rows + t * TILE_ROWS) * c->result_stride[1];
                float *sums = all_sums + (t - begin) * TILE_ROWS * TILE_COLUMNS;
                if (last && direct && (t + 1) * TILE_ROWS <= c->rows) {
                    multiply_panel(count, weight, panel + k * TILE_COLUMNS, depth, bias, sums, to + results[0].at,
                                   c->result_stride[1]);
                    continue;
                }
                multiply_panel(count, weight, panel + k * TILE_COLUMNS, depth, bias, sums, sums, TILE_COLUMNS);
                if (!last) continue;
                for (int64_t i = 0; i < imin(TILE_ROWS, c->rows - t * TILE_ROWS); i++) {
                    const float *from = sums + i * TILE_COLUMNS;
                    for (int r = 0; r < result_runs; from += results[r++].length) {
                        store_run(to + i * c->result_stride[1] + results[r].at, from, results[r].length, step);
                    }
                }
            }
        }
    }
}

// Depthwise correlations ------------------------------------------------------------------------

// Compute `vectors` vectors of adjacent positions.
INLINE void sum_taps(int vectors, const Correlation *c, const float *from, const float *weight, float bias, float *to) {
    vec sums[DEPTHWISE_UNROLL];
    for (int j = 0; j < vectors; j++) sums[j] = broadcast(bias);
    for (int64_t channel = 0; channel < c->channels; channel++, from += c->copy_stride[1])
        for (int64_t t = 0; t < c->taps; t++, weight++)
            for (int j = 0; j < vectors; j++) sums[j] += *weight * load(from + c->tap_offset[t] + j * WIDTH);
    for (int j = 0; j < vectors; j++) store(to + j * WIDTH, sums[j]);
}

static void depthwise_part(void *context, Py_ssize_t part, int worker) {
    const Correlation *c = context;
    const Axis *a = c->axis;
    int64_t blocks = c->blocks * c->cuts, first = part / blocks * DEPTHWISE_GROUPS;
    int64_t padded_rows = ceil_div(c->rows, TILE_ROWS) * TILE_ROWS;
    Block b = nth_block(c, part % blocks);
    int64_t start = b.first * c->result_stride[0] + b.begin * a[c->split].result_step * c->result_stride[2 + c->split];
    int64_t plane_step = a[0].result_step * c->result_stride[2], row_step = a[1].result_step * c->result_stride[3];
    for (int d = 0; d < 3; d++) start += a[d].result_start * c->result_stride[2 + d];
    float *copy = scratch_of(c, worker), *weight = copy + c->copy_size + DEPTHWISE_UNROLL * WIDTH;
    float *plane = weight + c->channels * c->taps;
    // The rows of a plane are computed as one, together with the positions between them, which are dropped.
    int64_t count = (b.count[1] - 1) * c->copy_stride[4] + b.count[2];
    for (int64_t group = first; group < imin(first + DEPTHWISE_GROUPS, c->groups); group++) {
        copy_block(c, &b, c->source + group * c->channels * c->source_stride[1], c->channels, copy);
        for (int64_t row = 0; row < c->rows; row++) {
            const float *from = c->weight + group * c->weight_stride[5] + row * c->weight_stride[0];
            float bias = c->bias[group * padded_rows + row], *to_weight = weight;
            for (int64_t channel = 0; channel < c->channels; channel++, from += c->weight_stride[1])
                for (int64_t t = 0; t < c->taps; t++) *to_weight++ = from[c->weight_tap_offset[t]];
            float *result = c->result + start + (group * c->rows + row) * c->result_stride[1];
            for (int64_t n = 0; n < b.images; n++)
                for (int64_t d = 0; d < b.count[0]; d++) {
                    const float *image = copy + n * c->copy_stride[0] + d * c->copy_stride[3];
                    for (int64_t i = 0; i < count;) {
                        int64_t left = count - i;
                        if (left > DEPTHWISE_UNROLL / 2 * WIDTH) {
                            sum_taps(DEPTHWISE_UNROLL, c, image + i, weight, bias, plane + i);
                            i += DEPTHWISE_UNROLL * WIDTH;
                        } else if (left > WIDTH) {
                            sum_taps(DEPTHWISE_UNROLL / 2, c, image + i, weight, bias, plane + i);
                            i += DEPTHWISE_UNROLL / 2 * WIDTH;
                        } else {
                            sum_taps(1, c, image + i, weight, bias, plane + i);
                            i += WIDTH;
                        }
                    }
                    float *to = result + n * c->result_stride[0] + d * plane_step;
                    const float *sums = plane;
                    for (int64_t h = 0; h < b.count[1]; h++, to += row_step, sums += c->copy_stride[4])
                        store_run(to, sums, b.count[2], a[2].result_step);
                }
        }
    }
}

// Running a correlation -------------------------------------------------------------------------

static bool is_depthwise(const Correlation *c) { return c->groups > 1 && (c->channels == 1 || c->rows == 1); }

// Compute a correlation whose axes have been set; false if memory is short. `bias` may be NULL.
static bool correlate(Correlation *c, const float *bias) {
    int64_t tiles = ceil_div(c->rows, TILE_ROWS);
    int threads = tt_threads();
    bool depthwise = is_depthwise(c);
    if (!depthwise && is_direct(c) && correlate_direct(c, bias)) return true;
    for (int d = 0; d < 3; d++)
        if (!find_phases(&c->axis[d])) return false;
    if (!cut_blocks(c) || !find_taps(c)) return false;
    int64_t length = c->channels * c->taps, multiplications = c->samples * c->groups * c->rows * length;
    for (int d = 0; d < 3; d++) multiplications *= c->axis[d].positions;
    int64_t parts = c->blocks * c->cuts * c->groups;
    int64_t min_parts = threads > 1 ? 4 * threads : 1;  // not more: each chunk of the rows packs the panels again
    c->row_chunks = imax(imin(ceil_div(min_parts, parts), tiles / 4), 1);
    c->row_chunk = ceil_div(tiles, c->row_chunks);
    c->row_chunks = ceil_div(tiles, c->row_chunk);
    c->scratch_size = round_to_lines(c->copy_size + (length + 2 + c->row_chunk * TILE_ROWS) * TILE_COLUMNS + WIDTH);
    if (depthwise) c->scratch_size = round_to_lines(2 * c->copy_size + length + 3 * DEPTHWISE_UNROLL * WIDTH);
    c->scratch = alloc_floats((size_t)(threads * c->scratch_size));
    c->packed_weight = depthwise ? NULL : alloc_floats((size_t)(c->groups * tiles * length * TILE_ROWS));
    float *padded_bias = calloc((size_t)(c->groups * tiles * TILE_ROWS), sizeof(float));
    bool done = c->scratch && padded_bias && (c->packed_weight || depthwise);
    if (done) {
        for (int64_t i = 0; bias && i < c->groups * c->rows; i++)
            padded_bias[i / c->rows * tiles * TILE_ROWS + i % c->rows] = bias[i];
        c->bias = padded_bias;
        if (depthwise) {
            int64_t group_parts = ceil_div(c->groups, DEPTHWISE_GROUPS);
            tt_parallel_for(depthwise_part, c, c->blocks * c->cuts * group_parts, multiplications, threads);
        } else {
            tt_parallel_for(pack_tile_part, c, c->groups * tiles, c->groups * c->rows * length, threads);
            tt_parallel_for(correlate_part, c, parts * c->row_chunks, multiplications, threads);
        }
    }
    free(c->scratch);
    free(c->packed_weight);
    free(padded_bias);
    free(c->tap_offset);
    return done;
}

// The gradient by the weight --------------------------------------------------------------------

typedef struct {
    Correlation c;       // how the input is copied, and where the output's gradient is
    const float *y;      // the output's gradient
    const float *y_end;  // the end of its memory
    float *sums;         // by part and group: chunks of rows, tiles, vectors of rows
    int64_t parts, tile_chunks, chunks, tiles;
    int vectors;  // of rows, per chunk
    // A tile is one tap of TILE_ROWS channels, and skips the positions where the tap meets padding; or else TILE_ROWS
    // taps, of whichever channels follow each other.
    bool by_taps;
    float *result;
} WeightGradient;

// Transpose a chunk of rows of the output's gradient: position after position. Whole vectors of positions are written;
// the next run overwrites what is beyond its predecessor's end.
static void transpose_rows(const WeightGradient *s, int64_t group, int64_t chunk, const Run *runs, int count,
                           float *to) {
    const Correlation *c = &s->c;
    int64_t position_size = s->vectors * WIDTH, step = c->result_stride[4];
    for (int j = 0; j < s->vectors; j++) {
        int64_t first = (chunk * s->vectors + j) * WIDTH, rows = imax(imin(c->rows - first, WIDTH), 0);
        const float *source = s->y + (group * c->rows + first) * c->result_stride[1];
        float *position = to + j * WIDTH;
        for (int r = 0; r < count; r++) {
            for (int64_t w = 0; w < runs[r].length; w += WIDTH, position += WIDTH * position_size) {
                vec block[WIDTH];
                for (int i = 0; i < WIDTH; i++) {
                    const float *from = source + i * c->result_stride[1] + runs[r].at + w * step;
                    block[i] = (vec){0};
                    if (i >= rows) continue;
                    if (step == 1 && from + WIDTH <= s->y_end) block[i] = load(from);
                    else
                        for (int64_t k = 0; k < imin(WIDTH, runs[r].length - w); k++) block[i][k] = from[k * step];
                }
                transpose(block);
                for (int i = 0; i < WIDTH; i++) store(position + i * position_size, block[i]);
            }
            position -= (ceil_div(runs[r].length, WIDTH) * WIDTH - runs[r].length) * position_size;
        }
    }
}

// The parts of runs of positions where a tap does not meet padding.
static int runs_inside(const Correlation *c, int64_t tap, const Run *runs, int count, Run *inside) {
    const Axis *a = c->axis;
    Three taps = {tap / a[2].taps / a[1].taps, tap / a[2].taps % a[1].taps, tap % a[2].taps}, first, last;
    for (int d = 0; d < 3; d++) {
        int64_t offset = a[d].offset[taps[d]];
        first[d] = -floor_div(offset, a[d].stride);
        last[d] = -floor_div(offset - a[d].size, a[d].stride);
    }
    int inside_count = 0;
    for (const Run *run = runs; run < runs + count; run++) {
        int64_t d = run->position[0], h = run->position[1], w = run->position[2];
        int64_t skipped = imax(first[2] - w, 0), length = imin(last[2] - w, run->length) - skipped;
        if (d < first[0] || d >= last[0] || h < first[1] || h >= last[1] || length <= 0) continue;
        inside[inside_count++] = (Run){.at = run->at + skipped, .length = length, .index = run->index + skipped};
    }
    return inside_count;
}

// Add the products of some positions to a tile of sums: TILE_ROWS taps by `vectors` vectors of rows.
INLINE void add_positions(int vectors, float *sums, const float *y, const float *copy, const int64_t *tap_offset,
                          const Run *runs, int count) {
    vec acc[TILE_ROWS][TILE_VECTORS];
    for (int i = 0; i < TILE_ROWS; i++)
        for (int j = 0; j < vectors; j++) acc[i][j] = load(sums + (i * vectors + j) * WIDTH);
    for (int r = 0; r < count; r++) {
        const float *from = copy + runs[r].at, *end = from + runs[r].length;
        const float *grad = y + runs[r].index * vectors * WIDTH;
        for (; from < end; from++, grad += vectors * WIDTH) {
            vec b[TILE_VECTORS];
            for (int j = 0; j < vectors; j++) b[j] = load(grad + j * WIDTH);
            for (int i = 0; i < TILE_ROWS; i++)
                for (int j = 0; j < vectors; j++) acc[i][j] += from[tap_offset[i]] * b[j];
        }
    }
    for (int i = 0; i < TILE_ROWS; i++)
        for (int j = 0; j < vectors; j++) store(sums + (i * vectors + j) * WIDTH, acc[i][j]);
}

static void weight_part(void *context, Py_ssize_t index, int worker) {
    const WeightGradient *s = context;
    const Correlation *c = &s->c;
    int64_t part = index / s->tile_chunks / c->groups, group = index / s->tile_chunks % c->groups;
    int64_t chunk_size = ceil_div(s->tiles, s->tile_chunks), begin = index % s->tile_chunks * chunk_size;
    int64_t end = imin(begin + chunk_size, s->tiles);
    int64_t length = c->channels * c->taps, position_size = s->vectors * WIDTH, tile = TILE_ROWS * position_size;
    int64_t tile_step = s->by_taps ? c->taps : 1;  // from a tile to the next one of the same tap
    if (begin >= end) return;
    int64_t channel = s->by_taps ? begin / c->taps * TILE_ROWS : begin * TILE_ROWS / c->taps;
    int64_t channels = s->by_taps ? ceil_div(end, c->taps) * TILE_ROWS : ceil_div(end * TILE_ROWS, c->taps);
    channels = imin(channels, c->channels) - channel;
    float *y = scratch_of(c, worker), *copy_buffer = y + (RUN_POSITIONS + WIDTH) * position_size;
    float *sums = s->sums + (part * c->groups + group) * s->chunks * s->tiles * tile;
    for (int64_t k = 0; k < s->chunks; k++) {
        memset(sums + (k * s->tiles + begin) * tile, 0, sizeof(float) * (size_t)((end - begin) * tile));
    }
    int64_t blocks = c->blocks * c->cuts;
    for (int64_t block = part * blocks / s->parts; block < (part + 1) * blocks / s->parts; block++) {
        Block b = nth_block(c, block);
        const float *copy = copy_buffer, *source = c->source + (group * c->channels + channel) * c->source_stride[1];
        if (c->in_place) copy = source + b.first * c->source_stride[0] + b.begin;
        else copy_block(c, &b, source, channels, copy_buffer);
        int64_t positions = positions_of(&b);
        for (int64_t at = 0; at < positions; at += RUN_POSITIONS) {
            Run runs[RUN_POSITIONS], y_runs[RUN_POSITIONS], inside[RUN_POSITIONS];
            int y_count, count = find_runs(c, &b, at, imin(RUN_POSITIONS, positions - at), runs, y_runs, &y_count);
            for (int64_t chunk = 0; chunk < s->chunks; chunk++) {
                transpose_rows(s, group, chunk, y_runs, y_count, y);
                for (int64_t tap = 0; tap < tile_step; tap++) {
                    int tap_count = s->by_taps ? runs_inside(c, tap, runs, count, inside) : count;
                    const Run *tap_runs = s->by_taps ? inside : runs;
                    int64_t first = begin + (tap - begin % tile_step + tile_step) % tile_step;
                    for (int64_t t = first; t < end; t += tile_step) {
                        int64_t tap_offset[TILE_ROWS];
                        for (int64_t i = 0; i < TILE_ROWS; i++) {
                            int64_t k = imin(t * TILE_ROWS + i, length - 1);
                            if (s->by_taps) k = imin(t / c->taps * TILE_ROWS + i, c->channels - 1) * c->taps + tap;
                            tap_offset[i] = (k / c->taps - channel) * c->copy_stride[1] + c->tap_offset[k % c->taps];
                        }
                        float *to = sums + (chunk * s->tiles + t) * tile;
                        if (s->vectors == 3) add_positions(3, to, y, copy, tap_offset, tap_runs, tap_count);
                        else if (s->vectors == 2) add_positions(2, to, y, copy, tap_offset, tap_runs, tap_count);
                        else add_positions(1, to, y, copy, tap_offset, tap_runs, tap_count);
                    }
                }
            }
        }
    }
}

// Add up the parts of a vector of rows, and transpose them into the result.
static void sum_parts(void *context, Py_ssize_t index, int worker) {
    (void)worker;
    const WeightGradient *s = context;
    const Correlation *c = &s->c;
    int64_t vector = index % (s->chunks * s->vectors), group = index / (s->chunks * s->vectors);
    int64_t tap_size = s->vectors * WIDTH, length = c->channels * c->taps, rows = imin(c->rows - vector * WIDTH, WIDTH);
    int64_t chunk_size = s->tiles * TILE_ROWS * tap_size, size = s->chunks * chunk_size, channel = 0, tap = 0;
    const float *from = s->sums + group * size + vector / s->vectors * chunk_size + vector % s->vectors * WIDTH;
    float *to = s->result + (group * c->rows + vector * WIDTH) * length;
    for (int64_t k = 0; rows > 0 && k < length; k += WIDTH) {
        vec block[WIDTH] = {0};
        for (int64_t i = 0; i < imin(WIDTH, length - k); i++) {
            int64_t at = s->by_taps ? (channel / TILE_ROWS * c->taps + tap) * TILE_ROWS + channel % TILE_ROWS : k + i;
            if (++tap == c->taps) tap = 0, channel++;
            for (int64_t part = 0; part < s->parts; part++)
                block[i] += load(from + part * c->groups * size + at * tap_size);
        }
        transpose(block);
        for (int64_t i = 0; i < rows; i++) store_up_to(to + i * length + k, block[i], length - k);
    }
}

// Add to the sums of some taps of one channel the products with the output's gradient in a block.
INLINE void add_tap_products(int taps, const WeightGradient *s, const Block *b, const float *y, const float *copy,
                             const int64_t *tap_offset, float *sums) {
    const Correlation *c = &s->c;
    int64_t step = c->result_stride[4], rest = b->count[2] % WIDTH;
    ints rest_mask = {0};  // of the last vector of a row: what follows in memory may be infinite
    for (int64_t i = 0; i < rest; i++) rest_mask[i] = -1;
    vec acc[DEPTHWISE_TAPS];
    for (int t = 0; t < taps; t++) acc[t] = load(sums + t * WIDTH);
    y += b->begin * c->result_stride[2 + c->split];
    for (int64_t n = 0; n < b->images; n++)
        for (int64_t d = 0; d < b->count[0]; d++) {
            const float *row = y + n * c->result_stride[0] + d * c->result_stride[2];
            const float *from = copy + n * c->copy_stride[0] + d * c->copy_stride[3];
            for (int64_t h = 0; h < b->count[1]; h++, row += c->result_stride[3], from += c->copy_stride[4]) {
                int64_t w = 0;
                for (; step == 1 && w + WIDTH <= b->count[2]; w += WIDTH) {
                    vec g = load(row + w);
                    for (int t = 0; t < taps; t++) acc[t] += g * load(from + tap_offset[t] + w);
                }
                for (; w < b->count[2]; w += WIDTH) {
                    ints mask = w + WIDTH <= b->count[2] ? (ints){0} - 1 : rest_mask;
                    vec g = {0};
                    if (step == 1 && row + w + WIDTH <= s->y_end) g = (vec)(mask & (ints)load(row + w));
                    else
                        for (int64_t i = 0; i < imin(WIDTH, b->count[2] - w); i++) g[i] = row[(w + i) * step];
                    for (int t = 0; t < taps; t++) acc[t] += g * (vec)(mask & (ints)load(from + tap_offset[t] + w));
                }
            }
        }
    for (int t = 0; t < taps; t++) store(sums + t * WIDTH, acc[t]);
}

// Of a depthwise convolution: a scalar product for each tap of each channel.
static void depthwise_weight_part(void *context, Py_ssize_t group, int worker) {
    const WeightGradient *s = context;
    const Correlation *c = &s->c;
    float *copy = scratch_of(c, worker), *sums = copy + c->copy_size + WIDTH;
    memset(sums, 0, sizeof(float) * (size_t)(c->rows * c->taps * WIDTH));
    for (int64_t block = 0; block < c->blocks * c->cuts; block++) {
        Block b = nth_block(c, block);
        copy_block(c, &b, c->source + group * c->source_stride[1], 1, copy);
        for (int64_t row = 0; row < c->rows; row++) {
            const float *y = s->y + b.first * c->result_stride[0] + (group * c->rows + row) * c->result_stride[1];
            for (int64_t t = 0; t < c->taps;) {
                float *to = sums + (row * c->taps + t) * WIDTH;
                if (c->taps - t >= DEPTHWISE_TAPS) {
                    add_tap_products(DEPTHWISE_TAPS, s, &b, y, copy, c->tap_offset + t, to);
                    t += DEPTHWISE_TAPS;
                } else if (c->taps - t >= 3) {
                    add_tap_products(3, s, &b, y, copy, c->tap_offset + t, to);
                    t += 3;
                } else {
                    add_tap_products(1, s, &b, y, copy, c->tap_offset + t, to);
                    t += 1;
                }
            }
        }
    }
    for (int64_t k = 0; k < c->rows * c->taps; k++) {
        float sum = 0;
        for (int i = 0; i < WIDTH; i++) sum += sums[k * WIDTH + i];
        s->result[group * c->rows * c->taps + k] = sum;
    }
}

static bool compute_weight_gradient(WeightGradient *s) {
    Correlation *c = &s->c;
    int threads = tt_threads();
    for (int d = 0; d < 3; d++)
        if (!find_phases(&c->axis[d])) return false;
    if (!cut_blocks(c) || !find_taps(c)) return false;
    int64_t length = c->channels * c->taps, vectors = ceil_div(c->rows, WIDTH), blocks = c->blocks * c->cuts;
    int64_t multiplications = c->samples * c->groups * c->rows * length;
    for (int d = 0; d < 3; d++) multiplications *= c->axis[d].positions;
    bool depthwise = c->groups > 1 && c->channels == 1;
    s->vectors = vectors % 3 == 0 ? 3 : vectors % 2 == 0 ? 2 : vectors == 1 ? 1 : 3;
    s->chunks = ceil_div(vectors, s->vectors);
    // By taps if that fills tiles with at most an eighth of unused channels.
    s->by_taps = ceil_div(c->channels, TILE_ROWS) * TILE_ROWS * 8 <= c->channels * 9;
    s->tiles = s->by_taps ? ceil_div(c->channels, TILE_ROWS) * c->taps : ceil_div(length, TILE_ROWS);
    int64_t size = c->groups * s->chunks * s->tiles * TILE_ROWS * s->vectors * WIDTH;
    s->parts = imax(imin(imin(blocks, PARTS), MAX_WEIGHT_SUMS / size), 1);
    s->tile_chunks = imax(imin(ceil_div(PARTS, s->parts * c->groups), s->tiles / 4), 1);
    c->scratch_size = c->copy_size + WIDTH + (RUN_POSITIONS + WIDTH) * s->vectors * WIDTH;
    if (depthwise) c->scratch_size = c->copy_size + WIDTH + c->rows * c->taps * WIDTH;
    c->scratch_size = round_to_lines(c->scratch_size);
    c->scratch = alloc_floats((size_t)(threads * c->scratch_size));
    s->sums = depthwise ? NULL : alloc_floats((size_t)(s->parts * size));
    bool done = c->scratch && (depthwise || s->sums);
    if (done && depthwise) {
        tt_parallel_for(depthwise_weight_part, s, c->groups, multiplications, threads);
    } else if (done) {
        tt_parallel_for(weight_part, s, s->parts * c->groups * s->tile_chunks, multiplications, threads);
        tt_parallel_for(sum_parts, s, c->groups * s->chunks * s->vectors, s->parts * size, threads);
    }
    free(c->scratch);
    free(s->sums);
    free(c->tap_offset);
    return done;
}

// Arguments -------------------------------------------------------------------------------------

// The shapes and strides of a convolution of input x by weight w with output y. There are always three dimensions: the
// first ones have size 1 where the convolution has fewer.
typedef struct {
    int dims;
    int64_t samples, groups, channels, rows;  // per group: channels of x, rows of w
    int64_t x_stride[5], w_stride[5], y_stride[5];
    Three x, kernel, y, stride, padding, dilation;
} Shapes;

// Read the shape and the strides of a float32 array with channels; false if it is no such array, or empty.
static bool read_array(PyObject *object, int dims, int64_t *front, int64_t *sizes, int64_t *strides) {
    if (!tt_is_float32(object) || PyArray_NDIM(ARRAY(object)) != dims + 2) return false;
    PyArrayObject *array = ARRAY(object);
    for (int d = 0; d < 5; d++) {
        int dim = d < 2 ? d : d - 3 + dims;
        bool exists = d < 2 || dim >= 2;
        int64_t size = exists ? PyArray_DIM(array, dim) : 1;
        strides[d] = exists ? PyArray_STRIDE(array, dim) / (int64_t)sizeof(float) : 0;
        *(d < 2 ? front + d : sizes + d - 2) = size;
        if (!size) return false;
    }
    return true;
}

static bool read_three(PyObject *tuple, int dims, int64_t missing, int64_t min, Three to) {
    for (int d = 0; d < 3; d++) to[d] = missing;
    if (!tt_read_sizes(tuple, dims, to + 3 - dims)) return false;
    for (int d = 0; d < 3; d++)
        if (to[d] < min || to[d] > 1 << 24) return false;
    return true;
}

// Read the settings, and take the number of dimensions from `array`.
static bool read_settings(Shapes *f, PyObject *array, PyObject *stride, PyObject *padding, PyObject *dilation,
                          PyObject *groups) {
    if (!PyArray_Check(array)) return false;
    f->dims = PyArray_NDIM(ARRAY(array)) - 2;
    if (f->dims < 1 || f->dims > 3) return false;
    f->groups = read_int(groups);
    return read_three(stride, f->dims, 1, 1, f->stride) && read_three(padding, f->dims, 0, 0, f->padding) &&
           read_three(dilation, f->dims, 1, 1, f->dilation) && f->groups > 0;
}

// True if BLAS is faster: for one product for the whole batch; where a large weight, which would have to be packed,
// meets few positions; and, with the registers of AVX2, for convolutions that are plain products.
static bool is_for_blas(const Shapes *f) {
    int64_t positions = f->samples, weights = f->rows * f->channels * f->groups;
    bool one_position = f->groups == 1, plain = true;
    for (int d = 0; d < 3; d++) {
        positions *= f->y[d];
        weights *= f->kernel[d];
        one_position = one_position && f->kernel[d] == f->x[d] && f->y[d] == 1 && !f->padding[d];
        plain = plain && f->kernel[d] == 1 && f->stride[d] == 1 && !f->padding[d];
    }
    return one_position || (positions < 128 && weights >= 1 << 16) || (WIDTH == 8 && plain && f->rows > 1);
}

// A new array (first, second, *sizes), and its strides.
static PyObject *new_result(PyObject *like, const Shapes *f, int64_t first, int64_t second, const int64_t *sizes,
                            int64_t *strides) {
    int64_t shape[5] = {first, second};
    for (int d = 0; d < f->dims; d++) shape[2 + d] = sizes[3 - f->dims + d];
    strides[4] = 1;
    for (int d = 4; d > 1; d--) strides[d - 1] = strides[d] * sizes[d - 2];
    strides[0] = strides[1] * second;
    return tt_new_array(like, 2 + f->dims, shape);
}

// Memory for the taps of three axes.
static int64_t *allocate_taps(const Shapes *f) {
    return malloc(sizeof(int64_t) * 3 * (size_t)(f->kernel[0] + f->kernel[1] + f->kernel[2]));
}

// Set the axis of the correlation that computes the output from the input.
static void set_forward_axis(const Shapes *f, int d, Axis *a, int64_t *memory) {
    *a = (Axis){.size = f->x[d], .positions = f->y[d], .stride = f->stride[d], .result_step = 1, .taps = f->kernel[d]};
    a->tap = memory;
    a->offset = memory + a->taps;
    a->phase = memory + 2 * a->taps;
    for (int64_t k = 0; k < a->taps; k++) {
        a->tap[k] = k;
        a->offset[k] = k * f->dilation[d] - f->padding[d];
    }
}

// Set the axis of the correlation that computes one phase of the input's gradient from the output's: the input elements
// that are `phase` beyond a multiple of the stride, padding included.
static void set_backward_axis(const Shapes *f, int d, int64_t phase, Axis *a, int64_t *memory) {
    int64_t s = f->stride[d], start = ((phase - f->padding[d]) % s + s) % s;
    int64_t positions = start < f->x[d] ? ceil_div(f->x[d] - start, s) : 0;
    *a = (Axis){.size = f->y[d], .positions = positions, .stride = 1, .result_start = start, .result_step = s};
    a->tap = memory;
    a->offset = memory + f->kernel[d];
    a->phase = memory + 2 * f->kernel[d];
    int64_t first = (start + f->padding[d] - phase) / s;
    for (int64_t k = 0; k < f->kernel[d]; k++) {
        if (k * f->dilation[d] % s != phase) continue;
        a->tap[a->taps] = k;
        a->offset[a->taps++] = first - (k * f->dilation[d] - phase) / s;
    }
}

// True if every phase of the input meets some tap.
static bool meets_all(const Shapes *f) {
    for (int d = 0; d < 3; d++) {
        int64_t phases = 0;
        while (phases < f->kernel[d] && (!phases || phases * f->dilation[d] % f->stride[d])) phases++;
        if (phases < f->stride[d]) return false;
    }
    return true;
}

// A kernel of one tap with stride 1 reads the source in place; an image is then treated as one row.
static void set_in_place(Correlation *c) {
    Axis *a = c->axis;
    int64_t *from = c->source_stride, *to = c->result_stride;
    for (int d = 0; d < 3; d++)
        if (a[d].taps != 1 || a[d].stride != 1 || a[d].result_step != 1 || a[d].offset[0] ||
            a[d].positions != a[d].size)
            return;
    if (from[4] != 1 || from[3] != a[2].size || (a[0].size > 1 && from[2] != a[1].size * from[3])) return;
    if (to[4] != 1 || to[3] != a[2].size || (a[0].size > 1 && to[2] != a[1].size * to[3])) return;
    a[2].size = a[2].positions = a[0].size * a[1].size * a[2].size;
    a[0].size = a[0].positions = a[1].size = a[1].positions = 1;
    c->in_place = true;
}

// The correlation of `source` with `weight`, without its axes.
static Correlation new_correlation(const Shapes *f, PyObject *source, const int64_t *source_stride, PyObject *weight,
                                   PyObject *result, const int64_t *result_stride) {
    Correlation c = {.samples = f->samples, .groups = f->groups, .channels = f->channels, .rows = f->rows};
    c.source = float_data(source);
    c.result = float_data(result);
    memcpy(c.source_stride, source_stride, sizeof c.source_stride);
    memcpy(c.result_stride, result_stride, sizeof c.result_stride);
    if (!weight) return c;
    c.weight = c.weight_end = float_data(weight);
    if (tt_is_contiguous(weight)) c.weight_end += PyArray_SIZE(ARRAY(weight));
    memcpy(c.weight_stride, f->w_stride, sizeof f->w_stride);
    c.weight_stride[5] = f->rows * f->w_stride[0];
    return c;
}

// The end of a kernel: the result if it has been computed; else free it, and leave the call to the definition.
static PyObject *finish(PyObject *result, bool done) {
    if (done) return result;
    Py_XDECREF(result);
    return PyErr_Occurred() ? NULL : FALLBACK;
}

KERNEL(conv, x, w, b, stride, padding, dilation, groups, size) {
    Shapes f = {0};
    int64_t front[2];
    float *bias;
    if (!read_settings(&f, args->x, args->stride, args->padding, args->dilation, args->groups)) return FALLBACK;
    if (!read_array(args->x, f.dims, front, f.x, f.x_stride)) return FALLBACK;
    f.samples = front[0];
    f.channels = front[1] / f.groups;
    if (!read_array(args->w, f.dims, front, f.kernel, f.w_stride) || front[1] != f.channels) return FALLBACK;
    f.rows = front[0] / f.groups;
    if (!read_floats(args->b, front[0], true, &bias)) return FALLBACK;
    for (int d = 0; d < 3; d++) {
        f.y[d] = (f.x[d] + 2 * f.padding[d] - f.dilation[d] * (f.kernel[d] - 1) - 1) / f.stride[d] + 1;
    }
    if (args->size != Py_None && !read_three(args->size, f.dims, 1, 1, f.y)) return FALLBACK;
    if (f.y[0] < 1 || f.y[1] < 1 || f.y[2] < 1 || !f.rows || !f.channels || is_for_blas(&f)) return FALLBACK;
    PyObject *y = new_result(args->x, &f, f.samples, f.groups * f.rows, f.y, f.y_stride);
    int64_t *taps = allocate_taps(&f);
    bool done = y && taps;
    if (done) {
        Correlation c = new_correlation(&f, args->x, f.x_stride, args->w, y, f.y_stride);
        int64_t *memory = taps;
        for (int d = 0; d < 3; memory += 3 * f.kernel[d++]) set_forward_axis(&f, d, &c.axis[d], memory);
        if (!is_depthwise(&c)) set_in_place(&c);
        done = correlate(&c, bias);
    }
    free(taps);
    return finish(y, done);
}

KERNEL(conv_input, y, w, size, stride, padding, dilation, groups) {
    Shapes f = {0};
    int64_t front[2];
    if (!read_settings(&f, args->y, args->stride, args->padding, args->dilation, args->groups)) return FALLBACK;
    if (!read_three(args->size, f.dims, 1, 1, f.x) || !read_array(args->y, f.dims, front, f.y, f.y_stride))
        return FALLBACK;
    f.samples = front[0];
    f.rows = front[1] / f.groups;
    if (!read_array(args->w, f.dims, front, f.kernel, f.w_stride)) return FALLBACK;
    if (!f.rows || front[0] != f.rows * f.groups) return FALLBACK;
    f.channels = front[1];
    if (is_for_blas(&f)) return FALLBACK;
    PyObject *x = new_result(args->y, &f, f.samples, f.groups * f.channels, f.x, f.x_stride);
    int64_t *taps = allocate_taps(&f), phases = f.stride[0] * f.stride[1] * f.stride[2];
    bool done = x && taps;
    if (done && !meets_all(&f)) memset(PyArray_DATA(ARRAY(x)), 0, (size_t)PyArray_NBYTES(ARRAY(x)));
    for (int64_t p = 0; done && p < phases; p++) {
        Correlation c = new_correlation(&f, args->y, f.y_stride, args->w, x, f.x_stride);
        c.channels = f.rows;  // the weight is transposed: its rows are the channels of the source
        c.rows = f.channels;
        c.weight_stride[0] = f.w_stride[1];
        c.weight_stride[1] = f.w_stride[0];
        int64_t *memory = taps, rest = p, positions = 1, axis_taps = 1;
        for (int d = 2; d >= 0; memory += 3 * f.kernel[d--], rest /= f.stride[d + 1]) {
            set_backward_axis(&f, d, rest % f.stride[d], &c.axis[d], memory);
            positions *= c.axis[d].positions;
            axis_taps *= c.axis[d].taps;
        }
        if (!positions || !axis_taps) continue;
        if (!is_depthwise(&c)) set_in_place(&c);
        done = correlate(&c, NULL);
    }
    free(taps);
    return finish(x, done);
}

KERNEL(conv_weight, x, y, kernel, stride, padding, dilation, groups) {
    Shapes f = {0};
    int64_t front[2], outputs[2];
    if (!read_settings(&f, args->x, args->stride, args->padding, args->dilation, args->groups)) return FALLBACK;
    if (!read_three(args->kernel, f.dims, 1, 1, f.kernel)) return FALLBACK;
    if (!read_array(args->x, f.dims, front, f.x, f.x_stride)) return FALLBACK;
    if (!read_array(args->y, f.dims, outputs, f.y, f.y_stride)) return FALLBACK;
    f.samples = front[0];
    f.channels = front[1] / f.groups;
    f.rows = outputs[1] / f.groups;
    if (!f.channels || !f.rows || outputs[0] != f.samples || is_for_blas(&f)) return FALLBACK;
    PyObject *w = new_result(args->x, &f, f.groups * f.rows, f.channels, f.kernel, f.w_stride);
    int64_t *taps = allocate_taps(&f);
    bool done = w && taps;
    if (done) {
        WeightGradient s = {.c = new_correlation(&f, args->x, f.x_stride, NULL, w, f.y_stride)};
        s.y = s.y_end = float_data(args->y);
        if (tt_is_contiguous(args->y)) s.y_end += PyArray_SIZE(ARRAY(args->y));
        s.result = float_data(w);
        int64_t *memory = taps;
        for (int d = 0; d < 3; memory += 3 * f.kernel[d++]) set_forward_axis(&f, d, &s.c.axis[d], memory);
        if (f.groups == 1 || f.channels > 1) set_in_place(&s.c);
        done = compute_weight_gradient(&s);
    }
    free(taps);
    return finish(w, done);
}

FAMILY(conv, ENTRY(conv), ENTRY(conv_input), ENTRY(conv_weight));
