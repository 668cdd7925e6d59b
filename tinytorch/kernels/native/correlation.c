// What the sides of a convolution share (direct.c, conv.c): how they cut their work, and lay images out.
//
// `conv` and `conv_input` are one thing, a correlation: the result's places, which lie `step` apart, each meet the
// source at `place * move + offset` for every tap. (The gradient of the input with stride s is one such for each of the
// s places that input elements have between the kernel's moves, with the taps that meet those.)
//
// A block of images, or of rows of one, is laid out with its padding, and split by `move` so that what a tap meets in a
// row are neighbours. Where sums are over places, blocks are what the shapes make them, whatever the number of threads.

#if WIDTH == 4 && defined(__x86_64__) || WIDTH == 8
#define ROWS 4  // of a tile, which fills the registers
#else
#define ROWS 8
#endif
#define VECTORS_IN_TILE 3
#define COLUMNS (VECTORS_IN_TILE * WIDTH)

enum { LAID_OUT = 1 << 17, PARTS = 16, POSITIONS = 160, DEPTH = 256, PLACES = 1 << 9, SUMS = 1 << 21 };

typedef int64_t Three[3];

// What a correlation does in one dimension.
typedef struct {
    int64_t size, count, move;  // of the source; places; source elements from one place to the next
    int64_t start, step;        // of the places in the result
    int64_t *tap, *offset;      // per tap that counts: its number in the kernel, where it meets the source
    int64_t taps, *phase, phases, low, extent;  // what is laid out: offsets modulo `move`; the first; how many
} Axis;

typedef struct {
    const float *source, *weight, *weight_end, *bias;
    float *result;
    int64_t samples, groups, channels, rows;  // channels (of the source) and rows (of the result) of each group
    int64_t source_at[5], weight_at[6], result_at[5];  // strides; those of the weight by row, channel, tap (3), group
    Axis axis[3];
    int64_t taps, *tap_at, *weight_tap_at;  // per tap: where it is in what is laid out, and in the weight
    int split;                              // the dimension in which images are cut,
    int64_t images, cut, blocks, cuts;      // into blocks of so many images or places there
    int64_t row_parts, row_part;            // the rows of the weight, too, where blocks are few
    int64_t laid_at[5], laid;               // strides by image, channel, phase (all), depth, height; the size
    bool in_place;                          // the source itself is what would be laid out
    float *packed, *scratch;
    int64_t scratch_size;
} Correlation;

static int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }
static int64_t most(int64_t x, int64_t y) { return x > y ? x : y; }
static int64_t over(int64_t x, int64_t y) { return (x + y - 1) / y; }
static int64_t below(int64_t x, int64_t y) { return x >= 0 ? x / y : -((-x + y - 1) / y); }

// Setting up ------------------------------------------------------------------------------------

static bool set_axis(Axis *a) {
    a->phases = 0;
    int64_t high = a->low = below(a->offset[0], a->move);
    for (int64_t t = 0; t < a->taps; t++) {
        int64_t at = below(a->offset[t], a->move), phase = a->offset[t] - at * a->move, k = 0;
        while (k < a->phases && a->phase[k] != phase) k++;
        if (k == a->phases) a->phase[a->phases++] = phase;
        a->low = least(a->low, at);
        high = most(high, at);
    }
    a->extent = high - a->low;  // and as many as there are places
    return a->extent < 1 << 24;
}

static bool set_taps(Correlation *c) {
    Axis *a = c->axis;
    c->taps = a[0].taps * a[1].taps * a[2].taps;
    c->tap_at = malloc(sizeof(int64_t) * 2 * (size_t)c->taps);
    if (!c->tap_at) return false;
    c->weight_tap_at = c->tap_at + c->taps;
    int64_t t = 0, chosen[3];
    for (chosen[0] = 0; chosen[0] < a[0].taps; chosen[0]++)
        for (chosen[1] = 0; chosen[1] < a[1].taps; chosen[1]++)
            for (chosen[2] = 0; chosen[2] < a[2].taps; chosen[2]++, t++) {
                int64_t phases = 0, at = 0, weight = 0;
                for (int d = 0; d < 3; d++) {
                    int64_t offset = a[d].offset[chosen[d]], index = below(offset, a[d].move), k = 0;
                    while (a[d].phase[k] != offset - index * a[d].move) k++;
                    phases = phases * a[d].phases + k;
                    at += (index - a[d].low) * (d == 2 ? 1 : c->laid_at[3 + d]);
                    weight += a[d].tap[chosen[d]] * c->weight_at[2 + d];
                }
                c->tap_at[t] = at + phases * c->laid_at[2];
                c->weight_tap_at[t] = weight;
            }
    return true;
}

// Cut the work into blocks, and say how they are laid out.
static bool set_blocks(Correlation *c) {
    Axis *a = c->axis;
    int64_t places = a[0].count * a[1].count * a[2].count, cuts = 1, size = c->channels;
    for (int d = 0; d < 3; d++) size *= (a[d].extent + a[d].count) * a[d].phases;
    c->split = a[0].count > 1 ? 0 : a[1].count > 1 ? 1 : 2;
    c->images = least(c->samples, most(least(over(PLACES, places), LAID_OUT / size), 1));
    if (c->images == 1) {
        cuts = most(over(size, LAID_OUT), over(PARTS, c->samples * c->groups));
        cuts = most(least(cuts, places / PLACES), 1);
    }
    c->cut = over(a[c->split].count, least(cuts, a[c->split].count));
    c->cuts = over(a[c->split].count, c->cut);
    c->blocks = over(c->samples, c->images);
    c->images = over(c->samples, c->blocks);
    if (c->in_place) {
        memcpy(c->laid_at, (int64_t[]){c->source_at[0], c->source_at[1], 0, 0, 0}, sizeof c->laid_at);
        return true;
    }
    Three extent;
    for (int d = 0; d < 3; d++) extent[d] = a[d].extent + (d == c->split ? c->cut : a[d].count);
    c->laid_at[4] = extent[2];
    c->laid_at[3] = extent[1] * c->laid_at[4];
    c->laid_at[2] = extent[0] * c->laid_at[3];
    c->laid_at[1] = c->laid_at[2] * a[0].phases * a[1].phases * a[2].phases;
    c->laid_at[0] = c->laid_at[1] * c->channels;
    c->laid = c->laid_at[0] * c->images;
    return c->laid < (int64_t)1 << 40;
}

typedef struct {
    int64_t first, images, begin;  // the images; where the cut begins
    Three count;                   // places in one image
} Block;

static Block block_of(const Correlation *c, int64_t number) {
    Block b = {.first = number / c->cuts * c->images, .begin = number % c->cuts * c->cut};
    b.images = least(c->images, c->samples - b.first);
    for (int d = 0; d < 3; d++) b.count[d] = c->axis[d].count;
    b.count[c->split] = least(c->cut, b.count[c->split] - b.begin);
    return b;
}

// Where the source is not padding, among what is laid out of it.
static void find_inside(const Axis *a, int64_t low, int64_t phase, int64_t extent, int64_t *first, int64_t *last) {
    *first = least(most(-below(low * a->move + phase, a->move), 0), extent);
    *last = most(least(below(a->size - 1 - phase, a->move) - low + 1, extent), *first);
}

INLINE void zero(float *to, int64_t count) {
    for (int64_t i = 0; i < count; i++) to[i] = 0;
}

// Copy every other number: of each two vectors of eight that overlap by one, so that nothing is read beyond the last.
INLINE void every_other(float *to, const float *from, int64_t count) {
    typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
    if (count < 8) {
        for (int64_t i = 0; i < count; i++) to[i] = from[2 * i];
        return;
    }
    for (int64_t i = 0; i < count; i += 8) {
        i = least(i, count - 8);
        eight x = *(const eight *)(from + 2 * i), y = *(const eight *)(from + 2 * i + 7);
        *(eight *)(to + i) = __builtin_shufflevector(x, y, 0, 2, 4, 6, 9, 11, 13, 15);
    }
}

// Lay out `channels` channels of a block's images, the padding around them too.
static void lay_out(const Correlation *c, const Block *b, const float *source, int64_t channels, float *to) {
    const Axis *a = c->axis;
    const int64_t *at = c->source_at;
    int64_t row_at = c->laid_at[4], apart = a[2].move * at[4], phases = a[0].phases * a[1].phases * a[2].phases;
    for (int64_t p = 0; p < phases; p++) {
        Three low, extent, first, last;
        Three phase = {a[0].phase[p / a[2].phases / a[1].phases], a[1].phase[p / a[2].phases % a[1].phases],
                       a[2].phase[p % a[2].phases]};
        int64_t start = 0;
        for (int d = 0; d < 3; d++) {
            low[d] = a[d].low + (d == c->split ? b->begin : 0);
            extent[d] = a[d].extent + b->count[d];
            find_inside(&a[d], low[d], phase[d], extent[d], &first[d], &last[d]);
            start += ((low[d] + first[d]) * a[d].move + phase[d]) * at[2 + d];
        }
        int64_t plane = (extent[1] - 1) * row_at + extent[2], inside = last[2] - first[2];
        for (int64_t n = 0; n < b->images; n++)
            for (int64_t channel = 0; channel < channels; channel++) {
                const float *image = source + (b->first + n) * at[0] + channel * at[1] + start;
                float *laid = to + n * c->laid_at[0] + channel * c->laid_at[1] + p * c->laid_at[2];
                for (int64_t d = 0; d < extent[0]; d++, laid += c->laid_at[3]) {
                    if (d < first[0] || d >= last[0]) {
                        zero(laid, plane);
                        continue;
                    }
                    const float *from = image + (d - first[0]) * a[0].move * at[2];
                    float *row = laid + first[1] * row_at;
                    zero(laid, least(first[1] * row_at, plane));
                    for (int64_t h = first[1]; h < last[1]; h++, row += row_at, from += a[1].move * at[3]) {
                        for (int64_t w = 0; w < first[2]; w++) row[w] = 0;
                        if (apart == 1) copy(row + first[2], from, inside);
                        else if (apart == 2) every_other(row + first[2], from, inside);
                        else
                            for (int64_t w = 0; w < inside; w++) row[first[2] + w] = from[apart * w];
                        for (int64_t w = last[2]; w < extent[2]; w++) row[w] = 0;
                    }
                    zero(row, plane - last[1] * row_at);
                }
            }
    }
}

// Transpose WIDTH vectors: each round interleaves those of the first half with those of the second.
INLINE void transpose(vec *rows) {
    vec next[WIDTH];
    for (int round = 1; round < WIDTH; round *= 2) {
        for (int i = 0; i < WIDTH / 2; i++) {
            next[2 * i] = LOW(rows[i], rows[i + WIDTH / 2]);
            next[2 * i + 1] = HIGH(rows[i], rows[i + WIDTH / 2]);
        }
        for (int i = 0; i < WIDTH; i++) rows[i] = next[i];
    }
}

static void *aligned(size_t floats) {
    void *found;
    return posix_memalign(&found, 64, sizeof(float) * floats + 64) ? NULL : found;
}
