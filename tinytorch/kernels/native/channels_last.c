// Twins of kernels/channels_last.py: convolutions of images whose channels lie side by side, (samples, height, width,
// channels), with all that follows them (bias, residual, activation) in an epilogue.
//
// A tile adds up, for some positions of the result and some vectors of its channels, numbers of the source times
// vectors of the weight; its sums stay in registers until they are stored where they belong, so neither the source nor
// the result is copied. The weight has been packed by `packed`: panels of PANEL outputs, each by tap, channel and
// output. The positions of a tile are any that the same taps meet, so nothing is multiplied by padding. Depthwise
// convolutions are tiles of the same form whose numbers of the source are vectors, too.
//
// An element's sum is the same however the work is cut.
#include "epilogues.h"

enum {
    PANEL = 16,                     // outputs of a panel of the packed weight, whatever the instruction set
    PANEL_VECTORS = PANEL / WIDTH,  // vectors of a panel
    MAX_VECTORS = WIDTH == 16 ? 4 : PANEL_VECTORS,  // vectors of a tile
    MAX_POSITIONS = 12,                             // positions of a tile
    BLOCK_FLOATS = 1 << 18,      // floats that a part reads and writes: they stay in the second cache
    CACHED_WEIGHT = 1 << 15,     // floats of the weight that stay in the second cache
    RUN = WIDTH == 8 ? 30 : 24,  // positions: a multiple of those of each tile
    MIN_BLOCK = 24,              // positions of a part, at least (if there are as many)
    FEW_CHANNELS = 4,            // channels up to which each term of a sum is a tap of its own
    PARTS_OF_THREAD = 8,
    PREFETCHED = 16,           // terms of a sum
    BETWEEN_FLOATS = 1 << 16,  // floats between two convolutions that stay in the second cache
    MAX_CHUNK = 4,             // panels of a part of two convolutions
    ADJACENT = 7,              // adjacent positions of a depthwise tile
    LONG_RUN = 28,             // those for which the source stays in the first cache
    MAX_SIZE = 7,              // its taps
    FEW_TERMS = 64,            // terms of a sum that take less time than to write it and to read it
    TERMS_TWICE = 16,          // terms per sum that may be computed twice
};

// Positions of one dimension, from `first` on and before `last`, that the same taps meet: `taps` of them, from `tap`
// on.
typedef struct {
    int64_t first, last, tap, taps;
} Range;

// The taps that the positions of a range of each dimension meet: `count` of them from `begin` on in the lists.
typedef struct {
    const Range *row, *column;
    int64_t begin, count;
} Meeting;

typedef struct {
    const float *source, *weight, *bias, *residual;
    float *result;
    int64_t samples, height, width, channels;  // of the source; channels of a group
    int64_t source_stride[4];
    int64_t rows, columns, outputs;  // of the result; outputs of a group
    int64_t groups, panels;          // panels of a group
    bool depthwise, single;          // each output has a channel of its own; each tap is one term
    int64_t kernel[2], stride[2], padding[2], dilation[2];
    Epilogue epilogue;
    Range *range[2];
    int64_t ranges[2];
    Meeting *meeting;
    int64_t meetings, *tap_offset, *tap_term;  // of the taps in the lists: offset in the source, first term in a panel
    int64_t terms;                             // of a panel
    int64_t line, result_stride;         // of the result: positions from row to row, floats from position to position
    int64_t block_rows, blocks, chunks;  // rows of a block (of all samples); blocks; chunks of the panels
    int64_t *scratch, scratch_size;      // per worker
} Convolution;

// Where positions are: `source` in the source, `index` in the result.
typedef struct {
    int64_t *source, *index;
} Places;

// Tiles -----------------------------------------------------------------------------------------

// What the terms of a tile are: numbers of all channels per tap; one number per tap; a vector of channels per tap,
// which may be PARTIAL at the end of the channels.
typedef enum { DENSE, SINGLE, DEPTHWISE, PARTIAL } Terms;

INLINE vec term_of(Terms terms, const float *from, int j, int64_t valid) {
    if (terms == SINGLE) return broadcast(*from);
    if (terms == DEPTHWISE) return load(from + j * WIDTH);
    return valid > j * WIDTH ? load_up_to(from + j * WIDTH, valid - j * WIDTH) : (vec){0};
}

// Store fewer than WIDTH sums.
static __attribute__((noinline)) void store_end(const Convolution *c, int64_t at, vec x, int64_t count) {
    if (c->residual) x += load_partial(c->residual + at, count);
    store_partial(c->result + at, clamp_max(clamp_min(x, c->epilogue.low), c->epilogue.high), count);
}

// Compute a tile: `positions` positions from number `first` of `count` on. `weight` is a panel, `output` the first
// output of the result, of which `valid` exist.
INLINE void compute_tile(Terms terms, int vectors, int positions, const Convolution *c, const Meeting *m,
                         const Places *p, int64_t first, int64_t count, const float *source, const float *weight,
                         int64_t output, int64_t valid) {
    vec sums[MAX_POSITIONS][MAX_VECTORS];
    const float *from[MAX_POSITIONS];
    int64_t panel_size = c->terms * PANEL, channel_stride = c->source_stride[3];
    for (int i = 0; i < positions; i++) {  // positions of the tile beyond the last one repeat it
        from[i] = source + p->source[imin(first + i, count - 1)];
        for (int j = 0; j < vectors; j++) sums[i][j] = load(c->bias + output + j * WIDTH);
    }
    const int64_t *tap_offset = c->tap_offset, *tap_term = c->tap_term;
    int64_t t = m->begin, end = t + m->count, channels = c->channels;
    // (Only PARTIAL tiles may have no taps: the sums of the others never leave the registers.)
    if (terms != PARTIAL || t < end) do {
            const float *w = weight + tap_term[t] * PANEL;
            int64_t offset = tap_offset[t];
            if (terms == DENSE) {
                const float *row[MAX_POSITIONS];
                for (int i = 0; i < positions; i++) row[i] = from[i] + offset;
                int64_t n = channels, k = 0;
                do {
                    vec b[MAX_VECTORS];
                    for (int j = 0; j < vectors; j += PANEL_VECTORS)
                        __builtin_prefetch(w + j / PANEL_VECTORS * panel_size + PREFETCHED * PANEL);
                    for (int j = 0; j < vectors; j++)
                        b[j] = load(w + j / PANEL_VECTORS * panel_size + j % PANEL_VECTORS * WIDTH);
                    for (int i = 0; i < positions; i++)
                        for (int j = 0; j < vectors; j++) sums[i][j] += row[i][k] * b[j];
                    k += channel_stride, w += PANEL;
                } while (--n);
            } else {
                vec b[MAX_VECTORS];
                for (int j = 0; j < vectors; j++)
                    b[j] = load(w + j / PANEL_VECTORS * panel_size + j % PANEL_VECTORS * WIDTH);
                for (int i = 0; i < positions; i++)
                    for (int j = 0; j < vectors; j++) sums[i][j] += term_of(terms, from[i] + offset, j, valid) * b[j];
            }
        } while (++t < end);
    const float *residual = c->residual;
    float *result = c->result, low = c->epilogue.low, high = c->epilogue.high;
    int64_t stride = c->result_stride;
    const int64_t *index = p->index + first;
    int rows = (int)imin(positions, count - first);
    bool bounded = low > -INFINITY || high < INFINITY;
#pragma GCC unroll 12
    for (int i = 0; i < positions; i++) {
        if (i == rows) break;
        int64_t at = index[i] * stride + output;
#pragma GCC unroll 4
        for (int j = 0; j < vectors; j++, at += WIDTH) {
            int64_t left = terms != PARTIAL && valid >= vectors * WIDTH ? WIDTH : valid - j * WIDTH;
            vec x = sums[i][j];
            if (left < WIDTH) {
                if (left > 0) store_end(c, at, x, left);
                continue;
            }
            if (residual) x += load(residual + at);
            store(result + at, bounded ? clamp_max(clamp_min(x, low), high) : x);
        }
    }
}

// The positions of a tile of so many vectors: the sums fill the registers.
#if WIDTH == 16
#define POSITIONS_1 12
#define POSITIONS_2 12
#define POSITIONS_3 8
#define POSITIONS_4 6
#elif WIDTH == 8
#define POSITIONS_1 10
#define POSITIONS_2 6
#elif defined(__x86_64__)
#define POSITIONS_1 8
#define POSITIONS_2 6
#define POSITIONS_3 4
#define POSITIONS_4 2
#else
#define POSITIONS_1 8
#define POSITIONS_2 8
#define POSITIONS_3 6
#define POSITIONS_4 4
#endif

typedef void (*RowsTile)(const Convolution *, const Meeting *, const Places *, int64_t, int64_t, const float *,
                         const float *, int64_t, int64_t);

// They are not inlined, for the sake of registers.
#define TILE(name, terms, vectors, positions)                                                                          \
    static __attribute__((noinline)) void name(const Convolution *c, const Meeting *m, const Places *p, int64_t first, \
                                               int64_t count, const float *source, const float *weight,                \
                                               int64_t output, int64_t valid) {                                        \
        compute_tile(terms, vectors, positions, c, m, p, first, count, source, weight, output, valid);                 \
    }
#define ROWS_TILES(vectors)                                                                                            \
    TILE(dense_##vectors, DENSE, vectors, POSITIONS_##vectors)                                                         \
    TILE(half_dense_##vectors, DENSE, vectors, POSITIONS_##vectors / 2)                                                \
    TILE(single_##vectors, SINGLE, vectors, POSITIONS_##vectors)                                                       \
    TILE(half_single_##vectors, SINGLE, vectors, POSITIONS_##vectors / 2)                                              \
    TILE(depthwise_##vectors, DEPTHWISE, vectors, POSITIONS_##vectors)                                                 \
    TILE(half_depthwise_##vectors, DEPTHWISE, vectors, POSITIONS_##vectors / 2)                                        \
    TILE(partial_##vectors, PARTIAL, vectors, 2)
ROWS_TILES(1)
ROWS_TILES(2)
#if WIDTH != 8
ROWS_TILES(3)
ROWS_TILES(4)
#endif
#undef ROWS_TILES
#undef TILE

#define NAMES(kind) {kind##_1, kind##_2, kind##_3, kind##_4}
#if WIDTH == 8
#undef NAMES
#define NAMES(kind) {kind##_1, kind##_2}
#endif
static const RowsTile tiles[4][2][MAX_VECTORS] = {
    {NAMES(dense), NAMES(half_dense)},
    {NAMES(single), NAMES(half_single)},
    {NAMES(depthwise), NAMES(half_depthwise)},
    {NAMES(partial), NAMES(partial)},
};
#if WIDTH == 8
static const int tile_positions[MAX_VECTORS] = {POSITIONS_1, POSITIONS_2};
#else
static const int tile_positions[MAX_VECTORS] = {POSITIONS_1, POSITIONS_2, POSITIONS_3, POSITIONS_4};
#endif
#undef NAMES

// Parts -----------------------------------------------------------------------------------------

// List the positions of rows `begin` to `end`, counted over all samples, that the taps of a meeting meet.
static int64_t list_places(const Convolution *c, const Meeting *m, int64_t begin, int64_t end, const Places *to) {
    int64_t count = 0, row_step = c->stride[0] * c->source_stride[1], step = c->stride[1] * c->source_stride[2];
    for (int64_t row = begin; row < end; row++) {
        int64_t sample = row / c->rows, h = row % c->rows;
        if (h < m->row->first) {
            row += m->row->first - h - 1;
            continue;
        }
        if (h >= m->row->last) {
            row += c->rows - h - 1;
            continue;
        }
        int64_t from = sample * c->source_stride[0] + h * row_step;
        for (int64_t w = m->column->first; w < m->column->last; w++, count++) {
            to->source[count] = from + w * step;
            to->index[count] = row * c->line + w;
        }
    }
    return count;
}

// Compute panels `panel` to `last_panel` of positions `begin` to `end` of a list.
static void compute_panels(const Convolution *c, const Meeting *m, const Places *places, int64_t begin, int64_t end,
                           int64_t panel, int64_t last_panel) {
    while (panel < last_panel) {
        int64_t group = panel / c->panels, in_group = panel % c->panels;
        // (Five panels are three and two, not four and one.)
        int64_t left = imin(last_panel - panel, c->panels - in_group), most = imax(MAX_VECTORS / PANEL_VECTORS, 1);
        int64_t panels = ceil_div(left, ceil_div(left, most)), output = group * c->outputs + in_group * PANEL;
        int64_t valid = imin(panels * PANEL, c->outputs - in_group * PANEL);
        int vectors = (int)ceil_div(valid, WIDTH);
        const float *source = c->source, *weight = c->weight + panel * c->terms * PANEL;
        source += c->depthwise ? panel * PANEL : group * c->channels * c->source_stride[3];
        Terms terms = !c->depthwise ? c->single ? SINGLE : DENSE : valid % WIDTH ? PARTIAL : DEPTHWISE;
        if (!m->count) terms = PARTIAL;
        RowsTile tile = tiles[terms][0][vectors - 1], half_tile = tiles[terms][1][vectors - 1];
        int64_t step = terms == PARTIAL ? 2 : tile_positions[vectors - 1];
        for (int64_t n = begin; n < end; n += step)
            (end - n <= step / 2 ? half_tile : tile)(c, m, places, n, end, source, weight, output, valid);
        for (int64_t n = begin; n < end && c->epilogue.activation != CLAMP; n++)
            activate(c->epilogue.activation, c->result + places->index[n] * c->result_stride + output, valid);
        panel += panels;
    }
}

// Compute a vector of the outputs of a depthwise convolution, from output `output` on, for `count` adjacent positions
// from number `at` on. What some of them meet in a row of the source is loaded once, for all of them. The source begins
// at `from`; its rows that meet `taps` rows of the kernel are `line` floats apart, its positions `width`.
INLINE void compute_run(int size, int stride, const Convolution *c, const float *from, int64_t line, int64_t width,
                        int64_t taps, const float *weight, int64_t output, int64_t at, int64_t count) {
    const Epilogue *e = &c->epilogue;
    const float *residual = c->residual;
    vec bias = load(c->bias + output);
    int64_t left = c->outputs - output, step = c->result_stride;
    at = at * step + output;
    for (; count > 0; count -= ADJACENT, from += ADJACENT * stride * width) {
        vec sums[ADJACENT], b[MAX_SIZE];
        for (int i = 0; i < ADJACENT; i++) sums[i] = bias;
        const float *row = from, *w = weight;
        for (int64_t t = 0; t < taps; t++, row += line, w += size * PANEL) {
            for (int x = 0; x < size; x++) b[x] = load(w + x * PANEL);
            const float *x = row;
#pragma GCC unroll 32
            for (int k = 0; k < (ADJACENT - 1) * stride + size; k++, x += width) {
                vec v = load(x);
#pragma GCC unroll 8
                for (int i = 0; i < ADJACENT; i++)
                    if (k >= i * stride && k < i * stride + size) sums[i] += v * b[k - i * stride];
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < ADJACENT; i++, at += step) {
            if (i == count) break;
            if (left < WIDTH) {
                store_end(c, at, sums[i], left);
                continue;
            }
            vec x = residual ? sums[i] + load(residual + at) : sums[i];
            store(c->result + at, clamp_max(clamp_min(x, e->low), e->high));
        }
    }
}

typedef void (*RunTile)(const Convolution *, const float *, int64_t, int64_t, int64_t, const float *, int64_t, int64_t,
                        int64_t);
#define RUN_TILE(size, stride)                                                                                         \
    static __attribute__((noinline)) void run_##size##_##stride(const Convolution *c, const float *from, int64_t line, \
                                                                int64_t width, int64_t taps, const float *weight,      \
                                                                int64_t output, int64_t at, int64_t count) {           \
        compute_run(size, stride, c, from, line, width, taps, weight, output, at, count);                              \
    }
RUN_TILE(3, 1)
RUN_TILE(3, 2)
RUN_TILE(5, 1)
RUN_TILE(5, 2)
RUN_TILE(7, 1)
RUN_TILE(7, 2)
#undef RUN_TILE
static const RunTile run_tiles[3][2] = {{run_3_1, run_3_2}, {run_5_1, run_5_2}, {run_7_1, run_7_2}};

// The tile of adjacent positions for a depthwise convolution, or NULL.
static RunTile run_tile_of(const Convolution *c) {
    int64_t size = c->kernel[1], stride = c->stride[1];
    bool fits = c->depthwise && c->dilation[1] == 1 && (size == 3 || size == 5 || size == 7) && stride <= 2;
    return fits ? run_tiles[size / 2 - 1][stride - 1] : NULL;
}

// Compute a row of a depthwise convolution of a padded source, whose row 0 begins at `source`.
static void compute_row(const Convolution *c, RunTile tile, const float *source, int64_t line, int64_t width,
                        int64_t sample, int64_t row) {
    int64_t top = row * c->stride[0] - c->padding[0], dilation = c->dilation[0];
    int64_t tap = imax(-floor_div(top, dilation), 0);
    int64_t taps = imax(imin(c->kernel[0], -floor_div(top - c->height, dilation)) - tap, 0);
    const float *from = source + (top + tap * dilation) * line, *weight = c->weight + tap * c->kernel[1] * PANEL;
    for (int64_t column = 0; column < c->columns; column += LONG_RUN) {
        int64_t at = (sample * c->rows + row) * c->columns + column, count = imin(LONG_RUN, c->columns - column);
        for (int64_t output = 0; output < c->outputs; output += WIDTH)
            tile(c, from + column * c->stride[1] * width + output, dilation * line, width, taps,
                 weight + output / PANEL * c->terms * PANEL + output % PANEL, output, at, count);
        for (int64_t n = at; n < at + count && c->epilogue.activation != CLAMP; n++)
            activate(c->epilogue.activation, c->result + n * c->result_stride, c->outputs);
    }
}

// Compute panels of rows `begin` to `end`, counted over all samples; `lists` has room for `lists_size` integers.
static void compute_rows(const Convolution *c, int64_t begin, int64_t end, int64_t panel, int64_t last_panel,
                         int64_t *lists) {
    int64_t most = (end - begin) * c->columns, *counts = lists;
    Places places = {counts + c->meetings, counts + c->meetings + most};
    Places at = places;
    for (int64_t k = 0; k < c->meetings; k++) {
        counts[k] = list_places(c, c->meeting + k, begin, end, &at);
        at.source += counts[k];
        at.index += counts[k];
    }
    // If all panels fit into the cache, they are used for a few positions at a time, whose channels then are in the
    // first cache, and are written one after the other.
    bool few = c->depthwise || (last_panel - panel) * c->terms * PANEL <= CACHED_WEIGHT;
    at = places;
    for (int64_t k = 0; k < c->meetings; k++) {
        int64_t count = counts[k], run = few ? RUN : imax(count, 1);
        for (int64_t n = 0; n < count; n += run)
            compute_panels(c, c->meeting + k, &at, n, imin(n + run, count), panel, last_panel);
        at.source += count;
        at.index += count;
    }
}

static int64_t lists_size(const Convolution *c, int64_t rows) { return c->meetings + 2 * rows * c->columns; }

static void convolve_part(void *context, Py_ssize_t part, int worker) {
    const Convolution *c = context;
    int64_t block = part / c->chunks, chunk = part % c->chunks, all = c->groups * c->panels;
    int64_t begin = block * c->block_rows, end = imin(begin + c->block_rows, c->samples * c->rows);
    compute_rows(c, begin, end, chunk * all / c->chunks, (chunk + 1) * all / c->chunks,
                 c->scratch + worker * c->scratch_size);
}

// Planning --------------------------------------------------------------------------------------

static int64_t find_tap_ranges(const Convolution *c, int d, int64_t size, int64_t positions, Range *to) {
    int64_t count = 0, next;
    for (int64_t position = 0; position < positions; position = next, count++) {
        Range range = {.first = position};
        next = positions;
        for (int64_t t = 0; t < c->kernel[d]; t++) {
            int64_t offset = t * c->dilation[d] - c->padding[d];
            int64_t first = -floor_div(offset, c->stride[d]), last = -floor_div(offset - size, c->stride[d]);
            if (position < last) next = imin(next, position < first ? first : last);
            if (position >= first && position < last && !range.taps++) range.tap = t;
        }
        range.last = next;
        to[count] = range;
    }
    return count;
}

static void find_meetings(Convolution *c) {
    int64_t at = 0;
    int64_t repeats = c->single ? c->channels : 1, per_tap = c->depthwise ? 1 : c->channels;
    for (int64_t i = 0; i < c->ranges[0]; i++)
        for (int64_t j = 0; j < c->ranges[1]; j++) {
            const Range *row = c->range[0] + i, *column = c->range[1] + j;
            Meeting *m = c->meeting + c->meetings++;
            *m = (Meeting){row, column, at, 0};
            for (int64_t y = row->tap; y < row->tap + row->taps; y++)
                for (int64_t x = column->tap; x < column->tap + column->taps; x++)
                    for (int64_t channel = 0; channel < repeats; channel++, at++) {
                        c->tap_offset[at] = (y * c->dilation[0] - c->padding[0]) * c->source_stride[1] +
                                            (x * c->dilation[1] - c->padding[1]) * c->source_stride[2] +
                                            channel * c->source_stride[3];
                        c->tap_term[at] = (y * c->kernel[1] + x) * per_tap + channel;
                    }
            m->count = at - m->begin;
        }
}

// Plan which taps the positions of a convolution meet; false if memory is short. `forget` frees what is planned.
static bool plan_convolution(Convolution *c) {
    int64_t most[2], listed = 1, met = 1;
    c->panels = ceil_div(c->outputs, PANEL);
    c->terms = c->kernel[0] * c->kernel[1] * (c->depthwise ? 1 : c->channels);
    c->single = !c->depthwise && c->channels <= FEW_CHANNELS;
    for (int d = 0; d < 2; d++) {
        most[d] = imin(2 * c->kernel[d] + 1, d ? c->columns : c->rows);
        listed *= most[d] * c->kernel[d];
        met *= most[d];
    }
    listed *= c->single ? c->channels : 1;
    c->range[0] = malloc(sizeof(Range) * (size_t)(most[0] + most[1]));
    c->meeting = malloc(sizeof(Meeting) * (size_t)met);
    c->tap_offset = malloc(sizeof(int64_t) * (size_t)(2 * listed));
    if (!c->range[0] || !c->meeting || !c->tap_offset) return false;
    c->range[1] = c->range[0] + most[0];
    c->tap_term = c->tap_offset + listed;
    c->ranges[0] = find_tap_ranges(c, 0, c->height, c->rows, c->range[0]);
    c->ranges[1] = find_tap_ranges(c, 1, c->width, c->columns, c->range[1]);
    find_meetings(c);
    return true;
}

static void forget(Convolution *c) {
    free(c->range[0]);
    free(c->meeting);
    free(c->tap_offset);
}

static int64_t work_of(const Convolution *c) {
    return c->samples * c->rows * c->columns * c->groups * c->panels * c->terms * PANEL_VECTORS;
}

// Compute a convolution whose arguments have been read; false if memory is short.
static bool convolve(Convolution *c) {
    int threads = tt_threads();
    bool done = plan_convolution(c);
    // Floats that are read and written for a row of the result at a time.
    int64_t outputs = c->groups * c->outputs, inputs = c->depthwise ? outputs : c->groups * c->channels;
    int64_t read = c->stride[0] * c->width * inputs + c->columns * outputs, all_rows = c->samples * c->rows;
    c->block_rows = imin(imax(BLOCK_FLOATS / imax(read, 1), ceil_div(MIN_BLOCK, c->columns)), all_rows);
    int64_t parts = PARTS_OF_THREAD * threads;
    if (threads > 1 && ceil_div(all_rows, c->block_rows) < parts)  // (but no small blocks: each reads the whole weight)
        c->block_rows = imin(c->block_rows, imax(ceil_div(all_rows, parts), ceil_div(4 * MIN_BLOCK, c->columns)));
    c->blocks = ceil_div(all_rows, c->block_rows);
    c->block_rows = ceil_div(all_rows, c->blocks);
    c->blocks = ceil_div(all_rows, c->block_rows);
    c->chunks = threads > 1 ? imin(ceil_div(parts, c->blocks), c->groups * c->panels) : 1;
    c->scratch_size = lists_size(c, c->block_rows) + 8;
    c->scratch = malloc(sizeof(int64_t) * (size_t)(threads * c->scratch_size));
    done = done && c->scratch;
    if (done) tt_parallel_for(convolve_part, c, c->blocks * c->chunks, work_of(c), threads);
    forget(c);
    free(c->scratch);
    return done;
}

// Two convolutions -------------------------------------------------------------------------------

// A depthwise convolution of the result of a convolution, or of a source that is `copied`. A part computes, of a block
// of rows of the last result and a chunk of its channels, first what they need of the result between the two: that
// stays in the second cache, and is never written as a whole. Rows that two blocks need are computed twice.
typedef struct {
    Convolution first, second;
    bool copied;
    RunTile tile;          // for a source with padded rows, unless it is NULL
    int64_t rows, images;  // of a block: rows of a sample; or samples
    int64_t lines;         // rows between the two that a block needs
    int64_t chunk, width;  // panels of a chunk; floats of a position between the two
    int64_t left, right;   // padding of a row between the two
    int64_t blocks, chunks;
    bool by_blocks;  // the parts of a block follow one another, else those of a chunk
    float *scratch;  // per worker: what is between the two, then the lists
    int64_t floats, scratch_size;
} Both;

// The rows of the source that `rows` rows of the result of a convolution meet.
static int64_t rows_met(const Convolution *c, int64_t rows) {
    return (rows - 1) * c->stride[0] + (c->kernel[0] - 1) * c->dilation[0] + 1;
}

// A convolution for some of its outputs: panels `panel` to `last_panel`.
static Convolution some_outputs(const Convolution *c, int64_t panel, int64_t last_panel) {
    Convolution some = *c;
    some.weight += panel * c->terms * PANEL;
    some.bias += panel * PANEL;
    some.outputs = imin(c->outputs, last_panel * PANEL) - panel * PANEL;
    some.panels = last_panel - panel;
    return some;
}

// Copy some channels of rows `begin` to `end`, counted over all samples.
static void copy_rows(const Convolution *c, int64_t first_channel, int64_t channels, int64_t begin, int64_t end,
                      float *to, int64_t line, int64_t width) {
    for (int64_t row = begin; row < end; row++, to += line) {
        const float *from =
            c->source + row / c->height * c->source_stride[0] + row % c->height * c->source_stride[1] + first_channel;
        for (int64_t w = 0; w < c->width; w++) copy_floats(to + w * width, from + w * c->source_stride[2], channels);
    }
}

static void convolve_both_part(void *context, Py_ssize_t part, int worker) {
    const Both *b = context;
    int64_t block = b->by_blocks ? part / b->chunks : part % b->blocks;
    int64_t panel = (b->by_blocks ? part % b->chunks : part / b->blocks) * b->chunk;
    int64_t last_panel = imin(panel + b->chunk, b->second.panels), blocks = ceil_div(b->second.rows, b->rows);
    Convolution second = some_outputs(&b->second, panel, last_panel);
    int64_t sample = block / blocks * b->images, last_sample = imin(sample + b->images, second.samples) - 1;
    int64_t row = block % blocks * b->rows, last_row = imin(row + b->rows, second.rows), height = second.height;
    int64_t top = row * second.stride[0] - second.padding[0];
    int64_t begin = sample * height + imin(imax(top, 0), height);
    int64_t end = last_sample * height + imax(imin(top + rows_met(&second, last_row - row), height), 0);

    float *between = b->scratch + worker * b->scratch_size;
    int64_t *lists = (int64_t *)(between + b->floats), columns = b->left + second.width + b->right;
    int64_t line = columns * b->width;
    for (int64_t k = 0; k < end - begin; k++) {
        fill_zero(between + k * line, b->left * b->width);
        fill_zero(between + k * line + (columns - b->right) * b->width, b->right * b->width);
    }
    if (b->copied)
        copy_rows(&second, panel * PANEL, second.outputs, begin, end, between + b->left * b->width, line, b->width);
    else {
        Convolution first = some_outputs(&b->first, panel, last_panel);
        first.result = between + b->left * b->width - begin * line;
        first.line = columns, first.result_stride = b->width;
        compute_rows(&first, begin, end, 0, first.panels, lists);
    }
    second.source = between - begin * line;
    second.result += panel * PANEL;
    if (second.residual) second.residual += panel * PANEL;
    if (!b->tile)
        compute_rows(&second, sample * second.rows + row, last_sample * second.rows + last_row, 0, second.panels,
                     lists);
    else
        for (; sample <= last_sample; sample++)
            for (int64_t r = row; r < last_row; r++)
                compute_row(&second, b->tile, second.source + sample * height * line, line, b->width, sample, r);
}

// Cut two convolutions into blocks and chunks; false if too much would be computed twice.
static bool cut_both(Both *b, int threads) {
    const Convolution *first = &b->first, *second = &b->second;
    int64_t stride = second->stride[0], lines = 0, terms = b->copied ? 1 : imax(first->terms, FEW_TERMS);
    if (b->tile) {
        int64_t met = (second->columns - 1) * second->stride[1] + second->kernel[1];
        b->left = second->padding[1], b->right = imax(met - b->left - second->width, 0);
    }
    int64_t columns = b->left + second->width + b->right;
    for (b->chunk = imin(MAX_CHUNK, second->panels); b->chunk; b->chunk--) {
        b->chunks = ceil_div(second->panels, b->chunk);
        b->chunk = ceil_div(second->panels, b->chunks);
        lines = BETWEEN_FLOATS / (columns * b->chunk * PANEL);
        b->rows = second->rows;
        if (lines >= second->height) break;
        int64_t most = floor_div(lines - rows_met(second, 1), stride) + 1;
        if (most < 1) continue;
        b->rows = ceil_div(second->rows, ceil_div(second->rows, most));
        int64_t twice = rows_met(second, b->rows) - b->rows * stride;
        if (twice * terms <= TERMS_TWICE * b->rows * stride) break;
    }
    if (!b->chunk) return false;
    int64_t images = imin(second->samples * b->chunks / (PARTS_OF_THREAD * threads), lines / second->height);
    b->images = imin(imax(images, 1), second->samples);
    b->lines = b->images > 1 ? b->images * second->height : imin(rows_met(second, b->rows), second->height);
    b->width = b->chunk * PANEL;
    b->blocks = ceil_div(second->samples, b->images) * ceil_div(second->rows, b->rows);
    b->by_blocks = b->copied || b->lines * first->stride[0] * first->width * first->channels > b->width * first->terms;
    return true;
}

// Compute two convolutions whose arguments have been read; false if one after the other is better, or memory is short.
static bool convolve_both(Both *b) {
    Convolution *first = &b->first, *second = &b->second;
    int threads = tt_threads();
    int64_t stride[4] = {second->source_stride[0], second->source_stride[1], second->source_stride[2], 1};
    b->tile = run_tile_of(second);
    second->panels = ceil_div(second->outputs, PANEL);
    bool done = (b->copied || plan_convolution(first)) && cut_both(b, threads);
    if (done) {
        if (!b->copied) {
            stride[2] = b->width;
            stride[1] = (b->left + second->width + b->right) * b->width;
            stride[0] = second->height * stride[1];
        }
        memcpy(second->source_stride, stride, sizeof stride);
        done = plan_convolution(second);
    }
    if (done) {
        int64_t lists = imax(lists_size(first, b->lines), lists_size(second, b->images * second->rows)), reach = 0;
        if (b->tile) reach = (ADJACENT - 1) * second->stride[1] * b->width;  // beyond the last position
        b->floats = round_to_lines(b->lines * (b->left + second->width + b->right) * b->width + reach);
        b->scratch_size = b->floats + round_to_lines(2 * lists) + CACHE_LINE;
        b->scratch = alloc_floats((size_t)(threads * b->scratch_size));
        done = b->scratch;
    }
    int64_t work = work_of(second) + (b->copied ? 0 : work_of(first));
    if (done) tt_parallel_for(convolve_both_part, b, b->blocks * b->chunks, work, threads);
    forget(first);
    forget(second);
    free(b->scratch);
    return done;
}

// Arguments -------------------------------------------------------------------------------------

// Read the sizes and the strides of a float32 array of four dimensions, which is not empty.
static bool read_source(PyObject *object, int64_t *sizes, int64_t *strides) {
    if (!tt_is_float32(object) || PyArray_NDIM(ARRAY(object)) != 4 || !PyArray_SIZE(ARRAY(object))) return false;
    for (int d = 0; d < 4; d++) {
        sizes[d] = PyArray_DIM(ARRAY(object), d);
        strides[d] = PyArray_STRIDE(ARRAY(object), d) / (int64_t)sizeof(float);
        if (PyArray_STRIDE(ARRAY(object), d) % (int64_t)sizeof(float)) return false;
    }
    return true;
}

// The result of a convolution: `out`, or a new array. It must not share memory with the source, but it may be the
// residual. NULL after an error, FALLBACK if `out` does not fit.
static PyObject *result_of(PyObject *x, PyObject *out, int dims, const int64_t *shape) {
    if (out == Py_None) return tt_new_array(x, dims, shape);
    if (!is_float_array(out, true) || PyArray_NDIM(ARRAY(out)) != dims) return FALLBACK;
    for (int d = 0; d < dims; d++)
        if (PyArray_DIM(ARRAY(out), d) != shape[d]) return FALLBACK;
    return Py_NewRef(out);
}

// Read the weight and the padded bias.
static bool read_weight(Convolution *c, PyObject *weight, PyObject *bias) {
    int64_t taps = c->kernel[0] * c->kernel[1], panels = ceil_div(c->outputs, PANEL);
    int64_t terms = c->depthwise ? taps : taps * c->channels;
    float *data;
    if (!read_floats(weight, c->groups * panels * terms * PANEL, false, &data)) return false;
    c->weight = data;
    if (!read_floats(bias, c->groups * c->outputs + PANEL, false, &data)) return false;
    c->bias = data;
    return true;
}

// What a convolution has besides its source and its result.
typedef struct {
    Argument weight, bias, residual, kernel, stride, padding, dilation, groups, outputs, activation, low, high;
} Settings;

// Read a convolution of a source of these sizes, but not its residual.
static bool read_convolution(const Settings *s, const int64_t *size, Convolution *c) {
    c->groups = read_int(s->groups);
    int64_t outputs = read_int(s->outputs);
    if (c->groups < 1 || outputs < 1 || outputs % c->groups || size[3] % c->groups) return false;
    if (!tt_read_sizes(s->kernel, 2, c->kernel) || !tt_read_sizes(s->stride, 2, c->stride) ||
        !tt_read_sizes(s->padding, 2, c->padding) || !tt_read_sizes(s->dilation, 2, c->dilation))
        return false;
    c->samples = size[0], c->height = size[1], c->width = size[2];
    c->channels = size[3] / c->groups;
    c->outputs = outputs / c->groups;
    c->depthwise = c->groups > 1 && c->channels == 1 && c->outputs == 1;
    if (c->depthwise) {
        if (c->source_stride[3] != 1) return false;
        c->outputs = outputs, c->groups = 1;
    }
    int64_t places[2];
    for (int d = 0; d < 2; d++) {
        if (c->kernel[d] < 1 || c->stride[d] < 1 || c->padding[d] < 0 || c->dilation[d] < 1) return false;
        places[d] = (size[1 + d] + 2 * c->padding[d] - c->dilation[d] * (c->kernel[d] - 1) - 1) / c->stride[d] + 1;
        if (size[1 + d] + 2 * c->padding[d] - c->dilation[d] * (c->kernel[d] - 1) < 1) return false;
    }
    c->rows = places[0], c->columns = c->line = places[1], c->result_stride = outputs;
    return read_weight(c, s->weight, s->bias) && read_epilogue(s->activation, s->low, s->high, &c->epilogue);
}

// Read the residual, and make the result, or take `out`. NULL after an error, FALLBACK if they do not fit.
static PyObject *result_of_convolution(Convolution *c, PyObject *x, PyObject *residual, PyObject *out) {
    PyObject *result = result_of(x, out, 4, (int64_t[]){c->samples, c->rows, c->columns, c->result_stride});
    if (!result || result == FALLBACK) return result;
    c->result = float_data(result);
    if (residual == Py_None) return result;
    if (is_float_array(residual, false) && same_shape(residual, result)) {
        c->residual = float_data(residual);
        return result;
    }
    Py_DECREF(result);
    return FALLBACK;
}

KERNEL(convolved, x, weight, bias, residual, kernel, stride, padding, dilation, groups, outputs, activation, low, high,
       out) {
    Convolution c = {0};
    int64_t size[4];
    if (!read_source(args->x, size, c.source_stride) || !read_convolution((const Settings *)&args->weight, size, &c))
        return FALLBACK;
    c.source = float_data(args->x);
    PyObject *result = result_of_convolution(&c, args->x, args->residual, args->out);
    if (!result || result == FALLBACK) return result;
    Both b = {.second = c, .copied = true};
    // (A copy takes too long for rows of three taps.)
    if ((run_tile_of(&c) && c.kernel[1] > 3 && convolve_both(&b)) || convolve(&c)) return result;
    Py_DECREF(result);
    return FALLBACK;
}

static bool read_given(PyObject *tuple, Settings *s) {
    int count = sizeof *s / sizeof(Argument);
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != count) return false;
    for (int k = 0; k < count; k++) (&s->weight)[k] = PyTuple_GetItem(tuple, k);
    return true;
}

KERNEL(convolved_twice, x, first, second, out) {
    Both b = {.second.source_stride[3] = 1};
    Settings first, second;
    int64_t size[4];
    if (!read_source(args->x, size, b.first.source_stride) || !read_given(args->first, &first) ||
        !read_given(args->second, &second) || !read_convolution(&first, size, &b.first))
        return FALLBACK;
    int64_t between[4] = {b.first.samples, b.first.rows, b.first.columns, b.first.outputs};
    if (b.first.depthwise || b.first.groups > 1 || first.residual != Py_None ||
        !read_convolution(&second, between, &b.second) || !b.second.depthwise)
        return FALLBACK;
    b.first.source = float_data(args->x);
    PyObject *result = result_of_convolution(&b.second, args->x, second.residual, args->out);
    if (!result || result == FALLBACK || convolve_both(&b)) return result;
    Py_DECREF(result);
    return FALLBACK;
}

// Means, scales and maxima -----------------------------------------------------------------------

// Images (samples, height, width, channels), of contiguous float32.
typedef struct {
    const float *x, *factors;
    float *out;
    int64_t samples, height, width, channels;
    int64_t rows, columns, kernel[2], stride[2], padding[2], dilation[2];  // of maxima
} Images;

static bool read_images(PyObject *object, Images *m) {
    if (!is_float_array(object, false) || PyArray_NDIM(ARRAY(object)) != 4 || !PyArray_SIZE(ARRAY(object)))
        return false;
    const npy_intp *sizes = PyArray_DIMS(ARRAY(object));
    m->x = float_data(object);
    m->samples = sizes[0], m->height = sizes[1], m->width = sizes[2], m->channels = sizes[3];
    return true;
}

enum { MEAN_CHANNELS = 4 * WIDTH };  // channels of a part

// Sum some channels of an image: rows by themselves, then their sums.
static void mean_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Images *m = context;
    int64_t parts = ceil_div(m->channels, MEAN_CHANNELS), sample = part / parts, begin = part % parts * MEAN_CHANNELS;
    Columns columns = {begin, imin(MEAN_CHANNELS, m->channels - begin)};
    const float *from = m->x + sample * m->height * m->width * m->channels + begin;
    vec sums[UNROLL] = {{0}};
    for (int64_t h = 0; h < m->height; h++) {
        vec row[UNROLL] = {{0}};
        for (int64_t w = 0; w < m->width; w++, from += m->channels)
            for (int k = 0; k < UNROLL; k++)
                row[k] += columns.count == MEAN_CHANNELS ? load(from + k * WIDTH) : load_columns(from, &columns, k);
        for (int k = 0; k < UNROLL; k++) sums[k] += row[k];
    }
    float count = (float)(m->height * m->width);
    for (int k = 0; k < UNROLL; k++) store_columns(m->out + sample * m->channels + begin, sums[k] / count, &columns, k);
}

KERNEL(means, x) {
    Images m;
    if (!read_images(args->x, &m)) return FALLBACK;
    PyObject *out = tt_new_array(args->x, 4, (int64_t[]){m.samples, 1, 1, m.channels});
    if (!out) return NULL;
    m.out = float_data(out);
    tt_parallel_for(mean_part, &m, m.samples * ceil_div(m.channels, MEAN_CHANNELS),
                    m.samples * m.height * m.width * m.channels, tt_threads());
    return out;
}

static void scale_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Images *m = context;
    int64_t at = part * m->width * m->channels;
    const float *factors = m->factors + part / m->height * m->channels;
    for (int64_t w = 0; w < m->width; w++, at += m->channels) {
        int64_t k = 0;
        for (; k + WIDTH <= m->channels; k += WIDTH) store(m->out + at + k, load(m->x + at + k) * load(factors + k));
        for (; k < m->channels; k++) m->out[at + k] = m->x[at + k] * factors[k];
    }
}

KERNEL(scaled, x, factors, out) {
    Images m;
    float *factors;
    if (!read_images(args->x, &m) || !read_floats(args->factors, m.samples * m.channels, false, &factors))
        return FALLBACK;
    m.factors = factors;
    PyObject *out = result_of(args->x, args->out, 4, (int64_t[]){m.samples, m.height, m.width, m.channels});
    if (!out || out == FALLBACK) return out;
    m.out = float_data(out);
    tt_parallel_for(scale_part, &m, m.samples * m.height, m.samples * m.height * m.width * m.channels, tt_threads());
    return out;
}

static void largest_part(void *context, Py_ssize_t part, int worker) {
    (void)worker;
    const Images *m = context;
    int64_t sample = part / m->rows, row = part % m->rows, channels = m->channels;
    for (int64_t column = 0; column < m->columns; column++) {
        float *to = m->out + (part * m->columns + column) * channels;
        bool first = true;
        for (int64_t i = 0; i < m->kernel[0]; i++) {
            int64_t y = row * m->stride[0] - m->padding[0] + i * m->dilation[0];
            if (y < 0 || y >= m->height) continue;
            for (int64_t j = 0; j < m->kernel[1]; j++) {
                int64_t x = column * m->stride[1] - m->padding[1] + j * m->dilation[1], k = 0;
                if (x < 0 || x >= m->width) continue;
                const float *from = m->x + ((sample * m->height + y) * m->width + x) * channels;
                for (; k + WIDTH <= channels; k += WIDTH) {
                    vec a = load(from + k), b = first ? a : load(to + k);
                    store(to + k, where((a > b) | (a != a), a, b));
                }
                for (; k < channels; k++)
                    if (first || from[k] > to[k] || from[k] != from[k]) to[k] = from[k];
                first = false;
            }
        }
        for (int64_t k = 0; first && k < channels; k++) to[k] = -INFINITY;  // the window has nothing but padding
    }
}

KERNEL(maxima_of, x, kernel, stride, padding, dilation, counts) {
    Images m;
    int64_t counts[2];
    if (!read_images(args->x, &m) || !tt_read_sizes(args->kernel, 2, m.kernel) ||
        !tt_read_sizes(args->stride, 2, m.stride) || !tt_read_sizes(args->padding, 2, m.padding) ||
        !tt_read_sizes(args->dilation, 2, m.dilation) || !tt_read_sizes(args->counts, 2, counts))
        return FALLBACK;
    m.rows = counts[0], m.columns = counts[1];
    if (m.rows < 1 || m.columns < 1) return FALLBACK;
    PyObject *out = tt_new_array(args->x, 4, (int64_t[]){m.samples, m.rows, m.columns, m.channels});
    if (!out) return NULL;
    m.out = float_data(out);
    tt_parallel_for(largest_part, &m, m.samples * m.rows,
                    m.samples * m.rows * m.columns * m.channels * m.kernel[0] * m.kernel[1], tt_threads());
    return out;
}

FAMILY(channels_last, ENTRY(convolved), ENTRY(convolved_twice), ENTRY(means), ENTRY(scaled), ENTRY(maxima_of));
