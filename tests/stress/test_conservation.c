/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nothing is spent twice and nothing is lost: what threads together get out
 * of one bucket is what it held and what came in, to the token.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "crew.h"

#define S NSEC_PER_SEC

enum {
	REPETITIONS = 1000,
	CAPACITY = 300,
	ASKS = 1000,
	BURST = 32,
};

static const unsigned sizes[] = { 2, 4, 8 };

struct frozen {
	uint32_t limit;
	uint64_t repetitions;
	bool burst;
	uint64_t passed[CREW_MAX][REPETITIONS]; /* tokens */
	uint64_t asked[CREW_MAX];
};

static uint64_t
ask_burst(struct member *m, struct frozen *f, uint64_t key, uint64_t now_ns)
{
	struct weir_request requests[BURST];
	uint64_t other = ~key, passed = 0;
	uint8_t verdicts[BURST];

	/* of two keys, that there are groups to be made */
	for (int i = 0; i < BURST; i++)
		requests[i] = request(f->limit, i % 2 == 0 ? &key : &other,
		    1 + rng_below(&m->rng, 3));
	weir_check_burst(m->worker, requests, BURST, now_ns, verdicts, NULL);
	for (int i = 0; i < BURST; i++) {
		f->asked[m->index] += requests[i].packets;
		if (verdicts[i] == WEIR_PASS && i % 2 == 0)
			passed += requests[i].packets;
	}
	return passed;
}

static uint64_t
ask_one(struct member *m, struct frozen *f, uint64_t key, uint64_t now_ns)
{
	f->asked[m->index]++;
	return member_ask(m, f->limit, &key, 1, now_ns).verdict;
}

/* A fresh key at one instant, asked for more than there is by each. */
static void
frozen_job(struct member *m)
{
	struct frozen *f = m->crew->shared;

	for (uint64_t rep = 0; rep < f->repetitions; rep++) {
		uint64_t now_ns = rep * 1000, passed = 0;

		crew_meet(m);
		if (f->burst)
			for (int i = 0; i < ASKS / BURST; i++)
				passed += ask_burst(m, f, rep, now_ns);
		/* Down to the last token. */
		for (int i = 0; i < ASKS; i++)
			passed += ask_one(m, f, rep, now_ns);
		f->passed[m->index][rep] = passed;
	}
}

static void
frozen(bool burst)
{
	static struct frozen f;
	uint64_t seed = test_seed("frozen");

	for (size_t s = 0; s < NELEM(sizes); s++) {
		struct weir_engine_params params =
		    rig_params(4 * REPETITIONS, 8);
		struct weir_counters c;
		uint64_t asked = 0;
		struct crew crew;
		struct rig rig;

		rig_open(&rig, &params);
		f.limit = limit_add(rig.engine, "l", 1, NSEC_PER_YEAR / 100,
		    CAPACITY, WEIR_UNIT_PACKETS);
		f.repetitions = burst ? test_scale(REPETITIONS / 4) :
		    test_scale(REPETITIONS);
		if (f.repetitions > REPETITIONS)
			f.repetitions = REPETITIONS;
		f.burst = burst;
		for (unsigned i = 0; i < CREW_MAX; i++)
			f.asked[i] = 0;
		weir_worker_offline(rig.worker);
		crew_run(&crew, rig.engine, sizes[s], seed, frozen_job, &f);
		weir_worker_online(rig.worker);

		for (uint64_t rep = 0; rep < f.repetitions; rep++) {
			uint64_t passed = 0;

			for (unsigned i = 0; i < sizes[s]; i++)
				passed += f.passed[i][rep];
			if (passed != CAPACITY)
				ck_abort_msg("%u threads, repetition %" PRIu64
				    ": %" PRIu64 " of %d passed", sizes[s],
				    rep, passed, CAPACITY);
		}
		for (unsigned i = 0; i < sizes[s]; i++)
			asked += f.asked[i];
		weir_engine_counters(rig.engine, f.limit, &c);
		ck_assert_uint_eq(c.passed_packets + c.denied_packets, asked);
		ck_assert_uint_eq(c.full_denied_packets, 0);
		if (!burst)
			ck_assert_uint_eq(c.passed_packets,
			    f.repetitions * CAPACITY);
		rig_close(&rig);
	}
}

/* B041 */
START_TEST(frozen_one_by_one)
{
	frozen(false);
}
END_TEST

START_TEST(frozen_in_bursts)
{
	frozen(true);
}
END_TEST

/* B042: mixed costs, drawn until not even 1 is left. */
static void
mixed_job(struct member *m)
{
	static const uint64_t costs[] = { 1500, 64, 1 };
	const uint32_t *limit = m->crew->shared;
	struct weir_decision d;
	uint64_t key = 1;

	for (unsigned i = 0;; i++) {
		d = member_ask(m, *limit, &key, costs[i % 3], 5);
		if (d.remaining > 1000000)
			m->trouble = "more left than ever was there";
		if (d.verdict == WEIR_DENY && i % 3 == 2)
			return;
	}
}

START_TEST(mixed_costs)
{
	for (size_t s = 0; s < NELEM(sizes); s++) {
		struct weir_engine_params params = rig_params(100, 8);
		uint64_t key = 1;
		struct crew crew;
		struct rig rig;
		uint32_t limit;

		rig_open(&rig, &params);
		limit = limit_add(rig.engine, "l", 1, S, 1000000,
		    WEIR_UNIT_BYTES);
		crew_run(&crew, rig.engine, sizes[s], 0, mixed_job, &limit);
		ck_assert_uint_eq(crew_passed(&crew), 1000000);
		ck_assert_uint_eq(ask(&rig, limit, &key, 0, 5).remaining, 0);
		rig_close(&rig);
	}
}
END_TEST

/* B045: no count is lost. */
static void
count_job(struct member *m)
{
	const uint32_t *limit = m->crew->shared;
	const uint64_t n = test_scale(1000000);
	struct weir_request r = request(*limit, &(uint64_t){ 9 }, 1);

	for (uint64_t i = 0; i < n; i++)
		weir_check(m->worker, &r, i, NULL);
}

START_TEST(counters_add_up)
{
	struct weir_engine_params params = rig_params(100, 8);
	struct weir_counters c;
	struct crew crew;
	struct rig rig;
	uint32_t limit;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, 10, 1000, WEIR_UNIT_PACKETS);
	crew_run(&crew, rig.engine, 8, 0, count_job, &limit);
	weir_engine_counters(rig.engine, limit, &c);
	ck_assert_uint_eq(c.passed_packets + c.denied_packets,
	    8 * test_scale(1000000));
	/* 1000 and one every 10 ns, the first at 0 */
	ck_assert_uint_le(c.passed_packets,
	    1000 + (test_scale(1000000) - 1) / 10);
	ck_assert_uint_ge(c.passed_packets, 1000);
	rig_close(&rig);
}
END_TEST

/*
 * Time moves, and the members' clocks lie apart and step back. The bucket was
 * emptied at the start and is too large to fill up, so whatever comes in can
 * be taken: not a token more, and, once all have joined, not one less.
 */
struct moving {
	uint32_t limit;
	uint64_t start_ns, end_ns, most_cost;
	_Atomic uint64_t now_ns;
};

static void
moving_job(struct member *m)
{
	struct moving *mv = m->crew->shared;
	uint64_t key = 3;

	for (;;) {
		/* relaxed: just a number */
		uint64_t now_ns = atomic_fetch_add_explicit(&mv->now_ns,
		    rng_below(&m->rng, 40), memory_order_relaxed);
		uint64_t late_ns = rng_below(&m->rng, 2) ? 0 :
		    rng_magnitude(&m->rng, 12);
		struct weir_request requests[4];
		uint8_t verdicts[4];

		if (now_ns >= mv->end_ns)
			return;
		now_ns -= late_ns;
		if (rng_below(&m->rng, 2)) {
			member_ask(m, mv->limit, &key,
			    1 + rng_below(&m->rng, mv->most_cost), now_ns);
			continue;
		}
		for (int i = 0; i < 4; i++)
			requests[i] = request(mv->limit, &key,
			    1 + rng_below(&m->rng, mv->most_cost));
		weir_check_burst(m->worker, requests, 4, now_ns, verdicts,
		    NULL);
		for (int i = 0; i < 4; i++)
			if (verdicts[i] == WEIR_PASS)
				m->passed += requests[i].packets;
			else
				m->denied += requests[i].packets;
	}
}

static void
moving(const char *name, uint64_t tokens, uint64_t period_ns,
    uint64_t capacity, uint64_t start_ns, uint64_t span_ns,
    uint64_t most_cost)
{
	uint64_t seed = test_seed(name);

	for (size_t s = 0; s < NELEM(sizes); s++) {
		struct weir_engine_params params = rig_params(100, 8);
		uint64_t key = 3, income, rest;
		struct moving mv = {
			.start_ns = start_ns,
			.end_ns = start_ns + span_ns,
			.most_cost = most_cost,
		};
		struct crew crew;
		struct rig rig;

		rig_open(&rig, &params);
		mv.limit = limit_add(rig.engine, "l", tokens, period_ns,
		    capacity, WEIR_UNIT_PACKETS);
		atomic_init(&mv.now_ns, start_ns);
		ask(&rig, mv.limit, &key, capacity, start_ns);
		crew_run(&crew, rig.engine, sizes[s], seed, moving_job, &mv);

		income = (uint64_t)((unsigned __int128)span_ns * tokens /
		    period_ns);
		rest = ask(&rig, mv.limit, &key, 0, mv.end_ns).remaining;
		ck_assert_uint_lt(income, capacity);
		ck_assert_msg(crew_passed(&crew) + rest == income,
		    "%s, %u threads: %" PRIu64 " passed, %" PRIu64
		    " left, %" PRIu64 " came in", name, sizes[s],
		    crew_passed(&crew), rest, income);
		ck_assert_uint_gt(crew_passed(&crew), 0);
		rig_close(&rig);
	}
}

START_TEST(moving_time)
{
	uint64_t span_ns = 20 * test_scale(400000);

	moving("moving", 1000000, S, 1ull << 30, 3 * S, span_ns, 3);
	moving("fast", 7, 3, 1ull << 40, 1ull << 62, span_ns, 100);
}
END_TEST

/*
 * The same where the count of eras steps: they are 2^33 ns long at 2^23
 * tokens per ns. Half of the time lies on either side, and each late clock
 * may still see the era before.
 */
START_TEST(across_an_era)
{
	uint64_t span_ns = 20 * test_scale(4000);

	for (uint64_t era = 1; era < 40; era++)
		moving("era", 1 << 23, 1, 1ull << 55,
		    (era << 33) - span_ns / 2, span_ns, 200000000);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("conservation");
	TCase *tc = tcase_create("one bucket");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, frozen_one_by_one);
	tcase_add_test(tc, frozen_in_bursts);
	tcase_add_test(tc, mixed_costs);
	tcase_add_test(tc, counters_add_up);
	tcase_add_test(tc, moving_time);
	tcase_add_test(tc, across_an_era);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
