/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More keys than room: who is let in, who is forgotten, who is refused. Ids
 * like B061 name the known fault a case would show.
 */
#include <stdlib.h>
#include <string.h>

#include "../support.h"

#define S NSEC_PER_SEC

static struct weir_counters
counters_of(struct rig *rig, uint32_t limit)
{
	struct weir_counters c;

	ck_assert_int_eq(weir_engine_counters(rig->engine, limit, &c), 0);
	return c;
}

static struct weir_engine_params
full_params(uint64_t capacity, enum weir_full_policy policy)
{
	struct weir_engine_params params = rig_params(capacity, 8);

	params.full_policy = policy;
	return params;
}

/*
 * Take all room with entries that stay: `limit` never refills in the time of
 * a test. Keys from `first` on. => How many found room.
 */
static uint64_t
fill(struct rig *rig, uint32_t limit, uint64_t first, uint64_t now_ns)
{
	struct weir_engine_info info;
	uint64_t in = 0;

	weir_engine_describe(rig->engine, &info);
	for (uint64_t k = 0; k < 8 * info.slots; k++) {
		uint64_t key = first + k;
		struct weir_decision d = ask(rig, limit, &key, 1, now_ns);

		in += d.decided_by == WEIR_BY_BUCKET;
	}
	return in;
}

static uint32_t
limit_for_ever(struct rig *rig, const char *name, uint64_t capacity)
{
	return limit_add(rig->engine, name, 1, NSEC_PER_YEAR, capacity,
	    WEIR_UNIT_PACKETS);
}

/* As many keys as were asked for find room, however the hash falls. */
START_TEST(capacity_is_kept)
{
	const uint64_t capacities[] = { 1, 2, 31, 32, 33, 64, 1000, 1024,
		16384, 100000 };

	for (size_t i = 0; i < NELEM(capacities); i++) {
		struct weir_engine_params params =
		    full_params(capacities[i], WEIR_FULL_DENY);
		uint32_t limit;
		struct rig rig;

		rig_open(&rig, &params);
		limit = limit_for_ever(&rig, "l", 1);
		for (uint64_t key = 0; key < capacities[i]; key++)
			ask(&rig, limit, &key, 1, 0);
		ck_assert_uint_eq(counters_of(&rig, limit).passed_packets,
		    capacities[i]);
		/* and each of them is known now */
		for (uint64_t key = 0; key < capacities[i]; key++)
			ask(&rig, limit, &key, 1, 0);
		ck_assert_uint_eq(counters_of(&rig, limit).denied_packets,
		    capacities[i]);
		rig_close(&rig);
	}
}
END_TEST

/* A table full of entries that stay has no slot left over. */
START_TEST(every_slot_is_used)
{
	struct weir_engine_params params = full_params(500, WEIR_FULL_DENY);
	struct weir_engine_info info;
	struct rig rig;
	uint32_t limit;

	rig_open(&rig, &params);
	weir_engine_describe(rig.engine, &info);
	limit = limit_for_ever(&rig, "l", 1);
	ck_assert_uint_eq(fill(&rig, limit, 0, 0), info.slots);
	rig_close(&rig);
}
END_TEST

START_TEST(deny_policy)
{
	struct weir_engine_params params = full_params(100, WEIR_FULL_DENY);
	struct weir_counters c;
	struct rig rig;
	uint32_t limit;
	uint64_t in, key = 1ull << 60;

	rig_open(&rig, &params);
	limit = limit_for_ever(&rig, "l", 2);
	in = fill(&rig, limit, 0, 0);
	for (int i = 0; i < 1000; i++) {
		struct weir_decision d = ask(&rig, limit, &key, 1, 0);

		ck_assert_int_eq(d.verdict, WEIR_DENY);
		ck_assert_int_eq(d.decided_by, WEIR_BY_FULL);
		ck_assert_uint_eq(d.remaining, 0);
		ck_assert_uint_eq(d.retry_after_ns, 0);
	}
	ck_assert_int_eq(ask(&rig, limit, &key, 0, 0).verdict, WEIR_PASS);
	c = counters_of(&rig, limit);
	ck_assert_uint_eq(c.passed_packets, in);
	ck_assert_uint_eq(c.denied_packets, 0);
	ck_assert_uint_eq(c.full_passed_packets, 0);
	ck_assert_uint_ge(c.full_denied_packets, 1000);
	ck_assert_uint_eq(c.full_denied_bytes, c.full_denied_packets);
	rig_close(&rig);
}
END_TEST

START_TEST(allow_policy)
{
	struct weir_engine_params params = full_params(100, WEIR_FULL_ALLOW);
	struct weir_counters before, c;
	struct weir_request requests[40];
	struct weir_decision d;
	uint8_t verdicts[40];
	struct rig rig;
	uint32_t limit;
	uint64_t in, key = 1ull << 60;

	rig_open(&rig, &params);
	limit = limit_for_ever(&rig, "l", 2);
	in = fill(&rig, limit, 0, 0);
	before = counters_of(&rig, limit);
	ck_assert_uint_eq(before.passed_packets, in);
	/* what is above the capacity never passes, alone or in a group */
	d = ask(&rig, limit, &key, 3, 0);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_uint_eq(d.retry_after_ns, WEIR_NEVER);
	for (int i = 0; i < 40; i++)
		requests[i] = request(limit, &key, i % 4);
	weir_check_burst(rig.worker, requests, 40, 0, verdicts, NULL);
	for (int i = 0; i < 40; i++)
		ck_assert_uint_eq(verdicts[i], i % 4 != 3);
	d = ask(&rig, limit, &key, 1, 0);
	ck_assert_int_eq(d.verdict, WEIR_PASS);
	ck_assert_int_eq(d.decided_by, WEIR_BY_FULL);
	ck_assert_uint_eq(d.remaining, 0);
	ck_assert_uint_eq(d.retry_after_ns, 0);
	c = counters_of(&rig, limit);
	ck_assert_uint_eq(c.full_passed_packets,
	    before.full_passed_packets + 10 * (1 + 2) + 1);
	ck_assert_uint_eq(c.full_denied_packets, 0);
	ck_assert_uint_eq(c.denied_packets, 11 * 3);
	ck_assert_uint_eq(c.passed_packets, in);
	rig_close(&rig);
}
END_TEST

/* B060: strangers share buckets, and those are held to the limit. */
START_TEST(shared_policy)
{
	struct weir_engine_params params = full_params(100, WEIR_FULL_SHARED);
	uint64_t passed = 0, key = 1ull << 60;
	struct weir_counters c;
	struct weir_decision d;
	struct rig rig;
	uint32_t filler, limit;

	rig_open(&rig, &params);
	filler = limit_for_ever(&rig, "filler", 1);
	limit = limit_add(rig.engine, "l", 1, S, 100, WEIR_UNIT_PACKETS);
	fill(&rig, filler, 0, 0);
	for (uint64_t i = 0; i < 1000; i++) {
		d = ask(&rig, limit, &key, 1, 0);
		ck_assert_int_eq(d.verdict, i < 100);
		ck_assert_int_eq(d.decided_by, WEIR_BY_FULL);
		ck_assert_uint_eq(d.remaining, i < 100 ? 99 - i : 0);
		ck_assert_uint_eq(d.retry_after_ns, i < 100 ? 0 : S);
	}
	d = ask(&rig, limit, &key, 101, 0);
	ck_assert_uint_eq(d.retry_after_ns, WEIR_NEVER);
	/* it fills like any other */
	ck_assert_int_eq(ask(&rig, limit, &key, 8, 7 * S).verdict, WEIR_DENY);
	ck_assert_int_eq(ask(&rig, limit, &key, 7, 7 * S).verdict, WEIR_PASS);

	c = counters_of(&rig, limit);
	ck_assert_uint_eq(c.full_passed_packets, 107);
	ck_assert_uint_eq(c.full_denied_packets, 908);
	/* what is above any capacity needs no bucket to be denied */
	ck_assert_uint_eq(c.denied_packets, 101);

	/* A thousand strangers get a few buckets between them, no more. */
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t stranger = key + 1 + i;

		for (int n = 0; n < 100; n++)
			passed += ask(&rig, limit, &stranger, 1,
			    7 * S).verdict;
	}
	ck_assert_uint_eq(passed % 100, 0);
	ck_assert_uint_ge(passed, 100);
	ck_assert_uint_le(passed, 6400);
	rig_close(&rig);
}
END_TEST

/* B061: a flood neither washes spent credit away nor locks the known out. */
START_TEST(known_keys_are_untouched)
{
	for (int policy = WEIR_FULL_DENY; policy <= WEIR_FULL_SHARED;
	     policy++) {
		struct weir_engine_params params =
		    full_params(10000, (enum weir_full_policy)policy);
		uint64_t legit = 1ull << 50, attacker = 1ull << 51;
		struct rig rig;
		uint32_t limit;

		rig_open(&rig, &params);
		limit = limit_add(rig.engine, "l", 1, S, 5,
		    WEIR_UNIT_PACKETS);
		ask(&rig, limit, &legit, 1, 0);
		ask(&rig, limit, &attacker, 5, 0);
		for (uint64_t key = 0; key < 50000; key++)
			ask(&rig, limit, &key, 1, 0);
		ck_assert_int_eq(ask(&rig, limit, &attacker, 1, 0).verdict,
		    WEIR_DENY);
		for (int i = 0; i < 5; i++) {
			struct weir_decision d =
			    ask(&rig, limit, &legit, 1, 0);

			ck_assert_int_eq(d.verdict, i < 4);
			ck_assert_int_eq(d.decided_by, WEIR_BY_BUCKET);
		}
		rig_close(&rig);
	}
}
END_TEST

/* B059: a flood in packet bursts, and one who keeps to his rate. */
START_TEST(steady_key_in_a_flood)
{
	const uint64_t flood = test_scale(1000000);
	struct weir_engine_params params = full_params(1024, WEIR_FULL_DENY);
	uint64_t steady = 1ull << 50, next = 0, now_ns = 0, keys[32];
	struct weir_request requests[32];
	struct weir_counters c;
	uint8_t verdicts[32];
	struct rig rig;
	uint32_t filler, limit;

	rig_open(&rig, &params);
	filler = limit_for_ever(&rig, "filler", 1);
	limit = limit_add(rig.engine, "l", 1000, S, 10, WEIR_UNIT_PACKETS);
	ask(&rig, limit, &steady, 1, now_ns);
	fill(&rig, filler, 1ull << 40, now_ns);
	while (next < flood) {
		now_ns += 1000000;
		for (int i = 0; i < 32; i++) {
			keys[i] = next++;
			requests[i] = request(filler, &keys[i], 1);
		}
		weir_check_burst(rig.worker, requests, 32, now_ns, verdicts,
		    NULL);
		for (int i = 0; i < 32; i++)
			expect(verdicts[i] == WEIR_DENY);
		expect(ask(&rig, limit, &steady, 1, now_ns).verdict ==
		    WEIR_PASS);
	}
	c = counters_of(&rig, limit);
	ck_assert_uint_eq(c.denied_packets + c.full_denied_packets, 0);
	rig_close(&rig);
}
END_TEST

/* B063: room comes back as fast as new keys arrive. */
START_TEST(ten_minutes_of_new_keys)
{
	struct weir_engine_params params = full_params(65536, WEIR_FULL_DENY);
	struct weir_counters c;
	struct rig rig;
	uint32_t limit;
	const uint64_t end_ms = test_scale(600000);

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 10, WEIR_UNIT_PACKETS);
	for (uint64_t ms = 0; ms < end_ms; ms++)
		ask(&rig, limit, &ms, 1, ms * NSEC_PER_MS);
	c = counters_of(&rig, limit);
	ck_assert_uint_eq(c.passed_packets, end_ms);
	rig_close(&rig);
}
END_TEST

/* B073: three million keys through a table of 65,536; memory stays. */
START_TEST(millions_of_keys_in_turn)
{
	const uint64_t keys = test_scale(3000000);
	struct weir_engine_params params = full_params(65536, WEIR_FULL_DENY);
	struct weir_engine_info before, after;
	struct rig rig;
	uint32_t limit;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1000000, S, 10, WEIR_UNIT_PACKETS);
	weir_engine_describe(rig.engine, &before);
	for (uint64_t key = 0; key < keys; key++) {
		struct weir_request r = request(limit, &key, 1);

		weir_check(rig.worker, &r, key * 1000, NULL);
	}
	weir_engine_describe(rig.engine, &after);
	ck_assert_uint_eq(counters_of(&rig, limit).passed_packets, keys);
	ck_assert_uint_eq(after.memory_bytes, before.memory_bytes);
	rig_close(&rig);
}
END_TEST

/* B064: an entry lives until its bucket is full, whatever else arrives. */
START_TEST(not_forgotten_before_full)
{
	struct weir_engine_params params = full_params(64, WEIR_FULL_DENY);
	uint64_t key = 1ull << 50, other = 0;
	struct weir_decision d;
	struct rig rig;
	uint32_t limit, quick;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 100, WEIR_UNIT_PACKETS);
	quick = limit_add(rig.engine, "q", 1000, S, 1, WEIR_UNIT_PACKETS);
	d = ask(&rig, limit, &key, 100, 0);
	ck_assert_int_eq(d.verdict, WEIR_PASS);
	/* 10,000 others a second, each forgotten after a millisecond */
	for (uint64_t now_ns = 0; now_ns < 11 * S; now_ns += 100000, other++)
		ask(&rig, quick, &other, 1, now_ns);
	d = ask(&rig, limit, &key, 12, 11 * S);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_uint_eq(d.retry_after_ns, S);
	ck_assert_int_eq(ask(&rig, limit, &key, 11, 11 * S).verdict,
	    WEIR_PASS);
	for (uint64_t now_ns = 11 * S; now_ns < 100 * S;
	     now_ns += 1000000, other++)
		ask(&rig, quick, &other, 1, now_ns);
	ck_assert_int_eq(ask(&rig, limit, &key, 89, 100 * S).verdict,
	    WEIR_PASS);
	d = ask(&rig, limit, &key, 1, 100 * S);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_uint_eq(d.retry_after_ns, S);
	ck_assert_uint_eq(counters_of(&rig, quick).full_denied_packets, 0);
	rig_close(&rig);
}
END_TEST

/* B066: a key in use is not given a fresh bucket at any age. */
START_TEST(no_fresh_bucket_for_its_age)
{
	struct weir_engine_params params = full_params(64, WEIR_FULL_DENY);
	uint64_t key = 1ull << 50;
	struct rig rig;
	uint32_t limit;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, 20 * S, 10, WEIR_UNIT_PACKETS);
	for (uint64_t t = 0; t <= 30; t++) {
		struct weir_decision d = ask(&rig, limit, &key, 1, t * S);

		ck_assert_int_eq(d.verdict, t < 10 || t == 20);
		if (t == 30)
			ck_assert_uint_eq(d.retry_after_ns, 10 * S);
	}
	rig_close(&rig);
}
END_TEST

/*
 * The moment of being forgotten: not while a clock within the skew could
 * still see the bucket less than full.
 */
START_TEST(skew_delays_forgetting)
{
	const uint64_t skew_ns = 50000, full_ns = 1000000;
	struct weir_engine_params params = full_params(32, WEIR_FULL_DENY);
	uint64_t key = 1ull << 50;
	struct weir_decision d;
	struct rig rig;
	uint32_t filler, limit;

	params.clock_skew_ns = skew_ns;
	rig_open(&rig, &params);
	filler = limit_for_ever(&rig, "filler", 1);
	limit = limit_add(rig.engine, "l", 1000, S, 1, WEIR_UNIT_PACKETS);
	ask(&rig, limit, &key, 1, 0);
	/* full for one less than the skew: it stays */
	fill(&rig, filler, 0, full_ns + skew_ns - 1);
	d = ask(&rig, limit, &key, 1, full_ns - 1);
	ck_assert_int_eq(d.decided_by, WEIR_BY_BUCKET);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_uint_eq(d.retry_after_ns, 1);
	/* a little later it goes, and the table is full without it */
	fill(&rig, filler, 1ull << 40, full_ns + skew_ns + 10);
	d = ask(&rig, limit, &key, 1, full_ns + skew_ns + 10);
	ck_assert_int_eq(d.decided_by, WEIR_BY_FULL);
	rig_close(&rig);
}
END_TEST

/* What costs nothing, and what can never pass, takes no room. */
START_TEST(no_trace_without_a_take)
{
	struct weir_engine_params params = full_params(32, WEIR_FULL_DENY);
	struct weir_engine_info info;
	struct rig rig;
	uint32_t limit;

	rig_open(&rig, &params);
	weir_engine_describe(rig.engine, &info);
	limit = limit_for_ever(&rig, "l", 1);
	for (uint64_t key = 0; key < 10000; key++) {
		struct weir_decision d = ask(&rig, limit, &key, 0, 0);

		ck_assert_int_eq(d.verdict, WEIR_PASS);
		ck_assert_uint_eq(d.remaining, 1);
		d = ask(&rig, limit, &key, 2, 0);
		ck_assert_int_eq(d.verdict, WEIR_DENY);
		ck_assert_uint_eq(d.retry_after_ns, WEIR_NEVER);
	}
	ck_assert_uint_eq(fill(&rig, limit, 0, 0), info.slots);
	rig_close(&rig);
}
END_TEST

/* B153: 4 conforming, 3 over the limit, 1 without room: each counted once. */
START_TEST(each_packet_in_one_class)
{
	struct weir_engine_params params = full_params(32, WEIR_FULL_DENY);
	uint64_t key = 1ull << 50, stranger = 1ull << 51;
	struct weir_counters c;
	struct rig rig;
	uint32_t filler, limit;

	rig_open(&rig, &params);
	filler = limit_for_ever(&rig, "filler", 1);
	limit = limit_for_ever(&rig, "l", 4);
	for (int i = 0; i < 7; i++)
		ask(&rig, limit, &key, 1, 0);
	fill(&rig, filler, 0, 0);
	ask(&rig, limit, &stranger, 1, 0);
	c = counters_of(&rig, limit);
	ck_assert_uint_eq(c.passed_packets, 4);
	ck_assert_uint_eq(c.denied_packets, 3);
	ck_assert_uint_eq(c.full_passed_packets, 0);
	ck_assert_uint_eq(c.full_denied_packets, 1);
	rig_close(&rig);
}
END_TEST

enum { SEED_KEYS = 4000 };

/* Which of many keys find no room: a picture of the hash. */
static void
overflow_picture(bool fixed, uint64_t seed, uint8_t *picture)
{
	struct weir_engine_params params = full_params(1000, WEIR_FULL_DENY);
	struct rig rig;
	uint32_t limit;

	params.seed_fixed = fixed;
	params.hash_seed = seed;
	rig_open(&rig, &params);
	limit = limit_for_ever(&rig, "l", 1);
	for (uint64_t key = 0; key < SEED_KEYS; key++)
		picture[key] = ask(&rig, limit, &key, 1, 0).decided_by;
	rig_close(&rig);
}

/* B057: a seed of one's own choice repeats, others do not. */
START_TEST(seeds)
{
	static uint8_t one[SEED_KEYS], two[SEED_KEYS];

	overflow_picture(true, 42, one);
	overflow_picture(true, 42, two);
	ck_assert_mem_eq(one, two, SEED_KEYS);
	overflow_picture(true, 43, two);
	ck_assert_mem_ne(one, two, SEED_KEYS);
	overflow_picture(true, 0, one); /* zero is a seed, too */
	overflow_picture(true, 0, two);
	ck_assert_mem_eq(one, two, SEED_KEYS);
	/* random: hash_seed must not matter */
	overflow_picture(false, 42, one);
	overflow_picture(false, 42, two);
	ck_assert_mem_ne(one, two, SEED_KEYS);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("full");
	TCase *policy = tcase_create("policy");
	TCase *reuse = tcase_create("reuse");

	tcase_set_timeout(policy, 120);
	tcase_add_test(policy, capacity_is_kept);
	tcase_add_test(policy, every_slot_is_used);
	tcase_add_test(policy, deny_policy);
	tcase_add_test(policy, allow_policy);
	tcase_add_test(policy, shared_policy);
	tcase_add_test(policy, known_keys_are_untouched);
	tcase_add_test(policy, steady_key_in_a_flood);
	tcase_add_test(policy, each_packet_in_one_class);
	tcase_add_test(policy, seeds);
	suite_add_tcase(s, policy);

	tcase_set_timeout(reuse, 120);
	tcase_add_test(reuse, ten_minutes_of_new_keys);
	tcase_add_test(reuse, millions_of_keys_in_turn);
	tcase_add_test(reuse, not_forgotten_before_full);
	tcase_add_test(reuse, no_fresh_bucket_for_its_age);
	tcase_add_test(reuse, skew_delays_forgetting);
	tcase_add_test(reuse, no_trace_without_a_take);
	suite_add_tcase(s, reuse);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
