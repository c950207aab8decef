/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads for stress tests. Each attaches, waits for the others, does its job
 * and detaches. A job must not assert: it records, and the test looks at the
 * records after all have joined.
 */
#ifndef TESTS_STRESS_CREW_H
#define TESTS_STRESS_CREW_H

#include <pthread.h>
#include <stdatomic.h>

#include "../support.h"

#define CREW_MAX 8u

struct crew;

struct member {
	struct crew *crew;
	unsigned index;
	struct weir_worker *worker;
	struct rng rng;
	/* for the job's own use, read after the join */
	uint64_t passed, denied, full;
	const char *trouble;
};

struct crew {
	struct weir_engine *engine;
	unsigned size;
	void (*job)(struct member *member);
	void *shared; /* the test's */
	pthread_barrier_t barrier;
	_Atomic unsigned awake;
	_Atomic uint64_t steps; /* by crew_step() */
	struct member member[CREW_MAX];
};

/* Run the job on size threads; returns when all are done. */
void crew_run(struct crew *crew, struct weir_engine *engine, unsigned size,
    uint64_t seed, void (*job)(struct member *member), void *shared);

/*
 * All meet here and go on at one moment, as far as there are processors. They
 * are offline while they wait, so nobody waits for them.
 */
void crew_meet(struct member *member);

/*
 * Say that a step is done; wait until somebody else has done one. For jobs that
 * change what the others use, and must not be over before these have begun.
 */
void crew_step(struct member *member);
void crew_await_step(struct member *member);

uint64_t crew_passed(const struct crew *crew);
uint64_t crew_denied(const struct crew *crew);
uint64_t crew_full(const struct crew *crew);

/* Ask, and keep count by verdict and decider. Thread-safe: no assertion. */
struct weir_decision member_ask(struct member *member, uint32_t limit,
    const void *key, uint64_t cost, uint64_t now_ns);

#endif
