/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * x * p / q for any 64-bit x, without a division and without drift.
 *
 * p / q is kept as mult / 2^shift with mult rounded up and normalised to all
 * 64 bits, so the product is never below the true value and above it by less
 * than one part in 2^63. Where 2^n * p / q is an integer for some n that fits,
 * it is exact.
 */
#ifndef WEIR_RATIO_H
#define WEIR_RATIO_H

#include <stdbool.h>
#include <stdint.h>

typedef unsigned __int128 uint128_t;

struct ratio {
	uint64_t mult;
	unsigned shift; /* 0..127 */
};

/*
 * Long division, one bit at a time, until the quotient fills its word.
 * => p, q >= 1, below 2^127, and p / q below 2^64.
 */
static inline struct ratio
ratio_make(uint128_t p, uint128_t q)
{
	struct ratio r = {.mult = (uint64_t)(p / q), .shift = 0};
	uint128_t rest = p % q;

	while (!(r.mult >> 63)) {
		rest <<= 1;
		r.mult = r.mult << 1 | (rest >= q);
		rest -= rest >= q ? q : 0;
		r.shift++;
	}
	if (rest && ++r.mult == 0) { /* rounded up into the 65th bit */
		r.mult = 1ull << 63;
		r.shift--;
	}
	return r;
}

/*
 * carry + x * p / q, rounded down; the part below 1 is left in *below. Both
 * fractions are in 2^-shift.
 */
static inline uint128_t
ratio_apply_rest(struct ratio r, uint64_t x, uint128_t carry,
    uint128_t *below)
{
	uint128_t sum, whole;
	bool over = __builtin_add_overflow((uint128_t)x * r.mult, carry, &sum);

	whole = sum >> r.shift;
	*below = sum - (whole << r.shift);
	return over ? whole + ((uint128_t)1 << (128 - r.shift)) : whole;
}

static inline uint128_t
ratio_apply(struct ratio r, uint64_t x)
{
	return ((uint128_t)x * r.mult) >> r.shift;
}

/*
 * The inverse: the least d with ratio_apply(x + d) - ratio_apply(x) >= need,
 * where below is what ratio_apply_rest() left for x. UINT64_MAX if d does not
 * fit 64 bits.
 *
 *	(x + d) * mult >= (whole + need) << shift
 *	<=> d >= ((need << shift) - below) / mult
 * => need >= 1.
 */
static inline uint64_t
ratio_invert(struct ratio r, uint64_t need, uint128_t below)
{
	uint128_t target, d;

	if (r.shift > 64 && (need - 1) >> (128 - r.shift))
		return UINT64_MAX; /* d >= 2^128 / 2^64 */
	target = ((uint128_t)(need - 1) << r.shift) +
	    (((uint128_t)1 << r.shift) - below);
	d = target / r.mult + (target % r.mult != 0);
	return d >> 64 ? UINT64_MAX : (uint64_t)d;
}

#endif
