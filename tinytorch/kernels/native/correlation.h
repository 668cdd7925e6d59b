// What the parts of a convolution share (direct.h, conv.c): the description of a correlation, how it is cut into
// blocks, and the padded copy of a block of images.
//
// `conv` and `conv_input` both are a correlation: result position p meets the source at p * stride + offset for the
// offset of each tap (element of the kernel). The gradient by the input of a convolution with stride s is s
// correlations, one for each phase that an input element can have between two steps of the kernel, with the taps that
// meet it.
//
// The copy of a block of images, or of some rows of an image, contains the padding, and is split into phases modulo the
// stride: then what a tap meets along a row is contiguous. Where sums run over positions, the blocks depend on the
// shapes alone, not on the number of threads.
#ifndef TINYTORCH_CORRELATION_H
#define TINYTORCH_CORRELATION_H

#include "helpers.h"

enum {
    COPY_SIZE = 1 << 17,     // floats of a block's copy, at most (if one image is smaller)
    MIN_POSITIONS = 1 << 9,  // result positions of a block, at least (if there are as many)
    PARTS = 16,              // parts of the work that are enough: blocks are not made smaller for more
};

typedef int64_t Three[3];

// One dimension of a correlation.
typedef struct {
    int64_t size, positions, stride;    // of the source; of the result; source elements between two positions
    int64_t result_start, result_step;  // the index in the result of position 0, and between two positions
    int64_t *tap, *offset;              // per tap: its index in the kernel, and its offset
    int64_t taps;
    // The phases (offsets modulo the stride) that taps have; the lowest index of a phase that is copied, and how many
    // more than there are positions.
    int64_t *phase, phases, low, extent;
} Axis;

typedef struct {
    const float *source, *weight, *weight_end, *bias;
    float *result;
    int64_t samples, groups, channels, rows;     // per group: channels of the source, rows of the weight (outputs)
    int64_t source_stride[5], result_stride[5];  // image, channel, three dimensions
    int64_t weight_stride[6];                    // row, channel, three dimensions, group
    Axis axis[3];
    int64_t taps, *tap_offset,
        *weight_tap_offset;             // of all dimensions: per tap its offset in the copy and in the weight
    int split;                          // the dimension along which images are cut into blocks
    int64_t images, cut, blocks, cuts;  // images and positions of a block; blocks of images, cuts of an image
    int64_t row_chunks, row_chunk;      // chunks of the rows, where blocks are few; tiles of a chunk
    int64_t copy_stride[5], copy_size;  // image, channel, phase, depth, height
    bool in_place;                      // the source is read as it is, without a copy
    float *packed_weight, *scratch;
    int64_t scratch_size;  // per worker
} Correlation;

// Planning --------------------------------------------------------------------------------------

static bool find_phases(Axis *a) {
    a->phases = 0;
    int64_t high = a->low = floor_div(a->offset[0], a->stride);
    for (int64_t t = 0; t < a->taps; t++) {
        int64_t index = floor_div(a->offset[t], a->stride), phase = a->offset[t] - index * a->stride, k = 0;
        while (k < a->phases && a->phase[k] != phase) k++;
        if (k == a->phases) a->phase[a->phases++] = phase;
        a->low = imin(a->low, index);
        high = imax(high, index);
    }
    a->extent = high - a->low;
    return a->extent < 1 << 24;
}

// Allocate and fill the offsets of the taps; `tap_offset` is to be freed.
static bool find_taps(Correlation *c) {
    Axis *a = c->axis;
    c->taps = a[0].taps * a[1].taps * a[2].taps;
    c->tap_offset = malloc(sizeof(int64_t) * 2 * (size_t)c->taps);
    if (!c->tap_offset) return false;
    c->weight_tap_offset = c->tap_offset + c->taps;
    int64_t t = 0, tap[3];
    for (tap[0] = 0; tap[0] < a[0].taps; tap[0]++)
        for (tap[1] = 0; tap[1] < a[1].taps; tap[1]++)
            for (tap[2] = 0; tap[2] < a[2].taps; tap[2]++, t++) {
                int64_t phase = 0, in_copy = 0, in_weight = 0;
                for (int d = 0; d < 3; d++) {
                    int64_t offset = a[d].offset[tap[d]], index = floor_div(offset, a[d].stride), k = 0;
                    while (a[d].phase[k] != offset - index * a[d].stride) k++;
                    phase = phase * a[d].phases + k;
                    in_copy += (index - a[d].low) * (d == 2 ? 1 : c->copy_stride[3 + d]);
                    in_weight += a[d].tap[tap[d]] * c->weight_stride[2 + d];
                }
                c->tap_offset[t] = in_copy + phase * c->copy_stride[2];
                c->weight_tap_offset[t] = in_weight;
            }
    return true;
}

// Cut the work into blocks, and lay out the copy of one.
static bool cut_blocks(Correlation *c) {
    Axis *a = c->axis;
    int64_t positions = a[0].positions * a[1].positions * a[2].positions, cuts = 1, size = c->channels;
    for (int d = 0; d < 3; d++) size *= (a[d].extent + a[d].positions) * a[d].phases;
    c->split = a[0].positions > 1 ? 0 : a[1].positions > 1 ? 1 : 2;
    c->images = imin(c->samples, imax(imin(ceil_div(MIN_POSITIONS, positions), COPY_SIZE / size), 1));
    if (c->images == 1) {
        cuts = imax(ceil_div(size, COPY_SIZE), ceil_div(PARTS, c->samples * c->groups));
        cuts = imax(imin(cuts, positions / MIN_POSITIONS), 1);
    }
    c->cut = ceil_div(a[c->split].positions, imin(cuts, a[c->split].positions));
    c->cuts = ceil_div(a[c->split].positions, c->cut);
    c->blocks = ceil_div(c->samples, c->images);
    c->images = ceil_div(c->samples, c->blocks);
    if (c->in_place) {
        memcpy(c->copy_stride, (int64_t[]){c->source_stride[0], c->source_stride[1], 0, 0, 0}, sizeof c->copy_stride);
        return true;
    }
    Three extent;
    for (int d = 0; d < 3; d++) extent[d] = a[d].extent + (d == c->split ? c->cut : a[d].positions);
    c->copy_stride[4] = extent[2];
    c->copy_stride[3] = extent[1] * c->copy_stride[4];
    c->copy_stride[2] = extent[0] * c->copy_stride[3];
    c->copy_stride[1] = c->copy_stride[2] * a[0].phases * a[1].phases * a[2].phases;
    c->copy_stride[0] = c->copy_stride[1] * c->channels;
    c->copy_size = c->copy_stride[0] * c->images;
    return c->copy_size < (int64_t)1 << 40;
}

// Blocks ----------------------------------------------------------------------------------------

typedef struct {
    int64_t first, images, begin;  // the images, and the first position along the dimension `split`
    Three count;                   // positions of an image
} Block;

static Block nth_block(const Correlation *c, int64_t index) {
    Block b = {.first = index / c->cuts * c->images, .begin = index % c->cuts * c->cut};
    b.images = imin(c->images, c->samples - b.first);
    for (int d = 0; d < 3; d++) b.count[d] = c->axis[d].positions;
    b.count[c->split] = imin(c->cut, b.count[c->split] - b.begin);
    return b;
}

static int64_t positions_of(const Block *b) { return b->images * b->count[0] * b->count[1] * b->count[2]; }

// The part of a copied row of `extent` elements that is not padding.
static void range_inside(const Axis *a, int64_t low, int64_t phase, int64_t extent, int64_t *first, int64_t *last) {
    *first = imin(imax(-floor_div(low * a->stride + phase, a->stride), 0), extent);
    *last = imax(imin(floor_div(a->size - 1 - phase, a->stride) - low + 1, extent), *first);
}

// Copy `channels` channels of a block's images with their padding, phase by phase.
static void copy_block(const Correlation *c, const Block *b, const float *source, int64_t channels, float *to) {
    const Axis *a = c->axis;
    const int64_t *stride = c->source_stride;
    int64_t row_stride = c->copy_stride[4], step = a[2].stride * stride[4];
    int64_t phases = a[0].phases * a[1].phases * a[2].phases;
    for (int64_t p = 0; p < phases; p++) {
        Three low, extent, first, last;
        Three phase = {a[0].phase[p / a[2].phases / a[1].phases], a[1].phase[p / a[2].phases % a[1].phases],
                       a[2].phase[p % a[2].phases]};
        int64_t start = 0;
        for (int d = 0; d < 3; d++) {
            low[d] = a[d].low + (d == c->split ? b->begin : 0);
            extent[d] = a[d].extent + b->count[d];
            range_inside(&a[d], low[d], phase[d], extent[d], &first[d], &last[d]);
            start += ((low[d] + first[d]) * a[d].stride + phase[d]) * stride[2 + d];
        }
        int64_t plane = (extent[1] - 1) * row_stride + extent[2], inside = last[2] - first[2];
        for (int64_t n = 0; n < b->images; n++)
            for (int64_t channel = 0; channel < channels; channel++) {
                const float *image = source + (b->first + n) * stride[0] + channel * stride[1] + start;
                float *copy = to + n * c->copy_stride[0] + channel * c->copy_stride[1] + p * c->copy_stride[2];
                for (int64_t d = 0; d < extent[0]; d++, copy += c->copy_stride[3]) {
                    if (d < first[0] || d >= last[0]) {
                        fill_zero(copy, plane);
                        continue;
                    }
                    const float *from = image + (d - first[0]) * a[0].stride * stride[2];
                    float *row = copy + first[1] * row_stride;
                    fill_zero(copy, imin(first[1] * row_stride, plane));
                    for (int64_t h = first[1]; h < last[1]; h++, row += row_stride, from += a[1].stride * stride[3]) {
                        for (int64_t w = 0; w < first[2]; w++) row[w] = 0;
                        if (step == 1) copy_floats(row + first[2], from, inside);
                        else if (step == 2) copy_every_second(row + first[2], from, inside);
                        else
                            for (int64_t w = 0; w < inside; w++) row[first[2] + w] = from[step * w];
                        for (int64_t w = last[2]; w < extent[2]; w++) row[w] = 0;
                    }
                    fill_zero(row, plane - last[1] * row_stride);
                }
            }
    }
}

#endif
