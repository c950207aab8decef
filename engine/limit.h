/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits as the decision path sees them: immutable, in an immutable set.
 *
 * Adding or changing a limit publishes a new set, with a new version of the
 * limit in it, and frees the old ones after a grace period. A worker loads the
 * set once per packet burst.
 */
#ifndef WEIR_LIMIT_PRIVATE_H
#define WEIR_LIMIT_PRIVATE_H

#include <weir/limit.h>

#include "vclock.h"

struct limit {
	struct rate rate;
	int64_t skew; /* units that come within the clocks' skew */
	uint64_t hash_seed;
	enum weir_unit unit;
	uint32_t id;
	struct weir_limit_params params; /* as given; .name is the next */
	char *name; /* LIMIT_NAME_BYTES; all versions of a limit share it */
};

#define LIMIT_NAME_BYTES (WEIR_LIMIT_NAME_MAX + 1u)

struct limit_set {
	uint32_t count;
	const struct limit *limit[];
};

static inline size_t
limit_set_size(uint32_t count)
{
	return sizeof(struct limit_set) + count * sizeof(struct limit *);
}

/*
 * What workers may still hold, until a grace period has passed. Changes come by
 * the thousand, so they share grace periods.
 */
#define RETIRED_MAX 64u

struct retired {
	unsigned n;
	struct {
		void *memory;
		size_t size;
	} block[RETIRED_MAX];
};

/*
 * Is the entry as good as none: holding the most there is, for every clock
 * within the skew?
 */
static inline bool
limit_idle(const struct limit *limit, const struct vinstant *in, uint64_t s,
    uint32_t era)
{
	return v_since(in, s, era) >= in->most + limit->skew;
}

struct memory;

void
retired_free(struct memory *memory, struct retired *retired);

#endif
