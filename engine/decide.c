/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The long way to decide a group of requests that have one key.
 *
 * Their costs are spent in order on a local copy of the bucket, then the
 * outcome is written by one CAS. A failed CAS starts the group anew, so the
 * result is always that of the same requests in order at one instant.
 */
#include "chunk.h"

#include "hash.h"

#define RACES_PATIENT 4u /* insertions that give way before kills begin */
#define RACES_MAX 1024u  /* tries before the table counts as full */

static bool
entry_idle(void *context, uint32_t limit, uint64_t value, uint32_t era)
{
	const struct instant *instant = instant_of(context, limit);

	return instant && limit_idle(instant->limit, &instant->at, value, era);
}

/* Item i has been spent on, with this left in the purse: note what it got. */
static void
settle(struct chunk *c, unsigned i, const struct purse *purse,
    enum count_class class)
{
	const struct instant *instant = c->instant;
	const struct rate *rate = &instant->limit->rate;
	struct item *item = &c->item[i];
	bool passed = class & 1;
	uint64_t rest = item->cost;

	item->class = class;
	if (!c->decisions)
		return;
	if (c->intent == TAKE)
		rest -= c->taken;
	c->decisions[item->request] = (struct weir_decision){
		.verdict = passed ? WEIR_PASS : WEIR_DENY,
		.decided_by = class & 2 ? WEIR_BY_FULL : WEIR_BY_BUCKET,
		.remaining = purse_tokens(purse, rate),
		.retry_after_ns = passed ? 0 :
		    purse_wait_ns(purse, rate, &instant->at, rest),
		.reset_after_ns = purse_full_wait_ns(purse, rate,
		    &instant->at),
		.debt = purse_debt(purse, rate),
		.limit = instant->limit->id,
	};
}

/*
 * Nothing always passes, and more than the most never does as a whole:
 * these need no entry, so a full table has no say in them. => false: an
 * ordinary cost.
 */
static bool
settle_plain(struct chunk *c, unsigned i)
{
	const struct rate *rate = &c->instant->limit->rate;
	struct purse purse = purse_full(&c->instant->at);
	uint64_t cost = c->item[i].cost;

	if (cost != 0 && (cost <= rate->most_cost || c->intent == TAKE))
		return false;
	settle(c, i, &purse, cost == 0 ? COUNT_PASSED : COUNT_DENIED);
	return true;
}

/* Spend the cost of item i, or what there is of it. => All of it was spent. */
static inline bool
spend(struct chunk *c, unsigned i, struct purse *purse)
{
	const struct rate *rate = &c->instant->limit->rate;
	uint64_t cost = c->item[i].cost;

	if (c->intent != TAKE)
		return purse_spend(purse, rate, cost);
	c->taken = purse_tokens(purse, rate);
	if (c->taken > cost)
		c->taken = cost;
	purse_spend(purse, rate, c->taken);
	return c->taken == cost;
}

/*
 * Spend the costs of a group in order. => How many units were spent. `denied`
 * is COUNT_FULL_DENIED if the purse is one that strangers share.
 */
static uint64_t
spend_group(struct chunk *c, unsigned first, struct purse *purse,
    enum count_class denied)
{
	uint64_t base = purse->base;

	for (unsigned i = first; i != NONE; i = c->item[i].next) {
		bool passed;

		if (denied == COUNT_FULL_DENIED && settle_plain(c, i))
			continue;
		passed = spend(c, i, purse);
		settle(c, i, purse, denied | (unsigned)passed);
	}
	return purse->base - base;
}

enum outcome {
	OUTCOME_DONE,
	OUTCOME_AGAIN,   /* lost a race: look the entry up again */
	OUTCOME_NOTHING, /* no entry, and nothing spent that would need one */
	OUTCOME_FULL,    /* no entry, and no room for one */
};

/* The key has an entry. */
static inline enum outcome
decide_found(struct chunk *c, unsigned first, struct view *view,
    enum count_class denied)
{
	const struct instant *instant = c->instant;
	const struct limit *limit = instant->limit;
	uint64_t s = state_value(view->state);
	uint32_t era = ctl_era(view->ctl);
	int32_t eras = v_eras_since(&instant->at, era);
	/* In a later era an idle entry starts afresh, as only a value near the
	 * new era's base may have its era moved there. Two eras on, an entry
	 * is idle for certain. */
	bool stale = eras >= 2 ||
	    (eras == 1 && limit_idle(limit, &instant->at, s, era));
	struct purse purse = stale ? purse_full(&instant->at) :
	    purse_open(&instant->at, s,
		v_since(&instant->at, s, era));

	if (spend_group(c, first, &purse, denied) == 0 || c->intent == PEEK)
		return table_unchanged(view) ? OUTCOME_DONE : OUTCOME_AGAIN;
	if (stale) {
		table_retire(view);
		return OUTCOME_AGAIN;
	}
	if (eras == 1 && !table_refresh_era(view, instant->at.era))
		return OUTCOME_AGAIN;
	return table_replace(view, purse.base & V_MASK) ? OUTCOME_DONE :
	    OUTCOME_AGAIN;
}

/* The key has no entry: its bucket is full. Insert what is left of it. */
static enum outcome
decide_absent(struct chunk *c, struct table *table, const struct probe *probe,
    unsigned first, enum count_class denied, bool impatient)
{
	const struct instant *instant = c->instant;
	struct purse purse = purse_full(&instant->at);

	if (spend_group(c, first, &purse, denied) == 0)
		return OUTCOME_NOTHING;
	if (c->intent == PEEK)
		return table_has_room(table, probe, entry_idle, c) ?
		    OUTCOME_NOTHING : OUTCOME_FULL;
	switch (table_insert(table, probe, purse.base & V_MASK,
	    instant->at.era, worker_claim(c->worker), impatient, entry_idle,
	    c)) {
	case INSERT_DONE:
		return OUTCOME_DONE;
	case INSERT_FULL:
		return OUTCOME_FULL;
	case INSERT_AGAIN:
		break;
	}
	return OUTCOME_AGAIN;
}

/*
 * Decide a group in a table. Every turn of the loop but the last is one that
 * some other thread won. Takes are retried for as long as that goes on;
 * insertions, which may also wait for a rival's slot, are given up after
 * RACES_MAX.
 *
 * That a key has no entry may be old news by the time it matters, as another
 * worker may have inserted it. An insertion notices; what ends without one is
 * looked up again before it counts. => false: no entry, and no room for one.
 */
static bool
decide_in(struct chunk *c, struct table *table, const struct probe *probe,
    unsigned first, enum count_class denied)
{
	unsigned races = 0;
	struct view view;
	bool found = table_find(table, probe, 0, &view);

	for (;;) {
		enum outcome outcome = found ?
		    decide_found(c, first, &view, denied) :
		    decide_absent(c, table, probe, first, denied,
		    races >= RACES_PATIENT);
		bool was_absent = !found;

		if (outcome == OUTCOME_DONE)
			return true;
		if (was_absent && ++races == RACES_MAX)
			outcome = OUTCOME_FULL;
		found = table_find(table, probe, 0, &view);
		if (!found && was_absent && outcome != OUTCOME_AGAIN)
			return outcome == OUTCOME_NOTHING;
	}
}

/* The table has no room, and the policy is a plain yes or no. */
static void
decide_flat(struct chunk *c, unsigned first, bool pass)
{
	for (unsigned i = first; i != NONE; i = c->item[i].next) {
		struct item *item = &c->item[i];

		if (settle_plain(c, i))
			continue;
		item->class = COUNT_FULL_DENIED | (unsigned)pass;
		c->taken = pass ? item->cost : 0;
		if (c->decisions)
			c->decisions[item->request] = (struct weir_decision){
				.verdict = pass ? WEIR_PASS : WEIR_DENY,
				.decided_by = WEIR_BY_FULL,
				.limit = c->instant->limit->id,
			};
	}
}

/*
 * The table has no room, and strangers share: the same decision again, on one
 * of a few entries of the overflow table in place of the key's own.
 */
static void
decide_shared(struct chunk *c, unsigned first)
{
	struct table *overflow = &c->worker->engine->overflow;
	const struct limit *limit = c->instant->limit;
	uint64_t bucket = c->item[first].probe.hash >> 32;
	struct probe probe = {.word = {bucket & (OVERFLOW_BUCKETS - 1)}};

	probe.hash = overflow->key_words == KEY_WORDS_SMALL ?
	    hash_words(probe.word, KEY_WORDS_SMALL, limit->hash_seed) :
	    hash_words(probe.word, KEY_WORDS_MAX, limit->hash_seed);
	probe.identity = probe_identity(probe.hash, limit->id);
	if (!decide_in(c, overflow, &probe, first, COUNT_FULL_DENIED))
		decide_flat(c, first, false);
}

/* The limit is unlimited or closed. A cost of zero passes either. */
static void
decide_constant(struct chunk *c, unsigned first)
{
	const struct limit *limit = c->instant->limit;
	bool open = limit->params.algorithm == WEIR_UNLIMITED;

	for (unsigned i = first; i != NONE; i = c->item[i].next) {
		struct item *item = &c->item[i];
		bool pass = open || item->cost == 0;

		item->class = pass ? COUNT_PASSED : COUNT_DENIED;
		c->taken = pass ? item->cost : 0;
		if (c->decisions)
			c->decisions[item->request] = (struct weir_decision){
				.verdict = pass ? WEIR_PASS : WEIR_DENY,
				.decided_by = WEIR_BY_SETTING,
				.remaining = open ? UINT64_MAX : 0,
				.retry_after_ns = pass ? 0 : WEIR_NEVER,
				.limit = limit->id,
			};
	}
}

void
decide_group(struct chunk *c, unsigned first)
{
	struct weir_engine *engine = c->worker->engine;

	if (limit_is_constant(c->instant->limit)) {
		decide_constant(c, first);
		return;
	}
	if (decide_in(c, &engine->table, &c->item[first].probe, first,
	    COUNT_DENIED))
		return;
	if (engine->full_policy == WEIR_FULL_SHARED)
		decide_shared(c, first);
	else
		decide_flat(c, first, engine->full_policy == WEIR_FULL_ALLOW);
}
