/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multiplying by a rational without dividing: how ticks become nanoseconds
 * and nanoseconds become units.
 */
#include "../support.h"
#include "ratio.h"

#define S NSEC_PER_SEC

/* B026: 2.3 GHz is not 2 GHz. A second, a day, ten years of ticks. */
START_TEST(ticks_of_2_3_gigahertz)
{
	struct ratio r = ratio_make(10, 23); /* ns per tick */
	const uint64_t hz = 2300000000;

	ck_assert_uint_eq((uint64_t)ratio_apply(r, hz), S);
	ck_assert_uint_eq((uint64_t)ratio_apply(r, hz - 1), S - 1);
	ck_assert_uint_eq((uint64_t)ratio_apply(r, 86400 * hz), NSEC_PER_DAY);
	ck_assert_uint_eq((uint64_t)ratio_apply(r, 10 * 365 * 86400 * hz),
	    10 * NSEC_PER_YEAR);
	/* 254 years, the most that 64 bits of ticks hold */
	ck_assert_uint_eq((uint64_t)ratio_apply(r, UINT64_MAX),
	    8020323510308500702); /* (2^64 - 1) x 10 / 23 */
}
END_TEST

/* Frequencies as calibration finds them, against a division. */
START_TEST(no_drift)
{
	struct rng rng;

	rng_init(&rng, test_seed("no_drift"));
	for (int n = 0; n < 1000; n++) {
		/* 20 ms of a clock of 0.5 to 6 GHz */
		uint64_t ns = 20000000 + rng_below(&rng, 1000000);
		uint64_t ticks = ns / 2 + rng_below(&rng, 11 * ns / 2);
		struct ratio r = ratio_make(ns, ticks);

		for (int k = 0; k < 1000; k++) {
			uint64_t x = rng_magnitude(&rng, 64);
			uint128_t exact = (uint128_t)x * ns / ticks;
			uint128_t got = ratio_apply(r, x);

			/* never below, and above by 2^-63 of itself */
			expect(got >= exact);
			expect(got <= exact + (exact >> 63) + 1);
		}
	}
}
END_TEST

/* Powers of two and whole numbers are exact over the whole range. */
START_TEST(exact_where_it_can_be)
{
	for (unsigned shift = 0; shift < 64; shift++) {
		struct ratio up = ratio_make(1ull << shift, 1);
		struct ratio down = ratio_make(1, 1ull << shift);

		ck_assert(ratio_apply(up, UINT64_MAX) ==
		    (uint128_t)UINT64_MAX << shift);
		ck_assert(ratio_apply(down, UINT64_MAX) ==
		    UINT64_MAX >> shift);
	}
	ck_assert(ratio_apply(ratio_make(UINT64_MAX, 1), UINT64_MAX) ==
	    (uint128_t)UINT64_MAX * UINT64_MAX);
	ck_assert(ratio_apply(ratio_make(UINT64_MAX, UINT64_MAX),
	    UINT64_MAX) == UINT64_MAX);
	ck_assert(ratio_apply(ratio_make(1, UINT64_MAX), UINT64_MAX) == 1);
	ck_assert(ratio_apply(ratio_make(3, 1), 0) == 0);
}
END_TEST

/* A multiplier that rounds up into its 65th bit. */
START_TEST(carry_out_of_the_top)
{
	struct ratio r = ratio_make(UINT64_MAX - 1, UINT64_MAX);

	ck_assert(r.mult >> 63 == 1);
	ck_assert(ratio_apply(r, UINT64_MAX) >= UINT64_MAX - 1);
	ck_assert(ratio_apply(r, UINT64_MAX) <= UINT64_MAX);
	ck_assert(ratio_apply(r, 1ull << 63) >= (1ull << 63) - 1);
	ck_assert(ratio_apply(r, 1) <= 1);
}
END_TEST

/* The inverse, from both sides, also from between two whole results. */
START_TEST(inverse)
{
	struct rng rng;

	rng_init(&rng, test_seed("inverse"));
	for (int n = 0; n < 1000000; n++) {
		struct ratio r = ratio_make(1 + rng_magnitude(&rng, 60),
		    1 + rng_magnitude(&rng, 60));
		uint64_t x = rng_magnitude(&rng, 62), d;
		uint64_t need = 1 + rng_magnitude(&rng, 58);
		uint128_t below, v = ratio_apply_rest(r, x, 0, &below);

		expect(v == ratio_apply(r, x));
		d = ratio_invert(r, need, below);
		/* UINT64_MAX also stands for all that is beyond it */
		if (d == UINT64_MAX || d > UINT64_MAX - x) {
			expect(ratio_apply(r, UINT64_MAX - (x == 0)) - v <
			    need);
			continue;
		}
		expect(ratio_apply(r, x + d) - v >= need);
		expect(d == 0 || ratio_apply(r, x + d - 1) - v < need);
	}
}
END_TEST

/* With a fraction carried in, up to the largest x, where the sum is wider than
 * 128 bits. */
START_TEST(inverse_with_a_carry)
{
	struct rng rng;

	rng_init(&rng, test_seed("inverse_with_a_carry"));
	for (int n = 0; n < 1000000; n++) {
		struct ratio r = ratio_make(1 + rng_magnitude(&rng, 30),
		    1 + rng_magnitude(&rng, 64));
		uint64_t x = UINT64_MAX - rng_magnitude(&rng, 64), d;
		uint64_t need = 1 + rng_magnitude(&rng, 40);
		uint128_t carry = r.shift == 0 ? 0 :
		    ((uint128_t)rng_next(&rng) << 64 | rng_next(&rng)) >>
		    (128 - r.shift);
		uint128_t below, rest, v;

		v = ratio_apply_rest(r, x, carry, &below);
		expect(below >> r.shift == 0);
		/* by halves: what two steps give is what one gives */
		d = x / 2;
		v -= ratio_apply_rest(r, d, carry, &rest);
		expect(v == ratio_apply_rest(r, x - d, rest, &rest));
		expect(rest == below);
		d = ratio_invert(r, need, below);
		if (d == UINT64_MAX)
			continue;
		expect(ratio_apply_rest(r, d, below, &rest) >= need);
		expect(d == 0 ||
		    ratio_apply_rest(r, d - 1, below, &rest) < need);
	}
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("ratio");
	TCase *tc = tcase_create("ratio");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, ticks_of_2_3_gigahertz);
	tcase_add_test(tc, no_drift);
	tcase_add_test(tc, exact_where_it_can_be);
	tcase_add_test(tc, carry_out_of_the_top);
	tcase_add_test(tc, inverse);
	tcase_add_test(tc, inverse_with_a_carry);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
