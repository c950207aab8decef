/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token clock as pure functions, against plain 128-bit integers: where
 * the rate is exact, V and waits must be so; across eras and the whole of the
 * clock, S must read back as it was written.
 */
#include <inttypes.h>

#include "../support.h"
#include "vclock.h"

#define S NSEC_PER_SEC

static const struct {
	uint64_t tokens, period_ns, capacity;
	bool exact;
} rows[] = {
	{ 1, 1, 1, true },
	{ 1, S, 1, true },
	{ 1000, S, 10, true },
	{ 1, NSEC_PER_YEAR, 1, true },
	{ 1, 1ull << 55, 1, true },
	{ 1, 1, 1ull << 55, true },
	{ V_SPEED_MAX, 1, 1ull << 55, true },
	{ 148809523, S, 64, false },
	{ 8388593, 83885930007, 10, true },
	{ 3 * (V_SPEED_MAX + 1), 6, 1, false },
	{ 1, 1ull << 55, 2, false },
	{ 1, NSEC_PER_DAY, 100000, false },
	{ 4294967295, 8 * S, 1250000, false },
	{ UINT64_MAX, 1ull << 41, 1ull << 55, false },
	{ 1, UINT64_MAX, 1, false },
	{ UINT64_MAX - 1, UINT64_MAX, 1, false },
};

static struct rate
rate_of(size_t i)
{
	struct rate rate;

	ck_assert_int_eq(rate_make(&rate, rows[i].tokens, rows[i].period_ns,
	    rows[i].capacity, 0), RATE_OK);
	return rate;
}

/* The units of a token, the size of a bucket, and which are exact. */
START_TEST(units)
{
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct rate rate = rate_of(i);
		uint64_t divisor = gcd(rows[i].tokens, rows[i].period_ns);
		uint64_t finer = rate.token / (rows[i].period_ns / divisor);
		/* a power of two times q, and V advances as many times p */
		bool exact = finer >= 1 && (finer & (finer - 1)) == 0 &&
		    rate.token == finer * (rows[i].period_ns / divisor) &&
		    rows[i].tokens / divisor <= V_SPEED_MAX;

		ck_assert_uint_eq(rate.capacity, rows[i].capacity);
		ck_assert_uint_eq(rate.full, rate.token * rate.capacity);
		ck_assert_uint_le(rate.full, V_FULL_MAX);
		ck_assert_int_eq(exact, rows[i].exact);
		/* V advances by at most V_SPEED_MAX a ns, and exactly by
		 * tokens / period x token if it is exact */
		ck_assert_uint_le(rate_at(&rate, 1).v, V_SPEED_MAX);
		ck_assert_uint_eq(rate_at(&rate, 0).v, 0);
		if (exact) {
			ck_assert_uint_eq(rate_at(&rate, 12345).v,
			    12345 * finer * (rows[i].tokens / divisor));
			continue;
		}
		/* else one unit more to a token would be too many */
		ck_assert((rate.token & (rate.token - 1)) == 0);
		ck_assert(2 * rate.full > V_FULL_MAX ||
		    (uint128_t)rows[i].tokens * 2 * rate.token >
		    (uint128_t)rows[i].period_ns * V_SPEED_MAX);
	}
}
END_TEST

START_TEST(faults)
{
	struct rate rate;

	ck_assert_int_eq(rate_make(&rate, 0, 1, 1, 0), RATE_ZERO_TOKENS);
	ck_assert_int_eq(rate_make(&rate, 1, 0, 1, 0), RATE_ZERO_PERIOD);
	ck_assert_int_eq(rate_make(&rate, 1, 1, 0, 0), RATE_ZERO_CAPACITY);
	ck_assert_int_eq(rate_make(&rate, 1, 1, V_FULL_MAX + 1, 0),
	    RATE_TOO_DEEP);
	ck_assert_int_eq(rate_make(&rate, V_SPEED_MAX + 1, 1, 1, 0),
	    RATE_TOO_FAST);
	ck_assert_int_eq(rate_make(&rate, UINT64_MAX, UINT64_MAX, UINT64_MAX,
	    0),
	    RATE_TOO_DEEP);
	ck_assert_int_eq(rate_make(&rate, 1, 1, V_FULL_MAX, 1),
	    RATE_TOO_INDEBTED);
	ck_assert_int_eq(rate_make(&rate, 1, 1, 1, UINT64_MAX),
	    RATE_TOO_INDEBTED);
	ck_assert_int_eq(rate_make(&rate, 1, 1, 1, V_FULL_MAX - 1), RATE_OK);
}
END_TEST

/*
 * V and its era from the definition. V is at least the true one and above it
 * by less than 2^-63 of it; x p / q is split to stay inside 128 bits.
 */
START_TEST(v_is_the_product)
{
	struct rng rng;

	rng_init(&rng, test_seed("v_is_the_product"));
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct rate rate = rate_of(i);

		for (int n = 0; n < 20000; n++) {
			uint64_t now_ns = n == 0 ? UINT64_MAX :
			    rng_magnitude(&rng, 64);
			struct vinstant in = rate_at(&rate, now_ns);
			uint128_t rest, v, high;

			/* tokens first, then units: tokens < 2^87 */
			v = (uint128_t)now_ns * rows[i].tokens;
			rest = v % rows[i].period_ns;
			v = v / rows[i].period_ns * rate.token;
			/* rest < 2^64, token <= 2^55 */
			v += rest * rate.token / rows[i].period_ns;
			high = v + (v >> 63) + 1;
			if (rows[i].exact)
				high = v;
			/* of the ring, V gives 64 bits and the era more */
			expect(in.v == (uint64_t)v ||
			    (in.v - (uint64_t)v <= (uint64_t)(high - v)));
			expect(in.era == (uint32_t)(v >> V_ERA_SHIFT) ||
			    in.era == (uint32_t)(high >> V_ERA_SHIFT));
		}
	}
}
END_TEST

/*
 * S as the table keeps it, 58 bits and the era it was written in, read at any
 * later time: the distance is exact, or so large that nothing else matters.
 */
START_TEST(s_reads_back)
{
	struct rng rng;

	rng_init(&rng, test_seed("s_reads_back"));
	for (int n = 0; n < 1000000; n++) {
		/* V itself, in place of a time: up to 2^87 */
		uint128_t then = (uint128_t)rng_magnitude(&rng, 63) *
		    V_SPEED_MAX;
		uint128_t now = then, back;
		uint64_t level = rng_magnitude(&rng, 55);
		struct vinstant in = { 0 };
		uint32_t era;
		int64_t since;

		switch (rng_below(&rng, 4)) {
		case 0: /* late by up to 100 ms */
			back = rng_magnitude(&rng, 49);
			now -= back < now ? back : now;
			break;
		case 1: /* late by anything */
			now = (uint128_t)rng_magnitude(&rng, 63) *
			    V_SPEED_MAX;
			break;
		default:
			now += (uint128_t)rng_magnitude(&rng, 58) <<
			    rng_below(&rng, 25);
			break;
		}
		era = (uint32_t)(then >> V_ERA_SHIFT);
		in.v = (uint64_t)now;
		in.era = (uint32_t)(now >> V_ERA_SHIFT);
		since = v_since(&in, (uint64_t)(then - level) & V_MASK, era);
		if (since == V_FAR)
			expect(now > then && now - then > V_FULL_MAX);
		else if (since == -V_FAR)
			expect(then > now && then - now > V_FULL_MAX);
		else
			expect(since == (int64_t)(now - then) +
			    (int64_t)level);
	}
}
END_TEST

/* A late taker leaves an S older than its era says, by up to one. */
START_TEST(s_with_an_era_ahead)
{
	struct rng rng;

	rng_init(&rng, test_seed("s_with_an_era_ahead"));
	for (int n = 0; n < 1000000; n++) {
		uint128_t boundary = (uint128_t)
		    (1 + rng_magnitude(&rng, 30)) << V_ERA_SHIFT;
		/* taken up to 100 ms before the boundary, by a late clock */
		uint128_t then = boundary - 1 - rng_magnitude(&rng, 49);
		uint128_t now = boundary +
		    rng_below(&rng, 2 * V_ERA_UNITS);
		uint64_t level = rng_magnitude(&rng, 55);
		struct vinstant in = {
			.v = (uint64_t)now,
			.era = (uint32_t)(now >> V_ERA_SHIFT),
		};

		expect(v_since(&in, (uint64_t)(then - level) & V_MASK,
		    (uint32_t)(boundary >> V_ERA_SHIFT)) ==
		    (int64_t)(now - then) + (int64_t)level);
	}
}
END_TEST

/* From both sides: the wait suffices, and 1 ns less does not. */
START_TEST(waits)
{
	struct rng rng;

	rng_init(&rng, test_seed("waits"));
	for (size_t i = 0; i < NELEM(rows); i++) {
		struct rate rate = rate_of(i);

		for (int n = 0; n < 20000; n++) {
			uint64_t now_ns = rng_magnitude(&rng, 63);
			struct vinstant in = rate_at(&rate, now_ns);
			uint64_t cost = 1 + rng_below(&rng, rate.capacity);
			struct purse purse = purse_full(&in);
			uint64_t spent = rng_below(&rng, rate.full + 1);
			uint64_t s, wait;

			purse.base += spent;
			purse.left -= (int64_t)spent;
			s = purse.base & V_MASK;
			if (purse_spend(&purse, &rate, cost))
				continue;
			wait = purse_wait_ns(&purse, &rate, &in, cost);
			if (wait == UINT64_MAX - 1) {
				in = rate_at(&rate, UINT64_MAX);
				now_ns = 0;
			} else {
				expect(wait > 0 && wait < UINT64_MAX);
				now_ns += wait - 1;
				in = rate_at(&rate, now_ns);
			}
			purse = purse_open(&in, s,
			    v_since(&in, s, in.era));
			expect(!purse_spend(&purse, &rate, cost));
			if (now_ns == 0)
				continue;
			in = rate_at(&rate, now_ns + 1);
			purse = purse_open(&in, s,
			    v_since(&in, s, in.era));
			expect(purse_spend(&purse, &rate, cost));
		}
	}
}
END_TEST

START_TEST(spending)
{
	struct rate rate = rate_of(2);
	struct vinstant in = rate_at(&rate, 5 * S);
	struct purse purse = purse_full(&in), before;

	ck_assert_uint_eq(purse_tokens(&purse, &rate), 10);
	ck_assert(purse_spend(&purse, &rate, 4));
	ck_assert_uint_eq(purse_tokens(&purse, &rate), 6);
	before = purse;
	ck_assert(!purse_spend(&purse, &rate, 7));
	ck_assert(!purse_spend(&purse, &rate, 11));
	ck_assert(!purse_spend(&purse, &rate, UINT64_MAX));
	ck_assert(!purse_spend(&purse, &rate, 1ull << 58));
	ck_assert(purse_spend(&purse, &rate, 0));
	ck_assert_mem_eq(&purse, &before, sizeof(purse));
	ck_assert(purse_spend(&purse, &rate, 6));
	ck_assert(!purse_spend(&purse, &rate, 1));
	/* in debt, seen by a late clock */
	purse.left = -1;
	ck_assert_uint_eq(purse_tokens(&purse, &rate), 0);
	ck_assert(purse_spend(&purse, &rate, 0));
	ck_assert(!purse_spend(&purse, &rate, 1));
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("vclock");
	TCase *tc = tcase_create("arithmetic");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, units);
	tcase_add_test(tc, faults);
	tcase_add_test(tc, v_is_the_product);
	tcase_add_test(tc, s_reads_back);
	tcase_add_test(tc, s_with_an_era_ahead);
	tcase_add_test(tc, waits);
	tcase_add_test(tc, spending);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
