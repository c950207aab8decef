/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Up to 32 requests on their way through check.c, sorted into runs of one limit
 * each.
 *
 * Requests with equal keys form a group: a chain of items from the one that
 * leads it. Groups are what is decided; most have one member.
 */
#ifndef WEIR_CHUNK_H
#define WEIR_CHUNK_H

#include <weir/check.h>

#include "worker.h"

#define CHUNK ((unsigned)WEIR_BURST_MAX)
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

/* What is wanted of the requests. Only a chunk of one may want other than
 * CHECK; see adjust.c. */
enum intent {
	CHECK,
	PEEK, /* what CHECK would say; nothing changes */
	TAKE, /* as many tokens of the cost as there are */
	GIVE, /* back */
};

/* Items of one limit, up to the next run's. */
struct run {
	uint32_t limit;
	uint32_t end;
	uint64_t serial; /* of the limit: its number may be given again */
};

struct chunk {
	struct weir_worker *worker;
	const struct limit_set *limits;
	/* What prepare() fills in. */
	const struct weir_request *requests;
	uint32_t n;       /* requests */
	uint32_t unknown; /* a bit for each that names no limit */
	uint32_t runs;
	uint32_t items;
	uint32_t fetched; /* of the items, how many home lines were asked for */
	enum intent intent;
	uint64_t taken; /* by TAKE, of a chunk of one */
	struct run run[CHUNK];
	struct item item[CHUNK];
	/* What decide() is given. */
	uint64_t now_ns;
	struct weir_decision *decisions; /* beside requests, or NULL */
	struct chunk *next; /* prepared behind this one, or NULL */
	const struct instant *instant; /* of the run that is being decided */
};

/* A limit's clock at now_ns. => NULL: no such limit. */
static inline const struct instant *
instant_of(struct chunk *c, uint32_t limit)
{
	struct weir_worker *w = c->worker;
	const struct limit *found = limit_at(c->limits, limit);
	struct instant *instant;

	if (!found)
		return NULL;
	instant = &w->instants[limit];
	if (instant->burst != w->burst) {
		instant->burst = w->burst;
		instant->limit = found;
		instant->now_ns = c->now_ns;
		found->algorithm->at(instant);
	}
	return instant;
}

/* check.c: a chunk of one request, prepared. => false: it names no limit. */
bool
chunk_of_one(struct chunk *c, struct weir_worker *worker,
    const struct weir_request *request, enum intent intent, uint64_t now_ns,
    struct weir_decision *decision);

/* The details of a request that names no limit. */
static inline void
chunk_tell_unknown(const struct chunk *c, unsigned request)
{
	if (c->decisions)
		c->decisions[request] = (struct weir_decision){
			.verdict = WEIR_DENY,
			.decided_by = WEIR_BY_NO_LIMIT,
			.limit = c->requests[request].limit,
		};
}

/*
 * Decide the group that item `first` leads, whatever its case; decide.c. This
 * is the long way; check.c has a short one for what is common.
 */
void
decide_group(struct chunk *c, unsigned first);

/*
 * Write to the entry that was seen what became of its account. => false: a race
 * was lost, and nothing happened.
 */
bool
write_found(const struct chunk *c, const struct table *table,
    struct view *view, struct cell *cell, const struct account *account);

#endif
