/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet-burst path.
 *
 *	prepare   sort the requests into runs of one limit; hash the keys,
 *	          prefetch their home lines, chain equal keys into groups
 *	decide    each run:
 *	settle    find each group's entry in its home line; decide it and write
 *	          the outcome by one CAS, in line where the group is one request
 *	          and nothing is special, else by decide_group()
 *	late      the same for keys that were not in their home line
 *	count     add up, once
 *
 * All lines are on their way before the first is looked at: a locked instruction
 * waits for its line, and holds up what stands behind it.
 */
#include <errno.h>
#include <string.h>

#include "chunk.h"
#include "hash.h"

#define GROUP_HEADS 256u /* small hash of the chunk's keys; power of two */

/*
 * Of a chunk that is prepared behind another, so many lines are fetched at
 * once, about what a core can have in flight; more would make it wait. The
 * rest are fetched one by one while the chunk ahead is decided.
 */
#define FETCH_AT_ONCE 12u

/*
 * A limit's rate and clock, in the form in which they meet a state word. Values
 * stand in the upper bits there, so what is added to them is shifted likewise.
 */
struct terms {
	uint64_t base;   /* of the era, shifted */
	int64_t into;    /* units into the era */
	uint64_t pinned; /* the value of a full bucket, shifted */
	int64_t full;
	uint64_t token;
	uint64_t capacity;
	uint32_t era;
	bool plain; /* a token bucket, without debt */
};

static inline struct terms
terms_of(const struct instant *instant)
{
	const struct rate *rate = &instant->limit->rate[0];
	const struct vinstant *at = &instant->at[0];
	uint64_t v = at->v, into = v & (V_ERA_UNITS - 1);

	return (struct terms){
		.base = (v - into) << STATE_VALUE_SHIFT,
		.into = (int64_t)into,
		.pinned = (v - (uint64_t)at->most) << STATE_VALUE_SHIFT,
		.full = at->most,
		.token = rate->token,
		.capacity = rate->capacity,
		.era = at->era,
		.plain = instant->limit->algorithm == &algorithm_bucket &&
		    rate->debt == 0,
	};
}

/*
 * Decide a request that is alone in its group, on the entry that was seen. This
 * is purse_open(), purse_spend() and the last step of decide_found(), for a
 * value of this era and a plain limit. => false: it is some other case, or a
 * race was lost, and nothing happened.
 */
static inline bool
decide_alone(struct item *item, const struct view *view,
    const struct terms *terms)
{
	uint64_t state = view->state, units = item->cost * terms->token;
	int64_t left = terms->into -
	    ((int64_t)(state - terms->base) >> STATE_VALUE_SHIFT);
	bool done;

	if (item->next != NONE || ctl_era(view->ctl) != terms->era ||
	    item->cost == 0)
		return false;
	if (left >= terms->full) {
		left = terms->full;
		state = terms->pinned |
		    (state & ((1u << STATE_VALUE_SHIFT) - 1));
	}
	/* The class is stored behind the CAS, which would wait for it. */
	if (item->cost > terms->capacity || (int64_t)units > left) {
		item->class = COUNT_DENIED;
		return table_unchanged(view);
	}
	done = table_replace_state(view,
	    state + (units << STATE_VALUE_SHIFT));
	item->class = COUNT_PASSED;
	return done;
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
	item->leads = true;
	if (*head != NONE && probe_equal(&c->item[*head].probe, &item->probe,
	    words)) {
		first = &c->item[*head];
		c->item[first->last].next = i;
		first->last = i;
		item->leads = false;
		return;
	}
	*head = (uint8_t)i;
}

/*
 * Make a run of those requests that are of this limit, from the first one on.
 * => A bit for each that was taken.
 */
static inline uint32_t
prepare_run(struct chunk *c, unsigned first, const struct limit *limit,
    unsigned words)
{
	const struct weir_engine *engine = c->worker->engine;
	const struct table table = engine->table;
	const uint32_t key_size = engine->key_size, id = limit->id;
	const uint64_t seed = limit->hash_seed;
	const bool bytes = limit->unit == WEIR_UNIT_BYTES;
	const unsigned n = c->n;
	uint8_t heads[GROUP_HEADS];
	uint32_t taken = 0;
	unsigned items = c->items;

	memset(heads, NONE, sizeof(heads));
	for (unsigned r = first; r < n; r++) {
		const struct weir_request *request = &c->requests[r];
		struct item *item = &c->item[items];
		struct probe *probe = &item->probe;

		if (request->limit != id)
			continue;
		taken |= 1u << r;
		key_load(probe->word, request->key, key_size, words);
		probe->hash = hash_words(probe->word, words, seed);
		probe->identity = probe_identity(probe->hash, id);
		if (items < c->fetched)
			table_prefetch(&table, probe->hash);
		item->cost = bytes ? request->bytes : request->packets;
		item->request = r;
		group(c, heads, items++, words);
	}
	c->items = items;
	c->run[c->runs++] = (struct run){
		.limit = id,
		.end = items,
		.serial = limit->serial,
	};
	return taken;
}

static inline void
prepare_runs(struct chunk *c, unsigned words)
{
	uint32_t todo = c->n < CHUNK ? (1u << c->n) - 1 : UINT32_MAX;

	while (todo) {
		unsigned first = (unsigned)__builtin_ctz(todo);
		const struct limit *limit = limit_at(c->limits,
		    c->requests[first].limit);

		if (limit) {
			todo &= ~prepare_run(c, first, limit, words);
		} else {
			c->unknown |= 1u << first;
			todo &= todo - 1;
		}
	}
}

/*
 * The first half: n <= CHUNK requests, of which the keys are read and nothing
 * is decided. `fetch` home lines are fetched at once.
 */
static void
prepare(struct chunk *c, struct weir_worker *worker,
    const struct weir_request *requests, size_t n, uint32_t fetch)
{
	c->worker = worker;
	/* E1 acquire <- release in limit.c: the set and its limits. */
	c->limits = atomic_load_explicit(&worker->engine->limits,
	    memory_order_acquire);
	c->requests = requests;
	c->n = (uint32_t)n;
	c->unknown = 0;
	c->items = 0;
	c->fetched = fetch;
	c->intent = CHECK;
	c->runs = 0;
	switch (worker->engine->table.key_words) {
	case KEY_WORDS_SMALL:
		prepare_runs(c, KEY_WORDS_SMALL);
		break;
	case KEY_WORDS_WIDE:
		prepare_runs(c, KEY_WORDS_WIDE);
		break;
	default:
		prepare_runs(c, KEY_WORDS_MAX);
	}
}

/* What both ways of deciding start with; `next` as in decide(). */
static void
begin(struct chunk *c, struct chunk *next, uint64_t now_ns,
    struct weir_decision *decisions)
{
	c->next = next;
	c->now_ns = now_ns;
	c->decisions = decisions;
	c->worker->burst++;
}

bool
chunk_of_one(struct chunk *c, struct weir_worker *worker,
    const struct weir_request *request, enum intent intent, uint64_t now_ns,
    struct weir_decision *decision)
{
	prepare(c, worker, request, 1, CHUNK);
	c->intent = intent;
	c->taken = 0;
	begin(c, NULL, now_ns, decision);
	c->instant = instant_of(c, request->limit);
	return c->instant != NULL;
}

/* The leaders that were not in their home line. */
struct late {
	unsigned n;
	uint32_t item[CHUNK];
};

static inline void
settle(struct chunk *c, unsigned first, unsigned end,
    const struct terms *terms, struct late *late, unsigned words)
{
	const struct table table = c->worker->engine->table;
	struct chunk *next = c->next;
	const bool long_way = c->decisions || !terms->plain;

	late->n = 0;
	for (unsigned i = first; i < end; i++) {
		struct item *item = &c->item[i];
		struct view view;

		if (next && next->fetched < next->items)
			table_prefetch(&table,
			    next->item[next->fetched++].probe.hash);
		if (!item->leads)
			continue;
		if (long_way) {
			decide_group(c, i);
			continue;
		}
		if (!table_find_in_line(table_home(&table, item->probe.hash),
		    &item->probe, words, &view)) {
			table_prefetch_more(&table, item->probe.hash);
			late->item[late->n++] = i;
		} else if (!decide_alone(item, &view, terms)) {
			decide_group(c, i);
		}
	}
}

static inline void
settle_late(struct chunk *c, const struct terms *terms,
    const struct late *late, unsigned words)
{
	const struct table *table = &c->worker->engine->table;

	for (unsigned k = 0; k < late->n; k++) {
		struct item *item = &c->item[late->item[k]];
		const struct probe *probe = &item->probe;
		void *line = table_line(table, probe->hash & table->line_mask,
		    1);
		struct view view;
		bool found = table_find_in_line(line, probe, words, &view) ||
		    table_find(table, probe, 2, &view);

		if (!found || !decide_alone(item, &view, terms))
			decide_group(c, late->item[k]);
	}
}

/* Some met a full table, or got another verdict than yes and no. */
static void
count_by_class(const struct chunk *c, unsigned first, unsigned end,
    struct worker_counters *to, uint8_t *verdicts)
{
	for (unsigned i = first; i < end; i++) {
		const struct item *item = &c->item[i];

		verdicts[item->request] = item->class & COUNT_VERDICT_MASK;
		counter_add(&to->packets[item->class],
		    c->requests[item->request].packets);
		counter_add(&to->bytes[item->class],
		    c->requests[item->request].bytes);
	}
}

/*
 * Count, and hand out the verdicts. The sums are formed without branches, as
 * nothing is less predictable than a verdict.
 */
static inline void
count(const struct chunk *c, unsigned first, unsigned end, uint8_t *verdicts)
{
	struct worker_counters *to =
	    &c->worker->counters[c->instant->limit->id];
	uint64_t packets = 0, bytes = 0, passed_packets = 0, passed_bytes = 0;
	const struct weir_request *requests = c->requests;
	unsigned classes = 0;

	for (unsigned i = first; i < end; i++) {
		const struct item *item = &c->item[i];
		const struct weir_request *request = &requests[item->request];
		uint64_t passed = item->class & 1, mask = -passed;

		verdicts[item->request] = (uint8_t)passed;
		classes |= item->class;
		packets += request->packets;
		bytes += request->bytes;
		passed_packets += request->packets & mask;
		passed_bytes += request->bytes & mask;
	}
	if (classes > COUNT_PASSED) {
		count_by_class(c, first, end, to, verdicts);
		return;
	}
	counter_add(&to->packets[COUNT_PASSED], passed_packets);
	counter_add(&to->bytes[COUNT_PASSED], passed_bytes);
	counter_add(&to->packets[COUNT_DENIED], packets - passed_packets);
	counter_add(&to->bytes[COUNT_DENIED], bytes - passed_bytes);
}

static void
deny_unknown(struct chunk *c, uint8_t *verdicts)
{
	for (uint32_t todo = c->unknown; todo; todo &= todo - 1) {
		unsigned request = (unsigned)__builtin_ctz(todo);

		counter_add(&c->worker->unknown_limits, 1);
		verdicts[request] = WEIR_DENY;
		chunk_tell_unknown(c, request);
	}
}

/* Its limit was removed after it had been prepared. */
static void
forget_run(struct chunk *c, unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++)
		c->unknown |= 1u << c->item[i].request;
}

static inline __attribute__((always_inline)) void
decide_runs(struct chunk *c, uint8_t *verdicts, unsigned words)
{
	unsigned first = 0;

	for (unsigned i = 0; i < c->runs; i++) {
		const struct run run = c->run[i];
		struct terms terms;
		struct late late;

		c->instant = instant_of(c, run.limit);
		if (!c->instant || c->instant->limit->serial != run.serial) {
			forget_run(c, first, run.end);
			first = run.end;
			continue;
		}
		terms = terms_of(c->instant);
		settle(c, first, run.end, &terms, &late, words);
		settle_late(c, &terms, &late, words);
		count(c, first, run.end, verdicts);
		first = run.end;
	}
}

/* The second half; next is what is prepared behind it, or NULL. */
static void
decide(struct chunk *c, struct chunk *next, uint64_t now_ns, uint8_t *verdicts,
    struct weir_decision *decisions)
{
	struct weir_worker *worker = c->worker;

	/* Limits may have come, changed or gone since. E1, as in prepare(). */
	c->limits = atomic_load_explicit(&worker->engine->limits,
	    memory_order_acquire);
	begin(c, next, now_ns, decisions);
	switch (worker->engine->table.key_words) {
	case KEY_WORDS_SMALL:
		decide_runs(c, verdicts, KEY_WORDS_SMALL);
		break;
	case KEY_WORDS_WIDE:
		decide_runs(c, verdicts, KEY_WORDS_WIDE);
		break;
	default:
		decide_runs(c, verdicts, KEY_WORDS_MAX);
	}
	if (c->unknown)
		deny_unknown(c, verdicts);
}

static inline size_t
chunk_size(size_t n)
{
	return n < CHUNK ? n : CHUNK;
}

void
weir_check_burst(struct weir_worker *worker,
    const struct weir_request *requests, size_t n, uint64_t now_ns,
    uint8_t *verdicts, struct weir_decision *decisions)
{
	struct chunk chunk[2];
	size_t prepared = chunk_size(n), decided = 0;

	if (n == 0)
		return;
	prepare(&chunk[0], worker, requests, prepared, CHUNK);
	for (unsigned i = 0; decided < n; i ^= 1) {
		size_t next = chunk_size(n - prepared);

		if (next)
			prepare(&chunk[i ^ 1], worker, requests + prepared,
			    next, FETCH_AT_ONCE);
		prepared += next;
		decide(&chunk[i], next ? &chunk[i ^ 1] : NULL, now_ns,
		    verdicts + decided, decisions ?
		    decisions + decided : NULL);
		decided += chunk[i].n;
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

int
weir_prepare(struct weir_worker *worker, const struct weir_request *requests,
    size_t n)
{
	unsigned slot = worker->first_prepared + worker->n_prepared;

	if (n == 0 || n > WEIR_BURST_MAX)
		return -EINVAL;
	if (worker->n_prepared == WEIR_PREPARED_MAX)
		return -EBUSY;
	worker->n_prepared++;
	prepare(&worker->prepared[slot % WEIR_PREPARED_MAX], worker, requests,
	    n, worker->n_prepared == 1 ? CHUNK : FETCH_AT_ONCE);
	return 0;
}

size_t
weir_decide(struct weir_worker *worker, uint64_t now_ns, uint8_t *verdicts,
    struct weir_decision *decisions)
{
	struct chunk *c = &worker->prepared[worker->first_prepared], *next;

	if (worker->n_prepared == 0)
		return 0;
	worker->first_prepared = (worker->first_prepared + 1) %
	    WEIR_PREPARED_MAX;
	next = --worker->n_prepared ?
	    &worker->prepared[worker->first_prepared] : NULL;
	decide(c, next, now_ns, verdicts, decisions);
	return c->n;
}
