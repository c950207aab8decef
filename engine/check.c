/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet-burst path.
 *
 *	prepare   hash all keys, prefetch their home lines, and chain the
 *	          requests that have equal (limit, key) into groups
 *	locate    find the entry of each group
 *	decide    spend the group's costs in order on a local copy of the
 *	          bucket, then write the outcome by one CAS; a failed CAS starts
 *	          the group anew, so the result is always that of the same
 *	          requests in order at one instant
 *	count     add up, once per limit
 *
 * The stages are apart because a locked instruction lets nothing behind it
 * start: all lines are on their way, and all entries found, before the first
 * CAS.
 */
#include <weir/check.h>

#include <string.h>

#include "hash.h"
#include "worker.h"

#define CHUNK 32u       /* requests handled together */
#define GROUP_HEADS 128u /* small hash of the chunk's keys; power of two */
#define NONE 0xffu

#define RACES_PATIENT 4u /* insertions that give way before kills begin */
#define RACES_MAX 1024u  /* tries before the table counts as full */

struct item {
	struct probe probe;
	struct view view;
	const struct instant *instant;
	uint8_t next; /* in the group, or NONE */
	uint8_t last; /* of the group; kept at its first */
	bool leads;
};

struct chunk {
	struct weir_worker *worker;
	const struct limit_set *limits;
	const struct weir_request *requests;
	uint64_t now_ns;
	struct weir_decision *decisions; /* or NULL */
	uint8_t class[CHUNK];            /* enum count_class */
	struct item item[CHUNK];
};

static const struct instant *
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

static bool
entry_idle(void *context, uint32_t limit, uint64_t value, uint32_t era)
{
	const struct instant *instant = instant_of(context, limit);

	return instant && limit_idle(instant->limit, &instant->at, value, era);
}

/* Constant sizes, so that the common ones become single loads. */
static inline void
key_load(uint64_t *word, const void *key, uint32_t size, unsigned words)
{
	if (words == KEY_WORDS_SMALL && size == 16) {
		memcpy(word, key, 16);
		return;
	}
	memset(word, 0, words * sizeof(*word));
	if (size == 4)
		memcpy(word, key, 4);
	else if (size == 8)
		memcpy(word, key, 8);
	else
		memcpy(word, key, size);
}

static inline bool
probe_equal(const struct probe *a, const struct probe *b, unsigned words)
{
	uint64_t differs = (a->hash ^ b->hash) | (a->identity ^ b->identity);

	for (unsigned w = 0; w < words; w++)
		differs |= a->word[w] ^ b->word[w];
	return differs == 0;
}

/*
 * Put item i into the group of its key, if the chunk has one. The heads are a
 * hash without chains: a collision hides a group from its later members, which
 * costs them a CAS of their own and nothing else.
 */
static inline void
group(struct chunk *c, uint8_t *heads, unsigned i, unsigned words)
{
	struct item *item = &c->item[i], *first;
	uint8_t *head = &heads[item->probe.hash & (GROUP_HEADS - 1)];

	item->next = NONE;
	if (*head != NONE && probe_equal(&c->item[*head].probe, &item->probe,
	    words)) {
		first = &c->item[*head];
		c->item[first->last].next = (uint8_t)i;
		first->last = (uint8_t)i;
		item->leads = false;
		return;
	}
	*head = (uint8_t)i;
	item->last = (uint8_t)i;
	item->leads = true;
}

static inline void
prepare(struct chunk *c, unsigned n, unsigned words)
{
	const struct weir_engine *engine = c->worker->engine;
	uint8_t heads[GROUP_HEADS];

	memset(heads, NONE, sizeof(heads));
	for (unsigned i = 0; i < n; i++) {
		const struct weir_request *request = &c->requests[i];
		struct item *item = &c->item[i];
		struct probe *probe = &item->probe;

		item->instant = instant_of(c, request->limit);
		item->leads = false;
		if (!item->instant)
			continue;
		key_load(probe->word, request->key, engine->key_size, words);
		probe->hash = hash_words(probe->word, words,
		    item->instant->limit->hash_seed);
		probe->identity = probe_identity(probe->hash, request->limit);
		/* For reading: a line that is hot and only denied must stay
		 * shared between cores. */
		__builtin_prefetch(table_home(&engine->table, probe->hash), 0,
		    3);
		group(c, heads, i, words);
	}
}

static inline void
locate(struct chunk *c, unsigned n, unsigned words)
{
	const struct table *table = &c->worker->engine->table;

	for (unsigned i = 0; i < n; i++) {
		struct item *item = &c->item[i];

		if (item->leads && !table_find_home(table, &item->probe, words,
		    &item->view))
			table_find(table, &item->probe, &item->view);
	}
}

static inline uint64_t
request_cost(const struct weir_request *request, const struct limit *limit)
{
	return limit->unit == WEIR_UNIT_BYTES ? request->bytes :
	    request->packets;
}

static void
explain(struct weir_decision *decision, const struct purse *purse,
    const struct instant *instant, uint64_t cost, enum count_class class)
{
	const struct rate *rate = &instant->limit->rate;

	decision->verdict = class & 1 ? WEIR_PASS : WEIR_DENY;
	decision->decided_by = class & 2 ? WEIR_BY_FULL : WEIR_BY_BUCKET;
	decision->remaining = purse_tokens(purse, rate);
	decision->retry_after_ns = class & 1 ? 0 :
	    purse_wait_ns(purse, rate, &instant->at, cost);
}

/* Spend the costs of a group in order. => How many units were spent. */
static inline uint64_t
spend_group(struct chunk *c, unsigned first, struct purse *purse,
    enum count_class denied)
{
	const struct instant *instant = c->item[first].instant;
	const struct limit *limit = instant->limit;
	uint64_t base = purse->base;

	for (unsigned i = first; i != NONE; i = c->item[i].next) {
		uint64_t cost = request_cost(&c->requests[i], limit);

		c->class[i] = denied | purse_spend(purse, &limit->rate, cost);
		if (c->decisions)
			explain(&c->decisions[i], purse, instant, cost,
			    c->class[i]);
	}
	return purse->base - base;
}

enum outcome {
	OUTCOME_DONE,
	OUTCOME_AGAIN, /* lost a race: look the entry up again */
	OUTCOME_FULL,
};

/* The key has an entry. */
static inline enum outcome
decide_found(struct chunk *c, unsigned first, struct view *view,
    enum count_class denied)
{
	const struct instant *instant = c->item[first].instant;
	uint64_t s = state_value(view->state);
	uint32_t era = ctl_era(view->ctl);
	int32_t eras = v_eras_since(&instant->at, era);
	struct purse purse;

	/* Two eras on it is idle for certain, and its value soon ambiguous:
	 * start afresh. */
	if (eras >= 2) {
		table_retire(view);
		return OUTCOME_AGAIN;
	}
	purse = purse_open(&instant->limit->rate, &instant->at, s,
	    v_since(&instant->at, s, era));
	if (spend_group(c, first, &purse, denied) == 0)
		return table_unchanged(view) ? OUTCOME_DONE : OUTCOME_AGAIN;
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
	const struct instant *instant = c->item[first].instant;
	struct purse purse = purse_full(&instant->limit->rate, &instant->at);

	/* Nothing spent leaves nothing to remember. */
	if (spend_group(c, first, &purse, denied) == 0)
		return OUTCOME_DONE;
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
 * Decide a group in a table; the view says where its entry was last seen.
 * Every turn of the loop but the last is one that some other thread won. Takes
 * are retried for as long as that goes on; insertions, which may also wait for
 * a rival's slot, are given up after RACES_MAX.
 */
static inline enum outcome
decide_in(struct chunk *c, struct table *table, const struct probe *probe,
    struct view *view, unsigned first, enum count_class denied)
{
	unsigned races = 0;
	enum outcome outcome;

	for (;;) {
		if (view->entry) {
			outcome = decide_found(c, first, view, denied);
		} else {
			outcome = decide_absent(c, table, probe, first,
			    denied, races >= RACES_PATIENT);
			if (outcome == OUTCOME_AGAIN && ++races == RACES_MAX)
				outcome = OUTCOME_FULL;
		}
		if (outcome != OUTCOME_AGAIN)
			return outcome;
		table_find(table, probe, view);
	}
}

/* The table has no room, and the policy is a plain yes or no. */
static void
decide_flat(struct chunk *c, unsigned first, bool pass)
{
	const struct limit *limit = c->item[first].instant->limit;

	for (unsigned i = first; i != NONE; i = c->item[i].next) {
		bool passed = pass || request_cost(&c->requests[i], limit) == 0;

		c->class[i] = COUNT_FULL_DENIED | passed;
		if (c->decisions)
			c->decisions[i] = (struct weir_decision){
				.verdict = passed ? WEIR_PASS : WEIR_DENY,
				.decided_by = WEIR_BY_FULL,
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
	const struct item *item = &c->item[first];
	struct probe probe = {
		.word = {item->probe.hash >> 32 & (OVERFLOW_BUCKETS - 1)},
	};
	struct view view;

	probe.hash = hash_words(probe.word, overflow->key_words,
	    item->instant->limit->hash_seed);
	probe.identity = probe_identity(probe.hash, item->instant->limit->id);
	table_find(overflow, &probe, &view);
	if (decide_in(c, overflow, &probe, &view, first, COUNT_FULL_DENIED) ==
	    OUTCOME_FULL)
		decide_flat(c, first, false);
}

static void
decide_full(struct chunk *c, unsigned first)
{
	enum weir_full_policy policy = c->worker->engine->full_policy;

	if (policy == WEIR_FULL_SHARED)
		decide_shared(c, first);
	else
		decide_flat(c, first, policy == WEIR_FULL_ALLOW);
}

static inline void
decide(struct chunk *c, unsigned n)
{
	struct table *table = &c->worker->engine->table;

	for (unsigned i = 0; i < n; i++) {
		struct item *item = &c->item[i];

		if (item->leads && decide_in(c, table, &item->probe,
		    &item->view, i, COUNT_DENIED) == OUTCOME_FULL)
			decide_full(c, i);
	}
}

static void
count_unknown(struct chunk *c, unsigned i, uint8_t *verdict)
{
	counter_add(&c->worker->unknown_limits, 1);
	*verdict = WEIR_DENY;
	if (c->decisions)
		c->decisions[i] = (struct weir_decision){
			.verdict = WEIR_DENY,
			.decided_by = WEIR_BY_NO_LIMIT,
		};
}

static inline void
count(struct chunk *c, unsigned n, uint8_t *verdicts)
{
	struct worker_counters *counters = c->worker->counters;
	unsigned i = 0;

	while (i < n) {
		uint64_t packets[COUNT_CLASSES] = {0};
		uint64_t bytes[COUNT_CLASSES] = {0};
		const struct instant *instant = c->item[i].instant;

		if (!instant) {
			count_unknown(c, i, &verdicts[i]);
			i++;
			continue;
		}
		for (; i < n && c->item[i].instant == instant; i++) {
			verdicts[i] = c->class[i] & 1;
			packets[c->class[i]] += c->requests[i].packets;
			bytes[c->class[i]] += c->requests[i].bytes;
		}
		for (unsigned class = 0; class < COUNT_CLASSES; class++) {
			struct worker_counters *to =
			    &counters[instant->limit->id];

			counter_add(&to->packets[class], packets[class]);
			counter_add(&to->bytes[class], bytes[class]);
		}
	}
}

static inline __attribute__((always_inline)) void
check_chunk(struct chunk *c, unsigned n, uint8_t *verdicts, unsigned words)
{
	prepare(c, n, words);
	locate(c, n, words);
	decide(c, n);
	count(c, n, verdicts);
}

void
weir_check_burst(struct weir_worker *worker,
    const struct weir_request *requests, size_t n, uint64_t now_ns,
    uint8_t *verdicts, struct weir_decision *decisions)
{
	struct weir_engine *engine = worker->engine;
	struct chunk c;

	c.worker = worker;
	c.now_ns = now_ns;
	/* E1 acquire <- release in limit.c: the set and its limits. */
	c.limits = atomic_load_explicit(&engine->limits,
	    memory_order_acquire);
	worker->burst++;
	for (size_t done = 0; done < n; done += CHUNK) {
		unsigned count = n - done < CHUNK ? n - done : CHUNK;

		c.requests = requests + done;
		c.decisions = decisions ? decisions + done : NULL;
		if (engine->table.key_words == KEY_WORDS_SMALL)
			check_chunk(&c, count, verdicts + done,
			    KEY_WORDS_SMALL);
		else
			check_chunk(&c, count, verdicts + done,
			    KEY_WORDS_MAX);
	}
}

enum weir_verdict
weir_check(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns, struct weir_decision *decision)
{
	uint8_t verdict;

	weir_check_burst(worker, request, 1, now_ns, &verdict, decision);
	return verdict;
}
