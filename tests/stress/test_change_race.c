/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A limit that is changed thousands of times while threads draw on one bucket:
 * what they get is what it held and what came in, at the rates that were in
 * force, to the token.
 *
 * The time is a shared number that the changer moves on after each change, so
 * nobody decides by an old version at a time for which there is a newer one.
 */
#include "crew.h"

#define S NSEC_PER_SEC
#define FIRST_RATE 1001u /* its units are 10^-9 of a token */

enum {
	CHANGES = 20000,
	FIRST_CAPACITY = 1000,
	BURST = 8,
};

typedef unsigned __int128 wide;

struct world {
	uint32_t limit;
	uint64_t changes;
	bool clamped; /* capacities change, too */
	_Atomic uint64_t now_ns;
	_Atomic bool over;
	wide came_in; /* the changer's, in 10^-9 of a token */
	int failed;   /* a change that was refused */
};

static const uint64_t key = 42;

static void
change(struct member *m, struct world *w, uint64_t now_ns)
{
	uint64_t rate = 1 + rng_magnitude(&m->rng, 22);
	uint64_t ns = rng_magnitude(&m->rng, 24);
	struct weir_limit_params params = limit_params("hot", rate, S,
	    w->clamped ? 1 + rng_magnitude(&m->rng, 16) : 1ull << 24,
	    WEIR_UNIT_PACKETS);
	int rc = weir_limit_set(m->crew->engine, w->limit, &params, now_ns,
	    NULL);

	if (rc != 0)
		w->failed = rc;
	w->came_in += (wide)rate * ns;
	/* release -> acquire in draw(): who sees the time finds the version */
	atomic_store_explicit(&w->now_ns, now_ns + ns, memory_order_release);
	weir_worker_quiesce(m->worker);
}

static void
draw(struct member *m, struct world *w)
{
	struct weir_request requests[BURST];
	uint8_t verdicts[BURST];
	uint32_t found;
	uint64_t now_ns = atomic_load_explicit(&w->now_ns,
	    memory_order_acquire);

	for (int i = 0; i < BURST; i++)
		requests[i] = request(w->limit, &key,
		    rng_magnitude(&m->rng, 4));
	weir_check_burst(m->worker, requests, BURST, now_ns, verdicts, NULL);
	for (int i = 0; i < BURST; i++) {
		if (verdicts[i] == WEIR_PASS)
			m->passed += requests[i].packets;
	}
	/* Versions are freed behind the back of who looks them up. */
	if (weir_limit_find(m->crew->engine, "hot", &found) != 0 ||
	    found != w->limit)
		m->trouble = "the limit was not found";
	crew_step(m);
	weir_worker_quiesce(m->worker);
}

/* The first one changes, the others draw. */
static void
job(struct member *m)
{
	struct world *w = m->crew->shared;

	crew_meet(m);
	if (m->index != 0) {
		while (!atomic_load(&w->over))
			draw(m, w);
		return;
	}
	for (uint64_t i = 0; i < w->changes; i++) {
		change(m, w, atomic_load(&w->now_ns));
		if (i % 64 == 0)
			crew_await_step(m);
	}
	atomic_store(&w->over, true);
}

static void
run(bool clamped)
{
	struct world w = {
		.clamped = clamped,
		.changes = test_scale(CHANGES),
		.now_ns = S,
	};
	struct weir_engine_params params = rig_params(100, sizeof(key));
	struct weir_decision d;
	uint64_t passed;
	struct crew crew;
	struct rig rig;
	wide bound;

	rig_open(&rig, &params);
	w.limit = limit_add(rig.engine, "hot", FIRST_RATE, S, FIRST_CAPACITY,
	    WEIR_UNIT_PACKETS);
	/* Not full, so that the first capacity does not clamp. */
	ask(&rig, w.limit, &key, FIRST_CAPACITY, S);
	weir_worker_offline(rig.worker);
	crew_run(&crew, rig.engine, 4, test_seed("change race"), job, &w);
	weir_worker_online(rig.worker);

	ck_assert_int_eq(w.failed, 0);
	for (unsigned i = 0; i < crew.size; i++)
		ck_assert_msg(!crew.member[i].trouble, "%s",
		    crew.member[i].trouble);
	passed = crew_passed(&crew);
	ck_assert_uint_gt(passed, 0);
	bound = w.came_in / S;
	d = ask(&rig, w.limit, &key, 0, w.now_ns);
	if (clamped)
		ck_assert_uint_le(passed + d.remaining, (uint64_t)bound);
	else
		ck_assert_uint_eq(passed + d.remaining, (uint64_t)bound);
	rig_close(&rig);
}

START_TEST(nothing_is_lost_or_made)
{
	run(false);
}
END_TEST

START_TEST(nothing_is_made_by_capacities)
{
	run(true);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("change_race");
	TCase *tc = tcase_create("change_race");

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, nothing_is_lost_or_made);
	tcase_add_test(tc, nothing_is_made_by_capacities);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
