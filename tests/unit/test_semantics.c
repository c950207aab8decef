/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a limit means to its users: how much passes in a while, what is
 * refused for ever, what a wait is worth. Ids like B112 name the known fault
 * a case would show.
 */
#include <string.h>

#include "rows.h"

#define S NSEC_PER_SEC

static struct rig rig;
static uint32_t limit;

static void
open_limit(uint64_t tokens, uint64_t period_ns, uint64_t capacity,
    enum weir_unit unit)
{
	struct weir_engine_params params = rig_params(64, 1);

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", tokens, period_ns, capacity, unit);
}

/* B112: a cost above the capacity never passes. */
START_TEST(cost_above_capacity)
{
	ROWS_PLAY("B112", ((struct row_limit){ 3, 2 * S, 3 }),
	    { 0, 4, D, WEIR_NEVER, LEFT(3) },
	    { 0, 3, A, 0, LEFT(0) },
	    { 0, 1, D, 666666667 }, /* 2/3 s */
	    { 0, 4, D, WEIR_NEVER });
}
END_TEST

/* B114: -1 is a huge cost, not a gift. */
START_TEST(negative_cost)
{
	ROWS_PLAY("B114", ((struct row_limit){ 1, S, 10 }),
	    { 0, 10, A, 0, LEFT(0) },
	    { 0, (uint64_t)-1, D, WEIR_NEVER, LEFT(0) },
	    { 0, 1, D, S, LEFT(0) });
}
END_TEST

/* B116: small requests keep a large one out, and it is told the truth. */
START_TEST(large_among_small)
{
	struct weir_decision d;
	unsigned small = 0, large = 0;

	open_limit(10, S, 100, WEIR_UNIT_PACKETS);
	ask(&rig, limit, "k", 100, 0);
	for (uint64_t k = 0; k <= 1200; k++) {
		uint64_t now_ns = k * 50000000;

		if (k % 20 == 0) {
			d = ask(&rig, limit, "k", 100, now_ns);
			large += d.verdict;
			/* one token each 100 ms: at even k there is one */
			ck_assert_uint_eq(d.retry_after_ns,
			    k == 0 ? 10 * S : 9900000000);
		}
		small += ask(&rig, limit, "k", 1, now_ns).verdict;
	}
	ck_assert_uint_eq(small, 600);
	ck_assert_uint_eq(large, 0);
	rig_close(&rig);
}
END_TEST

/* B121: every second gets what it is due. */
START_TEST(each_second_its_share)
{
	const unsigned want[] = { 1999, 1000, 1000, 1000, 1000 };
	unsigned got[5] = { 0 };

	open_limit(1000, S, 1000, WEIR_UNIT_PACKETS);
	for (uint64_t k = 0; k < 25000; k++)
		got[k / 5000] +=
		    ask(&rig, limit, "k", 1, 200000 * k).verdict;
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(got[i], want[i]);
	rig_close(&rig);
}
END_TEST

/* B126: a refused request reserves nothing. */
START_TEST(refusals_reserve_nothing)
{
	ROWS_PLAY("B126", ((struct row_limit){ 10, S, 10 }),
	    { 0, 10, A },
	    { 0, 11, D, WEIR_NEVER },
	    { 0, 1, D, 100000000 },
	    { 0, 5, D, 500000000 },
	    { 0, 1, D, 100000000 },
	    { 500000000, 5, A, 0, LEFT(0) });
}
END_TEST

/* B127: the promise is capacity + rate x t, not N per minute. */
START_TEST(first_minute)
{
	unsigned passed = 0;

	open_limit(20, S, 1200, WEIR_UNIT_PACKETS);
	for (uint64_t now_ns = 0; now_ns <= 60 * S; now_ns += 10000000)
		while (ask(&rig, limit, "k", 1, now_ns).verdict == WEIR_PASS)
			passed++;
	ck_assert_uint_eq(passed, 2400);
	rig_close(&rig);
}
END_TEST

/* B128: what is already earned shortens the wait. */
START_TEST(wait_counts_what_is_earned)
{
	ROWS_PLAY("B128", ((struct row_limit){ 1, S, 1 }),
	    { 0, 1, A },
	    { 200000000, 1, D, 800000000 },
	    { 999999999, 1, D, 1 },
	    { 1000000000, 1, A });
}
END_TEST

/* B134: all who are refused hear the same instant, one of them gets it. */
START_TEST(herd_of_thirty)
{
	uint64_t now_ns = 0;

	open_limit(1, S, 1, WEIR_UNIT_PACKETS);
	ask(&rig, limit, "k", 1, 0);
	for (int round = 0; round < 30; round++) {
		unsigned passed = 0;

		for (int client = 0; client < 30; client++) {
			struct weir_decision d =
			    ask(&rig, limit, "k", 1, now_ns);

			passed += d.verdict;
			ck_assert_uint_eq(d.retry_after_ns,
			    d.verdict == WEIR_PASS ? 0 : S);
		}
		ck_assert_uint_eq(passed, round == 0 ? 0 : 1);
		now_ns += S;
	}
	rig_close(&rig);
}
END_TEST

/* B135: the wait does not depend on how many wait. */
START_TEST(crowd_of_five_hundred)
{
	open_limit(10, S, 1, WEIR_UNIT_PACKETS);
	ask(&rig, limit, "k", 1, 0);
	for (int caller = 0; caller < 505; caller++)
		ck_assert_uint_eq(
		    ask(&rig, limit, "k", 1, 0).retry_after_ns, 100000000);
	rig_close(&rig);
}
END_TEST

/* B136: frames are charged their length. */
START_TEST(small_frames_in_bytes)
{
	unsigned passed = 0;

	open_limit(1250000, S, 580, WEIR_UNIT_BYTES);
	for (uint64_t k = 0; k <= 1000000; k++) {
		struct weir_request r = {
			.key = "k", .packets = 1, .bytes = 58, .limit = limit,
		};

		passed += weir_check(rig.worker, &r, 10000 * k, NULL);
	}
	/* (580 + 12,500,000) / 58 = 215,527.2 */
	ck_assert_uint_eq(passed, 215527);
	rig_close(&rig);
}
END_TEST

/* B096, B108: capacity is capacity, not rate + capacity. */
START_TEST(capacity_is_the_burst)
{
	open_limit(1000, S, 1, WEIR_UNIT_PACKETS);
	for (int i = 0; i < 1000; i++) {
		struct weir_decision d = ask(&rig, limit, "k", 1, 0);

		ck_assert_int_eq(d.verdict, i == 0);
		ck_assert_uint_eq(d.retry_after_ns, i == 0 ? 0 : 1000000);
	}
	rig_close(&rig);
	ROWS_PLAY("B108, 3", ((struct row_limit){ 1000, S, 3 }),
	    { 0, 1, A }, { 0, 1, A }, { 0, 1, A }, { 0, 1, D, 1000000 });
	ROWS_PLAY("B108, 1", ((struct row_limit){ 1000, S, 1 }),
	    { 0, 1, A }, { 0, 1, D, 1000000 }, { 0, 1, D, 1000000 });
}
END_TEST

/* B102: a deep bucket that fills slowly. */
START_TEST(wait_of_days)
{
	ROWS_PLAY("B102", ((struct row_limit){ 5, 3 * S, 250000 }),
	    { 0, 250000, A },
	    { 0, 1000, D, 600 * S },
	    { 0, 250000, D, 150000 * S },
	    { 150000 * S, 250000, A });
}
END_TEST

/* B103: a capacity below the largest packet. */
START_TEST(capacity_below_a_packet)
{
	ROWS_PLAY("B103", ((struct row_limit){ 125000000, S, 1000 }),
	    { 0, 1500, D, WEIR_NEVER, LEFT(1000) },
	    { 0, 64, A, 0, LEFT(936) });
}
END_TEST

/* B109: the first second of a line twenty times too fast. */
START_TEST(first_second)
{
	unsigned passed = 0;

	open_limit(1250000, S, 125000, WEIR_UNIT_BYTES);
	for (uint64_t k = 0; k <= 166666; k++) {
		struct weir_request r = {
			.key = "k", .packets = 1, .bytes = 1500, .limit = limit,
		};

		passed += weir_check(rig.worker, &r, 6000 * k, NULL);
	}
	/* (125,000 + 1,249,995) / 1500 = 916.7 */
	ck_assert_uint_eq(passed, 916);
	rig_close(&rig);
}
END_TEST

/* B110: two equal limits on one key are two buckets. */
START_TEST(equal_limits_count_apart)
{
	uint32_t twin;

	open_limit(1, S, 5, WEIR_UNIT_PACKETS);
	twin = limit_add(rig.engine, "twin", 1, S, 5, WEIR_UNIT_PACKETS);
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(ask(&rig, limit, "k", 1, 0).verdict, i < 5);
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(ask(&rig, twin, "k", 1, 0).verdict, i < 5);
	rig_close(&rig);
}
END_TEST

/* One request of a limit in bytes and one in packets, one key. */
START_TEST(each_unit_its_field)
{
	uint32_t bytes;
	struct weir_request r = { .key = "k", .packets = 3, .bytes = 1500 };
	struct weir_decision d;

	open_limit(1, S, 4, WEIR_UNIT_PACKETS);
	bytes = limit_add(rig.engine, "b", 1, S, 2000, WEIR_UNIT_BYTES);
	r.limit = limit;
	ck_assert_int_eq(weir_check(rig.worker, &r, 0, &d), WEIR_PASS);
	ck_assert_uint_eq(d.remaining, 1);
	r.limit = bytes;
	ck_assert_int_eq(weir_check(rig.worker, &r, 0, &d), WEIR_PASS);
	ck_assert_uint_eq(d.remaining, 500);
	/* a packet of no bytes costs a limit in bytes nothing */
	r.bytes = 0;
	ck_assert_int_eq(weir_check(rig.worker, &r, 0, &d), WEIR_PASS);
	ck_assert_uint_eq(d.remaining, 500);
	rig_close(&rig);
}
END_TEST

/*
 * In a packet burst each request is decided as if it came alone after those
 * before it: a large one is refused and the small ones after it still pass.
 */
START_TEST(burst_is_in_order)
{
	const uint64_t costs[] = { 4, 7, 3, 0, 2, 1, 1, 11, 0 };
	const uint8_t want[] = { 1, 0, 1, 1, 1, 1, 0, 0, 1 };
	const uint64_t left[] = { 6, 6, 3, 3, 1, 0, 0, 0, 0 };
	struct weir_request requests[3 * NELEM(costs)];
	struct weir_decision decisions[NELEM(requests)];
	uint8_t verdicts[NELEM(requests)];

	open_limit(1, S, 10, WEIR_UNIT_PACKETS);
	/* three keys, interleaved */
	for (size_t i = 0; i < NELEM(requests); i++)
		requests[i] = request(limit, &"abc"[i % 3], costs[i / 3]);
	weir_check_burst(rig.worker, requests, NELEM(requests), 77, verdicts,
	    decisions);
	for (size_t i = 0; i < NELEM(requests); i++) {
		ck_assert_uint_eq(verdicts[i], want[i / 3]);
		ck_assert_int_eq(decisions[i].verdict, want[i / 3]);
		ck_assert_uint_eq(decisions[i].remaining, left[i / 3]);
	}
	/* the same without details, one key, on a longer burst */
	for (size_t i = 0; i < NELEM(requests); i++)
		requests[i] = request(limit, "d", costs[i % NELEM(costs)]);
	memset(verdicts, 0xa5, sizeof(verdicts));
	weir_check_burst(rig.worker, requests, NELEM(requests), 77, verdicts,
	    NULL);
	for (size_t i = 0; i < NELEM(requests); i++)
		ck_assert_uint_eq(verdicts[i], i < NELEM(costs) ? want[i] :
		    costs[i % NELEM(costs)] == 0);
	rig_close(&rig);
}
END_TEST

/* Bursts of any length: none, one, one more or less than a round number. */
START_TEST(burst_of_any_length)
{
	enum { MOST = 1100 };
	static struct weir_request requests[MOST];
	static struct weir_decision decisions[MOST + 1];
	static uint8_t verdicts[MOST + 1];
	static uint16_t keys[MOST];
	struct weir_engine_params params = rig_params(4096, 2);
	uint64_t now_ns = 0;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 1, WEIR_UNIT_PACKETS);
	for (uint16_t i = 0; i < MOST; i++) {
		keys[i] = i / 2; /* each key twice: the second is denied */
		requests[i] = request(limit, &keys[i], 1);
	}
	for (size_t n = 0; n <= MOST; n += n < 140 ? 1 : 97) {
		memset(verdicts, 0xa5, sizeof(verdicts));
		memset(decisions, 0xa5, sizeof(decisions));
		now_ns += S;
		weir_check_burst(rig.worker, requests, n, now_ns, verdicts,
		    n % 3 == 0 ? NULL : decisions);
		for (size_t i = 0; i < n; i++) {
			expect(verdicts[i] == (i % 2 == 0));
			expect(n % 3 == 0 || decisions[i].retry_after_ns ==
			    (i % 2 == 0 ? 0 : S));
		}
		/* and nothing is written behind the end */
		ck_assert_uint_eq(verdicts[n], 0xa5);
		ck_assert_uint_eq(((unsigned char *)&decisions[n])[0], 0xa5);
	}
	rig_close(&rig);
}
END_TEST

/* The bucket is full after the wait it named, and was not 1 ns before. */
START_TEST(time_to_full)
{
	const uint64_t costs[] = { 1, 3, 7, 10, 11, 2 };
	struct weir_decision d;
	uint64_t now_ns = 0;

	open_limit(3, 7, 10, WEIR_UNIT_PACKETS);
	ck_assert_uint_eq(ask(&rig, limit, "k", 0, 0).reset_after_ns, 0);
	for (size_t i = 0; i < NELEM(costs); i++) {
		/* 7/3 ns for each token; a refusal takes none */
		uint64_t want = costs[i] > 10 ? 0 : (7 * costs[i] + 2) / 3;

		d = ask(&rig, limit, "k", costs[i], now_ns);
		ck_assert_uint_eq(d.reset_after_ns, want);
		if (want == 0)
			continue;
		now_ns += want - 1;
		d = ask(&rig, limit, "k", 0, now_ns);
		ck_assert_uint_eq(d.remaining, 9);
		ck_assert_uint_eq(d.reset_after_ns, 1);
		d = ask(&rig, limit, "k", 0, ++now_ns);
		ck_assert_uint_eq(d.remaining, 10);
		ck_assert_uint_eq(d.reset_after_ns, 0);
	}
	/* a refusal names both: when one token is there, and when ten are */
	ask(&rig, limit, "k", 10, now_ns);
	d = ask(&rig, limit, "k", 1, now_ns);
	ck_assert_uint_eq(d.retry_after_ns, 3);
	ck_assert_uint_eq(d.reset_after_ns, 24);
	/* one that falls behind the clock's end */
	d = ask(&rig, limit, "x", 10, UINT64_MAX - 23);
	ck_assert_uint_eq(d.reset_after_ns, WEIR_NEVER - 1);
	d = ask(&rig, limit, "y", 10, UINT64_MAX - 24);
	ck_assert_uint_eq(d.reset_after_ns, 24);
	rig_close(&rig);
}
END_TEST

/* After a raised capacity, full is the new one. */
START_TEST(time_to_full_of_a_changed_limit)
{
	struct weir_limit_params p = limit_params("l", 2, S, 30,
	    WEIR_UNIT_PACKETS);
	struct weir_decision d;

	open_limit(1, S, 10, WEIR_UNIT_PACKETS);
	ask(&rig, limit, "k", 4, 100 * S);
	ck_assert_int_eq(weir_limit_set(rig.engine, limit, &p, 102 * S, NULL),
	    0);
	/* 8 of 30, two each second; a key that was never seen has 10 */
	d = ask(&rig, limit, "k", 0, 102 * S);
	ck_assert_uint_eq(d.remaining, 8);
	ck_assert_uint_eq(d.reset_after_ns, 11 * S);
	d = ask(&rig, limit, "x", 0, 102 * S);
	ck_assert_uint_eq(d.reset_after_ns, 10 * S);
	/* a clock that is behind the change waits for that, too */
	d = ask(&rig, limit, "x", 0, 101 * S);
	ck_assert_uint_eq(d.reset_after_ns, 11 * S);
	d = ask(&rig, limit, "x", 0, 112 * S - 1);
	ck_assert_uint_eq(d.remaining, 29);
	d = ask(&rig, limit, "x", 0, 112 * S);
	ck_assert_uint_eq(d.remaining, 30);
	rig_close(&rig);
}
END_TEST

/* A decision names the limit it is about, whoever decided. */
START_TEST(decision_names_its_limit)
{
	struct weir_request requests[6];
	struct weir_decision d[NELEM(requests)];
	uint8_t verdicts[NELEM(requests)];
	uint32_t limits[3];

	open_limit(1, S, 1, WEIR_UNIT_PACKETS);
	limits[0] = limit;
	limits[1] = limit_add(rig.engine, "m", 1, S, 2, WEIR_UNIT_PACKETS);
	limits[2] = 12345;
	for (size_t i = 0; i < NELEM(requests); i++)
		requests[i] = request(limits[i % 3], "k", 1);
	memset(d, 0xa5, sizeof(d));
	weir_check_burst(rig.worker, requests, NELEM(requests), 0, verdicts,
	    d);
	for (size_t i = 0; i < NELEM(requests); i++) {
		ck_assert_uint_eq(d[i].limit, limits[i % 3]);
		ck_assert_uint_eq(d[i].reset_after_ns, i % 3 == 2 ? 0 :
		    i == 4 ? 2 * S : S);
	}
	rig_close(&rig);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("semantics");
	TCase *meaning = tcase_create("meaning");
	TCase *burst = tcase_create("burst");

	tcase_set_timeout(meaning, 60);
	tcase_add_test(meaning, cost_above_capacity);
	tcase_add_test(meaning, negative_cost);
	tcase_add_test(meaning, large_among_small);
	tcase_add_test(meaning, each_second_its_share);
	tcase_add_test(meaning, refusals_reserve_nothing);
	tcase_add_test(meaning, first_minute);
	tcase_add_test(meaning, wait_counts_what_is_earned);
	tcase_add_test(meaning, herd_of_thirty);
	tcase_add_test(meaning, crowd_of_five_hundred);
	tcase_add_test(meaning, small_frames_in_bytes);
	tcase_add_test(meaning, capacity_is_the_burst);
	tcase_add_test(meaning, wait_of_days);
	tcase_add_test(meaning, capacity_below_a_packet);
	tcase_add_test(meaning, first_second);
	tcase_add_test(meaning, equal_limits_count_apart);
	tcase_add_test(meaning, each_unit_its_field);
	tcase_add_test(meaning, time_to_full);
	tcase_add_test(meaning, time_to_full_of_a_changed_limit);
	tcase_add_test(meaning, decision_names_its_limit);
	suite_add_tcase(s, meaning);

	tcase_set_timeout(burst, 60);
	tcase_add_test(burst, burst_is_in_order);
	tcase_add_test(burst, burst_of_any_length);
	suite_add_tcase(s, burst);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
