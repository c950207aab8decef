/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes of requests must not depend on how they are handed over. A random
 * stream goes through three engines that are alike: prepared and decided apart,
 * with other packet bursts, changes and pauses in between; by
 * weir_check_burst(); and request by request.
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
	struct {
		bool there;
		unsigned number; /* of its name, and of its rule */
	} limit[LIMITS];
	unsigned added; /* limits so far */
	unsigned char key[KEYS][WEIR_KEY_SIZE_MAX];
	struct burst waiting[WEIR_PREPARED_MAX]; /* the first is next */
	unsigned n_waiting;
	unsigned calls;
};

static bool
trio_has(const struct trio *t, uint32_t limit)
{
	return limit < LIMITS && t->limit[limit].there;
}

/* As the rule says, or about so. */
static struct weir_limit_params
trio_params(struct trio *t, unsigned number, char name[16], bool about)
{
	size_t rule = number % NELEM(rules);
	struct weir_limit_params params = limit_params(name,
	    rules[rule].tokens, rules[rule].period_ns, rules[rule].capacity,
	    rules[rule].unit);

	snprintf(name, 16, "l%u", number);
	if (about) {
		params.period_ns *= 1 + rng_below(&t->rng, 3);
		params.capacity = params.capacity / 2 +
		    rng_below(&t->rng, params.capacity);
	}
	return params;
}

/* The number is what the engine says, in all three the same. */
static void
trio_add_limit(struct trio *t)
{
	char name[16];
	struct weir_limit_params params = trio_params(t, t->added, name,
	    false);
	uint32_t limit[WAYS];
	int rc[WAYS];

	for (int way = 0; way < WAYS; way++)
		rc[way] = weir_limit_add(t->rig[way].engine, &params,
		    &limit[way], NULL);
	expect(rc[HALVES] == rc[SINGLE] && rc[BURST] == rc[SINGLE]);
	if (rc[SINGLE] == -ENOSPC)
		return;
	expect(rc[SINGLE] == 0 && limit[SINGLE] < LIMITS);
	expect(limit[HALVES] == limit[SINGLE] &&
	    limit[BURST] == limit[SINGLE]);
	t->limit[limit[SINGLE]].there = true;
	t->limit[limit[SINGLE]].number = t->added++;
}

static void
trio_change_limit(struct trio *t, uint32_t limit)
{
	char name[16];
	struct weir_limit_params params = trio_params(t,
	    t->limit[limit].number, name, true);

	for (int way = 0; way < WAYS; way++)
		expect(weir_limit_set(t->rig[way].engine, limit, &params,
		    t->now_ns, NULL) == 0);
}

/* Whoever waits for it has no limit now, even if the number is given again. */
static void
trio_remove_limit(struct trio *t, uint32_t limit)
{
	for (int way = 0; way < WAYS; way++)
		expect(weir_limit_remove(t->rig[way].engine, limit) == 0);
	t->limit[limit].there = false;
	for (unsigned i = 0; i < t->n_waiting; i++) {
		struct burst *b = &t->waiting[i];

		for (size_t r = 0; r < b->n; r++)
			if (b->requests[r].limit == limit)
				b->requests[r].limit = UINT32_MAX;
	}
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
	params.max_limits = LIMITS;
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
	for (uint32_t limit = 0; limit < LIMITS; limit++) {
		struct weir_counters c[WAYS];

		if (!trio_has(t, limit))
			continue;
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

/* Some numbers are no limit: never will be one, not yet, or no more. */
static uint32_t
draw_limit(struct trio *t)
{
	switch (rng_below(&t->rng, 30)) {
	case 0:
		return UINT32_MAX;
	case 1:
		return (uint32_t)rng_below(&t->rng, LIMITS);
	case 2:
		return LIMITS + 65536;
	default:
		return (uint32_t)rng_below(&t->rng,
		    t->added < LIMITS ? t->added : LIMITS);
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
		unsigned rule = limit < LIMITS ?
		    t->limit[limit].number % NELEM(rules) : 0;
		uint64_t capacity = rules[rule].capacity;

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
		expect(decisions[i].reset_after_ns == one.reset_after_ns);
		/* Of what is no limit the number may since be another's. */
		expect(decisions[i].limit == one.limit ||
		    one.decided_by == WEIR_BY_NO_LIMIT);
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
		if (!trio_has(t, b->requests[i].limit))
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
step_limits(struct trio *t)
{
	uint32_t limit = (uint32_t)rng_below(&t->rng, LIMITS);
	uint64_t what = rng_below(&t->rng, 20);

	if (what < 2)
		trio_add_limit(t);
	else if (what == 2 && trio_has(t, limit))
		trio_remove_limit(t, limit);
	else if (what < 8 && trio_has(t, limit))
		trio_change_limit(t, limit);
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
		step_limits(t);
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

static Suite *
suite(void)
{
	Suite *s = suite_create("ways");
	TCase *tc = tcase_create("three ways");

	tcase_set_timeout(tc, 100);
	tcase_add_loop_test(tc, halves_make_the_whole, 0, NELEM(key_sizes));
	tcase_add_loop_test(tc, long_bursts_in_order, 0, NELEM(key_sizes));
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
