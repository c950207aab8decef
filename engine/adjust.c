/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request that is not a plain check: look without taking, take what there
 * is, give back.
 *
 * The first two go the long way of decide.c, as a chunk of one with another
 * intent: there is one arithmetic and one set of cases, and what differs is how
 * much is spent and whether the outcome is written.
 *
 * What gives back is a decision of its own, which needs an entry and makes none.
 */
#include "chunk.h"

enum weir_verdict
weir_peek(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns, struct weir_decision *decision)
{
	struct chunk c;

	if (!chunk_of_one(&c, worker, request, PEEK, now_ns, decision)) {
		chunk_tell_unknown(&c, 0);
		return WEIR_DENY;
	}
	decide_group(&c, 0);
	return c.item[0].class & COUNT_VERDICT_MASK;
}

/*
 * What was taken counts as passed and the rest as denied. The number that is
 * not the cost is split likewise, so that the two add up to what was asked for.
 */
static void
count_taken(const struct chunk *c)
{
	const struct item *item = &c->item[0];
	const struct weir_request *request = &c->requests[0];
	struct worker_counters *to =
	    &c->worker->counters[c->instant->limit->id];
	uint128_t taken = item->cost ? c->taken : 1;
	uint64_t cost = item->cost ? item->cost : 1;
	uint64_t packets = (uint64_t)(request->packets * taken / cost);
	uint64_t bytes = (uint64_t)(request->bytes * taken / cost);
	unsigned full = item->class & COUNT_FULL;
	unsigned denied = full | WEIR_DENY, passed = full | WEIR_PASS;

	counter_add(&to->packets[passed], packets);
	counter_add(&to->bytes[passed], bytes);
	counter_add(&to->packets[denied], request->packets - packets);
	counter_add(&to->bytes[denied], request->bytes - bytes);
}

uint64_t
weir_take(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns, struct weir_decision *decision)
{
	struct chunk c;

	if (!chunk_of_one(&c, worker, request, TAKE, now_ns, decision)) {
		counter_add(&worker->unknown_limits, 1);
		chunk_tell_unknown(&c, 0);
		return 0;
	}
	decide_group(&c, 0);
	count_taken(&c);
	return c.taken;
}

/* Give back to the entry that was seen. => false: a race was lost. */
static bool
give_found(const struct chunk *c, struct view *view, const struct gift *gift,
    uint64_t *given)
{
	const struct algorithm *algorithm = c->instant->limit->algorithm;
	const struct table *table = &c->worker->engine->table;
	struct account account;
	struct cell cell;

	if (table_is_wide(table))
		table_look_wide(view);
	cell = view_cell(view);
	algorithm->open(&account, c->instant, &cell);
	*given = algorithm->give(&account, c->instant, &cell, gift);
	if (!account.changed)
		return table_unchanged(view);
	return write_found(c, table, view, &cell, &account);
}

/* A key without an entry has all there is: no room for a token. */
static uint64_t
give(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns, struct gift gift)
{
	const struct table *table = &worker->engine->table;
	uint64_t given = 0;
	struct view view;
	struct chunk c;

	if (!chunk_of_one(&c, worker, request, GIVE, now_ns, NULL) ||
	    c.instant->limit->algorithm->words == 0)
		return 0;
	gift.cost = c.item[0].cost;
	do {
		if (!table_find(table, &c.item[0].probe, 0, &view))
			return 0;
	} while (!give_found(&c, &view, &gift, &given));
	return given;
}

uint64_t
weir_refund(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns)
{
	return give(worker, request, now_ns,
	    (struct gift){.verdict = WEIR_PASS});
}
