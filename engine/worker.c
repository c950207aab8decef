/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attaching, quiescing, counting. QSBR is liburcu's.
 */
#include <errno.h>

#include <urcu-qsbr.h>

#include "chunk.h"

/*
 * liburcu registers threads, not handles: the first worker of a thread does
 * it, the last one undoes it. A thread that is registered and online already
 * is its owner's to unregister.
 */
static _Thread_local unsigned thread_workers;
static _Thread_local bool thread_registered_here;

static size_t
worker_size(const struct weir_engine *engine)
{
	return sizeof(struct weir_worker) + 64 + (size_t)engine->max_limits *
	    (sizeof(struct instant) + sizeof(struct worker_counters)) +
	    WEIR_PREPARED_MAX * sizeof(struct chunk);
}

static struct weir_worker *
worker_new(struct weir_engine *engine)
{
	size_t size = worker_size(engine);
	struct weir_worker *w = memory_take(&engine->memory, size);
	uintptr_t behind;

	if (!w)
		return NULL;
	behind = ((uintptr_t)(w + 1) + 63) & ~(uintptr_t)63;
	w->instants = (struct instant *)behind;
	w->counters = (struct worker_counters *)
	    (w->instants + engine->max_limits);
	w->prepared = (struct chunk *)(w->counters + engine->max_limits);
	w->size = size;
	w->engine = engine;
	return w;
}

int
weir_worker_attach(struct weir_engine *engine, struct weir_worker **worker)
{
	struct weir_worker *w = worker_new(engine);

	if (!w)
		return -ENOMEM;
	pthread_mutex_lock(&engine->lock);
	w->number = engine->next_worker++;
	w->next = engine->workers;
	engine->workers = w;
	pthread_mutex_unlock(&engine->lock);

	if (thread_workers++ == 0) {
		thread_registered_here = !rcu_read_ongoing();
		if (thread_registered_here)
			rcu_register_thread();
	}
	rcu_thread_online(); /* it may have been offline for other workers */
	*worker = w;
	return 0;
}

static void
counters_add(struct worker_counters *to, const struct worker_counters *from)
{
	for (unsigned class = 0; class < COUNT_CLASSES; class++) {
		counter_add(&to->packets[class], atomic_load_explicit(
		    &from->packets[class], memory_order_relaxed));
		counter_add(&to->bytes[class], atomic_load_explicit(
		    &from->bytes[class], memory_order_relaxed));
	}
}

/* Off the list, and into the sums of those who are gone. */
static void
worker_unlink(struct weir_engine *engine, struct weir_worker *w)
{
	struct weir_worker **link = &engine->workers;

	while (*link != w)
		link = &(*link)->next;
	*link = w->next;
	for (uint32_t i = 0; i < engine->max_limits; i++)
		counters_add(&engine->gone[i], &w->counters[i]);
	engine->gone_unknown_limits += atomic_load_explicit(
	    &w->unknown_limits, memory_order_relaxed);
}

void
weir_worker_detach(struct weir_worker *worker)
{
	struct weir_engine *engine;

	if (!worker)
		return;
	engine = worker->engine;
	pthread_mutex_lock(&engine->lock);
	worker_unlink(engine, worker);
	pthread_mutex_unlock(&engine->lock);
	memory_give(&engine->memory, worker, worker->size);
	if (--thread_workers == 0 && thread_registered_here)
		rcu_unregister_thread();
}

static void
mark_quiescent(struct weir_worker *worker)
{
	/* Q1 release -> acquire in workers_synchronize(): all reads of shared
	 * structures so far. (By this worker. A thread that holds several and
	 * quiesces by one is covered by liburcu, out of sight of tools.) */
	atomic_store_explicit(&worker->quiescences, atomic_load_explicit(
	    &worker->quiescences, memory_order_relaxed) + 1,
	    memory_order_release);
}

void
weir_worker_quiesce(struct weir_worker *worker)
{
	mark_quiescent(worker);
	rcu_quiescent_state();
}

void
weir_worker_offline(struct weir_worker *worker)
{
	mark_quiescent(worker);
	rcu_thread_offline();
}

void
weir_worker_online(struct weir_worker *worker)
{
	(void)worker;
	rcu_thread_online();
}

void
workers_synchronize(struct weir_engine *engine)
{
	synchronize_rcu();
	pthread_mutex_lock(&engine->lock);
	for (struct weir_worker *w = engine->workers; w; w = w->next)
		atomic_load_explicit(&w->quiescences, memory_order_acquire);
	pthread_mutex_unlock(&engine->lock);
}

static void
counters_clear(struct worker_counters *counters)
{
	/* relaxed: the worker's next addition comes by way of E1, when the
	 * number is given again. */
	for (unsigned class = 0; class < COUNT_CLASSES; class++) {
		atomic_store_explicit(&counters->packets[class], 0,
		    memory_order_relaxed);
		atomic_store_explicit(&counters->bytes[class], 0,
		    memory_order_relaxed);
	}
}

void
workers_clear_counters(struct weir_engine *engine, uint32_t limit)
{
	counters_clear(&engine->gone[limit]);
	for (struct weir_worker *w = engine->workers; w; w = w->next)
		counters_clear(&w->counters[limit]);
}

static void
counters_read(const struct worker_counters *from, struct weir_counters *to)
{
	uint64_t packets[COUNT_CLASSES], bytes[COUNT_CLASSES];

	for (unsigned class = 0; class < COUNT_CLASSES; class++) {
		packets[class] = atomic_load_explicit(&from->packets[class],
		    memory_order_relaxed);
		bytes[class] = atomic_load_explicit(&from->bytes[class],
		    memory_order_relaxed);
	}
	to->passed_packets += packets[COUNT_PASSED];
	to->passed_bytes += bytes[COUNT_PASSED];
	to->yellow_packets += packets[COUNT_YELLOW];
	to->yellow_bytes += bytes[COUNT_YELLOW];
	to->delayed_packets += packets[COUNT_DELAYED];
	to->delayed_bytes += bytes[COUNT_DELAYED];
	to->denied_packets += packets[COUNT_DENIED];
	to->denied_bytes += bytes[COUNT_DENIED];
	to->full_denied_packets += packets[COUNT_FULL | WEIR_DENY];
	to->full_denied_bytes += bytes[COUNT_FULL | WEIR_DENY];
	for (unsigned class = COUNT_FULL | WEIR_PASS; class < COUNT_CLASSES;
	    class++) {
		to->full_passed_packets += packets[class];
		to->full_passed_bytes += bytes[class];
	}
}

static bool
limit_exists(struct weir_engine *engine, uint32_t limit)
{
	bool exists;

	pthread_mutex_lock(&engine->lock);
	/* relaxed: under the lock there is no change. */
	exists = limit_at(atomic_load_explicit(&engine->limits,
	    memory_order_relaxed), limit) != NULL;
	pthread_mutex_unlock(&engine->lock);
	return exists;
}

int
weir_worker_counters(struct weir_worker *worker, uint32_t limit,
    struct weir_counters *counters)
{
	if (!limit_exists(worker->engine, limit))
		return -ENOENT;
	*counters = (struct weir_counters){0};
	counters_read(&worker->counters[limit], counters);
	return 0;
}

int
weir_engine_counters(struct weir_engine *engine, uint32_t limit,
    struct weir_counters *counters)
{
	if (!limit_exists(engine, limit))
		return -ENOENT;
	*counters = (struct weir_counters){0};
	pthread_mutex_lock(&engine->lock);
	counters_read(&engine->gone[limit], counters);
	for (struct weir_worker *w = engine->workers; w; w = w->next)
		counters_read(&w->counters[limit], counters);
	pthread_mutex_unlock(&engine->lock);
	return 0;
}

uint64_t
weir_engine_unknown_limits(struct weir_engine *engine)
{
	uint64_t sum;

	pthread_mutex_lock(&engine->lock);
	sum = engine->gone_unknown_limits;
	for (struct weir_worker *w = engine->workers; w; w = w->next)
		sum += atomic_load_explicit(&w->unknown_limits,
		    memory_order_relaxed);
	pthread_mutex_unlock(&engine->lock);
	return sum;
}
