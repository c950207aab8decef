/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that meet a new key at the same moment: one entry comes of it, and
 * one bucket. The table is the smallest there is, so that every key's window
 * is the whole table and the threads want the same slots; all entries of one
 * round are idle in the next and get reused.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "crew.h"

#define S NSEC_PER_SEC

enum {
	ROUNDS = 20000,
	TOGETHER = 4, /* rounds at one instant, between two meetings */
	KEYS_MAX = 8, /* 4 x 8 entries and 8 claims fit the 64 slots */
	CAPACITY = 5,
	ASKS = 4, /* of each key by each thread, more than there is by two */
};

static const unsigned sizes[] = { 2, 4, 8 };

struct race {
	uint32_t limit;
	unsigned keys;
	uint64_t rounds;
	/* tokens passed, by thread, round and key */
	uint8_t (*passed)[ROUNDS][KEYS_MAX];
};

/*
 * Meeting takes far longer than a round, so the threads may be some rounds
 * apart. Time only moves when they meet: a clock of the last round would be
 * later than the skew allows, and what it asks for may be forgotten.
 */
static uint64_t
round_now_ns(uint64_t round)
{
	return round / TOGETHER * NSEC_PER_MS;
}

/* The keys in another order for each thread. */
static void
shuffle(struct member *m, unsigned *order, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned at = (unsigned)rng_below(&m->rng, i + 1);

		order[i] = order[at];
		order[at] = i;
	}
}

static void
round_one_by_one(struct member *m, struct race *race, uint64_t round,
    const unsigned *order)
{
	for (unsigned i = 0; i < race->keys * ASKS; i++) {
		unsigned k = order[i % race->keys];
		uint64_t key = round * KEYS_MAX + k;

		race->passed[m->index][round][k] += member_ask(m, race->limit,
		    &key, 1, round_now_ns(round)).verdict;
	}
}

static void
round_burst(struct member *m, struct race *race, uint64_t round,
    const unsigned *order)
{
	struct weir_request requests[KEYS_MAX * ASKS] = { { NULL } };
	uint8_t verdicts[KEYS_MAX * ASKS];
	uint64_t keys[KEYS_MAX];
	unsigned n = race->keys * ASKS;

	for (unsigned k = 0; k < race->keys; k++)
		keys[k] = round * KEYS_MAX + k;
	for (unsigned i = 0; i < n; i++)
		requests[i] = request(race->limit,
		    &keys[order[i % race->keys]], 1);
	weir_check_burst(m->worker, requests, n, round_now_ns(round), verdicts,
	    NULL);
	for (unsigned i = 0; i < n; i++)
		race->passed[m->index][round][order[i % race->keys]] +=
		    verdicts[i];
}

static void
race_job(struct member *m)
{
	struct race *race = m->crew->shared;

	for (uint64_t round = 0; round < race->rounds; round++) {
		unsigned order[KEYS_MAX];

		shuffle(m, order, race->keys);
		if (round % TOGETHER == 0)
			crew_meet(m);
		if (round % 3 == 0)
			round_burst(m, race, round, order);
		else
			round_one_by_one(m, race, round, order);
		weir_worker_quiesce(m->worker);
	}
}

static void
judge(const struct race *race, unsigned threads)
{
	for (uint64_t round = 0; round < race->rounds; round++)
		for (unsigned k = 0; k < race->keys; k++) {
			unsigned passed = 0;

			for (unsigned i = 0; i < threads; i++)
				passed += race->passed[i][round][k];
			if (passed != CAPACITY)
				ck_abort_msg("%u threads, %u keys, round %"
				    PRIu64 ", key %u: %u of %d passed",
				    threads, race->keys, round, k, passed,
				    CAPACITY);
		}
}

static void
race_for(unsigned keys)
{
	uint64_t seed = test_seed("insert race");

	for (size_t s = 0; s < NELEM(sizes); s++) {
		struct weir_engine_params params = rig_params(1, 8);
		struct race race = {
			.keys = keys,
			.rounds = test_scale(ROUNDS),
			.passed = calloc(CREW_MAX, sizeof(*race.passed)),
		};
		struct weir_counters c;
		struct crew crew;
		struct rig rig;

		ck_assert_ptr_nonnull(race.passed);
		if (race.rounds > ROUNDS)
			race.rounds = ROUNDS;
		rig_open(&rig, &params);
		/* Full again 0.5 ms after it was emptied. */
		race.limit = limit_add(rig.engine, "l", 10000, S, CAPACITY,
		    WEIR_UNIT_PACKETS);
		weir_worker_offline(rig.worker);
		crew_run(&crew, rig.engine, sizes[s], seed, race_job, &race);
		weir_worker_online(rig.worker);
		weir_engine_counters(rig.engine, race.limit, &c);
		ck_assert_uint_eq(c.full_denied_packets, 0);
		judge(&race, sizes[s]);
		rig_close(&rig);
		free(race.passed);
	}
}

START_TEST(one_key)
{
	race_for(1);
}
END_TEST

START_TEST(many_keys)
{
	race_for(KEYS_MAX);
}
END_TEST

/* B051: four tables, four threads, nothing shared but the code. */
struct apart {
	struct weir_engine *engine[4];
	uint32_t limit[4];
	uint64_t keys;
	uint64_t passed[4];
};

static void
apart_job(struct member *m)
{
	struct apart *apart = m->crew->shared;
	struct weir_worker *worker;

	if (weir_worker_attach(apart->engine[m->index], &worker) != 0) {
		m->trouble = "attach";
		return;
	}
	for (uint64_t key = 0; key < apart->keys; key++) {
		struct weir_request r = request(apart->limit[m->index], &key,
		    1);

		apart->passed[m->index] += weir_check(worker, &r, 0, NULL);
		weir_worker_quiesce(worker);
	}
	weir_worker_detach(worker);
}

START_TEST(tables_apart)
{
	struct apart apart = { .keys = test_scale(100000) };
	struct weir_engine_params params = rig_params(apart.keys, 8);
	struct crew crew;
	struct rig rig;

	rig_open(&rig, &params);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(weir_engine_create(&params,
		    &apart.engine[i], NULL), 0);
		apart.limit[i] = limit_add(apart.engine[i], "l", 1, S, 1,
		    WEIR_UNIT_PACKETS);
	}
	crew_run(&crew, rig.engine, 4, 0, apart_job, &apart);
	for (int i = 0; i < 4; i++) {
		ck_assert_uint_eq(apart.passed[i], apart.keys);
		ck_assert_int_eq(weir_engine_destroy(apart.engine[i]), 0);
	}
	rig_close(&rig);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("insert race");
	TCase *tc = tcase_create("new keys");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, one_key);
	tcase_add_test(tc, many_keys);
	tcase_add_test(tc, tables_apart);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
