/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that work ahead: each has packet bursts waiting while the others
 * take from the same buckets, insert the keys it found missing, and add or
 * change limits. What was seen in the first half must not matter in the
 * second, neither of an entry nor of a limit.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "crew.h"

#define S NSEC_PER_SEC

enum {
	ROUNDS = 20000,
	TOGETHER = 4, /* rounds at one instant, between two meetings */
	KEYS = 8,     /* 4 x 8 entries and 8 claims fit the 64 slots */
	ASKS = 4,
	CAPACITY = 5, /* more is asked for by two threads, or by one */
	N = KEYS * ASKS,
	LIMITS = 60,
};

struct race {
	uint32_t limit;
	uint64_t rounds;
	/* tokens passed, by thread, round and key */
	uint8_t (*by_key)[ROUNDS][KEYS];
};

/* One packet burst, and whose keys it has. */
struct ahead {
	uint64_t round;
	uint64_t key[KEYS];
	struct weir_request requests[N];
};

/* As in the insert race: time moves with the meetings only. */
static uint64_t
round_now_ns(uint64_t round)
{
	return round / TOGETHER * NSEC_PER_MS;
}

static void
prepare_round(struct member *m, struct race *race, struct ahead *a,
    uint64_t round)
{
	unsigned turn = (unsigned)rng_below(&m->rng, KEYS);

	a->round = round;
	for (unsigned i = 0; i < N; i++) {
		unsigned k = (i + turn) % KEYS;

		a->key[k] = round * KEYS + k;
		a->requests[i] = request(race->limit, &a->key[k], 1);
	}
	if (weir_prepare(m->worker, a->requests, N) != 0)
		m->trouble = "prepare";
	/* No longer needed. */
	for (unsigned k = 0; k < KEYS; k++)
		a->key[k] = UINT64_MAX;
}

static void
decide_round(struct member *m, struct race *race, const struct ahead *a)
{
	uint8_t verdicts[N] = { 0 };

	if (weir_decide(m->worker, round_now_ns(a->round), verdicts, NULL) !=
	    N)
		m->trouble = "decide";
	for (unsigned i = 0; i < N; i++) {
		ptrdiff_t k = (const uint64_t *)a->requests[i].key - a->key;

		race->by_key[m->index][a->round][k] += verdicts[i];
	}
	weir_worker_quiesce(m->worker);
}

static void
race_job(struct member *m)
{
	struct race *race = m->crew->shared;
	struct ahead ahead[WEIR_PREPARED_MAX];

	for (uint64_t round = 0; round < race->rounds; round++) {
		struct ahead *next = &ahead[round % 2];
		bool first = round % TOGETHER == 0;

		/* Nobody has the keys when they meet, and all look for them. */
		prepare_round(m, race, next, round);
		if (first)
			crew_meet(m);
		else
			decide_round(m, race, &ahead[(round - 1) % 2]);
		/* Nothing is left for after the meeting: see above. */
		if (round % TOGETHER == TOGETHER - 1 ||
		    round == race->rounds - 1)
			decide_round(m, race, next);
	}
}

static void
judge(const struct race *race, unsigned threads)
{
	for (uint64_t round = 0; round < race->rounds; round++)
		for (unsigned k = 0; k < KEYS; k++) {
			unsigned passed = 0;

			for (unsigned i = 0; i < threads; i++)
				passed += race->by_key[i][round][k];
			if (passed != CAPACITY)
				ck_abort_msg("%u threads, round %" PRIu64
				    ", key %u: %u of %d passed", threads,
				    round, k, passed, CAPACITY);
		}
}

/* New keys each round, all at once: one entry and one bucket for each. */
START_TEST(new_keys)
{
	static const unsigned sizes[] = { 2, 4 };
	uint64_t seed = test_seed("prepare race");

	for (size_t s = 0; s < NELEM(sizes); s++) {
		struct weir_engine_params params = rig_params(1, 8);
		struct race race = {
			.rounds = test_scale(ROUNDS),
			.by_key = calloc(CREW_MAX, sizeof(*race.by_key)),
		};
		struct weir_counters c;
		struct crew crew;
		struct rig rig;

		ck_assert_ptr_nonnull(race.by_key);
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
		ck_assert_uint_eq(c.passed_packets + c.denied_packets,
		    sizes[s] * race.rounds * N);
		judge(&race, sizes[s]);
		rig_close(&rig);
		free(race.by_key);
	}
}
END_TEST

/* A bucket that lasts, and limits that don't. */
struct world {
	uint32_t limit;
	uint64_t turns;
	uint64_t capacity;
	_Atomic unsigned busy; /* drawers that are not done */
	_Atomic uint64_t turn; /* of one of them */
	_Atomic uint32_t added; /* limits, as far as drawers may know */
	uint64_t unknown[CREW_MAX];
	int failed;
};

static const uint64_t hot = 42;

/*
 * Another limit now and then, all along the way of the others, and between two
 * of them another rate for the last one. Each time the set is replaced, and
 * sooner or later freed.
 */
static void
control(struct member *m, struct world *w)
{
	uint32_t limit = w->limit;
	char name[] = "x0";
	uint64_t added = 0;

	for (uint64_t i = 0; atomic_load(&w->busy) > 0; i++) {
		struct weir_limit_params params = limit_params(name, 1,
		    (1 + i % 2) * NSEC_PER_DAY, 1 + i % 3,
		    WEIR_UNIT_PACKETS);
		int rc;

		if (added == 0 || (added < LIMITS &&
		    atomic_load(&w->turn) * LIMITS >= added * w->turns)) {
			name[1] = (char)('0' + added++);
			rc = weir_limit_add(m->crew->engine, &params, &limit,
			    NULL);
			atomic_store(&w->added, limit);
		} else {
			rc = weir_limit_set(m->crew->engine, limit, &params,
			    0, NULL);
		}
		if (rc != 0)
			w->failed = rc;
		weir_worker_quiesce(m->worker);
	}
}

/* Some of the hot key, some of limits that are there, or are about to be. */
static unsigned
draw_prepare(struct member *m, struct world *w, struct weir_request *requests)
{
	unsigned n = 1 + (unsigned)rng_below(&m->rng, WEIR_BURST_MAX);

	for (unsigned i = 0; i < n; i++) {
		uint32_t added = atomic_load(&w->added);
		bool other = rng_below(&m->rng, 4) == 0;

		requests[i] = request(other ?
		    added + (uint32_t)rng_below(&m->rng, 2) : w->limit, &hot,
		    1);
	}
	if (weir_prepare(m->worker, requests, n) != 0)
		m->trouble = "prepare";
	return n;
}

static void
draw_decide(struct member *m, struct world *w,
    const struct weir_request *requests, unsigned n)
{
	struct weir_decision decisions[WEIR_BURST_MAX];
	uint8_t verdicts[WEIR_BURST_MAX];

	weir_worker_quiesce(m->worker);
	if (weir_decide(m->worker, 0, verdicts, decisions) != n) {
		m->trouble = "decide";
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		if (decisions[i].decided_by == WEIR_BY_NO_LIMIT)
			w->unknown[m->index]++;
		else if (requests[i].limit != w->limit)
			m->full++; /* of another limit */
		else if (verdicts[i] == WEIR_PASS)
			m->passed++;
		else
			m->denied++;
	}
}

static void
draw_job(struct member *m)
{
	struct world *w = m->crew->shared;
	struct weir_request requests[2][WEIR_BURST_MAX];
	unsigned n[2] = { 0 };

	crew_meet(m);
	if (m->index == 0) {
		control(m, w);
		return;
	}
	for (uint64_t turn = 0; turn < w->turns && !m->trouble; turn++) {
		n[turn % 2] = draw_prepare(m, w, requests[turn % 2]);
		if (m->index == 1)
			atomic_store(&w->turn, turn);
		if (turn > 0)
			draw_decide(m, w, requests[(turn + 1) % 2],
			    n[(turn + 1) % 2]);
	}
	/* One is left, and goes with the worker. */
	atomic_fetch_sub(&w->busy, 1);
}

START_TEST(limits_come_and_change)
{
	struct weir_engine_params params = rig_params(1000, sizeof(hot));
	struct world w = {
		.turns = test_scale(200000),
		.capacity = test_scale(2000000),
		.busy = 3,
	};
	struct weir_counters c;
	uint64_t unknown = 0;
	struct crew crew;
	struct rig rig;

	rig_open(&rig, &params);
	w.limit = limit_add(rig.engine, "hot", 1, NSEC_PER_DAY, w.capacity,
	    WEIR_UNIT_PACKETS);
	w.added = w.limit;
	weir_worker_offline(rig.worker);
	crew_run(&crew, rig.engine, 4, test_seed("limits"), draw_job, &w);
	weir_worker_online(rig.worker);

	ck_assert_int_eq(w.failed, 0);
	ck_assert_int_eq(weir_engine_counters(rig.engine, w.limit, &c), 0);
	ck_assert_uint_eq(c.passed_packets, crew_passed(&crew));
	ck_assert_uint_eq(c.denied_packets, crew_denied(&crew));
	for (unsigned i = 0; i < CREW_MAX; i++)
		unknown += w.unknown[i];
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), unknown);
	/* More was asked for than there is, and all of it was given. */
	ck_assert_uint_gt(crew_denied(&crew), 0);
	ck_assert_uint_eq(crew_passed(&crew), w.capacity);
	rig_close(&rig);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("prepare race");
	TCase *tc = tcase_create("ahead");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, new_keys);
	tcase_add_test(tc, limits_come_and_change);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
