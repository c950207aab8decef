/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control calls while others decide: workers that come and go, limits that
 * are added, counters that are read, an engine that must not go away.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "crew.h"

#define S NSEC_PER_SEC

enum {
	THREADS = 4,
	LIMITS = 200,
};

struct control {
	struct weir_engine *engine;
	_Atomic uint32_t limits; /* added so far: numbers 0 .. limits - 1 */
	_Atomic bool stop;
	_Atomic uint64_t asked;
	uint64_t turns;
};

static void
decide_some(struct member *m, struct control *c, struct weir_worker *worker)
{
	uint32_t limits = atomic_load_explicit(&c->limits,
	    memory_order_acquire);
	struct weir_request requests[16];
	uint64_t keys[16];
	uint8_t verdicts[16];

	for (int i = 0; i < 16; i++) {
		keys[i] = rng_below(&m->rng, 50);
		requests[i] = request((uint32_t)rng_below(&m->rng, limits),
		    &keys[i], 1);
	}
	weir_check_burst(worker, requests, 16, 1, verdicts, NULL);
	atomic_fetch_add_explicit(&c->asked, 16, memory_order_relaxed);
}

/* Workers that stay, and now and then go offline. */
static void
steady_turn(struct member *m, struct control *c)
{
	decide_some(m, c, m->worker);
	weir_worker_quiesce(m->worker);
	if (rng_below(&m->rng, 64) == 0) {
		weir_worker_offline(m->worker);
		weir_worker_online(m->worker);
	}
}

/* A second worker of the same thread that comes and goes. */
static void
passing_turn(struct member *m, struct control *c)
{
	struct weir_worker *worker;

	if (weir_worker_attach(c->engine, &worker) != 0) {
		m->trouble = "attach";
		return;
	}
	decide_some(m, c, worker);
	weir_worker_detach(worker);
	weir_worker_quiesce(m->worker);
}

static uint64_t
sum(const struct weir_counters *c)
{
	return c->passed_packets + c->denied_packets +
	    c->full_passed_packets + c->full_denied_packets;
}

/* Readings never go back. */
static void
reading_turn(struct member *m, struct control *c, struct weir_counters *last)
{
	struct weir_counters now, own;
	uint32_t limit = 0;

	if (weir_engine_counters(c->engine, limit, &now) != 0 ||
	    weir_worker_counters(m->worker, limit, &own) != 0)
		m->trouble = "counters";
	if (now.passed_packets < last->passed_packets ||
	    now.denied_packets < last->denied_packets ||
	    sum(&now) < sum(last))
		m->trouble = "a counter went back";
	if (weir_engine_unknown_limits(c->engine) != 0)
		m->trouble = "a limit was unknown";
	*last = now;
	weir_worker_quiesce(m->worker);
}

/* Adds limits; the last of the crew, and the one who ends it. */
static void
adding_job(struct member *m, struct control *c)
{
	for (unsigned i = 1; i < LIMITS; i++) {
		struct weir_limit_params p, back = { .size = sizeof(back) };
		uint32_t limit, found;
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		p = limit_params(name, 1, S, 3, WEIR_UNIT_PACKETS);
		if (weir_limit_add(c->engine, &p, &limit, NULL) != 0 ||
		    limit != i)
			m->trouble = "limit was not added";
		if (weir_limit_find(c->engine, name, &found) != 0 ||
		    found != limit)
			m->trouble = "limit was not found";
		if (weir_limit_get(c->engine, limit, &back) != 0 ||
		    back.capacity != 3)
			m->trouble = "limit was not read back";
		if (weir_engine_destroy(c->engine) != -EBUSY)
			m->trouble = "destroyed under its workers";
		atomic_store_explicit(&c->limits, i + 1, memory_order_release);
		for (int n = 0; n < 20; n++)
			steady_turn(m, c);
	}
	atomic_store(&c->stop, true);
}

static void
control_job(struct member *m)
{
	struct control *c = m->crew->shared;
	struct weir_counters last = { 0 };

	if (m->index == THREADS - 1) {
		adding_job(m, c);
		return;
	}
	while (!atomic_load(&c->stop) && m->trouble == NULL) {
		steady_turn(m, c);
		if (m->index >= 1)
			passing_turn(m, c);
		if (m->index >= 2)
			reading_turn(m, c, &last);
	}
}

START_TEST(all_at_once)
{
	struct weir_engine_params params = rig_params(50 * LIMITS, 8);
	struct control c = { 0 };
	uint64_t counted = 0;
	struct crew crew;
	struct rig rig;

	params.max_limits = LIMITS;
	rig_open(&rig, &params);
	limit_add(rig.engine, "0", 1, S, 3, WEIR_UNIT_PACKETS);
	c.engine = rig.engine;
	atomic_init(&c.limits, 1);
	weir_worker_offline(rig.worker);
	crew_run(&crew, rig.engine, THREADS, test_seed("control"),
	    control_job, &c);
	weir_worker_online(rig.worker);
	for (uint32_t limit = 0; limit < LIMITS; limit++) {
		struct weir_counters counters;

		ck_assert_int_eq(weir_engine_counters(rig.engine, limit,
		    &counters), 0);
		/* 50 keys, 3 each, at one instant */
		ck_assert_uint_le(counters.passed_packets, 150);
		ck_assert_uint_eq(counters.full_denied_packets, 0);
		counted += sum(&counters);
	}
	ck_assert_uint_eq(counted, atomic_load(&c.asked));
	rig_close(&rig);
}
END_TEST

/*
 * A worker that does not quiesce keeps the one waiting who adds a limit, and
 * nobody else.
 */
struct stuck {
	struct weir_engine *engine;
	_Atomic bool attached, release, added;
};

static void *
stuck_worker(void *arg)
{
	struct stuck *stuck = arg;
	struct weir_worker *worker;

	if (weir_worker_attach(stuck->engine, &worker) != 0)
		return NULL;
	atomic_store(&stuck->attached, true);
	while (!atomic_load(&stuck->release))
		;
	weir_worker_quiesce(worker);
	weir_worker_detach(worker);
	return NULL;
}

static void *
waiting_adder(void *arg)
{
	struct stuck *stuck = arg;
	struct weir_limit_params p = limit_params("late", 1, S, 1,
	    WEIR_UNIT_PACKETS);
	uint32_t limit;

	if (weir_limit_add(stuck->engine, &p, &limit, NULL) == 0)
		atomic_store(&stuck->added, true);
	return NULL;
}

START_TEST(only_the_adder_waits)
{
	struct weir_engine_params params = rig_params(10, 8);
	struct stuck stuck = { 0 };
	struct weir_counters counters;
	struct weir_worker *worker;
	pthread_t stuck_thread, adder;
	uint64_t key = 1;
	struct rig rig;
	uint32_t limit;

	rig_open(&rig, &params);
	stuck.engine = rig.engine;
	ck_assert_int_eq(pthread_create(&stuck_thread, NULL, stuck_worker,
	    &stuck), 0);
	while (!atomic_load(&stuck.attached))
		;
	ck_assert_int_eq(pthread_create(&adder, NULL, waiting_adder, &stuck),
	    0);
	/* The limit is there before all have seen it. */
	while (weir_limit_find(rig.engine, "late", &limit) != 0)
		weir_worker_quiesce(rig.worker);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(weir_engine_counters(rig.engine, limit,
		    &counters), 0);
		ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 0);
		ck_assert_int_eq(weir_worker_attach(rig.engine, &worker), 0);
		weir_worker_detach(worker);
		ck_assert_int_eq(weir_engine_destroy(rig.engine), -EBUSY);
		weir_worker_quiesce(rig.worker);
	}
	ck_assert_int_eq(ask(&rig, limit, &key, 1, 0).verdict, WEIR_PASS);
	ck_assert(!atomic_load(&stuck.added));
	atomic_store(&stuck.release, true);
	weir_worker_offline(rig.worker);
	ck_assert_int_eq(pthread_join(adder, NULL), 0);
	ck_assert_int_eq(pthread_join(stuck_thread, NULL), 0);
	weir_worker_online(rig.worker);
	ck_assert(atomic_load(&stuck.added));
	rig_close(&rig);
}
END_TEST

/* Engines that are made, used by one thread each, and taken down. */
static void
engines_job(struct member *m)
{
	const struct weir_engine_params params = rig_params(10, 8);

	for (uint64_t i = 0; i < test_scale(300); i++) {
		struct weir_limit_params p = limit_params("l", 1, S, 2,
		    WEIR_UNIT_PACKETS);
		struct weir_engine *engine;
		struct weir_worker *worker;
		uint32_t limit = 0;

		if (weir_engine_create(&params, &engine, NULL) != 0 ||
		    weir_worker_attach(engine, &worker) != 0 ||
		    weir_limit_add(engine, &p, &limit, NULL) != 0) {
			m->trouble = "could not make an engine";
			return;
		}
		for (int n = 0; n < 3; n++) {
			struct weir_request r = request(limit, &i, 1);

			if (weir_check(worker, &r, 0, NULL) != (n < 2))
				m->trouble = "wrong verdict";
		}
		if (weir_engine_destroy(engine) != -EBUSY)
			m->trouble = "destroyed under its worker";
		weir_worker_detach(worker);
		if (weir_engine_destroy(engine) != 0)
			m->trouble = "could not destroy";
		weir_worker_quiesce(m->worker);
	}
}

START_TEST(engines_come_and_go)
{
	struct weir_engine_params params = rig_params(10, 8);
	struct crew crew;
	struct rig rig;

	rig_open(&rig, &params);
	weir_worker_offline(rig.worker);
	crew_run(&crew, rig.engine, THREADS, 0, engines_job, NULL);
	weir_worker_online(rig.worker);
	rig_close(&rig);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("control");
	TCase *tc = tcase_create("while deciding");
	TCase *stuck = tcase_create("while waiting");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, all_at_once);
	tcase_add_test(tc, engines_come_and_go);
	suite_add_tcase(s, tc);

	tcase_set_timeout(stuck, 30); /* would hang for ever */
	tcase_add_test(stuck, only_the_adder_waits);
	suite_add_tcase(s, stuck);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
