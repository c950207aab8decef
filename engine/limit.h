/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits as the decision path sees them: immutable, in an immutable set.
 *
 * Adding a limit publishes a new set and frees the old one after a grace
 * period. A worker loads the set once per packet burst.
 */
#ifndef WEIR_LIMIT_PRIVATE_H
#define WEIR_LIMIT_PRIVATE_H

#include <weir/limit.h>

#include "vclock.h"

struct limit {
	struct rate rate;
	uint64_t idle_from; /* units since S from which an entry is idle: full,
	                       and full for every clock within the skew */
	uint64_t hash_seed;
	enum weir_unit unit;
	uint32_t id;
	struct weir_limit_params params; /* as given; .name is the next */
	char name[WEIR_LIMIT_NAME_MAX + 1];
};

struct limit_set {
	uint32_t count;
	const struct limit *limit[];
};

static inline bool
limit_idle(const struct limit *limit, const struct vinstant *in, uint64_t s,
    uint32_t era)
{
	return v_since(in, s, era) >= (int64_t)limit->idle_from;
}

#endif
