/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Refunds move the value of an entry down, where all else moves it up: that it
 * can still be read in its era, whoever gives back and however late. At the
 * fastest rate there is, so that an era lasts seconds.
 */
#include "era_rig.h"

static uint64_t
give(const void *key, uint64_t cost, uint64_t now_ns)
{
	struct weir_request r = request(limit, key, cost);

	return weir_refund(rig.worker, &r, now_ns);
}

START_TEST(invariant)
{
	uint64_t now_ns = 40 * ERA_NS, given = 0;
	struct rng rng;

	rng_init(&rng, test_seed("invariant"));
	for (uint64_t i = test_scale(200000); i > 0; i--) {
		uint64_t kind = rng_below(&rng, 16), cost;
		uint32_t key = (uint32_t)rng_below(&rng, KEYS);

		if (kind < 8)
			now_ns += rng_below(&rng, ERA_NS / 16);
		else if (kind == 8)
			now_ns += rng_below(&rng, 3 * ERA_NS);
		else if (kind < 12 && now_ns > 80 * ERA_NS)
			now_ns -= rng_below(&rng, 3 * ERA_NS);
		else if (kind == 12 && now_ns > 80 * ERA_NS)
			now_ns -= rng_below(&rng, 40 * ERA_NS);
		cost = rng_below(&rng, CAPACITY + 1);
		if (rng_below(&rng, 2))
			ask(&rig, limit, &key, cost, now_ns);
		else
			given += give(&key, cost, now_ns) > 0;
		for_each_live(check_invariant, 0);
	}
	ck_assert_uint_gt(given, 0);
}
END_TEST

/*
 * A clock that is an era late gives back what it likes: full is full for all
 * who come after the entry's era began, and what is taken then is gone.
 */
START_TEST(late_by_eras)
{
	for (uint64_t eras = 1; eras < 60; eras++) {
		uint64_t now_ns = (100 + eras) * ERA_NS + 1000;

		ask(&rig, limit, "key1", CAPACITY, now_ns);
		ck_assert_uint_gt(give("key1", UINT64_MAX,
		    now_ns - eras * ERA_NS), 0);
		for_each_live(check_invariant, 0);
		ck_assert_uint_eq(ask(&rig, limit, "key1", CAPACITY,
		    now_ns).verdict, WEIR_PASS);
		ck_assert_uint_eq(ask(&rig, limit, "key1", 1,
		    now_ns).retry_after_ns, 1);
	}
}
END_TEST

/*
 * A worker moves the era and stalls, while another, a little late, has looked
 * at the old era already and gives back. The value then lies up to an era and a
 * capacity below the new era's base: it must still be read rightly.
 */
START_TEST(moved_meanwhile)
{
	uint64_t at_ns = 4 * ERA_NS + 5;

	ask(&rig, limit, "key1", CAPACITY, at_ns);
	ck_assert_uint_eq(give("key1", CAPACITY - 10, at_ns), CAPACITY - 10);
	ck_assert_uint_eq(for_each_live(move_era, 5), 1);
	ck_assert_uint_eq(ask(&rig, limit, "key1", 0, at_ns).remaining,
	    CAPACITY - 10);
	ck_assert_uint_eq(ask(&rig, limit, "key1", 0, at_ns - 1).remaining,
	    CAPACITY - 10 - V_SPEED_MAX);
	for (uint64_t k = 0; k < 64; k++)
		ck_assert_uint_eq(ask(&rig, limit, "key1", 0,
		    at_ns + 1 + k * ERA_NS / 16).remaining, CAPACITY);
	/* nothing finds room, and what is spent next is spent once */
	ck_assert_uint_eq(give("key1", 7, at_ns + ERA_NS), 0);
	ask(&rig, limit, "key1", CAPACITY, at_ns + ERA_NS);
	ck_assert_int_eq(ask(&rig, limit, "key1", 1, at_ns + ERA_NS).verdict,
	    WEIR_DENY);
	for_each_live(check_invariant, 0);
}
END_TEST

/* A refund in the next era moves the era with it. */
START_TEST(in_next_era)
{
	uint64_t spent_ns = 6 * ERA_NS - 1;

	ask(&rig, limit, "key1", CAPACITY, spent_ns);
	ck_assert_uint_eq(give("key1", 1000, spent_ns + 2), 1000);
	for_each_live(check_invariant, 0);
	ck_assert_uint_eq(ask(&rig, limit, "key1", 0, spent_ns + 2).remaining,
	    2 * V_SPEED_MAX + 1000);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("refund era");
	TCase *tc = tcase_create("era");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, invariant);
	tcase_add_test(tc, late_by_eras);
	tcase_add_test(tc, moved_meanwhile);
	tcase_add_test(tc, in_next_era);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
