/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of a token bucket, row by row. Ids like B013 name the known
 * fault a row would show: overflows, lost fractions, truncated rates.
 */
#include "rows.h"

#define S NSEC_PER_SEC

/* B001: a rate in bits that does not fit 32 of them. */
START_TEST(rate_above_32_bits)
{
	ROWS_PLAY("B001", ((struct row_limit){ 536871000, S, 1000000 }),
	    { 0, 1000000, A },
	    /* 1 ms x 536,871,000/s = 536,871 exactly */
	    { 1000000, 536871, A, 0, LEFT(0) },
	    /* 1 / 0.536871 = 1.86 ns */
	    { 1000000, 1, D, 2 });
}
END_TEST

/* B002: bit rates around 2^32 bit/s, as bits per 8 s. */
START_TEST(rate_around_2_to_32_bits)
{
	ROWS_PLAY("B002 below",
	    ((struct row_limit){ 4294967295, 8 * S, 1250000 }),
	    { 0, 1250000, A },
	    /* 1 ms: 536,870.911875 */
	    { 1000000, 536870, A, 0, LEFT(0) },
	    /* 0.088125 missing, 0.54 a ns */
	    { 1000000, 1, D, 1 });
	ROWS_PLAY("B002 at", ((struct row_limit){ 4294967296, 8 * S, 1250000 }),
	    { 0, 1250000, A },
	    /* 1 ms: 536,870.912 */
	    { 1000000, 536870, A, 0, LEFT(0) },
	    { 1000000, 1, D, 1 });
	ROWS_PLAY("B002 above",
	    ((struct row_limit){ 10000000000, 8 * S, 1250000 }),
	    { 0, 1250000, A },
	    /* 1 ms: 1,250,000 exactly */
	    { 1000000, 1250000, A, 0, LEFT(0) },
	    { 1000000, 1, D, 1 });
}
END_TEST

/* B004: 30 days at 50 GB/s are 1.3e17 tokens, and times 1e9 far more. */
START_TEST(idle_month_at_50_gigabytes)
{
	ROWS_PLAY("B004",
	    ((struct row_limit){ 50000000000, S, 12500000000 }),
	    { 0, 12500000000, A, 0, LEFT(0) },
	    { 2592000 * S, 12500000000, A, 0, LEFT(0) },
	    { 2592000 * S, 1, D, 1 });
}
END_TEST

START_TEST(idle_decades)
{
	/* Full is full, whatever ran over meanwhile. */
	ROWS_PLAY("10 years", ((struct row_limit){ 1000, S, 10 }),
	    { 0, 10, A, 0, LEFT(0) },
	    { 10 * NSEC_PER_YEAR, 0, A, 0, LEFT(10) },
	    { 10 * NSEC_PER_YEAR, 10, A, 0, LEFT(0) },
	    { 10 * NSEC_PER_YEAR, 1, D, 1000000 });
	ROWS_PLAY("290 years at 200 per ns",
	    ((struct row_limit){ 200, 1, 1ull << 40 }),
	    { 0, 1ull << 40, A, 0, LEFT(0) },
	    { 290 * NSEC_PER_YEAR, 0, A, 0, LEFT(1ull << 40) },
	    { 290 * NSEC_PER_YEAR, 1ull << 40, A, 0, LEFT(0) },
	    { 290 * NSEC_PER_YEAR, 201, D, 2 });
	ROWS_PLAY("580 years", ((struct row_limit){ 1, 1, 1 }),
	    { 0, 1, A, 0, LEFT(0) },
	    { 290 * NSEC_PER_YEAR, 1, A, 0, LEFT(0) },
	    { 290 * NSEC_PER_YEAR, 1, D, 1 },
	    { 580 * NSEC_PER_YEAR, 1, A, 0, LEFT(0) },
	    { 580 * NSEC_PER_YEAR, 1, D, 1 });
}
END_TEST

/*
 * Idle times around every power of two: a state that is told old from new
 * by a few bits must not be taken for new after just so many turns.
 */
START_TEST(idle_powers_of_two)
{
	for (unsigned k = 4; k < 64; k++) {
		uint64_t idle_ns = 1ull << k;

		/* Takes 16 ns to fill. */
		ROWS_PLAY("idle 2^k", ((struct row_limit){ 1, 1, 16 }),
		    { 0, 16, A, 0, LEFT(0) },
		    { idle_ns, 0, A, 0, LEFT(16) },
		    { idle_ns, 16, A, 0, LEFT(0) },
		    { idle_ns, 5, D, 5 },
		    { idle_ns + 5, 5, A, 0, LEFT(0) },
		    { idle_ns + 5, 1, D, 1 });
		ROWS_PLAY("idle 2^k - 16", ((struct row_limit){ 1, 1, 16 }),
		    { 0, 16, A, 0, LEFT(0) },
		    { idle_ns + (idle_ns - 16), 16, A, 0, LEFT(0) },
		    { idle_ns + (idle_ns - 16), 1, D, 1 });
	}
}
END_TEST

/* B005: calls every 30 us, each worth 0.03 tokens. */
START_TEST(no_fraction_lost_at_1_per_ms)
{
	struct weir_engine_params params = rig_params(64, 1);
	uint64_t first_ns = 0;
	unsigned passed = 0;
	uint32_t limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1000, S, 10, WEIR_UNIT_PACKETS);
	ck_assert_int_eq(ask(&rig, limit, "k", 10, 0).verdict, WEIR_PASS);
	for (uint64_t k = 0; k <= 33333; k++)
		if (ask(&rig, limit, "k", 1, 30000 * k).verdict == WEIR_PASS &&
		    passed++ == 0)
			first_ns = 30000 * k;
	/* 0.99990 s x 1000 = 999.99; first: 34 x 0.03 = 1.02 */
	ck_assert_uint_eq(passed, 999);
	ck_assert_uint_eq(first_ns, 1020000);
	rig_close(&rig);
}
END_TEST

/* B006: 10 s of a 10 Gbit/s line held to 200 Mbit/s. */
START_TEST(line_rate_is_neither_half_nor_double)
{
	struct weir_engine_params params = rig_params(64, 1);
	unsigned passed = 0;
	uint32_t limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 25000000, S, 25000000,
	    WEIR_UNIT_BYTES);
	for (uint64_t k = 0; k <= 8333333; k++) {
		struct weir_request r = {
			.key = "k", .packets = 1, .bytes = 1500, .limit = limit,
		};

		passed += weir_check(rig.worker, &r, 1200 * k, NULL);
	}
	/* 25,000,000 + 25,000,000/s x 9.9999996 s = 274,999,990 bytes, and
	 * / 1500 = 183,333.3 */
	ck_assert_uint_eq(passed, 183333);
	rig_close(&rig);
}
END_TEST

/* B007: a hundredth of a token per poll must add up. */
START_TEST(low_rate_polled_often)
{
	struct weir_engine_params params = rig_params(64, 1);
	unsigned passed = 0;
	uint32_t limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 10, S, 1, WEIR_UNIT_PACKETS);
	ck_assert_int_eq(ask(&rig, limit, "k", 1, 0).verdict, WEIR_PASS);
	for (uint64_t k = 0; k <= 10000; k++) {
		enum weir_verdict want = k > 0 && k % 100 == 0;

		expect(ask(&rig, limit, "k", 1, 1000000 * k).verdict == want);
		passed += want;
	}
	ck_assert_uint_eq(passed, 100);
	rig_close(&rig);
}
END_TEST

/* B009: the partial interval is kept. */
START_TEST(partial_interval_is_kept)
{
	ROWS_PLAY("B009", ((struct row_limit){ 1, 10 * S, 5 }),
	    { 0, 1, A, 0, LEFT(4) },
	    { 0, 1, A, 0, LEFT(3) },
	    { 0, 1, A, 0, LEFT(2) },
	    { 0, 1, A, 0, LEFT(1) },
	    { 0, 1, A, 0, LEFT(0) },
	    { 25 * S, 1, A, 0, LEFT(1) }, /* 2.5 - 1 */
	    { 25 * S, 1, A, 0, LEFT(0) },
	    { 25 * S, 1, D, 5 * S, LEFT(0) },  /* 0.5 */
	    { 29 * S, 1, D, 1 * S, LEFT(0) },  /* 0.9 */
	    { 30 * S, 1, A, 0, LEFT(0) });     /* 1.0 */
}
END_TEST

/* B011: what binary fractions never quite reach. */
START_TEST(one_per_hour_is_due_on_the_dot)
{
	ROWS_PLAY("B011", ((struct row_limit){ 1, 3600 * S, 1 }),
	    { 0, 1, A },
	    { 0, 1, D, 3600 * S },
	    { 3600 * S - 1, 1, D, 1 },
	    { 3600 * S, 1, A },
	    { 3600 * S, 1, D, 3600 * S });
}
END_TEST

START_TEST(one_per_year)
{
	ROWS_PLAY("one per year", ((struct row_limit){ 1, NSEC_PER_YEAR, 1 }),
	    { 0, 1, A },
	    { 0, 1, D, NSEC_PER_YEAR },
	    { NSEC_PER_YEAR - 1, 1, D, 1 },
	    { NSEC_PER_YEAR, 1, A },
	    { NSEC_PER_YEAR, 1, D, NSEC_PER_YEAR });
}
END_TEST

/* B012: a new key is full whatever the clock shows. */
START_TEST(fresh_key_is_full_at_any_time)
{
	struct weir_engine_params params = rig_params(1024, 1);
	uint32_t limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 3, S, 1, WEIR_UNIT_PACKETS);
	for (unsigned k = 0; k <= 64; k++) {
		uint64_t now_ns = k < 64 ? (1ull << k) - 1 : UINT64_MAX;
		uint8_t key = (uint8_t)k;
		struct weir_decision d;

		d = ask(&rig, limit, &key, 1, now_ns);
		ck_assert_int_eq(d.verdict, WEIR_PASS);
		d = ask(&rig, limit, &key, 1, now_ns);
		ck_assert_int_eq(d.verdict, WEIR_DENY);
		/* 1e9 / 3, rounded up; the clock of k = 64 ends before */
		ck_assert_uint_eq(d.retry_after_ns,
		    k < 64 ? 333333334 : WEIR_NEVER - 1);
	}
	rig_close(&rig);
}
END_TEST

/* B013: more than a token per nanosecond. */
START_TEST(faster_than_the_clock)
{
	ROWS_PLAY("B013 a", ((struct row_limit){ 1000000001, S, 1000 }),
	    { 0, 1000, A },
	    { 999, 1000, D, 1 },
	    { 1000, 1000, A });
	ROWS_PLAY("B013 b", ((struct row_limit){ 3000000000, S, 1000 }),
	    { 0, 1000, A },
	    { 1, 4, D, 1, LEFT(3) },
	    { 1, 3, A, 0, LEFT(0) },
	    { 1, 1, D, 1 });
	ROWS_PLAY("200 a ns", ((struct row_limit){ 200, 1, 1000000 }),
	    { 0, 1000000, A },
	    { 1, 201, D, 1, LEFT(200) },
	    { 1, 401, D, 2, LEFT(200) },
	    { 1, 200, A, 0, LEFT(0) },
	    { 1, 1, D, 1 },
	    /* 5000 ns to full */
	    { 5000, 1000000, D, 1, LEFT(999800) },
	    { 5001, 1000000, A, 0, LEFT(0) });
	/* 1.6 Tbit/s in bytes: 1600 every 8 ns */
	ROWS_PLAY("1.6 Tbit/s", ((struct row_limit){ 1600, 8, 9000 }),
	    { 0, 9000, A },
	    { 44, 9000, D, 1, LEFT(8800) },
	    { 45, 9000, A });
	ROWS_PLAY("2^23 a ns", ((struct row_limit){ 1 << 23, 1, 1ull << 55 }),
	    { 0, 1ull << 55, A, 0, LEFT(0) },
	    { 1, (1 << 23) + 1, D, 1 },
	    { 1, 1 << 23, A, 0, LEFT(0) },
	    { 1, 1, D, 1 },
	    /* full 2^32 ns later */
	    { (1ull << 32), 1ull << 55, D, 1 },
	    { (1ull << 32) + 1, 1ull << 55, A, 0, LEFT(0) });
}
END_TEST

/* 148,809,523 packets/s: whole nanoseconds per token are 12% off. */
START_TEST(small_packets_at_100_gigabit)
{
	struct weir_engine_params params = rig_params(64, 1);
	uint64_t passed = 0;
	uint32_t limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 148809523, S, 64,
	    WEIR_UNIT_PACKETS);
	ck_assert_int_eq(ask(&rig, limit, "k", 64, 0).verdict, WEIR_PASS);
	/* 10 ms in steps of 100 ns, 14.88 tokens each */
	for (uint64_t now_ns = 100; now_ns <= 10000000; now_ns += 100)
		while (ask(&rig, limit, "k", 1, now_ns).verdict == WEIR_PASS)
			passed++;
	ck_assert_uint_eq(passed, 1488095); /* 1,488,095.23 */
	rig_close(&rig);
}
END_TEST

/*
 * B015: full only after 274 years. A token may be early here, by the 314 ns
 * that a unit of such a bucket lasts; it must not be late, and the state must
 * not be lost.
 */
START_TEST(one_a_day_of_a_hundred_thousand)
{
	const uint64_t early_ns = 315;

	ROWS_PLAY("B015", ((struct row_limit){ 1, NSEC_PER_DAY, 100000 }),
	    { 0, 100000, A, 0, LEFT(0) },
	    { NSEC_PER_DAY - early_ns, 1, D, early_ns },
	    { NSEC_PER_DAY, 1, A, 0, LEFT(0) },
	    { NSEC_PER_DAY, 1, D, NSEC_PER_DAY },
	    { 2 * NSEC_PER_DAY - early_ns, 1, D, early_ns },
	    { 2 * NSEC_PER_DAY, 1, A, 0, LEFT(0) },
	    /* 73,000 days on, two were taken: 72,998 */
	    { 200 * NSEC_PER_YEAR, 73000, D, 2 * NSEC_PER_DAY, LEFT(72998) });
}
END_TEST

/* B016: between 2^31 and 2^32. */
START_TEST(capacity_near_2_to_32)
{
	ROWS_PLAY("B016",
	    ((struct row_limit){ 3000000000, S, 3000000000 }),
	    { 0, 1, A, 0, LEFT(2999999999) },
	    { 999000000, 3000000000, A, 0, LEFT(0) },
	    { 999000000, 1, D, 1 });
	ROWS_PLAY("2^32", ((struct row_limit){ 1, 1, 1ull << 32 }),
	    { 0, 1ull << 32, A, 0, LEFT(0) },
	    { 0, 1, D, 1 },
	    { 0, 1ull << 32, D, 1ull << 32 },
	    { (1ull << 32) - 1, 1ull << 32, D, 1, LEFT((1ull << 32) - 1) },
	    { 1ull << 32, 1ull << 32, A, 0, LEFT(0) });
}
END_TEST

START_TEST(capacity_2_to_55)
{
	ROWS_PLAY("2^55", ((struct row_limit){ 1, 1, 1ull << 55 }),
	    { 0, (1ull << 55) + 1, D, WEIR_NEVER, LEFT(1ull << 55) },
	    { 0, 1ull << 55, A, 0, LEFT(0) },
	    { 0, 1, D, 1 },
	    { 0, 1ull << 55, D, 1ull << 55 },
	    { (1ull << 55) - 1, 1ull << 55, D, 1, LEFT((1ull << 55) - 1) },
	    { 1ull << 55, 1ull << 55, A, 0, LEFT(0) });
}
END_TEST

/* B019: a tenth of a second gives a tenth. */
START_TEST(tenth_of_a_second)
{
	ROWS_PLAY("B019", ((struct row_limit){ 125000, S, 125000 }),
	    { 0, 125000, A },
	    { 100000000, 12500, A, 0, LEFT(0) },
	    { 100000000, 1, D, 8000 });
}
END_TEST

/* B020: the cap comes after the leak. */
START_TEST(never_above_capacity)
{
	ROWS_PLAY("B020", ((struct row_limit){ 10, S, 10 }),
	    { 0, 4, A, 0, LEFT(6) },
	    { 100 * S, 0, A, 0, LEFT(10) },
	    { 100 * S, 1, A, 0, LEFT(9) },
	    { 100 * S, 1, A, 0, LEFT(8) },
	    { 100 * S, 1, A, 0, LEFT(7) },
	    { 100 * S, 1, A, 0, LEFT(6) },
	    { 100 * S, 1, A, 0, LEFT(5) },
	    { 100 * S, 1, A, 0, LEFT(4) },
	    { 100 * S, 1, A, 0, LEFT(3) },
	    { 100 * S, 1, A, 0, LEFT(2) },
	    { 100 * S, 1, A, 0, LEFT(1) },
	    { 100 * S, 1, A, 0, LEFT(0) },
	    { 100 * S, 1, D, 100000000, LEFT(0) });
}
END_TEST

/* Costs that wrap when multiplied, added or compared with a sign. */
START_TEST(huge_costs)
{
	ROWS_PLAY("huge", ((struct row_limit){ 1000, S, 10 }),
	    { 0, 11, D, WEIR_NEVER, LEFT(10) },
	    { 0, UINT64_MAX, D, WEIR_NEVER, LEFT(10) },
	    { 0, 1ull << 63, D, WEIR_NEVER, LEFT(10) },
	    { 0, 1ull << 63, D, WEIR_NEVER, LEFT(10) },
	    /* x 10^6 units per token = 0 in 64 bits */
	    { 0, 1ull << 58, D, WEIR_NEVER, LEFT(10) },
	    { 0, (1ull << 58) + 3, D, WEIR_NEVER, LEFT(10) },
	    /* x 10^9 = 0 in 64 bits */
	    { 0, 1ull << 55, D, WEIR_NEVER, LEFT(10) },
	    { 0, 3, A, 0, LEFT(7) },
	    { 0, UINT64_MAX - 2, D, WEIR_NEVER, LEFT(7) },
	    { 0, 7, A, 0, LEFT(0) },
	    { 0, UINT64_MAX, D, WEIR_NEVER, LEFT(0) },
	    { 0, 11, D, WEIR_NEVER, LEFT(0) },
	    { 0, 10, D, 10000000, LEFT(0) },
	    { 10000000, 10, A, 0, LEFT(0) });
}
END_TEST

/* 33 costs below the capacity of 2^55 whose sum is above 2^60. */
START_TEST(sums_in_a_burst)
{
	const uint64_t half = 1ull << 54;

	ROWS_PLAY("sums", ((struct row_limit){ 1, 1, 1ull << 55 }),
	    { 0, half, A, 0, LEFT(half) },
	    { 0, half + 1, D, 1, LEFT(half) },
	    { 0, half, A, 0, LEFT(0) },
	    { 0, half, D, half }, { 0, half, D, half }, { 0, half, D, half },
	    { 0, half, D, half }, { 0, half, D, half }, { 0, half, D, half },
	    { 0, half, D, half }, { 0, half, D, half }, { 0, half, D, half },
	    { 0, half, D, half }, { 0, half, D, half }, { 0, half, D, half },
	    { 0, half, D, half }, { 0, half, D, half }, { 0, half, D, half },
	    { 0, half, D, half }, { 0, half, D, half }, { 0, half, D, half },
	    { 0, 1ull << 55, D, 1ull << 55 },
	    { 0, 1ull << 55, D, 1ull << 55 },
	    { 0, 1ull << 55, D, 1ull << 55 },
	    { 0, 1ull << 55, D, 1ull << 55 },
	    { 0, 0, A, 0, LEFT(0) },
	    { half, half, A, 0, LEFT(0) });
	/* The sum of the first three is 1 in 64 bits. */
	ROWS_PLAY("sum wraps", ((struct row_limit){ 1, S, 5 }),
	    { 0, UINT64_MAX, D, WEIR_NEVER },
	    { 0, 1, A, 0, LEFT(4) },
	    { 0, 1, A, 0, LEFT(3) },
	    { 0, UINT64_MAX, D, WEIR_NEVER },
	    { 0, 3, A, 0, LEFT(0) },
	    { 0, UINT64_MAX, D, WEIR_NEVER, LEFT(0) },
	    { 0, 1, D, S });
}
END_TEST

START_TEST(zero_cost)
{
	ROWS_PLAY("zero", ((struct row_limit){ 1, S, 2 }),
	    { 0, 0, A, 0, LEFT(2) },
	    { 0, 2, A, 0, LEFT(0) },
	    { 0, 0, A, 0, LEFT(0) },
	    { 0, 1, D, S },
	    { 0, 0, A, 0, LEFT(0) },
	    { S, 0, A, 0, LEFT(1) },
	    { S, 1, A, 0, LEFT(0) },
	    { S, 0, A, 0, LEFT(0) });
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("arithmetic");
	TCase *rates = tcase_create("rates");
	TCase *edges = tcase_create("edges");

	tcase_set_timeout(rates, 60);
	tcase_add_test(rates, rate_above_32_bits);
	tcase_add_test(rates, rate_around_2_to_32_bits);
	tcase_add_test(rates, no_fraction_lost_at_1_per_ms);
	tcase_add_test(rates, line_rate_is_neither_half_nor_double);
	tcase_add_test(rates, low_rate_polled_often);
	tcase_add_test(rates, partial_interval_is_kept);
	tcase_add_test(rates, one_per_hour_is_due_on_the_dot);
	tcase_add_test(rates, one_per_year);
	tcase_add_test(rates, faster_than_the_clock);
	tcase_add_test(rates, small_packets_at_100_gigabit);
	tcase_add_test(rates, one_a_day_of_a_hundred_thousand);
	tcase_add_test(rates, tenth_of_a_second);
	suite_add_tcase(s, rates);

	tcase_set_timeout(edges, 60);
	tcase_add_test(edges, idle_month_at_50_gigabytes);
	tcase_add_test(edges, idle_decades);
	tcase_add_test(edges, idle_powers_of_two);
	tcase_add_test(edges, fresh_key_is_full_at_any_time);
	tcase_add_test(edges, capacity_near_2_to_32);
	tcase_add_test(edges, capacity_2_to_55);
	tcase_add_test(edges, never_above_capacity);
	tcase_add_test(edges, huge_costs);
	tcase_add_test(edges, sums_in_a_burst);
	tcase_add_test(edges, zero_cost);
	suite_add_tcase(s, edges);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
