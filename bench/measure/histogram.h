/* A histogram of times with logarithmic buckets, 64 to each power of two, as HDR histograms have them: any percentile within 1.6 %, whatever the range,
 * in 30 KB. */
#ifndef IVM_BENCH_HISTOGRAM_H
#define IVM_BENCH_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BITS 6
#define HISTOGRAM_BUCKETS ((65 - HISTOGRAM_BITS) << HISTOGRAM_BITS)

typedef struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count;
} histogram;

/* Values below 64 have buckets of their own; above, a bucket is the leading one and the six bits behind it. */
static inline size_t histogram_bucket(uint64_t value)
{
    if (value < (1u << HISTOGRAM_BITS)) {
        return (size_t)value;
    }
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HISTOGRAM_BITS;
    return ((size_t)shift << HISTOGRAM_BITS) + (size_t)(value >> shift);
}

/* The middle of a bucket. */
static inline uint64_t histogram_value(size_t bucket)
{
    if (bucket < (2u << HISTOGRAM_BITS)) {
        return bucket;
    }
    unsigned shift = (unsigned)(bucket >> HISTOGRAM_BITS) - 1;
    uint64_t low = (uint64_t)((bucket & ((1u << HISTOGRAM_BITS) - 1)) | (1u << HISTOGRAM_BITS)) << shift;
    return low + ((uint64_t)1 << shift) / 2;
}

static inline void histogram_add(histogram *h, uint64_t value)
{
    h->counts[histogram_bucket(value)]++;
    h->count++;
}

/* The least value that so many of a thousand do not pass; 0 of an empty one. */
static inline uint64_t histogram_per_mille(const histogram *h, uint64_t per_mille)
{
    uint64_t wanted = (h->count * per_mille + 999) / 1000, passed = 0;
    for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++) {
        passed += h->counts[b];
        if (passed >= wanted && passed) {
            return histogram_value(b);
        }
    }
    return 0;
}

#endif
