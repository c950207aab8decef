/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Up to 32 requests of one limit, on their way through check.c.
 *
 * Requests with equal keys form a group: a chain of items from the one that
 * leads it. Groups are what is decided; most have one member.
 */
#ifndef WEIR_CHUNK_H
#define WEIR_CHUNK_H

#include <weir/check.h>

#include "worker.h"

#define CHUNK 32u
#define NONE 0xffu /* no item */

struct item {
	struct probe probe;
	uint64_t cost;
	/* Words, not bytes: a store to a byte may alias anything, and every
	 * pointer would be loaded again behind it. */
	uint32_t request; /* its place among the requests */
	uint32_t class;   /* enum count_class: what became of it */
	uint32_t next;    /* in the group, or NONE */
	uint32_t last;    /* of the group; kept at its first */
	bool leads;
};

struct chunk {
	struct weir_worker *worker;
	const struct limit_set *limits;
	const struct weir_request *requests;
	struct weir_decision *decisions; /* beside requests, or NULL */
	uint64_t now_ns;
	const struct instant *instant; /* of the limit of all items */
	unsigned n;
	struct item item[CHUNK];
};

/* A limit's clock at now_ns. => NULL: no such limit. */
static inline const struct instant *
instant_of(struct chunk *c, uint32_t limit)
{
	struct weir_worker *w = c->worker;
	struct instant *instant;

	if (limit >= c->limits->count)
		return NULL;
	instant = &w->instants[limit];
	if (instant->burst != w->burst) {
		instant->burst = w->burst;
		instant->limit = c->limits->limit[limit];
		instant->at = rate_at(&instant->limit->rate, c->now_ns);
	}
	return instant;
}

/*
 * Decide the group that item `first` leads, whatever its case; decide.c. This
 * is the long way; check.c has a short one for what is common.
 */
void
decide_group(struct chunk *c, unsigned first);

#endif
