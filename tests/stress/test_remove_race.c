/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits come and go while threads ask by their numbers, in bursts, one by one
 * and in two halves. The time stands still, so each limit that ever was gives
 * one key its capacity and no more; every answer is accounted for.
 */
#include "crew.h"

#define CAPACITY 50u
#define LIMITS 3u

enum {
	REMOVALS = 400,
	BURST = 16,
};

struct world {
	uint64_t removals;
	uint64_t added;
	_Atomic bool over;
	uint64_t unknown[CREW_MAX];
	uint64_t asked[CREW_MAX];
};

static const uint64_t key = 7;

static bool
add(struct weir_engine *engine, const char *name, struct world *w)
{
	struct weir_limit_params params = limit_params(name, 1, NSEC_PER_DAY,
	    CAPACITY, WEIR_UNIT_PACKETS);
	uint32_t limit;

	w->added++;
	return weir_limit_add(engine, &params, &limit, NULL) == 0;
}

static void
come_and_go(struct member *m, struct world *w)
{
	static const char *const names[LIMITS] = { "a", "b", "c" };
	struct weir_engine *engine = m->crew->engine;

	for (uint32_t i = 0; i < LIMITS; i++) {
		if (!add(engine, names[i], w))
			m->trouble = "a limit was refused";
	}
	for (uint64_t i = 0; i < w->removals; i++) {
		const char *name = names[rng_below(&m->rng, LIMITS)];
		uint32_t limit;

		crew_await_step(m); /* to be drawn on before it is removed */
		if (weir_limit_find(engine, name, &limit) != 0 ||
		    weir_limit_remove(engine, limit) != 0 ||
		    !add(engine, name, w))
			m->trouble = "a limit was not what it should be";
		weir_worker_quiesce(m->worker);
	}
}

static void
draw(struct member *m, struct world *w)
{
	struct weir_request requests[BURST];
	struct weir_decision decisions[BURST];
	uint8_t verdicts[BURST];

	for (int i = 0; i < BURST; i++)
		requests[i] = request((uint32_t)rng_below(&m->rng, LIMITS),
		    &key, 1);
	if (rng_below(&m->rng, 2)) {
		weir_prepare(m->worker, requests, BURST);
		weir_worker_quiesce(m->worker);
		weir_decide(m->worker, 1, verdicts, decisions);
	} else {
		weir_check_burst(m->worker, requests, BURST, 1, verdicts,
		    decisions);
	}
	for (int i = 0; i < BURST; i++) {
		w->asked[m->index]++;
		if (decisions[i].decided_by == WEIR_BY_NO_LIMIT)
			w->unknown[m->index]++;
		else if (verdicts[i] == WEIR_PASS)
			m->passed++;
		else
			m->denied++;
	}
	crew_step(m);
	weir_worker_quiesce(m->worker);
}

static void
job(struct member *m)
{
	struct world *w = m->crew->shared;

	crew_meet(m);
	if (m->index == 0) {
		come_and_go(m, w);
		atomic_store(&w->over, true);
	} else {
		while (!atomic_load(&w->over))
			draw(m, w);
	}
}

START_TEST(each_gives_its_capacity)
{
	struct world w = { .removals = test_scale(REMOVALS) };
	struct weir_engine_params params = rig_params(100, sizeof(key));
	uint64_t asked = 0, unknown = 0;
	struct crew crew;
	struct rig rig;

	params.max_limits = LIMITS;
	rig_open(&rig, &params);
	weir_worker_offline(rig.worker);
	crew_run(&crew, rig.engine, 4, test_seed("remove race"), job, &w);
	weir_worker_online(rig.worker);
	ck_assert_msg(!crew.member[0].trouble, "%s", crew.member[0].trouble);
	for (size_t i = 0; i < CREW_MAX; i++) {
		asked += w.asked[i];
		unknown += w.unknown[i];
	}
	ck_assert_uint_eq(crew_passed(&crew) + crew_denied(&crew) + unknown,
	    asked);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), unknown);
	ck_assert_uint_le(crew_passed(&crew), w.added * CAPACITY);
	ck_assert_uint_gt(crew_passed(&crew), w.removals);
	rig_close(&rig);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("remove_race");
	TCase *tc = tcase_create("remove_race");

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, each_gives_its_capacity);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
