/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All that can be done to a bucket, mixed, against the oracle: checks one by
 * one and in packet bursts, looks, takes, and refunds of any size; at times that
 * stand still, step back as far as clocks may lie apart, jump by years, and
 * lie where eras and 64-bit clocks end. Counters are checked at the end.
 *
 * One answer is not looked for: what a clock sees that is behind the last take
 * after a late refund made the bucket fuller than full by that take's time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "oracle.h"

#define S NSEC_PER_SEC
#define SKEW_NS (100 * NSEC_PER_MS)

enum {
	CALLS = 10000000,
	EPISODE_CALLS = 4000,
	ENGINE_CALLS = 400000, /* then a new one: each episode leaves entries,
				  some of them of times to come */
	KEYS = 3,
	BURST_MAX = 40,
};

static const struct {
	uint64_t tokens, period_ns, capacity, debt;
} limits_table[] = {
	{ 1000, S, 10 },
	{ 1, 1, 1 },
	{ 3, 7, 1000 },
	{ 5, 3 * S, 250000 },
	{ 1, 3600 * S, 1 },
	{ 1250000, S, 125000 },
	{ 1, NSEC_PER_YEAR, 1 },
	{ 999983, 1000003, 100 },
	{ 148810, S, 64 },
	{ 1 << 23, 1, 1ull << 55 },
	{ 1 << 23, 1, 1ull << 50 },
	{ 1000, S, 10, 10 },
	{ 3, 7, 1000, 1 },
	{ 1, 3600 * S, 1, 5 },
	{ 1250000, S, 125000, 1000000 },
	{ 999983, 1000003, 100, 37 },
	{ 1 << 23, 1, 1ull << 54, 1ull << 54 },
	{ 1 << 23, 1, 1, (1ull << 55) - 1 },
};

enum { LIMITS = NELEM(limits_table) };

struct key {
	uint64_t name; /* the bytes that the library sees */
	struct oracle_bucket bucket;
};

struct model {
	struct rig rig;
	struct rng rng;
	uint64_t seed;
	struct weir_limit_params params[LIMITS];
	uint32_t id[LIMITS];
	struct weir_counters want[LIMITS];
	uint64_t next_name;
	uint64_t skipped;
	/* this episode */
	unsigned limit;
	struct key key[KEYS];
	uint64_t now_ns, latest_ns;
};

static struct model model;

static void
model_open(struct model *m)
{
	struct weir_engine_params params = rig_params(1 << 16, 8);

	params.clock_skew_ns = SKEW_NS;
	rig_open(&m->rig, &params);
	for (size_t i = 0; i < LIMITS; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%zu", i);
		m->params[i] = limit_params(name, limits_table[i].tokens,
		    limits_table[i].period_ns, limits_table[i].capacity,
		    i % 2 ? WEIR_UNIT_BYTES : WEIR_UNIT_PACKETS);
		m->params[i].debt = limits_table[i].debt;
		expect(limit_is_exact(&m->params[i]));
		ck_assert_int_eq(weir_limit_add(m->rig.engine, &m->params[i],
		    &m->id[i], NULL), 0);
		m->params[i].name = NULL;
	}
	memset(m->want, 0, sizeof(m->want));
}

static void
key_renew(struct model *m, struct key *key)
{
	*key = (struct key){ .name = m->next_name++ };
}

/*
 * A late refund made more of the bucket than full. For an even later clock that
 * cannot always be kept: the key is left behind.
 */
static void
key_ready(struct model *m, struct key *key)
{
	if (key->bucket.touched && m->now_ns < key->bucket.last_ns &&
	    key->bucket.level > oracle_full(&m->params[m->limit])) {
		key_renew(m, key);
		m->skipped++;
	}
}

static void
wrong(const struct model *m, const struct key *key, const char *call,
    uint64_t cost, const char *what, uint64_t got, uint64_t want)
{
	const struct weir_limit_params *p = &m->params[m->limit];

	ck_abort_msg("WEIR_SEED=0x%" PRIx64 ": %s of %" PRIu64 " at %" PRIu64
	    ", limit %u, last take %" PRIu64 ", %" PRIu64 " left: %s is %"
	    PRIu64 ", not %" PRIu64, m->seed, call, cost, m->now_ns, m->limit,
	    key->bucket.last_ns,
	    oracle_tokens(p, oracle_level(p, &key->bucket, m->now_ns)), what,
	    got, want);
}

#define SAME(what, got, want) \
	do { \
		if ((got) != (want)) \
			wrong(m, key, call, cost, what, got, want); \
	} while (0)

/* The details of a decision that got `taken` tokens of its cost. */
static void
verify_details(const struct model *m, const struct key *key, const char *call,
    uint64_t cost, uint64_t taken, const struct weir_decision *d)
{
	const struct weir_limit_params *p = &m->params[m->limit];
	wide level = oracle_level(p, &key->bucket, m->now_ns) -
	    (wide)taken * p->period_ns;
	uint64_t rest = cost - taken;

	SAME("verdict", (uint64_t)d->verdict, (uint64_t)(rest == 0));
	SAME("decider", (uint64_t)d->decided_by, (uint64_t)WEIR_BY_BUCKET);
	SAME("limit", d->limit, m->id[m->limit]);
	SAME("remaining", d->remaining, oracle_tokens(p, level));
	SAME("debt", d->debt, oracle_debt(p, level));
	SAME("retry", d->retry_after_ns, rest == 0 ? 0 :
	    oracle_wait_ns(p, level, rest, m->now_ns));
	SAME("reset", d->reset_after_ns,
	    oracle_full_wait_ns(p, level, m->now_ns));
}

/* What the request asks for in the unit that the limit does not count. */
#define OTHER 77u

static struct weir_request
model_request(const struct model *m, const struct key *key, uint64_t cost)
{
	bool bytes = m->params[m->limit].unit == WEIR_UNIT_BYTES;

	return (struct weir_request){
		.key = &key->name,
		.packets = bytes ? OTHER : cost,
		.bytes = bytes ? cost : OTHER,
		.limit = m->id[m->limit],
	};
}

static void
count(struct model *m, uint64_t cost, uint64_t taken, uint64_t other_taken)
{
	struct weir_counters *c = &m->want[m->limit];

	if (m->params[m->limit].unit == WEIR_UNIT_BYTES) {
		c->passed_bytes += taken;
		c->denied_bytes += cost - taken;
		c->passed_packets += other_taken;
		c->denied_packets += OTHER - other_taken;
	} else {
		c->passed_packets += taken;
		c->denied_packets += cost - taken;
		c->passed_bytes += other_taken;
		c->denied_bytes += OTHER - other_taken;
	}
}

static uint64_t
would_pass(const struct model *m, const struct key *key, uint64_t cost)
{
	const struct weir_limit_params *p = &m->params[m->limit];

	return oracle_passes(p, oracle_level(p, &key->bucket, m->now_ns),
	    cost) ? cost : 0;
}

static void
call_check(struct model *m, struct key *key, uint64_t cost)
{
	struct weir_request r = model_request(m, key, cost);
	uint64_t taken = would_pass(m, key, cost);
	const char *call = "check";
	struct weir_decision d;
	bool passed;

	if (rng_below(&m->rng, 2)) {
		passed = weir_check(m->rig.worker, &r, m->now_ns, NULL);
		SAME("verdict", (uint64_t)passed, (uint64_t)(taken == cost));
	} else {
		passed = weir_check(m->rig.worker, &r, m->now_ns, &d);
		verify_details(m, key, call, cost, taken, &d);
	}
	count(m, cost, taken, passed ? OTHER : 0);
	oracle_take(&m->params[m->limit], &key->bucket, m->now_ns, taken);
}

static void
call_peek(struct model *m, struct key *key, uint64_t cost)
{
	struct weir_request r = model_request(m, key, cost);
	struct weir_decision d;

	weir_peek(m->rig.worker, &r, m->now_ns, &d);
	verify_details(m, key, "peek", cost, would_pass(m, key, cost), &d);
}

static void
call_take(struct model *m, struct key *key, uint64_t cost)
{
	const struct weir_limit_params *p = &m->params[m->limit];
	struct weir_request r = model_request(m, key, cost);
	uint64_t want = oracle_tokens(p, oracle_level(p, &key->bucket,
	    m->now_ns));
	const char *call = "take";
	struct weir_decision d;
	uint64_t taken;

	want = want < cost ? want : cost;
	if (rng_below(&m->rng, 2)) {
		taken = weir_take(m->rig.worker, &r, m->now_ns, NULL);
		SAME("taken", taken, want);
	} else {
		taken = weir_take(m->rig.worker, &r, m->now_ns, &d);
		SAME("taken", taken, want);
		verify_details(m, key, call, cost, taken, &d);
	}
	count(m, cost, taken, cost == 0 ? OTHER :
	    (uint64_t)((wide)OTHER * taken / cost));
	oracle_take(p, &key->bucket, m->now_ns, taken);
}

static void
call_refund(struct model *m, struct key *key, uint64_t cost)
{
	const struct weir_limit_params *p = &m->params[m->limit];
	struct weir_request r = model_request(m, key, cost);
	const char *call = "refund";
	uint64_t got = weir_refund(m->rig.worker, &r, m->now_ns);

	/* too late to be readable: less may have found room */
	if (key->bucket.touched && m->now_ns < key->bucket.last_ns) {
		wide room = oracle_full(p) - oracle_level(p, &key->bucket,
		    m->now_ns);
		wide given = oracle_refund(p, &key->bucket, m->now_ns, cost);

		if (key->bucket.level <= oracle_full(p))
			SAME("given", got, oracle_tokens(p, given));
		else
			expect((wide)got * p->period_ns <= room);
		return;
	}
	SAME("given", got, oracle_tokens(p,
	    oracle_refund(p, &key->bucket, m->now_ns, cost)));
}

/* Where the interesting costs lie: around what is left, and what is not. */
static uint64_t
random_cost(struct model *m, const struct key *key)
{
	const struct weir_limit_params *p = &m->params[m->limit];
	uint64_t dice = rng_below(&m->rng, 100), left;

	if (dice < 30)
		return 1;
	if (dice < 35)
		return 0;
	if (dice < 60)
		return 1 + rng_below(&m->rng, p->capacity);
	if (dice < 70)
		return rng_magnitude(&m->rng, 55) % p->capacity + 1;
	if (dice < 75)
		return p->capacity + rng_below(&m->rng, 2);
	if (dice < 77)
		return p->capacity + p->debt + rng_below(&m->rng, 2);
	if (dice < 78)
		return rng_next(&m->rng);
	left = oracle_tokens(p, oracle_level(p, &key->bucket, m->now_ns));
	if (rng_below(&m->rng, 2))
		left += p->debt;
	return left + rng_below(&m->rng, 3) - (left > 0);
}

static void
now_forward(struct model *m, uint64_t by_ns)
{
	if (by_ns <= UINT64_MAX - m->now_ns)
		m->now_ns += by_ns;
}

static void
move_now(struct model *m)
{
	const struct weir_limit_params *p = &m->params[m->limit];
	uint64_t full_ns = (uint64_t)(oracle_full(p) / p->tokens);
	uint64_t dice = rng_below(&m->rng, 1000), back_ns;

	if (dice < 300)
		return;
	if (dice < 400)
		now_forward(m, 1 + rng_below(&m->rng, 3));
	else if (dice < 600)
		now_forward(m, rng_below(&m->rng,
		    2 * (p->period_ns / p->tokens + 1)));
	else if (dice < 700)
		now_forward(m, rng_below(&m->rng, full_ns / 4 + 2));
	else if (dice < 710)
		now_forward(m, rng_below(&m->rng, 4 * full_ns + 2));
	else if (dice < 998) {
		/* no clock is further behind than this */
		back_ns = rng_magnitude(&m->rng, 27) %
		    (SKEW_NS - (m->latest_ns - m->now_ns) + 1);
		m->now_ns -= back_ns < m->now_ns ? back_ns : m->now_ns;
	} else
		now_forward(m, rng_magnitude(&m->rng, 63));
	if (m->now_ns > m->latest_ns)
		m->latest_ns = m->now_ns;
}

static void
call_burst(struct model *m)
{
	size_t n = 1 + rng_below(&m->rng, BURST_MAX);
	struct weir_request requests[BURST_MAX];
	struct weir_decision decisions[BURST_MAX];
	uint8_t verdicts[BURST_MAX], of[BURST_MAX];
	uint64_t costs[BURST_MAX];
	bool detailed = rng_below(&m->rng, 2);
	const char *call = "burst";

	for (size_t i = 0; i < KEYS; i++)
		key_ready(m, &m->key[i]);
	for (size_t i = 0; i < n; i++) {
		of[i] = (uint8_t)rng_below(&m->rng, KEYS);
		costs[i] = random_cost(m, &m->key[of[i]]);
		requests[i] = model_request(m, &m->key[of[i]], costs[i]);
	}
	weir_check_burst(m->rig.worker, requests, n, m->now_ns, verdicts,
	    detailed ? decisions : NULL);
	for (size_t i = 0; i < n; i++) {
		struct key *key = &m->key[of[i]];
		uint64_t cost = costs[i], taken = would_pass(m, key, cost);

		SAME("verdict", verdicts[i], (uint64_t)(taken == cost));
		if (detailed)
			verify_details(m, key, call, cost, taken,
			    &decisions[i]);
		count(m, cost, taken, verdicts[i] ? OTHER : 0);
		oracle_take(&m->params[m->limit], &key->bucket, m->now_ns,
		    taken);
	}
}

static void
call_any(struct model *m)
{
	struct key *key = &m->key[rng_below(&m->rng, KEYS)];
	uint64_t dice = rng_below(&m->rng, 100), cost;

	move_now(m);
	key_ready(m, key);
	cost = random_cost(m, key);
	if (dice < 35)
		call_check(m, key, cost);
	else if (dice < 45)
		call_peek(m, key, cost);
	else if (dice < 60)
		call_take(m, key, cost);
	else if (dice < 95)
		call_refund(m, key, cost);
	else
		call_burst(m);
}

/* Near where something ends: eras, of the fastest limits too; the clock. */
static uint64_t
episode_start_ns(struct model *m)
{
	uint64_t near_ns = rng_magnitude(&m->rng, 34), start_ns;

	switch (rng_below(&m->rng, 4)) {
	case 0:
		return rng_magnitude(&m->rng, 64);
	case 1:
		return UINT64_MAX - rng_magnitude(&m->rng, 40);
	default:
		start_ns = (1 + rng_below(&m->rng, 1000)) <<
		    (33 + rng_below(&m->rng, 20));
		return start_ns > near_ns ? start_ns - near_ns : 0;
	}
}

static void
episode(struct model *m)
{
	m->now_ns = m->latest_ns = episode_start_ns(m);
	m->limit = (unsigned)rng_below(&m->rng, LIMITS);
	for (unsigned k = 0; k < KEYS; k++)
		key_renew(m, &m->key[k]);
	for (int i = 0; i < EPISODE_CALLS; i++)
		call_any(m);
}

static void
model_close(struct model *m)
{
	for (size_t i = 0; i < LIMITS; i++) {
		struct weir_counters c;

		ck_assert_int_eq(weir_engine_counters(m->rig.engine, m->id[i],
		    &c), 0);
		ck_assert_mem_eq(&c, &m->want[i], sizeof(c));
	}
	rig_close(&m->rig);
}

START_TEST(all_calls_mixed)
{
	struct model *m = &model;
	uint64_t calls = 0, want = test_scale(CALLS);

	m->seed = test_seed("adjust model");
	rng_init(&m->rng, m->seed);
	while (calls < want) {
		model_open(m);
		for (int i = 0; i < ENGINE_CALLS; i += EPISODE_CALLS)
			episode(m);
		calls += ENGINE_CALLS;
		model_close(m);
	}
	/* the answers not looked for must stay few */
	ck_assert_uint_lt(m->skipped, calls / 10);
	printf("%" PRIu64 " calls, %" PRIu64 " keys left behind\n", calls,
	    m->skipped);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("adjust model");
	TCase *tc = tcase_create("oracle");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, all_calls_mixed);
	suite_add_tcase(s, tc);
	return test_run(s);
}
