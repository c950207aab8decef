/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Times that stand still, go backward, wrap or lie far apart. The clock is
 * injected; ids like B027 name the known fault a case would show.
 */
#include "rows.h"

#define S NSEC_PER_SEC

/* B027: a late stamp must not become a huge unsigned difference. */
START_TEST(late_stamp_is_no_refill)
{
	ROWS_PLAY("B027", ((struct row_limit){ 1000, S, 100 }),
	    { 1000000000, 100, A, 0, LEFT(0) },
	    /* from the caller's now: 1,001,000,000 - 999,990,000 */
	    { 999990000, 1, D, 1010000, LEFT(0) },
	    { 1000999999, 1, D, 1 },
	    { 1001000000, 1, A, 0, LEFT(0) });
}
END_TEST

/* B028: writing an older stamp back gives the same interval twice. */
START_TEST(state_is_never_rewound)
{
	struct weir_engine_params params = rig_params(64, 1);
	struct weir_decision d;
	uint32_t limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 100, S, 10, WEIR_UNIT_PACKETS);
	ck_assert_int_eq(ask(&rig, limit, "k", 10, 10 * S).verdict, WEIR_PASS);
	for (int i = 0; i < 1000; i++) {
		d = ask(&rig, limit, "k", 1, 9 * S);
		ck_assert_int_eq(d.verdict, WEIR_DENY);
		ck_assert_uint_eq(d.retry_after_ns, 1010000000);
		d = ask(&rig, limit, "k", 1, 10 * S);
		ck_assert_int_eq(d.verdict, WEIR_DENY);
		ck_assert_uint_eq(d.retry_after_ns, 10000000);
	}
	d = ask(&rig, limit, "k", 1, 10 * S + 10000000);
	ck_assert_int_eq(d.verdict, WEIR_PASS);
	rig_close(&rig);
}
END_TEST

/*
 * B029, with a difference: a worker whose clock is late sees the level of its
 * own time, which is lower by rate x lateness. Nothing is lost by that: what
 * it was refused is still there for whoever comes with the time caught up.
 */
START_TEST(late_worker_sees_its_own_time)
{
	ROWS_PLAY("B029", ((struct row_limit){ 1000, S, 200 }),
	    { 1100000000, 100, A, 0, LEFT(100) },
	    /* 0.1 s x 1000 lower */
	    { 1000000000, 1, D, 1000000, LEFT(0) },
	    { 1040000000, 40, A, 0, LEFT(0) },
	    { 1000000000, 1, D, 41000000, LEFT(0) },
	    { 1000000000, 0, A, 0, LEFT(0) },
	    /* 100 - 40: neither credit nor extra debit */
	    { 1100000000, 61, D, 1000000, LEFT(60) },
	    { 1100000000, 60, A, 0, LEFT(0) },
	    { 1000000000, 1, D, 101000000, LEFT(0) });
}
END_TEST

/* A bucket that was full is capped at the late time, too. */
START_TEST(late_and_long_full)
{
	ROWS_PLAY("late, full", ((struct row_limit){ 1, S, 5 }),
	    { 0, 5, A, 0, LEFT(0) },
	    { 100 * S, 6, D, WEIR_NEVER, LEFT(5) },
	    /* a denial leaves no mark: at 50 s it was as full */
	    { 50 * S, 0, A, 0, LEFT(5) },
	    { 50 * S, 5, A, 0, LEFT(0) },
	    { 49 * S, 1, D, 2 * S, LEFT(0) },
	    { 51 * S, 1, A, 0, LEFT(0) },
	    { 100 * S, 5, A, 0, LEFT(0) },
	    { 0, 1, D, 101 * S, LEFT(0) });
}
END_TEST

/*
 * From the end of the clock to its start: as late as one can be. The wait is
 * exact, or, for a clock that is late by decades, named as one past the end.
 */
START_TEST(late_by_the_whole_clock)
{
	struct weir_engine_params params = rig_params(64, 1);
	struct weir_decision d;
	uint32_t limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 5, WEIR_UNIT_PACKETS);
	ck_assert_int_eq(ask(&rig, limit, "k", 5, UINT64_MAX - 9 * S).verdict,
	    WEIR_PASS);
	for (unsigned k = 0; k < 64; k++) {
		d = ask(&rig, limit, "k", 1, (1ull << k) - 1);
		ck_assert_int_eq(d.verdict, WEIR_DENY);
		ck_assert_uint_eq(d.remaining, 0);
		if (d.retry_after_ns != WEIR_NEVER - 1)
			ck_assert_uint_eq(d.retry_after_ns,
			    UINT64_MAX - 8 * S - ((1ull << k) - 1));
	}
	/* a year late is not yet decades */
	d = ask(&rig, limit, "k", 1, UINT64_MAX - NSEC_PER_YEAR);
	ck_assert_uint_eq(d.retry_after_ns, NSEC_PER_YEAR - 8 * S);
	ck_assert_int_eq(ask(&rig, limit, "k", 1, UINT64_MAX - 8 * S).verdict,
	    WEIR_PASS);
	rig_close(&rig);
}
END_TEST

/* B032, second half: a bucket whose refill straddles a wrap. */
START_TEST(refill_across_a_wrap)
{
	const unsigned bits[] = { 31, 32, 48, 52, 56, 57, 58, 60, 62, 63 };
	struct weir_engine_params params = rig_params(64, 1);
	uint32_t limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 1, WEIR_UNIT_PACKETS);
	for (uint8_t i = 0; i <= NELEM(bits); i++) {
		uint64_t wrap_ns = i < NELEM(bits) ? 1ull << bits[i] :
		    (1ull << 32) * NSEC_PER_MS;
		struct weir_decision d;

		d = ask(&rig, limit, &i, 1, wrap_ns - 500000000);
		ck_assert_int_eq(d.verdict, WEIR_PASS);
		d = ask(&rig, limit, &i, 1, wrap_ns + 400000000);
		ck_assert_int_eq(d.verdict, WEIR_DENY);
		ck_assert_uint_eq(d.retry_after_ns, 100000000);
		d = ask(&rig, limit, &i, 1, wrap_ns + 500000000);
		ck_assert_int_eq(d.verdict, WEIR_PASS);
	}
	rig_close(&rig);
}
END_TEST

/* B032, first half: old entries make room on both sides of a wrap. */
START_TEST(expiry_across_a_wrap)
{
	const uint64_t wraps_ns[] = { 1ull << 31, 1ull << 32,
		(1ull << 32) * NSEC_PER_MS, 1ull << 56, 1ull << 58,
		1ull << 63 };
	struct weir_engine_params params = rig_params(1000, 4);

	for (size_t w = 0; w < NELEM(wraps_ns); w++) {
		uint64_t start_ns = wraps_ns[w] > 20 * S ?
		    wraps_ns[w] - 20 * S : 0;
		struct weir_counters counters;
		uint32_t key = 0, limit;
		struct rig rig;

		rig_open(&rig, &params);
		limit = limit_add(rig.engine, "l", 1, S, 10,
		    WEIR_UNIT_PACKETS);
		/* Each entry is full again after 1 s. */
		for (uint64_t s = 0; s < 40; s += 2)
			for (int i = 0; i < 1000; i++, key++)
				ask(&rig, limit, &key, 1, start_ns + s * S);
		weir_engine_counters(rig.engine, limit, &counters);
		ck_assert_uint_eq(counters.passed_packets, 20000);
		ck_assert_uint_eq(counters.full_denied_packets, 0);
		rig_close(&rig);
	}
}
END_TEST

/* B036: two processors take turns, one 1.6 s behind the other. */
START_TEST(two_clocks_apart)
{
	struct weir_engine_params params = rig_params(64, 1);
	unsigned passed = 0;
	uint32_t limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1000, S, 100, WEIR_UNIT_PACKETS);
	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t now_ns = 3200000000 + i * 100000;

		if (i % 2 == 1)
			now_ns -= 1600000000;
		passed += ask(&rig, limit, "k", 1, now_ns).verdict;
	}
	/* 100 + 1000/s x 9.9998 s, the last even call */
	ck_assert_uint_ge(passed, 10098);
	ck_assert_uint_le(passed, 10099);
	rig_close(&rig);
}
END_TEST

/* B038: time idle before the first question counts. */
START_TEST(idle_before_the_first_question)
{
	ROWS_PLAY("B038", ((struct row_limit){ 10, S, 20 }),
	    { 0, 20, A, 0, LEFT(0) },
	    { 30 * S, 20, A, 0, LEFT(0) },
	    { 30 * S, 1, D, 100000000 });
}
END_TEST

/* Any two runs over the same times give the same answers. */
START_TEST(answers_depend_on_time_alone)
{
	struct weir_engine_params params = rig_params(64, 1);
	uint64_t seed = test_seed("answers_depend_on_time_alone");
	struct rig rigs[2];
	uint32_t limits[2];
	struct rng rng;
	uint64_t now_ns = 0;

	rng_init(&rng, seed);
	for (int i = 0; i < 2; i++) {
		rig_open(&rigs[i], &params);
		limits[i] = limit_add(rigs[i].engine, "l", 7, 1000, 30,
		    WEIR_UNIT_PACKETS);
	}
	for (int n = 0; n < 20000; n++) {
		uint8_t key = (uint8_t)rng_below(&rng, 8);
		uint64_t cost = rng_below(&rng, 12);
		struct weir_decision d[2];

		now_ns += rng_magnitude(&rng, 12);
		for (int i = 0; i < 2; i++)
			d[i] = ask(&rigs[i], limits[i], &key, cost, now_ns);
		expect(d[0].verdict == d[1].verdict);
		expect(d[0].remaining == d[1].remaining);
		expect(d[0].retry_after_ns == d[1].retry_after_ns);
	}
	for (int i = 0; i < 2; i++)
		rig_close(&rigs[i]);
}
END_TEST

/* The longest waits, and those that end after the clock does. */
START_TEST(waits_at_the_end_of_time)
{
	struct weir_engine_params params = rig_params(64, 1);
	struct weir_decision d;
	uint32_t limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 5, WEIR_UNIT_PACKETS);
	/* to the last instant of the clock */
	ck_assert_int_eq(ask(&rig, limit, "a", 5, UINT64_MAX - S).verdict,
	    WEIR_PASS);
	d = ask(&rig, limit, "a", 1, UINT64_MAX - S);
	ck_assert_uint_eq(d.retry_after_ns, S);
	d = ask(&rig, limit, "a", 1, UINT64_MAX - 1);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_uint_eq(d.retry_after_ns, 1);
	ck_assert_int_eq(ask(&rig, limit, "a", 1, UINT64_MAX).verdict,
	    WEIR_PASS);
	/* one past it */
	ck_assert_int_eq(ask(&rig, limit, "b", 5, UINT64_MAX - S + 1).verdict,
	    WEIR_PASS);
	d = ask(&rig, limit, "b", 1, UINT64_MAX - S + 1);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_uint_eq(d.retry_after_ns, WEIR_NEVER - 1);
	d = ask(&rig, limit, "b", 6, UINT64_MAX);
	ck_assert_uint_eq(d.retry_after_ns, WEIR_NEVER);
	rig_close(&rig);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("clock");
	TCase *late = tcase_create("late");
	TCase *wide = tcase_create("wide");

	tcase_set_timeout(late, 60);
	tcase_add_test(late, late_stamp_is_no_refill);
	tcase_add_test(late, state_is_never_rewound);
	tcase_add_test(late, late_worker_sees_its_own_time);
	tcase_add_test(late, late_and_long_full);
	tcase_add_test(late, late_by_the_whole_clock);
	tcase_add_test(late, two_clocks_apart);
	suite_add_tcase(s, late);

	tcase_set_timeout(wide, 60);
	tcase_add_test(wide, refill_across_a_wrap);
	tcase_add_test(wide, expiry_across_a_wrap);
	tcase_add_test(wide, idle_before_the_first_question);
	tcase_add_test(wide, answers_depend_on_time_alone);
	tcase_add_test(wide, waits_at_the_end_of_time);
	suite_add_tcase(s, wide);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
