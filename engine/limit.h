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

struct algorithm;

struct limit {
	const struct algorithm *algorithm;
	struct rate rate[2]; /* of those that have token clocks, by word */
	int64_t skew[2]; /* units that come within the clocks' skew */
	uint64_t skew_ns;
	uint64_t most_cost;  /* above it nothing ever passes */
	uint64_t settled_ns; /* until then some may decide by the version before,
	                        which may see less in a bucket; 0: always */
	uint64_t hash_seed;
	enum weir_unit unit;
	uint32_t id;
	uint64_t serial; /* no other limit ever has it; versions share it */
	struct weir_limit_params params; /* as given; .name is the next */
	char *name; /* LIMIT_NAME_BYTES; all versions of a limit share it */
};

#define LIMIT_NAME_BYTES (WEIR_LIMIT_NAME_MAX + 1u)

/* In the place of a limit that was removed stands NULL. */
struct limit_set {
	uint32_t count;
	const struct limit *limit[];
};

static inline const struct limit *
limit_at(const struct limit_set *set, uint32_t id)
{
	return id < set->count ? set->limit[id] : NULL;
}

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

/* Name the member of the params that is at fault. => -EINVAL */
int
refuse(struct weir_error *error, const char *field, const char *reason);

struct memory;

void
limit_free(struct memory *memory, const struct limit *limit);

void
retired_free(struct memory *memory, struct retired *retired);

#endif
