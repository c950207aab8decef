/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request that is not a plain check: look without taking, take what there
 * is, give back.
 *
 * The first two go the long way of decide.c, as a chunk of one with another
 * intent: there is one arithmetic and one set of cases, and what differs is how
 * much is spent and whether the outcome is written.
 *
 * A refund is a decision of its own. It moves S down, where all else moves it
 * up. That is harmless as the cap is applied on reading: however far down S is,
 * a bucket holds no more than its capacity.
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
	return c.item[0].class & 1 ? WEIR_PASS : WEIR_DENY;
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
	unsigned denied = item->class & ~1u, passed = item->class | 1;

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

/*
 * Give back to the entry that was seen. => false: a race was lost, and nothing
 * happened. As in decide.c, the era moves before the value. Only a bucket that
 * is not full gets that far, and its value can be read in the era after.
 */
static bool
refund_found(const struct chunk *c, struct view *view, uint64_t *units)
{
	const struct vinstant *at = &c->instant->at;
	uint64_t s = state_value(view->state);
	uint32_t era = ctl_era(view->ctl);
	struct purse purse = purse_open(at, s, v_since(at, s, era));

	*units = purse_refund(&purse, &c->instant->limit->rate, at, era,
	    c->item[0].cost);
	if (*units == 0)
		return table_unchanged(view);
	if (v_eras_since(at, era) > 0 && !table_refresh_era(view, at->era))
		return false;
	return table_replace(view, purse.base & V_MASK);
}

/* A key without an entry has a full bucket: no room for a token. */
uint64_t
weir_refund(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns)
{
	const struct table *table = &worker->engine->table;
	uint64_t units = 0;
	struct view view;
	struct chunk c;

	if (!chunk_of_one(&c, worker, request, REFUND, now_ns, NULL) ||
	    limit_is_constant(c.instant->limit))
		return 0;
	do {
		if (!table_find(table, &c.item[0].probe, 0, &view))
			return 0;
	} while (!refund_found(&c, &view, &units));
	return units / c.instant->limit->rate.token;
}
