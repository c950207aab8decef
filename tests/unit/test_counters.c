/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters: every request in exactly one class, whatever became of it.
 */
#include <errno.h>
#include <string.h>

#include "../support.h"

#define S NSEC_PER_SEC

static struct rig rig;
static uint32_t limit;

static void
setup(void)
{
	struct weir_engine_params params = rig_params(64, 1);

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 4, WEIR_UNIT_PACKETS);
}

static void
teardown(void)
{
	rig_close(&rig);
}

static void
say(uint64_t packets, uint64_t bytes, uint64_t now_ns)
{
	struct weir_request r = {
		.key = "k", .packets = packets, .bytes = bytes, .limit = limit,
	};

	weir_check(rig.worker, &r, now_ns, NULL);
}

static struct weir_counters
counted(void)
{
	struct weir_counters of_engine, of_worker;

	memset(&of_engine, 0xa5, sizeof(of_engine));
	memset(&of_worker, 0xa5, sizeof(of_worker));
	ck_assert_int_eq(
	    weir_engine_counters(rig.engine, limit, &of_engine), 0);
	ck_assert_int_eq(
	    weir_worker_counters(rig.worker, limit, &of_worker), 0);
	ck_assert_mem_eq(&of_engine, &of_worker, sizeof(of_engine));
	return of_engine;
}

START_TEST(each_in_its_class)
{
	struct weir_counters c = counted(), zero = { 0 };

	ck_assert_mem_eq(&c, &zero, sizeof(c));
	say(3, 300, 0);  /* passes */
	say(2, 999, 0);  /* one is left */
	say(1, 1500, 0); /* passes */
	say(0, 50, 0);   /* costs nothing, and is counted */
	say(5, 1, 0);    /* above the capacity */
	c = counted();
	ck_assert_uint_eq(c.passed_packets, 4);
	ck_assert_uint_eq(c.passed_bytes, 1850);
	ck_assert_uint_eq(c.denied_packets, 7);
	ck_assert_uint_eq(c.denied_bytes, 1000);
	ck_assert_uint_eq(c.full_passed_packets, 0);
	ck_assert_uint_eq(c.full_passed_bytes, 0);
	ck_assert_uint_eq(c.full_denied_packets, 0);
	ck_assert_uint_eq(c.full_denied_bytes, 0);
}
END_TEST

/* B152: beyond 32 bits. */
START_TEST(sixty_four_bits)
{
	struct weir_counters c;

	say(1, UINT32_MAX, 0);
	say(1, 1, 0);
	say(1, 1ull << 32, 0);
	say(1ull << 32, 1ull << 40, 0);
	say(1ull << 32, 1, 0);
	c = counted();
	ck_assert_uint_eq(c.passed_packets, 3);
	ck_assert_uint_eq(c.passed_bytes, 2ull << 32);
	ck_assert_uint_eq(c.denied_packets, 2ull << 32);
	ck_assert_uint_eq(c.denied_bytes, (1ull << 40) + 1);
}
END_TEST

/* Two limits, and a packet burst that mixes them. */
START_TEST(burst_counts_the_same)
{
	uint32_t other = limit_add(rig.engine, "o", 1, S, 1500,
	    WEIR_UNIT_BYTES);
	struct weir_request requests[8];
	uint8_t verdicts[8];
	struct weir_counters c;

	for (int i = 0; i < 8; i++)
		requests[i] = (struct weir_request){ "k", 1, 600,
			i % 2 == 0 ? limit : other };
	weir_check_burst(rig.worker, requests, 8, 0, verdicts, NULL);
	weir_check_burst(rig.worker, requests, 8, 0, verdicts, NULL);
	c = counted(); /* 4, then 0 */
	ck_assert_uint_eq(c.passed_packets, 4);
	ck_assert_uint_eq(c.passed_bytes, 2400);
	ck_assert_uint_eq(c.denied_packets, 4);
	ck_assert_uint_eq(c.denied_bytes, 2400);
	ck_assert_int_eq(weir_engine_counters(rig.engine, other, &c), 0);
	ck_assert_uint_eq(c.passed_packets, 2);
	ck_assert_uint_eq(c.passed_bytes, 1200);
	ck_assert_uint_eq(c.denied_packets, 6);
	ck_assert_uint_eq(c.denied_bytes, 3600);
}
END_TEST

/* What a worker counted outlives it. */
START_TEST(detached_workers_stay_counted)
{
	struct weir_counters c;

	for (int i = 0; i < 100; i++) {
		struct weir_worker *worker;
		struct weir_request r = request(limit, "w", 1);

		ck_assert_int_eq(weir_worker_attach(rig.engine, &worker), 0);
		weir_check(worker, &r, 0, NULL);
		ck_assert_int_eq(weir_worker_counters(worker, limit, &c), 0);
		ck_assert_uint_eq(c.passed_packets + c.denied_packets, 1);
		weir_worker_detach(worker);
	}
	ck_assert_int_eq(weir_engine_counters(rig.engine, limit, &c), 0);
	ck_assert_uint_eq(c.passed_packets, 4);
	ck_assert_uint_eq(c.denied_packets, 96);
}
END_TEST

/* B075: numbers that are no limit are denied and counted apart. */
START_TEST(no_such_limit)
{
	const uint32_t wrong[] = { limit + 1, 64, 65535, 65536,
		limit + 65536, 1u << 31, UINT32_MAX };
	struct weir_request requests[2 * NELEM(wrong)];
	struct weir_decision decisions[NELEM(requests)];
	uint8_t verdicts[NELEM(requests)];
	struct weir_counters c, zero = { 0 };

	for (size_t i = 0; i < NELEM(wrong); i++) {
		struct weir_decision d;

		d = ask(&rig, wrong[i], "k", i % 2, 0);
		ck_assert_int_eq(d.verdict, WEIR_DENY);
		ck_assert_int_eq(d.decided_by, WEIR_BY_NO_LIMIT);
		ck_assert_uint_eq(d.remaining, 0);
		ck_assert_uint_eq(d.retry_after_ns, 0);
		ck_assert_int_eq(weir_worker_counters(rig.worker, wrong[i],
		    &c), -ENOENT);
		ck_assert_int_eq(weir_engine_counters(rig.engine, wrong[i],
		    &c), -ENOENT);
	}
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine),
	    NELEM(wrong));
	c = counted();
	ck_assert_mem_eq(&c, &zero, sizeof(c));

	/* in a burst, among good ones */
	for (size_t i = 0; i < NELEM(requests); i++)
		requests[i] = request(i % 2 == 0 ? limit : wrong[i / 2],
		    "k", 1);
	weir_check_burst(rig.worker, requests, NELEM(requests), 0, verdicts,
	    decisions);
	for (size_t i = 0; i < NELEM(requests); i++) {
		ck_assert_int_eq(decisions[i].decided_by,
		    i % 2 == 0 ? WEIR_BY_BUCKET : WEIR_BY_NO_LIMIT);
		ck_assert_uint_eq(verdicts[i], i % 2 == 0 && i < 8);
	}
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine),
	    2 * NELEM(wrong));
	c = counted();
	ck_assert_uint_eq(c.passed_packets, 4);
	ck_assert_uint_eq(c.denied_packets, 3);
}
END_TEST

/* Also of workers that are gone. */
START_TEST(unknown_limits_outlive_workers)
{
	struct weir_request r = request(UINT32_MAX, "k", 1);
	struct weir_worker *worker;

	ck_assert_int_eq(weir_worker_attach(rig.engine, &worker), 0);
	weir_check(worker, &r, 0, NULL);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 1);
	weir_worker_detach(worker);
	weir_check(rig.worker, &r, 0, NULL);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 2);
}
END_TEST

/* Limits that come after the worker are counted as well. */
START_TEST(limits_added_later)
{
	for (int i = 0; i < 60; i++) {
		char name[] = { 'x', (char)('!' + i), '\0' };
		struct weir_counters c;
		uint32_t late = limit_add(rig.engine, name, 1, S, 1,
		    WEIR_UNIT_PACKETS);

		ask(&rig, late, "k", 1, 0);
		ask(&rig, late, "k", 1, 0);
		ck_assert_int_eq(
		    weir_worker_counters(rig.worker, late, &c), 0);
		ck_assert_uint_eq(c.passed_packets, 1);
		ck_assert_uint_eq(c.denied_packets, 1);
		weir_worker_quiesce(rig.worker);
	}
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("counters");
	TCase *tc = tcase_create("classes");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, each_in_its_class);
	tcase_add_test(tc, sixty_four_bits);
	tcase_add_test(tc, burst_counts_the_same);
	tcase_add_test(tc, detached_workers_stay_counted);
	tcase_add_test(tc, no_such_limit);
	tcase_add_test(tc, unknown_limits_outlive_workers);
	tcase_add_test(tc, limits_added_later);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
