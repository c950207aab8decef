/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet-burst path.
 *
 *	prepare   hash all keys, prefetch their home lines, and chain the
 *	          requests that have equal (limit, key) into groups
 *	locate    find the entry of each group in its home line; where a group is
 *	          one request, also work out the word that would be written
 *	commit    spend a group's costs in order on a local copy of the bucket,
 *	          then write the outcome by one CAS; a failed CAS starts the
 *	          group anew, so the result is always that of the same requests
 *	          in order at one instant
 *	count     add up, once per limit
 *
 * On x86 no memory access behind a locked instruction starts before it is done.
 * So the lines are all on their way, and the entries found and the words ready
 * for a block of requests, before the block's first CAS. Blocks, and not the
 * whole chunk at once, because lines still on their way can arrive while an
 * earlier block commits. Keys that are not in their home line come last.
 */
#include <weir/check.h>

#include <string.h>

#include "hash.h"
#include "worker.h"

#define CHUNK 32u       /* requests handled together */
#define BLOCK 4u        /* requests located, then committed, together */
#define GROUP_HEADS 256u /* small hash of the chunk's keys; power of two */
#define NONE 0xffu

#define RACES_PATIENT 4u /* insertions that give way before kills begin */
#define RACES_MAX 1024u  /* tries before the table counts as full */

/* What is known of a request by the time its word is to be written. */
enum plan {
	PLAN_NONE,   /* leads a group; take the long way */
	PLAN_KEEP,   /* leads; its entry's word need only be confirmed */
	PLAN_TAKE,   /* leads; its entry's value is to become `desired` */
	PLAN_LATE,   /* leads; not in its home line, looked up last */
	PLAN_FOLLOW, /* decided with its group, or names no limit */
};

struct item {
	struct probe probe;
	struct view view;
	uint64_t desired;
	const struct instant *instant; /* NULL: no such limit */
	/* Not bytes: a store to a byte may alias anything, and every pointer
	 * would be loaded again behind it. */
	uint32_t next; /* in the group, or NONE */
	uint32_t last; /* of the group; kept at its first */
	enum plan plan;
};

struct chunk {
	struct weir_worker *worker;
	const struct limit_set *limits;
	const struct weir_request *requests;
	bool uniform; /* all requests are of one limit that exists */
	uint64_t now_ns;
	struct weir_decision *decisions; /* or NULL */
	enum count_class class[CHUNK];
	uint32_t late[CHUNK];
	unsigned lates;
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
 * then pay a CAS of their own. (If at that very moment another worker inserts
 * the key, they may also be decided before the group.)
 */
static inline void
group(struct chunk *c, uint8_t *heads, unsigned i, unsigned words)
{
	struct item *item = &c->item[i], *first;
	uint8_t *head = &heads[item->probe.hash & (GROUP_HEADS - 1)];

	item->next = NONE;
	item->last = i;
	item->plan = PLAN_NONE;
	if (*head != NONE && probe_equal(&c->item[*head].probe, &item->probe,
	    words)) {
		first = &c->item[*head];
		c->item[first->last].next = i;
		first->last = i;
		item->plan = PLAN_FOLLOW;
		return;
	}
	*head = (uint8_t)i;
}

static inline void
prepare(struct chunk *c, unsigned n, unsigned words)
{
	const struct weir_engine *engine = c->worker->engine;
	const struct table table = engine->table;
	const struct weir_request *request = c->requests;
	const uint32_t key_size = engine->key_size;
	const struct instant *instant = instant_of(c, request->limit);
	uint32_t limit = request->limit;
	uint8_t heads[GROUP_HEADS];

	memset(heads, NONE, sizeof(heads));
	c->uniform = instant != NULL;
	for (unsigned i = 0; i < n; i++, request++) {
		struct item *item = &c->item[i];
		struct probe *probe = &item->probe;

		if (request->limit != limit) {
			limit = request->limit;
			instant = instant_of(c, limit);
			c->uniform = false;
		}
		item->instant = instant;
		if (!instant) {
			item->plan = PLAN_FOLLOW;
			continue;
		}
		key_load(probe->word, request->key, key_size, words);
		probe->hash = hash_words(probe->word, words,
		    instant->limit->hash_seed);
		probe->identity = probe_identity(probe->hash, limit);
		table_prefetch(&table, probe->hash);
		group(c, heads, i, words);
	}
}

static inline uint64_t
request_cost(const struct weir_request *request, const struct limit *limit)
{
	return limit->unit == WEIR_UNIT_BYTES ? request->bytes :
	    request->packets;
}

/*
 * Work out what becomes of a request that is alone in its group, whose entry
 * was seen in this era, and of which no details are asked. This is
 * decide_found() for the common case, without its last step.
 */
static inline void
propose(struct chunk *c, unsigned i)
{
	struct item *item = &c->item[i];
	const struct instant *instant = item->instant;
	const struct limit *limit = instant->limit;
	uint64_t s = state_value(item->view.state), base;
	struct purse purse;

	if (item->next != NONE || ctl_era(item->view.ctl) != instant->at.era ||
	    c->decisions)
		return;
	purse = purse_open(&limit->rate, &instant->at, s,
	    v_since_in_era(&instant->at, s));
	base = purse.base;
	c->class[i] = purse_spend(&purse, &limit->rate,
	    request_cost(&c->requests[i], limit));
	item->desired = purse.base & V_MASK;
	item->plan = PLAN_KEEP;
	if (__builtin_expect(purse.base != base, 1))
		item->plan = PLAN_TAKE;
}

static inline void
locate(struct chunk *c, unsigned first, unsigned end, unsigned words)
{
	const struct table copy = c->worker->engine->table, *table = &copy;

	for (unsigned i = first; i < end; i++) {
		struct item *item = &c->item[i];

		if (item->plan == PLAN_FOLLOW)
			continue;
		if (table_find_in_line(table_home(table, item->probe.hash),
		    &item->probe, words, &item->view)) {
			propose(c, i);
			continue;
		}
		table_prefetch_more(table, item->probe.hash);
		item->plan = PLAN_LATE;
		c->late[c->lates++] = i;
	}
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

/*
 * Nothing always passes, and more than the capacity never does: these need no
 * entry, so a full table has no say in them.
 */
static inline bool
cost_is_plain(uint64_t cost, const struct limit *limit)
{
	return cost == 0 || cost > limit->rate.capacity;
}

/* What a plain cost is told where its key has no bucket of its own. */
static void
decide_plain(struct chunk *c, unsigned i, uint64_t cost)
{
	const struct instant *instant = c->item[i].instant;
	struct purse purse = purse_full(&instant->limit->rate, &instant->at);

	c->class[i] = cost == 0 ? COUNT_PASSED : COUNT_DENIED;
	if (c->decisions)
		explain(&c->decisions[i], &purse, instant, cost, c->class[i]);
}

/*
 * Spend the costs of a group in order. => How many units were spent. `denied`
 * is COUNT_FULL_DENIED if the purse is one that strangers share.
 */
static inline uint64_t
spend_group(struct chunk *c, unsigned first, struct purse *purse,
    enum count_class denied)
{
	const struct instant *instant = c->item[first].instant;
	const struct limit *limit = instant->limit;
	uint64_t base = purse->base;

	for (unsigned i = first; i != NONE; i = c->item[i].next) {
		uint64_t cost = request_cost(&c->requests[i], limit);

		if (denied == COUNT_FULL_DENIED && cost_is_plain(cost, limit)) {
			decide_plain(c, i, cost);
			continue;
		}
		c->class[i] = denied | purse_spend(purse, &limit->rate, cost);
		if (c->decisions)
			explain(&c->decisions[i], purse, instant, cost,
			    c->class[i]);
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
	const struct instant *instant = c->item[first].instant;
	const struct limit *limit = instant->limit;
	uint64_t s = state_value(view->state);
	uint32_t era = ctl_era(view->ctl);
	int32_t eras = v_eras_since(&instant->at, era);
	/* In a later era an idle entry starts afresh, as only a value near the
	 * new era's base may have its era moved there. Two eras on, an entry
	 * is idle for certain. */
	bool stale = eras >= 2 ||
	    (eras == 1 && limit_idle(limit, &instant->at, s, era));
	struct purse purse = stale ? purse_full(&limit->rate, &instant->at) :
	    purse_open(&limit->rate, &instant->at, s,
		v_since(&instant->at, s, era));

	if (spend_group(c, first, &purse, denied) == 0)
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
	const struct instant *instant = c->item[first].instant;
	struct purse purse = purse_full(&instant->limit->rate, &instant->at);

	if (spend_group(c, first, &purse, denied) == 0)
		return OUTCOME_NOTHING;
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
 * Decide a group in a table; the view says where its entry was last seen. Every
 * turn of the loop but the last is one that some other thread won. Takes are
 * retried for as long as that goes on; insertions, which may also wait for a
 * rival's slot, are given up after RACES_MAX.
 *
 * That a key has no entry may be old news: another worker may have inserted
 * it since, or an earlier group of this chunk, if the heads hid that it is of
 * the same key. An insertion notices; what ends without one is looked up again
 * before it counts. => false: no entry, and no room for one.
 */
static bool
decide_in(struct chunk *c, struct table *table, const struct probe *probe,
    struct view *view, unsigned first, enum count_class denied)
{
	unsigned races = 0;

	for (;;) {
		enum outcome outcome = view->entry ?
		    decide_found(c, first, view, denied) :
		    decide_absent(c, table, probe, first, denied,
		    races >= RACES_PATIENT);
		bool absent = view->entry == NULL;

		if (outcome == OUTCOME_DONE)
			return true;
		if (absent && ++races == RACES_MAX)
			outcome = OUTCOME_FULL;
		if (table_find(table, probe, 0, view))
			continue;
		if (absent && outcome != OUTCOME_AGAIN)
			return outcome == OUTCOME_NOTHING;
	}
}

/* The table has no room, and the policy is a plain yes or no. */
static void
decide_flat(struct chunk *c, unsigned first, bool pass)
{
	const struct limit *limit = c->item[first].instant->limit;

	for (unsigned i = first; i != NONE; i = c->item[i].next) {
		uint64_t cost = request_cost(&c->requests[i], limit);

		if (cost_is_plain(cost, limit)) {
			decide_plain(c, i, cost);
			continue;
		}
		c->class[i] = COUNT_FULL_DENIED | pass;
		if (c->decisions)
			c->decisions[i] = (struct weir_decision){
				.verdict = pass ? WEIR_PASS : WEIR_DENY,
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
	uint64_t seed = item->instant->limit->hash_seed;
	struct view view;

	probe.hash = overflow->key_words == KEY_WORDS_SMALL ?
	    hash_words(probe.word, KEY_WORDS_SMALL, seed) :
	    hash_words(probe.word, KEY_WORDS_MAX, seed);
	probe.identity = probe_identity(probe.hash, item->instant->limit->id);
	table_find(overflow, &probe, 0, &view);
	if (!decide_in(c, overflow, &probe, &view, first, COUNT_FULL_DENIED))
		decide_flat(c, first, false);
}

/* The long way, right for every case. */
static __attribute__((noinline)) void
decide_group(struct chunk *c, unsigned first)
{
	struct weir_engine *engine = c->worker->engine;
	struct item *item = &c->item[first];

	if (decide_in(c, &engine->table, &item->probe, &item->view, first,
	    COUNT_DENIED))
		return;
	if (engine->full_policy == WEIR_FULL_SHARED)
		decide_shared(c, first);
	else
		decide_flat(c, first, engine->full_policy == WEIR_FULL_ALLOW);
}

static inline void
commit_one(struct chunk *c, unsigned i)
{
	const struct item *item = &c->item[i];

	if (item->plan == PLAN_TAKE) {
		if (table_replace(&item->view, item->desired))
			return;
	} else if (item->plan == PLAN_KEEP) {
		if (table_unchanged(&item->view))
			return;
	} else if (item->plan != PLAN_NONE) {
		return;
	}
	decide_group(c, i);
}

static inline void
commit(struct chunk *c, unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		commit_one(c, i);
}

static inline void
commit_late(struct chunk *c, unsigned words)
{
	const struct table *table = &c->worker->engine->table;

	for (unsigned k = 0; k < c->lates; k++) {
		struct item *item = &c->item[c->late[k]];

		item->plan = PLAN_NONE;
		if (table_find_in_line(table_line(table,
		    item->probe.hash & table->line_mask, 1), &item->probe,
		    words, &item->view) ||
		    table_find(table, &item->probe, 2, &item->view))
			propose(c, c->late[k]);
		commit_one(c, c->late[k]);
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

/* Requests first..end-1 are of one limit, and some met a full table. */
static void
count_by_class(const struct chunk *c, unsigned first, unsigned end,
    struct worker_counters *to)
{
	for (unsigned i = first; i < end; i++) {
		counter_add(&to->packets[c->class[i]], c->requests[i].packets);
		counter_add(&to->bytes[c->class[i]], c->requests[i].bytes);
	}
}

/*
 * Count requests first..end-1, which are of one limit, and hand out the
 * verdicts. The sums are formed without branches, as nothing is less
 * predictable than a verdict.
 */
static inline void
count_run(const struct chunk *c, unsigned first, unsigned end,
    uint8_t *verdicts)
{
	const struct limit *limit = c->item[first].instant->limit;
	struct worker_counters *to = &c->worker->counters[limit->id];
	const struct weir_request *requests = c->requests;
	uint64_t packets = 0, bytes = 0, passed_packets = 0, passed_bytes = 0;
	unsigned classes = 0;

	for (unsigned i = first; i < end; i++) {
		uint64_t passed = c->class[i] & 1, mask = -passed;

		verdicts[i] = (uint8_t)passed;
		classes |= c->class[i];
		packets += requests[i].packets;
		bytes += requests[i].bytes;
		passed_packets += requests[i].packets & mask;
		passed_bytes += requests[i].bytes & mask;
	}
	if (classes >= COUNT_FULL_DENIED) {
		count_by_class(c, first, end, to);
		return;
	}
	counter_add(&to->packets[COUNT_PASSED], passed_packets);
	counter_add(&to->bytes[COUNT_PASSED], passed_bytes);
	counter_add(&to->packets[COUNT_DENIED], packets - passed_packets);
	counter_add(&to->bytes[COUNT_DENIED], bytes - passed_bytes);
}

static void
count_mixed(struct chunk *c, unsigned n, uint8_t *verdicts)
{
	unsigned first = 0, end;

	for (; first < n; first = end) {
		const struct instant *instant = c->item[first].instant;

		end = first + 1;
		if (!instant) {
			count_unknown(c, first, &verdicts[first]);
			continue;
		}
		while (end < n && c->item[end].instant == instant)
			end++;
		count_run(c, first, end, verdicts);
	}
}

static inline void
count(struct chunk *c, unsigned n, uint8_t *verdicts)
{
	if (c->uniform)
		count_run(c, 0, n, verdicts);
	else
		count_mixed(c, n, verdicts);
}

static inline __attribute__((always_inline)) void
check_chunk(struct chunk *c, unsigned n, uint8_t *verdicts, unsigned words)
{
	prepare(c, n, words);
	c->lates = 0;
	for (unsigned first = 0; first < n; first += BLOCK) {
		unsigned end = first + BLOCK < n ? first + BLOCK : n;

		locate(c, first, end, words);
		commit(c, first, end);
	}
	commit_late(c, words);
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
