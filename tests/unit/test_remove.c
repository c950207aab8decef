/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits that are removed: what asks for them, what becomes of their buckets,
 * counters, names and numbers.
 */
#include <errno.h>
#include <string.h>

#include "../support.h"

#define S NSEC_PER_SEC
#define MAX_LIMITS 4u

static struct rig rig;

static void
setup_with(enum weir_full_policy policy)
{
	struct weir_engine_params params = rig_params(100, 4);

	params.max_limits = MAX_LIMITS;
	params.full_policy = policy;
	rig_open(&rig, &params);
}

static void
setup(void)
{
	setup_with(WEIR_FULL_SHARED);
}

static void
teardown(void)
{
	rig_close(&rig);
}

static uint32_t
add(const char *name, uint64_t capacity)
{
	return limit_add(rig.engine, name, 1, S, capacity, WEIR_UNIT_PACKETS);
}

static struct weir_decision
spend(uint32_t limit, uint32_t key, uint64_t cost)
{
	return ask(&rig, limit, &key, cost, S);
}

static struct weir_counters
counted(uint32_t limit)
{
	struct weir_counters c;

	ck_assert_int_eq(weir_engine_counters(rig.engine, limit, &c), 0);
	return c;
}

START_TEST(is_gone)
{
	uint32_t a = add("a", 10), b = add("b", 10), found;
	struct weir_limit_params params = { .size = sizeof(params) };
	struct weir_counters c;
	struct weir_decision d;

	ck_assert_int_eq(spend(a, 1, 4).verdict, WEIR_PASS);
	ck_assert_int_eq(spend(b, 1, 4).verdict, WEIR_PASS);
	ck_assert_int_eq(weir_limit_remove(rig.engine, a), 0);

	d = spend(a, 1, 1);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_int_eq(d.decided_by, WEIR_BY_NO_LIMIT);
	ck_assert_int_eq(spend(a, 1, 0).verdict, WEIR_DENY);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 2);
	ck_assert_int_eq(weir_limit_find(rig.engine, "a", &found), -ENOENT);
	ck_assert_int_eq(weir_limit_get(rig.engine, a, &params), -ENOENT);
	ck_assert_int_eq(weir_engine_counters(rig.engine, a, &c), -ENOENT);
	ck_assert_int_eq(weir_worker_counters(rig.worker, a, &c), -ENOENT);
	ck_assert_int_eq(weir_limit_remove(rig.engine, a), -ENOENT);
	ck_assert_int_eq(weir_limit_remove(rig.engine, 17), -ENOENT);
	/* and nothing else is */
	ck_assert_uint_eq(spend(b, 1, 0).remaining, 6);
	ck_assert_int_eq(weir_limit_find(rig.engine, "b", &found), 0);
	ck_assert_uint_eq(found, b);
}
END_TEST

/* A number is given again only when all have been given. */
START_TEST(numbers_and_names_come_again)
{
	uint32_t limit[MAX_LIMITS], again;
	struct weir_limit_params more = limit_params("more", 1, S, 5,
	    WEIR_UNIT_PACKETS);

	limit[0] = add("0", 10);
	ck_assert_int_eq(spend(limit[0], 1, 7).verdict, WEIR_PASS);
	ck_assert_int_eq(weir_limit_remove(rig.engine, limit[0]), 0);
	again = add("0", 10);
	ck_assert_uint_ne(again, limit[0]);
	limit[2] = add("2", 10);
	limit[3] = add("3", 10);
	more.name = "reused";
	ck_assert_int_eq(weir_limit_add(rig.engine, &more, &again, NULL), 0);
	ck_assert_uint_eq(again, limit[0]);
	/* It starts from nothing: keys are full, counters are 0. */
	ck_assert_uint_eq(counted(again).passed_packets, 0);
	ck_assert_uint_eq(spend(again, 1, 0).remaining, 5);
	ck_assert_int_eq(spend(again, 1, 5).verdict, WEIR_PASS);
	ck_assert_uint_eq(counted(again).passed_packets, 5);
	more.name = "one too many";
	ck_assert_int_eq(weir_limit_add(rig.engine, &more, &again, NULL),
	    -ENOSPC);
	ck_assert_int_eq(weir_limit_remove(rig.engine, limit[3]), 0);
	ck_assert_int_eq(weir_limit_add(rig.engine, &more, &again, NULL), 0);
	ck_assert_uint_eq(again, limit[3]);
}
END_TEST

/* Buckets that hold a debt to their limit leave the table with it. */
START_TEST(makes_room)
{
	uint32_t a = add("a", 10), b;
	uint32_t key = 0;

	while (spend(a, key, 10).decided_by == WEIR_BY_BUCKET)
		key++;
	ck_assert_int_eq(spend(a, key, 1).decided_by, WEIR_BY_FULL);
	ck_assert_int_eq(weir_limit_remove(rig.engine, a), 0);
	b = add("b", 10);
	for (uint32_t other = 0; other <= key / 2; other++)
		ck_assert_int_eq(spend(b, other, 10).decided_by,
		    WEIR_BY_BUCKET);
}
END_TEST

/* Between the two halves of a packet burst. */
START_TEST(while_prepared)
{
	uint32_t a = add("a", 10), b = add("b", 10), key = 1;
	struct weir_request r[] = {
		request(a, &key, 3), request(b, &key, 3), request(a, &key, 3),
	};
	struct weir_decision d[3];
	uint8_t verdicts[3];

	ck_assert_int_eq(weir_prepare(rig.worker, r, 3), 0);
	ck_assert_int_eq(weir_limit_remove(rig.engine, a), 0);
	/* even if its number means another limit by now */
	add("c", 10);
	add("d", 10);
	ck_assert_uint_eq(add("e", 10), a);
	ck_assert_uint_eq(weir_decide(rig.worker, S, verdicts, d), 3);
	ck_assert_int_eq(d[0].decided_by, WEIR_BY_NO_LIMIT);
	ck_assert_int_eq(d[1].decided_by, WEIR_BY_BUCKET);
	ck_assert_int_eq(d[2].decided_by, WEIR_BY_NO_LIMIT);
	ck_assert_int_eq(verdicts[0], WEIR_DENY);
	ck_assert_int_eq(verdicts[1], WEIR_PASS);
	ck_assert_int_eq(verdicts[2], WEIR_DENY);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 2);
	ck_assert_uint_eq(counted(a).denied_packets, 0);
	/* changed in between: that is the same limit */
	r[0].limit = b;
	ck_assert_int_eq(weir_prepare(rig.worker, r, 1), 0);
	ck_assert_int_eq(weir_limit_set(rig.engine, b,
	    &(struct weir_limit_params){ .size = sizeof(
	    struct weir_limit_params), .name = "b", .tokens = 1,
	    .period_ns = S, .capacity = 4 }, S, NULL), 0);
	ck_assert_uint_eq(weir_decide(rig.worker, S, verdicts, d), 1);
	ck_assert_uint_eq(d[0].remaining, 1);
}
END_TEST

/* Thousands come and go, and each leaves the memory as it was. */
START_TEST(come_and_go)
{
	struct weir_engine_info before, after;

	add("stays", 10);
	for (int i = 0; i < 3000; i++) {
		uint32_t limit = add("comes", 10);

		if (i == 10)
			weir_engine_describe(rig.engine, &before);
		ck_assert_uint_eq(spend(limit, 1, 8).remaining, 2);
		ck_assert_int_eq(weir_limit_remove(rig.engine, limit), 0);
	}
	add("comes", 10);
	weir_engine_describe(rig.engine, &after);
	ck_assert_uint_eq(before.memory_bytes, after.memory_bytes);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("remove");
	TCase *tc = tcase_create("remove");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, is_gone);
	tcase_add_test(tc, numbers_and_names_come_again);
	tcase_add_test(tc, makes_room);
	tcase_add_test(tc, while_prepared);
	tcase_add_test(tc, come_and_go);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
