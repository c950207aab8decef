/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an engine is made of. Written by control calls, under `lock`; workers
 * read the tables, the set of limits and the constants.
 */
#ifndef WEIR_ENGINE_PRIVATE_H
#define WEIR_ENGINE_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include <weir/engine.h>
#include <weir/worker.h>

#include "limit.h"
#include "memory.h"
#include "table.h"

/*
 * Strangers who find the table full share buckets of the limit they fall
 * under. These buckets are ordinary entries of a second, small table, keyed
 * by their number; it has room for all of them at a load of 1/4.
 */
#define OVERFLOW_BUCKETS 16u

struct weir_engine {
	/* Constant once created. */
	struct table table;
	struct table overflow; /* base is NULL unless the policy is SHARED */
	uint32_t key_size;
	uint32_t max_limits;
	enum weir_full_policy full_policy;
	uint64_t hash_seed;
	uint64_t clock_skew_ns;

	/* E1: release by weir_limit_add(), acquire by each packet burst. */
	_Atomic(struct limit_set *) limits;

	pthread_mutex_t lock;
	struct memory memory;
	struct weir_worker *workers;    /* attached, linked by .next */
	struct worker_counters *gone;   /* sums of detached workers */
	uint64_t gone_unknown_limits;
	uint32_t next_worker;
	struct retired retired;         /* by changes of limits */
	uint64_t next_serial;           /* of limits */
	bool *removing;                 /* by limit, max_limits: not free yet */
};

#endif
