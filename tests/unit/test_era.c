/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Eras: that what an entry says of its time can always be read.
 *
 * The invariant of docs/design.md, watched after every request, over eras that
 * last seconds because the rate is the fastest there is; and what becomes of an
 * entry whose era was moved by a worker that then stalled.
 */
#include "era_rig.h"

START_TEST(invariant)
{
	uint64_t now_ns = 4 * ERA_NS;
	struct rng rng;

	rng_init(&rng, test_seed("invariant"));
	for (uint64_t i = test_scale(200000); i > 0; i--) {
		uint64_t kind = rng_below(&rng, 16), cost = 1;
		uint32_t key;

		if (kind < 12)
			now_ns += rng_below(&rng, ERA_NS / 16);
		else if (kind == 12)
			now_ns += rng_below(&rng, 3 * ERA_NS);
		else if (now_ns > 40 * ERA_NS)
			now_ns -= rng_below(&rng, 3 * ERA_NS);
		if (kind % 4)
			cost = rng_below(&rng, CAPACITY + 1);
		key = (uint32_t)rng_below(&rng, KEYS);
		ask(&rig, limit, &key, cost, now_ns);
		for_each_live(check_invariant, 0);
	}
}
END_TEST

/*
 * Spend at the end of era 4. In era 5 the bucket is not full for another 3/8
 * of an era; somebody moves the era then and writes no value. Whatever the
 * time, the level must be what it would be otherwise.
 */
START_TEST(moved_and_stalled)
{
	uint64_t spent_ns = 5 * ERA_NS - ERA_NS / 8;

	ask(&rig, limit, "key1", CAPACITY, spent_ns);
	ck_assert_uint_eq(for_each_live(move_era, 5), 1);
	for_each_live(check_invariant, 0);
	for (uint64_t k = 0; k < 64; k++) {
		uint64_t now_ns = spent_ns + k * ERA_NS / 16;
		uint64_t level = (now_ns - spent_ns) * V_SPEED_MAX;

		ck_assert_uint_eq(ask(&rig, limit, "key1", 0, now_ns).remaining,
		    level < CAPACITY ? level : CAPACITY);
	}
}
END_TEST

static uint64_t generation;

static void
read_generation(struct entry *entry, uint64_t argument)
{
	(void)argument;
	generation = entry->state & STATE_GENERATION_MASK;
}

/*
 * An idle entry met in a later era must change hands: to move its era and then
 * stall would leave a value that cannot be read. One that is not idle stays.
 */
START_TEST(idle_in_next_era)
{
	uint64_t before, spent_ns = 6 * ERA_NS - 1;

	ask(&rig, limit, "key1", 1, 4 * ERA_NS);
	ck_assert_uint_eq(for_each_live(read_generation, 0), 1);
	before = generation;
	ask(&rig, limit, "key1", CAPACITY, spent_ns);
	ck_assert_uint_eq(for_each_live(read_generation, 0), 1);
	ck_assert_uint_ne(generation, before);

	before = generation;
	ck_assert_int_eq(ask(&rig, limit, "key1", 1, spent_ns + 2).verdict,
	    WEIR_PASS);
	ck_assert_uint_eq(for_each_live(read_generation, 0), 1);
	ck_assert_uint_eq(generation, before);
	ck_assert_uint_eq(ask(&rig, limit, "key1", 0, spent_ns + 2).remaining,
	    2 * V_SPEED_MAX - 1);
}
END_TEST

/* A denial writes nothing (I3), however old the entry: not even its end. */
START_TEST(denial_keeps_old_entry)
{
	ask(&rig, limit, "key1", CAPACITY, 10 * ERA_NS);
	for (uint64_t eras = 0; eras < 5; eras++) {
		uint64_t now_ns = (10 + eras) * ERA_NS;

		ck_assert_int_eq(ask(&rig, limit, "key1", CAPACITY + 1,
		    now_ns).verdict, WEIR_DENY);
		ck_assert_int_eq(ask(&rig, limit, "key1", 0, now_ns).verdict,
		    WEIR_PASS);
		/* Still there, for a clock that steps back. */
		ck_assert_int_eq(ask(&rig, limit, "key1", 1, 9 * ERA_NS).verdict,
		    WEIR_DENY);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("era");
	TCase *tc = tcase_create("era");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, invariant);
	tcase_add_test(tc, moved_and_stalled);
	tcase_add_test(tc, idle_in_next_era);
	tcase_add_test(tc, denial_keeps_old_entry);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
