/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads take from one bucket, all or what there is, and give back, and nothing is made or lost by
 * it: what passed is what came in and what was given back, to the token. Their
 * clocks lie apart, and in the third test lie on both sides of an era's end.
 */
#include <inttypes.h>

#include "crew.h"

#define S NSEC_PER_SEC

static const unsigned sizes[] = { 2, 4, 8 };

struct shared {
	uint32_t limit;
	uint64_t end_ns, most_cost;
	_Atomic uint64_t now_ns;
	uint64_t given[CREW_MAX];
	uint64_t cut[CREW_MAX]; /* refunds for which there was no room */
};

static void
spend(struct member *m, uint64_t key, uint64_t now_ns)
{
	const struct shared *sh = m->crew->shared;
	struct weir_request requests[4];
	uint8_t verdicts[4];

	switch (rng_below(&m->rng, 3)) {
	case 0:
		member_ask(m, sh->limit, &key,
		    1 + rng_below(&m->rng, sh->most_cost), now_ns);
		return;
	case 1:
		requests[0] = request(sh->limit, &key,
		    1 + rng_below(&m->rng, sh->most_cost));
		m->passed += weir_take(m->worker, &requests[0], now_ns, NULL);
		return;
	}
	for (int i = 0; i < 4; i++)
		requests[i] = request(sh->limit, &key,
		    1 + rng_below(&m->rng, sh->most_cost));
	weir_check_burst(m->worker, requests, 4, now_ns, verdicts, NULL);
	for (int i = 0; i < 4; i++)
		if (verdicts[i] == WEIR_PASS)
			m->passed += requests[i].packets;
}

static void
give_back(struct member *m, uint64_t key, uint64_t now_ns)
{
	struct shared *sh = m->crew->shared;
	uint64_t cost = rng_below(&m->rng, sh->most_cost);
	struct weir_request r = request(sh->limit, &key, cost);
	uint64_t given = weir_refund(m->worker, &r, now_ns);

	sh->given[m->index] += given;
	sh->cut[m->index] += given < cost;
	if (given > cost)
		m->trouble = "more was given back than there was";
}

static void
spend_and_give_back(struct member *m)
{
	struct shared *sh = m->crew->shared;

	for (;;) {
		/* relaxed: just a number */
		uint64_t now_ns = atomic_fetch_add_explicit(&sh->now_ns,
		    rng_below(&m->rng, 40), memory_order_relaxed);

		if (now_ns >= sh->end_ns)
			return;
		if (rng_below(&m->rng, 2))
			now_ns -= rng_magnitude(&m->rng, 12);
		if (rng_below(&m->rng, 3))
			spend(m, 3, now_ns);
		else
			give_back(m, 3, now_ns);
	}
}

/*
 * The bucket is emptied at the start and is too large to fill up again, so all
 * that is given back finds room, and all that comes in can be taken.
 */
static void
run(const char *name, uint64_t tokens, uint64_t period_ns, uint64_t capacity,
    uint64_t debt, uint64_t start_ns, uint64_t span_ns, uint64_t most_cost)
{
	uint64_t seed = test_seed(name);

	for (size_t s = 0; s < NELEM(sizes); s++) {
		struct weir_engine_params params = rig_params(100, 8);
		struct weir_limit_params p = limit_params("l", tokens,
		    period_ns, capacity, WEIR_UNIT_PACKETS);
		uint64_t key = 3, income, given = 0;
		struct weir_decision rest;
		struct shared sh = {
			.end_ns = start_ns + span_ns,
			.most_cost = most_cost,
		};
		struct crew crew;
		struct rig rig;

		rig_open(&rig, &params);
		p.debt = debt;
		ck_assert_int_eq(weir_limit_add(rig.engine, &p, &sh.limit,
		    NULL), 0);
		atomic_init(&sh.now_ns, start_ns);
		ask(&rig, sh.limit, &key, capacity, start_ns);
		crew_run(&crew, rig.engine, sizes[s], seed,
		    spend_and_give_back, &sh);

		for (unsigned i = 0; i < sizes[s]; i++) {
			ck_assert_ptr_null(crew.member[i].trouble);
			given += sh.given[i];
		}
		income = (uint64_t)((unsigned __int128)span_ns * tokens /
		    period_ns);
		rest = ask(&rig, sh.limit, &key, 0, sh.end_ns);
		ck_assert_uint_lt(rest.remaining, capacity);
		ck_assert_uint_le(rest.debt, debt);
		ck_assert_msg(crew_passed(&crew) + rest.remaining ==
		    income + given + rest.debt,
		    "%s, %u threads: %" PRIu64 " passed, %" PRIu64 " left, %"
		    PRIu64 " owed, %" PRIu64 " came in, %" PRIu64
		    " were given back", name, sizes[s], crew_passed(&crew),
		    rest.remaining, rest.debt, income, given);
		ck_assert_uint_gt(given, 0);
		ck_assert_uint_gt(crew_passed(&crew), 0);
		rig_close(&rig);
	}
}

START_TEST(conserved)
{
	uint64_t span_ns = 20 * test_scale(200000);

	run("slow", 1000000, S, 1ull << 30, 0, 3 * S, span_ns, 3);
	run("fast", 7, 3, 1ull << 40, 0, 1ull << 62, span_ns, 100);
	run("debt", 7, 3, 1ull << 40, 150, 1ull << 62, span_ns, 100);
}
END_TEST

START_TEST(conserved_across_an_era)
{
	uint64_t span_ns = 20 * test_scale(4000);

	for (uint64_t era = 1; era < 20; era++)
		run("era", 1 << 23, 1, 1ull << 54, era % 2 << 54,
		    (era << 33) - span_ns / 2, span_ns, 200000000);
}
END_TEST

/*
 * A small bucket that is full time and again: what finds no room is lost, and
 * nothing beyond passes.
 */
START_TEST(never_beyond)
{
	uint64_t seed = test_seed("never beyond");

	for (size_t s = 0; s < NELEM(sizes); s++) {
		struct weir_engine_params params = rig_params(100, 8);
		uint64_t span_ns = 20 * test_scale(200000), given = 0, cut = 0;
		struct shared sh = {
			.end_ns = 3 * S + span_ns,
			.most_cost = 60,
		};
		struct crew crew;
		struct rig rig;

		rig_open(&rig, &params);
		sh.limit = limit_add(rig.engine, "l", 1, 10, 50,
		    WEIR_UNIT_PACKETS);
		atomic_init(&sh.now_ns, 3 * S);
		crew_run(&crew, rig.engine, sizes[s], seed,
		    spend_and_give_back, &sh);
		for (unsigned i = 0; i < sizes[s]; i++) {
			given += sh.given[i];
			cut += sh.cut[i];
		}
		ck_assert_uint_gt(cut, 0);
		/* each of those may have given a fraction of a token, too */
		ck_assert_uint_le(crew_passed(&crew),
		    50 + span_ns / 10 + given + cut);
		rig_close(&rig);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("refund");
	TCase *tc = tcase_create("one bucket");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, conserved);
	tcase_add_test(tc, conserved_across_an_era);
	tcase_add_test(tc, never_beyond);
	suite_add_tcase(s, tc);
	return test_run(s);
}
