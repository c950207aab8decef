/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet bursts in two halves. What comes of them must not depend on how they
 * are handed over, so a random stream goes through three engines that are
 * alike: in halves, by weir_check_burst(), and request by request. What only
 * the halves can do is tried by hand: their queue, and what happens between.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support.h"

#define S NSEC_PER_SEC
#define UNTOUCHED 0xa5a5a5a5a5a5a5a5ull

enum {
	KEYS = 24,
	LIMITS = 20, /* of KEYS entries each, at most half the slots */
	LONGEST = 1000,
};

static const struct {
	uint64_t tokens, period_ns, capacity;
	enum weir_unit unit;
} rules[] = {
	{ 1000, S, 5, WEIR_UNIT_PACKETS },
	{ 1250000, S, 3000, WEIR_UNIT_BYTES },
	{ 1, 3600 * S, 2, WEIR_UNIT_PACKETS },
	{ 148809523, S, 64, WEIR_UNIT_PACKETS },
	{ 25, 2, 1 << 20, WEIR_UNIT_BYTES },
};

/* Requests, and where weir_prepare() gets them from. */
struct burst {
	size_t n;
	struct weir_request requests[LONGEST];
	struct weir_request *handed; /* the same, as weir_prepare() saw them */
};

enum way { HALVES, BURST, SINGLE, WAYS };

struct trio {
	struct rig rig[WAYS];
	struct rng rng;
	uint64_t now_ns;
	uint32_t key_size;
	uint32_t limits;
	unsigned char key[KEYS][WEIR_KEY_SIZE_MAX];
	struct burst waiting[WEIR_PREPARED_MAX]; /* the first is next */
	unsigned n_waiting;
	unsigned calls;
};

static void
trio_add_limit(struct trio *t)
{
	size_t rule = t->limits % NELEM(rules);
	char name[16];

	snprintf(name, sizeof(name), "l%u", t->limits);
	for (int way = 0; way < WAYS; way++)
		expect(limit_add(t->rig[way].engine, name, rules[rule].tokens,
		    rules[rule].period_ns, rules[rule].capacity,
		    rules[rule].unit) == t->limits);
	t->limits++;
}

/* Another rate and capacity than the rule says. */
static void
trio_change_limit(struct trio *t)
{
	uint32_t limit = (uint32_t)rng_below(&t->rng, t->limits);
	size_t rule = limit % NELEM(rules);
	uint64_t period_ns = rules[rule].period_ns * (1 + rng_below(&t->rng, 3));
	uint64_t capacity = rules[rule].capacity / 2 +
	    rng_below(&t->rng, rules[rule].capacity);
	struct weir_limit_params params = limit_params(NULL,
	    rules[rule].tokens, period_ns, capacity, rules[rule].unit);
	char name[16];

	snprintf(name, sizeof(name), "l%u", limit);
	params.name = name;
	for (int way = 0; way < WAYS; way++)
		expect(weir_limit_set(t->rig[way].engine, limit, &params,
		    t->now_ns, NULL) == 0);
}

/* Keys of which neighbours differ in one bit only, at the end or anywhere. */
static void
trio_keys(struct trio *t)
{
	for (unsigned k = 0; k < KEYS; k++) {
		for (unsigned i = 0; i < t->key_size; i++)
			t->key[k][i] = (unsigned char)rng_next(&t->rng);
		if (k % 2 == 1) {
			memcpy(t->key[k], t->key[k - 1], t->key_size);
			t->key[k][k % 4 == 1 ? t->key_size - 1 :
			    rng_below(&t->rng, t->key_size)] ^= 0x80;
		}
	}
}

static void
trio_open(struct trio *t, const char *test, uint32_t key_size)
{
	struct weir_engine_params params = rig_params(KEYS * LIMITS / 2,
	    key_size);

	memset(t, 0, sizeof(*t));
	rng_init(&t->rng, test_seed(test));
	params.seed_fixed = true;
	params.hash_seed = rng_next(&t->rng);
	for (int way = 0; way < WAYS; way++)
		rig_open(&t->rig[way], &params);
	t->key_size = key_size;
	t->now_ns = NSEC_PER_YEAR;
	trio_keys(t);
	for (size_t i = 0; i < NELEM(rules); i++)
		trio_add_limit(t);
}

/* All three have counted the same, and no table was ever full. */
static void
trio_close(struct trio *t)
{
	for (uint32_t limit = 0; limit < t->limits; limit++) {
		struct weir_counters c[WAYS];

		for (int way = 0; way < WAYS; way++)
			expect(weir_engine_counters(t->rig[way].engine, limit,
			    &c[way]) == 0);
		expect(memcmp(&c[HALVES], &c[SINGLE], sizeof(c[0])) == 0);
		expect(memcmp(&c[BURST], &c[SINGLE], sizeof(c[0])) == 0);
		expect(c[SINGLE].full_denied_packets == 0);
	}
	for (int way = 0; way < WAYS; way++) {
		expect(weir_engine_unknown_limits(t->rig[way].engine) ==
		    weir_engine_unknown_limits(t->rig[SINGLE].engine));
		rig_close(&t->rig[way]);
	}
}

static uint64_t
draw_cost(struct trio *t, uint64_t capacity)
{
	switch (rng_below(&t->rng, 10)) {
	case 0:
		return 0;
	case 1:
		return capacity;
	case 2:
		return capacity + 1;
	case 3:
		return rng_magnitude(&t->rng, 64);
	default:
		return 1 + rng_below(&t->rng, capacity / 2 + 1);
	}
}

/* Some numbers are no limit: never will be one, or not yet. */
static uint32_t
draw_limit(struct trio *t)
{
	switch (rng_below(&t->rng, 30)) {
	case 0:
		return UINT32_MAX;
	case 1:
		return t->limits + (uint32_t)rng_below(&t->rng, 2);
	case 2:
		return t->limits + 65536;
	default:
		return (uint32_t)rng_below(&t->rng, t->limits);
	}
}

static void
draw_burst(struct trio *t, struct burst *b, size_t n)
{
	unsigned keys = 1 + (unsigned)rng_below(&t->rng, KEYS);

	b->n = n;
	b->handed = NULL;
	for (size_t i = 0; i < n; i++) {
		uint32_t limit = draw_limit(t);
		uint64_t capacity = rules[limit % NELEM(rules)].capacity;

		b->requests[i] = (struct weir_request){
			.key = t->key[rng_below(&t->rng, keys)],
			.packets = draw_cost(t, capacity),
			.bytes = draw_cost(t, capacity),
			.limit = limit,
		};
	}
}

/* Stand still, go on, jump, step back. */
static void
draw_time(struct trio *t)
{
	switch (rng_below(&t->rng, 8)) {
	case 0:
		t->now_ns += rng_magnitude(&t->rng, 24);
		break;
	case 1:
		t->now_ns += rng_magnitude(&t->rng, 46);
		break;
	case 2:
		t->now_ns -= rng_magnitude(&t->rng, 13);
		break;
	default:
		t->now_ns += rng_below(&t->rng, 1000);
	}
}

/* Held against the other two ways. decisions may be NULL. */
static void
judge(struct trio *t, const struct burst *b, const uint8_t *verdicts,
    const struct weir_decision *decisions)
{
	struct weir_decision by_burst[LONGEST];
	uint8_t of_burst[LONGEST];

	/* One of the two asks for details. */
	weir_check_burst(t->rig[BURST].worker, b->requests, b->n, t->now_ns,
	    of_burst, decisions ? NULL : by_burst);
	if (!decisions)
		decisions = by_burst;
	for (size_t i = 0; i < b->n; i++) {
		struct weir_decision one;

		weir_check(t->rig[SINGLE].worker, &b->requests[i], t->now_ns,
		    &one);
		expect(verdicts[i] == one.verdict);
		expect(of_burst[i] == one.verdict);
		expect(decisions[i].verdict == one.verdict);
		expect(decisions[i].decided_by == one.decided_by);
		expect(decisions[i].remaining == one.remaining);
		expect(decisions[i].retry_after_ns == one.retry_after_ns);
	}
}

/* Prepare from memory that ends where they do, and take the keys away. */
static void
prepare_one_more(struct trio *t)
{
	struct burst *b = &t->waiting[t->n_waiting];
	unsigned char *keys;

	draw_burst(t, b, 1 + t->calls++ % WEIR_BURST_MAX);
	b->handed = malloc(b->n * sizeof(*b->handed));
	keys = malloc(b->n * t->key_size);
	expect(b->handed != NULL && keys != NULL);
	memcpy(b->handed, b->requests, b->n * sizeof(*b->handed));
	for (size_t i = 0; i < b->n; i++) {
		unsigned char *key = keys + i * t->key_size;

		memcpy(key, b->requests[i].key, t->key_size);
		b->handed[i].key = key;
		if (b->requests[i].limit >= t->limits)
			b->requests[i].limit = UINT32_MAX;
	}
	expect(weir_prepare(t->rig[HALVES].worker, b->handed, b->n) == 0);
	for (size_t i = 0; i < b->n; i++)
		memcpy(keys + i * t->key_size,
		    t->key[rng_below(&t->rng, KEYS)], t->key_size);
	free(keys);
	t->n_waiting++;
}

static void
decide_the_first(struct trio *t)
{
	struct weir_decision decisions[WEIR_BURST_MAX + 1];
	uint8_t verdicts[WEIR_BURST_MAX + 1];
	struct burst *b = &t->waiting[0];
	bool details = rng_below(&t->rng, 2);

	memset(verdicts, 0xa5, sizeof(verdicts));
	memset(decisions, 0xa5, sizeof(decisions));
	expect(weir_decide(t->rig[HALVES].worker, t->now_ns, verdicts,
	    details ? decisions : NULL) == b->n);
	expect(verdicts[b->n] == 0xa5);
	expect(decisions[b->n].retry_after_ns == UNTOUCHED);
	judge(t, b, verdicts, details ? decisions : NULL);
	free(b->handed);
	t->n_waiting--;
	memmove(&t->waiting[0], &t->waiting[1],
	    t->n_waiting * sizeof(t->waiting[0]));
}

/* The ordinary calls, before what is waiting. */
static void
pass_by(struct trio *t, size_t n)
{
	struct weir_decision decisions[LONGEST + 1];
	uint8_t verdicts[LONGEST + 1];
	bool details = rng_below(&t->rng, 2);
	struct burst b;

	draw_burst(t, &b, n);
	memset(verdicts, 0xa5, sizeof(verdicts));
	memset(decisions, 0xa5, sizeof(decisions));
	if (n == 1)
		verdicts[0] = weir_check(t->rig[HALVES].worker, b.requests,
		    t->now_ns, details ? decisions : NULL);
	else
		weir_check_burst(t->rig[HALVES].worker, b.requests, n,
		    t->now_ns, verdicts, details ? decisions : NULL);
	expect(verdicts[n] == 0xa5);
	expect(decisions[n].retry_after_ns == UNTOUCHED);
	judge(t, &b, verdicts, details ? decisions : NULL);
}

static void
step(struct trio *t)
{
	struct weir_worker *worker = t->rig[HALVES].worker;

	draw_time(t);
	switch (rng_below(&t->rng, 16)) {
	case 0:
		pass_by(t, 1);
		break;
	case 1:
		pass_by(t, rng_below(&t->rng, 80));
		break;
	case 2:
		weir_worker_quiesce(worker);
		break;
	case 3:
		weir_worker_offline(worker);
		weir_worker_online(worker);
		break;
	case 4:
		if (t->limits < LIMITS && rng_below(&t->rng, 20) == 0)
			trio_add_limit(t);
		break;
	case 5:
		if (rng_below(&t->rng, 4) == 0)
			trio_change_limit(t);
		break;
	default:
		if (t->n_waiting == 0 || (t->n_waiting < WEIR_PREPARED_MAX &&
		    rng_below(&t->rng, 2)))
			prepare_one_more(t);
		else
			decide_the_first(t);
	}
}

static const uint32_t key_sizes[] = { 4, 16, 17, 40 };

START_TEST(halves_make_the_whole)
{
	uint64_t steps = test_scale(40000);
	struct trio t;

	trio_open(&t, "halves", key_sizes[_i]);
	for (uint64_t i = 0; i < steps; i++)
		step(&t);
	while (t.n_waiting > 0)
		decide_the_first(&t);
	trio_close(&t);
}
END_TEST

/* Long ones go in chunks, of which each is prepared behind another. */
START_TEST(long_bursts_in_order)
{
	static const size_t lengths[] = { 0, 1, 31, 32, 33, 63, 64, 65, 96, 97,
		LONGEST };
	uint64_t rounds = test_scale(200);
	struct trio t;

	trio_open(&t, "long", key_sizes[_i]);
	for (uint64_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < NELEM(lengths); i++) {
			draw_time(&t);
			pass_by(&t, lengths[i]);
		}
	trio_close(&t);
}
END_TEST

/*
 * Memory that is given back is kept, full of ones: who still reads it follows
 * wild pointers, and who writes to it is found out.
 */
struct ledger {
	struct block {
		unsigned char *memory;
		size_t size;
		bool back;
	} block[512];
	size_t blocks;
	size_t bytes; /* given out and not back */
};

static struct ledger ledger;
static struct rig rig;
static uint32_t one; /* one token, for ever */

static void *
ledger_alloc(size_t size, size_t align, void *context)
{
	struct ledger *l = context;
	void *memory;

	if (l->blocks == NELEM(l->block) ||
	    posix_memalign(&memory, align < 64 ? 64 : align, size) != 0)
		return NULL;
	l->block[l->blocks++] = (struct block){ memory, size, false };
	l->bytes += size;
	return memset(memory, 0, size);
}

static void
ledger_free(void *memory, size_t size, void *context)
{
	struct ledger *l = context;
	size_t i = 0;

	while (i < l->blocks && l->block[i].memory != memory)
		i++;
	expect(i < l->blocks && l->block[i].size == size &&
	    !l->block[i].back);
	l->block[i].back = true;
	l->bytes -= size;
	memset(memory, 0xff, size);
}

static void
ledger_close(struct ledger *l)
{
	expect(l->bytes == 0);
	for (size_t i = 0; i < l->blocks; i++) {
		for (size_t at = 0; at < l->block[i].size; at++)
			expect(l->block[i].memory[at] == 0xff);
		free(l->block[i].memory);
	}
}

static void
setup(void)
{
	struct weir_engine_params params = rig_params(16, 1);

	ledger = (struct ledger){ .blocks = 0 };
	params.alloc = ledger_alloc;
	params.free = ledger_free;
	params.alloc_context = &ledger;
	rig_open(&rig, &params);
	one = limit_add(rig.engine, "one", 1, NSEC_PER_YEAR, 1,
	    WEIR_UNIT_PACKETS);
}

static void
teardown(void)
{
	rig_close(&rig);
	ledger_close(&ledger);
}

/* n requests of one token each, for one key. */
static void
same(struct weir_request *requests, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++)
		requests[i] = request(one, key, 1);
}

static void
decided(uint64_t now_ns, size_t n, unsigned passed)
{
	uint8_t verdicts[WEIR_BURST_MAX];
	unsigned passes = 0;

	ck_assert_uint_eq(weir_decide(rig.worker, now_ns, verdicts, NULL), n);
	for (size_t i = 0; i < n; i++)
		passes += verdicts[i];
	ck_assert_uint_eq(passes, passed);
}

START_TEST(sizes_that_are_refused)
{
	struct weir_request requests[WEIR_BURST_MAX + 1];

	same(requests, NELEM(requests), "k");
	for (int waiting = 0; waiting <= 2; waiting++) {
		ck_assert_int_eq(weir_prepare(rig.worker, requests, 0),
		    -EINVAL);
		ck_assert_int_eq(weir_prepare(rig.worker, requests, 33),
		    -EINVAL);
		ck_assert_int_eq(weir_prepare(rig.worker, requests, SIZE_MAX),
		    -EINVAL);
		ck_assert_int_eq(weir_prepare(rig.worker, requests, 32),
		    waiting < 2 ? 0 : -EBUSY);
	}
	decided(0, 32, 1);
	decided(0, 32, 0);
	decided(0, 0, 0);
}
END_TEST

/* First in, first out, and a third is refused without harm to the two. */
START_TEST(two_at_most_in_a_queue)
{
	static const char keys[] = "abcdefghijklmnopqrst";
	struct weir_request first[3], next[3], more[1];

	for (size_t i = 0; i + 2 < sizeof(keys); i += 2) {
		size_t n = 1 + i % 3, m = 1 + (i + 1) % 3;

		same(first, n, &keys[i]);
		same(next, m, &keys[i + 1]);
		same(more, 1, "z");
		ck_assert_int_eq(weir_prepare(rig.worker, first, n), 0);
		/* Starts at the queue's other end each time. */
		ck_assert_int_eq(weir_prepare(rig.worker, next, m), 0);
		ck_assert_int_eq(weir_prepare(rig.worker, more, 1), -EBUSY);
		decided(0, n, 1);
		same(first, 1, &keys[i]);
		ck_assert_int_eq(weir_prepare(rig.worker, first, 1), 0);
		ck_assert_int_eq(weir_prepare(rig.worker, more, 1), -EBUSY);
		decided(0, m, 1);
		decided(0, 1, 0); /* spent above */
		decided(0, 0, 0);
	}
	/* The third was never asked for. */
	ck_assert_int_eq(ask(&rig, one, "z", 1, 0).verdict, WEIR_PASS);
}
END_TEST

START_TEST(nothing_waiting)
{
	struct weir_decision decisions[2], before[2];
	uint8_t verdicts[2] = { 0xa5, 0xa5 };
	struct weir_counters c;

	memset(decisions, 0xa5, sizeof(decisions));
	memcpy(before, decisions, sizeof(before));
	ck_assert_uint_eq(weir_decide(rig.worker, 0, verdicts, decisions), 0);
	ck_assert_uint_eq(weir_decide(rig.worker, 0, NULL, NULL), 0);
	ck_assert_uint_eq(verdicts[0], 0xa5);
	ck_assert_mem_eq(decisions, before, sizeof(before));
	ck_assert_int_eq(weir_worker_counters(rig.worker, one, &c), 0);
	ck_assert_uint_eq(c.passed_packets + c.denied_packets, 0);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 0);
}
END_TEST

/* Byte by byte, all memory but the worker's own. */
START_TEST(prepare_changes_nothing)
{
	struct weir_request requests[WEIR_BURST_MAX];
	unsigned char *copy[NELEM(ledger.block)];
	struct weir_counters c;
	size_t compared = 0;

	ask(&rig, one, "k", 1, 0);
	same(requests, 32, "k");
	same(requests + 16, 16, "new");
	for (size_t i = 0; i < ledger.blocks; i++) {
		copy[i] = malloc(ledger.block[i].size);
		ck_assert_ptr_nonnull(copy[i]);
		memcpy(copy[i], ledger.block[i].memory, ledger.block[i].size);
	}
	ck_assert_int_eq(weir_prepare(rig.worker, requests, 32), 0);
	ck_assert_int_eq(weir_prepare(rig.worker, requests, 32), 0);
	for (size_t i = 0; i < ledger.blocks; i++) {
		struct block *b = &ledger.block[i];

		if ((void *)b->memory != (void *)rig.worker) {
			ck_assert_mem_eq(copy[i], b->memory, b->size);
			compared += b->size;
		}
		free(copy[i]);
	}
	ck_assert_uint_ge(compared, 64 * 32); /* the table, at the least */
	ck_assert_int_eq(weir_worker_counters(rig.worker, one, &c), 0);
	ck_assert_uint_eq(c.passed_packets, 1);
	ck_assert_uint_eq(c.denied_packets, 0);
}
END_TEST

/* Who decides first takes first, and at the time of the decision. */
START_TEST(decided_when_it_is_decided)
{
	struct weir_request requests[2], other;
	uint8_t verdict;

	same(requests, 2, "k");
	ck_assert_int_eq(weir_prepare(rig.worker, requests, 2), 0);
	ck_assert_int_eq(ask(&rig, one, "k", 1, 0).verdict, WEIR_PASS);
	decided(0, 2, 0);

	ck_assert_int_eq(weir_prepare(rig.worker, requests, 2), 0);
	ck_assert_int_eq(weir_prepare(rig.worker, requests, 2), 0);
	other = request(one, "o", 1);
	weir_check_burst(rig.worker, &other, 1, 0, &verdict, NULL);
	ck_assert_uint_eq(verdict, WEIR_PASS);
	weir_worker_quiesce(rig.worker);
	decided(NSEC_PER_YEAR - 1, 2, 0);
	decided(NSEC_PER_YEAR, 2, 1);
	ck_assert_int_eq(ask(&rig, one, "k", 1, NSEC_PER_YEAR).verdict,
	    WEIR_DENY);
}
END_TEST

/*
 * The first half sees no such limit, so there is none for this packet burst.
 * That the set of limits was replaced meanwhile is of no concern to the rest.
 */
START_TEST(limit_added_in_between)
{
	struct weir_request requests[4], later[1];
	struct weir_decision decisions[4];
	uint8_t verdicts[4];
	struct weir_counters c;
	uint32_t added;

	same(requests, 4, "k");
	requests[0].limit = requests[2].limit = one + 1;
	ck_assert_int_eq(weir_prepare(rig.worker, requests, 4), 0);
	weir_worker_quiesce(rig.worker);
	added = limit_add(rig.engine, "added", 1, S, 1, WEIR_UNIT_PACKETS);
	ck_assert_uint_eq(added, one + 1);
	later[0] = request(added, "k", 1);
	ck_assert_int_eq(weir_prepare(rig.worker, later, 1), 0);

	ck_assert_uint_eq(weir_decide(rig.worker, 0, verdicts, decisions), 4);
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(decisions[i].decided_by,
		    i % 2 ? WEIR_BY_BUCKET : WEIR_BY_NO_LIMIT);
		ck_assert_uint_eq(decisions[i].remaining, 0);
		ck_assert_uint_eq(verdicts[i], i == 1);
		ck_assert_uint_eq(decisions[i].verdict, i == 1);
		ck_assert_uint_eq(decisions[i].retry_after_ns,
		    i == 3 ? NSEC_PER_YEAR : 0);
	}
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 2);
	ck_assert_int_eq(weir_engine_counters(rig.engine, added, &c), 0);
	ck_assert_uint_eq(c.passed_packets + c.denied_packets, 0);
	decided(0, 1, 1);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 2);
}
END_TEST

/* Decided by what the limit is by then; no former version is looked at. */
START_TEST(limit_changed_in_between)
{
	struct weir_limit_params params = limit_params("one", 1, NSEC_PER_YEAR,
	    1, WEIR_UNIT_PACKETS);
	struct weir_request requests[2];

	ck_assert_int_eq(ask(&rig, one, "k", 1, 0).verdict, WEIR_PASS);
	same(requests, 2, "k");
	ck_assert_int_eq(weir_prepare(rig.worker, requests, 2), 0);
	ck_assert_int_eq(weir_prepare(rig.worker, requests, 2), 0);
	for (int i = 0; i <= 100; i++) {
		params.period_ns = i % 2 ? NSEC_PER_YEAR : NSEC_PER_DAY;
		ck_assert_int_eq(weir_limit_set(rig.engine, one, &params, 0,
		    NULL), 0);
		weir_worker_quiesce(rig.worker);
	}
	decided(NSEC_PER_DAY - 1, 2, 0);
	decided(NSEC_PER_DAY, 2, 1);
}
END_TEST

/* What waits is dropped: undecided, uncounted, and nothing is left of it. */
START_TEST(detach_drops_what_waits)
{
	struct weir_request requests[WEIR_BURST_MAX];
	struct weir_counters c;

	same(requests, NELEM(requests), "k");
	requests[31].limit = UINT32_MAX;
	for (int waiting = 1; waiting <= WEIR_PREPARED_MAX; waiting++) {
		struct weir_worker *worker;
		size_t bytes = ledger.bytes;
		uint8_t verdict;

		ck_assert_int_eq(weir_worker_attach(rig.engine, &worker), 0);
		ck_assert_uint_eq(weir_decide(worker, 0, &verdict, NULL), 0);
		for (int i = 0; i < waiting; i++)
			ck_assert_int_eq(weir_prepare(worker, requests, 32),
			    0);
		weir_worker_detach(worker);
		ck_assert_uint_eq(ledger.bytes, bytes);
	}
	ck_assert_int_eq(weir_engine_counters(rig.engine, one, &c), 0);
	ck_assert_uint_eq(c.passed_packets + c.denied_packets, 0);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 0);
	ck_assert_int_eq(ask(&rig, one, "k", 1, 0).verdict, WEIR_PASS);
}
END_TEST

/* A thread with two workers has two queues. */
START_TEST(queues_of_two_workers)
{
	struct weir_request a[1], b[2];
	struct weir_worker *other;
	uint8_t verdicts[2];

	same(a, 1, "a");
	same(b, 2, "a");
	ck_assert_int_eq(weir_worker_attach(rig.engine, &other), 0);
	ck_assert_int_eq(weir_prepare(rig.worker, a, 1), 0);
	ck_assert_int_eq(weir_prepare(other, b, 2), 0);
	ck_assert_int_eq(weir_prepare(rig.worker, a, 1), 0);
	ck_assert_int_eq(weir_prepare(rig.worker, a, 1), -EBUSY);
	ck_assert_uint_eq(weir_decide(other, 0, verdicts, NULL), 2);
	ck_assert_uint_eq(verdicts[0], WEIR_PASS);
	ck_assert_uint_eq(verdicts[1], WEIR_DENY);
	ck_assert_uint_eq(weir_decide(other, 0, verdicts, NULL), 0);
	weir_worker_detach(other);
	decided(0, 1, 0);
	decided(0, 1, 0);
	decided(0, 0, 0);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("prepare");
	TCase *ways = tcase_create("three ways");
	TCase *hand = tcase_create("by hand");

	tcase_set_timeout(ways, 100);
	tcase_add_loop_test(ways, halves_make_the_whole, 0, NELEM(key_sizes));
	tcase_add_loop_test(ways, long_bursts_in_order, 0, NELEM(key_sizes));
	suite_add_tcase(s, ways);

	tcase_add_checked_fixture(hand, setup, teardown);
	tcase_set_timeout(hand, 60);
	tcase_add_test(hand, sizes_that_are_refused);
	tcase_add_test(hand, two_at_most_in_a_queue);
	tcase_add_test(hand, nothing_waiting);
	tcase_add_test(hand, prepare_changes_nothing);
	tcase_add_test(hand, decided_when_it_is_decided);
	tcase_add_test(hand, limit_added_in_between);
	tcase_add_test(hand, limit_changed_in_between);
	tcase_add_test(hand, detach_drops_what_waits);
	tcase_add_test(hand, queues_of_two_workers);
	suite_add_tcase(s, hand);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
