/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that are hammered while other keys come and go through the same few
 * slots, and while their own entries are forgotten and made anew. In each
 * phase every key starts from a full bucket; what passes for it is then at
 * most its capacity and what came in during the phase.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "crew.h"

#define S NSEC_PER_SEC

enum {
	PHASES = 2000,
	HOT = 8,
	PHASE_NS = 20000,
	PHASE_STEPS = 50,
	SKEW_NS = 5000,
	CAPACITY = 10,
	TOKENS_PER_MS = 100, /* 2 in a phase, full after 0.1 ms */
};

static const unsigned sizes[] = { 2, 4, 8 };

struct churn {
	uint32_t hot_limit, cold_limit;
	uint64_t phases, era_ns;
	uint16_t (*passed)[PHASES][HOT];
};

/* Every phase starts long after the last was over, at times eras after. */
static uint64_t
phase_start_ns(const struct churn *churn, uint64_t phase)
{
	uint64_t start_ns = 1000000 + phase * 1000000;

	return start_ns + phase / 8 * churn->era_ns;
}

/* One that passes through: it is idle again after 1 us and the skew. */
static void
ask_stranger(struct member *m, const struct churn *churn, uint64_t now_ns)
{
	uint64_t key = rng_next(&m->rng) | 1ull << 63;

	member_ask(m, churn->cold_limit, &key, 1, now_ns);
}

static void
ask_hot(struct member *m, const struct churn *churn, uint64_t phase,
    uint64_t now_ns)
{
	uint16_t *passed = churn->passed[m->index][phase];
	struct weir_request requests[2 * HOT];
	uint64_t keys[2 * HOT];
	uint8_t verdicts[2 * HOT];

	if (rng_below(&m->rng, 2)) {
		keys[0] = rng_below(&m->rng, HOT);
		passed[keys[0]] += (uint16_t)member_ask(m, churn->hot_limit,
		    &keys[0], 1, now_ns).verdict;
		return;
	}
	for (unsigned i = 0; i < 2 * HOT; i++) {
		keys[i] = rng_below(&m->rng, HOT);
		requests[i] = request(churn->hot_limit, &keys[i], 1);
	}
	weir_check_burst(m->worker, requests, 2 * HOT, now_ns, verdicts,
	    NULL);
	for (unsigned i = 0; i < 2 * HOT; i++)
		passed[keys[i]] += verdicts[i];
}

static void
churn_job(struct member *m)
{
	struct churn *churn = m->crew->shared;

	for (uint64_t phase = 0; phase < churn->phases; phase++) {
		uint64_t start_ns = phase_start_ns(churn, phase);

		crew_meet(m);
		for (uint64_t step = 0; step <= PHASE_STEPS; step++) {
			uint64_t now_ns = start_ns +
			    step * (PHASE_NS / PHASE_STEPS);

			/* each clock is late by something else */
			now_ns -= rng_below(&m->rng, SKEW_NS);
			ask_hot(m, churn, phase, now_ns);
			ask_stranger(m, churn, now_ns);
		}
		weir_worker_quiesce(m->worker);
	}
}

static void
judge(const struct churn *churn, unsigned threads)
{
	/* 2 come in, and 1 for the start of the phase being late */
	const unsigned most = CAPACITY +
	    (PHASE_NS + SKEW_NS) * TOKENS_PER_MS / 1000000;
	uint64_t sum = 0;

	for (uint64_t phase = 0; phase < churn->phases; phase++)
		for (unsigned k = 0; k < HOT; k++) {
			unsigned passed = 0;

			for (unsigned i = 0; i < threads; i++)
				passed += churn->passed[i][phase][k];
			if (passed > most)
				ck_abort_msg("%u threads, phase %" PRIu64
				    ", key %u: %u passed, at most %u may",
				    threads, phase, k, passed, most);
			sum += passed;
		}
	/* And they are asked hard enough for the bound to mean something. */
	ck_assert_uint_ge(sum, churn->phases * HOT * CAPACITY * 9 / 10);
}

static void
churn_with(uint64_t tokens, uint64_t period_ns, uint64_t era_ns)
{
	uint64_t seed = test_seed("churn");

	for (size_t s = 0; s < NELEM(sizes); s++) {
		struct weir_engine_params params = rig_params(1, 8);
		struct churn churn = {
			.phases = test_scale(PHASES),
			.era_ns = era_ns,
			.passed = calloc(CREW_MAX, sizeof(*churn.passed)),
		};
		struct crew crew;
		struct rig rig;

		ck_assert_ptr_nonnull(churn.passed);
		if (churn.phases > PHASES)
			churn.phases = PHASES;
		params.clock_skew_ns = PHASE_NS + SKEW_NS;
		rig_open(&rig, &params);
		churn.hot_limit = limit_add(rig.engine, "hot", tokens,
		    period_ns, CAPACITY, WEIR_UNIT_PACKETS);
		churn.cold_limit = limit_add(rig.engine, "cold", 1000003,
		    1000000007, 1, WEIR_UNIT_PACKETS);
		weir_worker_offline(rig.worker);
		crew_run(&crew, rig.engine, sizes[s], seed, churn_job,
		    &churn);
		weir_worker_online(rig.worker);
		judge(&churn, sizes[s]);
		rig_close(&rig);
		free(churn.passed);
	}
}

START_TEST(hot_among_strangers)
{
	churn_with(TOKENS_PER_MS, NSEC_PER_MS, 0);
}
END_TEST

/*
 * The same rate but for 1e-10, as a fraction of such large numbers that an
 * era lasts only 8.6 s. One or some eras on, an entry is read another way.
 */
START_TEST(eras_between_phases)
{
	churn_with(8388593, 83885930007, 9 * S);
	churn_with(8388593, 83885930007, 40 * S);
}
END_TEST

/* B047: one known key while thousands of new ones come in. */
struct inflow {
	uint32_t limit;
	uint64_t keys;
	_Atomic uint64_t passed;
};

static void
inflow_job(struct member *m)
{
	struct inflow *in = m->crew->shared;
	uint64_t known = 0, passed = 0;

	for (uint64_t i = 0; i < in->keys; i++) {
		uint64_t stranger = 1 + m->index * in->keys + i;

		if (m->index % 2 == 0)
			passed += member_ask(m, in->limit, &known, 1,
			    7).verdict;
		else
			member_ask(m, in->limit, &stranger, 1000, 7);
	}
	atomic_fetch_add(&in->passed, passed);
}

START_TEST(known_key_in_an_inflow)
{
	struct weir_engine_params params = rig_params(16000, 8);
	struct inflow in = { .keys = 3000 };
	struct crew crew;
	struct rig rig;

	for (int i = 0; i < 20; i++) {
		atomic_init(&in.passed, 0);
		rig_open(&rig, &params);
		in.limit = limit_add(rig.engine, "l", 1, S, 1000,
		    WEIR_UNIT_PACKETS);
		crew_run(&crew, rig.engine, 8, 0, inflow_job, &in);
		ck_assert_uint_eq(atomic_load(&in.passed), 1000);
		ck_assert_uint_eq(crew_full(&crew), 0);
		/* each stranger took all its 1000 at once */
		ck_assert_uint_eq(crew_passed(&crew),
		    1000 + 4 * in.keys * 1000);
		rig_close(&rig);
	}
}
END_TEST

/*
 * A table that is too small: some keys find room and others do not, and the
 * two change places all the time. No key gets more than its bucket, nor do
 * all strangers together more than the shared ones.
 */
static void
crowd_job(struct member *m)
{
	const uint32_t *limit = m->crew->shared;

	for (uint64_t i = 0; i < test_scale(200000); i++) {
		uint64_t key = rng_below(&m->rng, 1000);
		uint64_t now_ns = i * 100;

		member_ask(m, *limit, &key, 1, now_ns);
	}
}

START_TEST(crowded_and_shared)
{
	struct weir_engine_params params = rig_params(1, 8);
	struct weir_counters c;
	struct crew crew;
	struct rig rig;
	uint32_t limit;

	params.full_policy = WEIR_FULL_SHARED;
	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1000, S, 1, WEIR_UNIT_PACKETS);
	crew_run(&crew, rig.engine, 8, test_seed("crowd"), crowd_job, &limit);
	weir_engine_counters(rig.engine, limit, &c);
	ck_assert_uint_eq(c.passed_packets, crew_passed(&crew));
	ck_assert_uint_eq(c.denied_packets, crew_denied(&crew));
	ck_assert_uint_eq(c.full_passed_packets + c.full_denied_packets,
	    crew_full(&crew));
	ck_assert_uint_eq(crew_passed(&crew) + crew_denied(&crew) +
	    crew_full(&crew), 8 * test_scale(200000));
	rig_close(&rig);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("churn");
	TCase *tc = tcase_create("reuse");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, hot_among_strangers);
	tcase_add_test(tc, eras_between_phases);
	tcase_add_test(tc, known_key_in_an_inflow);
	tcase_add_test(tc, crowded_and_shared);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
