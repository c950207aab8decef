/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker: what one thread needs to decide, and what it counts.
 */
#ifndef WEIR_WORKER_PRIVATE_H
#define WEIR_WORKER_PRIVATE_H

#include "algorithm.h"
#include "engine.h"

/*
 * The counters of one limit, by class; see struct weir_counters. One writer,
 * hence load + store in place of an atomic addition; relaxed, for a reader
 * wants the number and nothing behind it.
 */
enum count_class {
	COUNT_DENIED = WEIR_DENY, /* the low bits are the verdict */
	COUNT_PASSED = WEIR_PASS,
	COUNT_YELLOW = WEIR_YELLOW,
	COUNT_DELAYED = WEIR_DELAY,
	COUNT_VERDICT_MASK = 3,
	COUNT_FULL = 4,           /* the table was full */
	COUNT_CLASSES = 8,
};

struct worker_counters {
	_Atomic uint64_t packets[COUNT_CLASSES];
	_Atomic uint64_t bytes[COUNT_CLASSES];
};

struct chunk;

struct weir_worker {
	struct weir_engine *engine;
	uint64_t burst;            /* packet bursts so far; 0: none */
	uint32_t number;           /* unique in the engine's life */
	uint32_t claims;           /* insertions tried */
	struct instant *instants;  /* by limit, max_limits */
	struct worker_counters *counters; /* by limit, max_limits */
	_Atomic uint64_t unknown_limits;

	/* Q1: release by weir_worker_quiesce(), acquire after a grace period.
	 * liburcu orders the same; this says it so that tools see it too. */
	_Atomic uint64_t quiescences;

	/* Packet bursts between weir_prepare() and weir_decide(): a queue. */
	struct chunk *prepared;
	unsigned first_prepared;
	unsigned n_prepared;

	struct weir_worker *next;  /* engine->workers */
	size_t size;               /* of this and the arrays behind it */
};

static inline void
counter_add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter,
	    atomic_load_explicit(counter, memory_order_relaxed) + n,
	    memory_order_relaxed);
}

/*
 * The number of a claim, 57 bits, see table.h: the worker's own number and a
 * count, so that no two open claims are ever alike. (After 2^25 attachments
 * or 2^32 insertions of one worker numbers come again; no claim stays open
 * that long.)
 */
static inline uint64_t
worker_claim(struct weir_worker *worker)
{
	return (uint64_t)(worker->number & ((1u << 25) - 1)) << 32 |
	    worker->claims++;
}

/* Set the counters of a limit to 0. => No worker counts on it; under the lock. */
void
workers_clear_counters(struct weir_engine *engine, uint32_t limit);

/*
 * Wait until no worker can hold what was unpublished before the call.
 * => engine->lock is not held: who waits for it may be a worker, and would
 *    never quiesce.
 */
void
workers_synchronize(struct weir_engine *engine);

#endif
