/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include <sched.h>

#include "crew.h"

static void *
member_main(void *arg)
{
	struct member *member = arg;
	struct crew *crew = member->crew;

	if (weir_worker_attach(crew->engine, &member->worker) != 0) {
		member->trouble = "attach";
		return NULL;
	}
	crew_meet(member);
	crew->job(member);
	weir_worker_detach(member->worker);
	return NULL;
}

void
crew_run(struct crew *crew, struct weir_engine *engine, unsigned size,
    uint64_t seed, void (*job)(struct member *member), void *shared)
{
	pthread_t thread[CREW_MAX];

	*crew = (struct crew){
		.engine = engine,
		.size = size,
		.job = job,
		.shared = shared,
	};
	ck_assert_int_eq(pthread_barrier_init(&crew->barrier, NULL, size), 0);
	for (unsigned i = 0; i < size; i++) {
		struct member *member = &crew->member[i];

		member->crew = crew;
		member->index = i;
		rng_init(&member->rng, seed + i);
		ck_assert_int_eq(pthread_create(&thread[i], NULL, member_main,
		    member), 0);
	}
	for (unsigned i = 0; i < size; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	pthread_barrier_destroy(&crew->barrier);
	for (unsigned i = 0; i < size; i++)
		if (crew->member[i].trouble != NULL)
			ck_abort_msg("thread %u: %s", i,
			    crew->member[i].trouble);
}

void
crew_meet(struct member *member)
{
	struct crew *crew = member->crew;
	unsigned all;

	weir_worker_offline(member->worker);
	pthread_barrier_wait(&crew->barrier);
	weir_worker_online(member->worker);
	/*
	 * The first to wake would be done before the last is up: wait for it
	 * a little, but not for one that has no processor.
	 * relaxed: the barrier orders, this is but a hint.
	 */
	all = atomic_fetch_add_explicit(&crew->awake, 1,
	    memory_order_relaxed) / crew->size * crew->size + crew->size;
	for (int turns = 0; turns < 20000; turns++)
		if (atomic_load_explicit(&crew->awake,
		    memory_order_relaxed) >= all)
			break;
}

/* relaxed: a count, nothing behind it. */
void
crew_step(struct member *member)
{
	atomic_fetch_add_explicit(&member->crew->steps, 1,
	    memory_order_relaxed);
}

void
crew_await_step(struct member *member)
{
	struct crew *crew = member->crew;
	uint64_t before = atomic_load_explicit(&crew->steps,
	    memory_order_relaxed);

	while (atomic_load_explicit(&crew->steps, memory_order_relaxed) ==
	    before) {
		weir_worker_quiesce(member->worker);
		sched_yield();
	}
}

uint64_t
crew_passed(const struct crew *crew)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < crew->size; i++)
		sum += crew->member[i].passed;
	return sum;
}

uint64_t
crew_denied(const struct crew *crew)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < crew->size; i++)
		sum += crew->member[i].denied;
	return sum;
}

uint64_t
crew_full(const struct crew *crew)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < crew->size; i++)
		sum += crew->member[i].full;
	return sum;
}

struct weir_decision
member_ask(struct member *member, uint32_t limit, const void *key,
    uint64_t cost, uint64_t now_ns)
{
	struct weir_request r = request(limit, key, cost);
	struct weir_decision d;

	weir_check(member->worker, &r, now_ns, &d);
	if (d.decided_by != WEIR_BY_BUCKET)
		member->full++;
	else if (d.verdict == WEIR_PASS)
		member->passed += cost;
	else
		member->denied += cost;
	return d;
}
