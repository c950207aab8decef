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
entry_idle(void *context, uint32_t limit, const struct cell *cell)
{
	const struct instant *instant = instant_of(context, limit);

	/* Of a limit that is constant, now, what was kept before is kept. */
	return instant && instant->limit->algorithm->words &&
	    instant->limit->algorithm->idle(instant, cell);
}

/* Item i was decided, with this left in the account: note what it got. */
static void
settle(struct chunk *c, unsigned i, const struct account *account,
    unsigned class)
{
	const struct instant *instant = c->instant;
	struct item *item = &c->item[i];
	struct weir_decision *decision;
	uint64_t rest = class & COUNT_VERDICT_MASK ? 0 : item->cost;

	item->class = class;
	if (!c->decisions)
		return;
	if (c->intent == TAKE)
		rest = item->cost - c->taken;
	decision = &c->decisions[item->request];
	*decision = (struct weir_decision){
		.verdict = class & COUNT_VERDICT_MASK,
		.decided_by = class & COUNT_FULL ? WEIR_BY_FULL :
		    WEIR_BY_BUCKET,
		.limit = instant->limit->id,
	};
	instant->limit->algorithm->tell(account, instant, rest,
	    c->requests[item->request].colour, decision);
}

/*
 * Nothing always passes, and more than the most never does as a whole:
 * these need no entry, so a full table has no say in them. => false: an
 * ordinary cost.
 */
static bool
is_plain(const struct chunk *c, unsigned i)
{
	uint64_t cost = c->item[i].cost;

	return cost == 0 ||
	    (cost > c->instant->limit->most_cost && c->intent != TAKE);
}

static bool
settle_plain(struct chunk *c, unsigned i, const struct account *account)
{
	if (!is_plain(c, i))
		return false;
	settle(c, i, account,
	    c->item[i].cost == 0 ? COUNT_PASSED : COUNT_DENIED);
	return true;
}

/* Spend the cost of item i, or what there is of it. */
static inline enum weir_verdict
spend(struct chunk *c, unsigned i, struct account *account)
{
	const struct algorithm *algorithm = c->instant->limit->algorithm;
	const struct item *item = &c->item[i];

	if (c->intent != TAKE)
		return algorithm->spend(account, c->instant, item->cost,
		    c->requests[item->request].colour);
	c->taken = algorithm->spend_some(account, c->instant, item->cost);
	return c->taken == item->cost ? WEIR_PASS : WEIR_DENY;
}

/*
 * Spend the costs of a group in order. `full` is COUNT_FULL if the account is
 * one that strangers share; what is plain is not told its level.
 */
static void
spend_group(struct chunk *c, unsigned first, struct account *account,
    unsigned full)
{
	struct account fresh;

	if (full)
		c->instant->limit->algorithm->open(&fresh, c->instant, NULL);
	for (unsigned i = first; i != NONE; i = c->item[i].next) {
		if (settle_plain(c, i, full ? &fresh : account))
			continue;
		settle(c, i, account, full | spend(c, i, account));
	}
}

enum outcome {
	OUTCOME_DONE,
	OUTCOME_AGAIN,   /* lost a race: look the entry up again */
	OUTCOME_NOTHING, /* no entry, and nothing spent that would need one */
	OUTCOME_FULL,    /* no entry, and no room for one */
};

/*
 * Is an entry that comes from an earlier era idle? Then it starts afresh, as
 * only a value near the new era's base may have its era moved there. Two eras
 * on, an entry of one word is idle for certain.
 */
static bool
is_stale(const struct instant *in, const struct cell *cell)
{
	const struct algorithm *algorithm = in->limit->algorithm;
	int32_t eras = 0;

	for (unsigned i = 0; i < algorithm->eras; i++) {
		int32_t since = v_eras_since(&in->at[i], cell->era[i]);

		eras = since > eras ? since : eras;
	}
	return eras > 0 && ((eras >= 2 && algorithm->words == 1) ||
	    algorithm->idle(in, cell));
}

/*
 * Of two words one may be eras behind and full for certain, while the other
 * still counts. Its value and then its era move up by an era at a time, to a
 * place that is as full.
 */
static void
catch_up(const struct table *table, struct view *view, struct cell *cell,
    unsigned word)
{
	uint32_t era = cell->era[word] + 1;
	uint64_t base = (uint64_t)era << V_ERA_SHIFT;

	if (v_distance(base, cell->word[word]) > 0)
		cell->word[word] = base & V_MASK;
	if (table_replace_wide(view, cell->word[0], cell->word[1]))
		table_refresh_era(table, view, word, era);
}

/* Move the eras of the entry to those of the clocks. => false: look again. */
static inline bool
follow_eras(const struct instant *in, const struct table *table,
    struct view *view, struct cell *cell)
{
	for (unsigned i = 0; i < in->limit->algorithm->eras; i++) {
		int32_t eras = v_eras_since(&in->at[i], cell->era[i]);

		if (eras > 1) {
			catch_up(table, view, cell, i);
			return false;
		}
		if (eras == 1 &&
		    !table_refresh_era(table, view, i, in->at[i].era))
			return false;
	}
	return true;
}

bool
write_found(const struct chunk *c, const struct table *table,
    struct view *view, struct cell *cell, const struct account *account)
{
	const struct algorithm *algorithm = c->instant->limit->algorithm;

	if (!follow_eras(c->instant, table, view, cell))
		return false;
	algorithm->close(account, cell);
	return algorithm->words > 1 ?
	    table_replace_wide(view, cell->word[0], cell->word[1]) :
	    table_replace(view, cell->word[0]);
}

/* The key has an entry. */
static inline enum outcome
decide_found(struct chunk *c, struct table *table, unsigned first,
    struct view *view, unsigned full)
{
	const struct algorithm *algorithm = c->instant->limit->algorithm;
	struct account account;
	struct cell cell;
	bool stale;

	if (table_is_wide(table))
		table_look_wide(view);
	cell = view_cell(view);
	stale = is_stale(c->instant, &cell);
	algorithm->open(&account, c->instant, stale ? NULL : &cell);
	spend_group(c, first, &account, full);
	if (!account.changed || c->intent == PEEK)
		return table_unchanged(view) ? OUTCOME_DONE : OUTCOME_AGAIN;
	if (stale) {
		table_retire(table, view);
		return OUTCOME_AGAIN;
	}
	return write_found(c, table, view, &cell, &account) ? OUTCOME_DONE :
	    OUTCOME_AGAIN;
}

/* The key has no entry: it is as a fresh one. Insert what is left of it. */
static enum outcome
decide_absent(struct chunk *c, struct table *table, const struct probe *probe,
    unsigned first, unsigned full, bool impatient)
{
	const struct instant *instant = c->instant;
	const struct algorithm *algorithm = instant->limit->algorithm;
	struct account account;
	struct cell cell = {0};

	algorithm->open(&account, instant, NULL);
	spend_group(c, first, &account, full);
	if (!account.changed)
		return OUTCOME_NOTHING;
	if (c->intent == PEEK)
		return table_has_room(table, probe, entry_idle, c) ?
		    OUTCOME_NOTHING : OUTCOME_FULL;
	for (unsigned i = 0; i < algorithm->eras; i++)
		cell.era[i] = instant->at[i].era;
	algorithm->close(&account, &cell);
	switch (table_insert(table, probe, &cell, worker_claim(c->worker),
	    impatient, entry_idle, c)) {
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
    unsigned first, unsigned full)
{
	unsigned races = 0;
	struct view view;
	bool found = table_find(table, probe, 0, &view);

	for (;;) {
		enum outcome outcome = found ?
		    decide_found(c, table, first, &view, full) :
		    decide_absent(c, table, probe, first, full,
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
	enum weir_verdict verdict = pass ? WEIR_PASS : WEIR_DENY;
	struct account fresh;

	c->instant->limit->algorithm->open(&fresh, c->instant, NULL);
	for (unsigned i = first; i != NONE; i = c->item[i].next) {
		struct item *item = &c->item[i];

		if (settle_plain(c, i, &fresh))
			continue;
		item->class = COUNT_FULL | verdict;
		c->taken = pass ? item->cost : 0;
		if (c->decisions)
			c->decisions[item->request] = (struct weir_decision){
				.verdict = verdict,
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

	probe.hash = hash_some_words(probe.word, overflow->key_words,
	    limit->hash_seed);
	probe.identity = probe_identity(probe.hash, limit->id);
	if (!decide_in(c, overflow, &probe, first, COUNT_FULL))
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

	if (c->instant->limit->algorithm->words == 0) {
		decide_constant(c, first);
		return;
	}
	if (decide_in(c, &engine->table, &c->item[first].probe, first, 0))
		return;
	if (engine->full_policy == WEIR_FULL_SHARED)
		decide_shared(c, first);
	else
		decide_flat(c, first, engine->full_policy == WEIR_FULL_ALLOW);
}
