/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ten million random requests against the oracle, one by one and in packet
 * bursts with repeated keys, at times chosen to hurt: standing still, going
 * back, at the instant a token is due and 1 ns beside it, after years, near
 * the ends of the clock.
 *
 * Limits whose rate is exact must agree to the nanosecond and the token.
 * The others may be early by less than a unit and never late; there the
 * oracle follows the verdicts it is given, so that any drift would show.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

#define S NSEC_PER_SEC

enum {
	REQUESTS = 10000000,
	EPISODE_REQUESTS = 20000,
	EPISODE_LIMITS = 2,
	KEYS = 6,
	BURST_MAX = 70,
	HISTORY = 60, /* lines shown of a key that went wrong */
};

/* Workers' clocks may lie this far apart; the most that may be asked for. */
#define SKEW_NS (100 * NSEC_PER_MS)

/* A wait of a clock that is later than this may be named as one past the
 * end of the clock. */
#define FAR_NS (250 * S)

static const struct {
	uint64_t tokens, period_ns, capacity;
} limits_table[] = {
	/* exact */
	{ 1000, S, 10 },
	{ 1, 1, 1 },
	{ 1, 1, 1ull << 55 },
	{ 3, 7, 1000 },
	{ 5, 3 * S, 250000 },
	{ 10, 13 * S, 17 },
	{ 1, 3600 * S, 1 },
	{ 1, NSEC_PER_YEAR, 1 },
	{ 1250000, S, 125000 },
	{ 50000000000, S, 12500000000 },
	{ 200, 1, 1000000 },
	{ 1 << 23, 1, 1ull << 55 },
	{ 148809523, S, 64 },
	{ 1, 1ull << 55, 1 },
	{ 999983, 1000003, 100 },
	/* not exact */
	{ 1, NSEC_PER_DAY, 100000 },
	{ 4294967295, 8 * S, 1ull << 54 },
	{ 1000000001, S, 1ull << 40 },
	{ 7, UINT64_MAX, 3 },
	{ (1ull << 61) - 1, (1ull << 50) + 7, 99999 },
	{ 268435459, 268435399, 1ull << 30 },
	{ 1, 1ull << 63, 1ull << 55 },
};

/* What was asked and answered, to be shown when it was wrong. */
struct record {
	uint64_t name, now_ns, cost, remaining, retry_ns, full_ns;
	uint32_t call; /* requests of one packet burst share it */
	uint8_t limit, key, verdict, detailed;
};

struct key {
	uint64_t name; /* the bytes that the library sees */
	struct oracle_bucket bucket;
};

struct model {
	struct rig rig;
	struct rng rng;
	uint64_t seed;
	struct weir_limit_params params[NELEM(limits_table)];
	uint32_t id[NELEM(limits_table)];
	uint64_t next_name;
	uint64_t requests; /* made so far */
	uint64_t ambiguous;

	/* this episode */
	unsigned limit[EPISODE_LIMITS]; /* indices */
	struct key key[EPISODE_LIMITS][KEYS];
	uint64_t now_ns, latest_ns;
	uint32_t call;
	struct record record[EPISODE_REQUESTS + BURST_MAX + 2];
	size_t records;
};

static struct model model;

static void
model_open(struct model *m)
{
	struct weir_engine_params params = rig_params(1 << 17, 8);

	m->seed = test_seed("bucket model");
	rng_init(&m->rng, m->seed);
	params.clock_skew_ns = SKEW_NS;
	rig_open(&m->rig, &params);
	for (size_t i = 0; i < NELEM(limits_table); i++) {
		char name[16];

		snprintf(name, sizeof(name), "%zu", i);
		m->params[i] = limit_params(name, limits_table[i].tokens,
		    limits_table[i].period_ns, limits_table[i].capacity,
		    i % 2 == 0 ? WEIR_UNIT_PACKETS : WEIR_UNIT_BYTES);
		m->id[i] = limit_add(m->rig.engine, name,
		    m->params[i].tokens, m->params[i].period_ns,
		    m->params[i].capacity, m->params[i].unit);
	}
}

static void
print_history(const struct model *m, const struct record *wrong)
{
	const struct weir_limit_params *p =
	    &m->params[m->limit[wrong->limit]];
	size_t of_key = 0, shown = 0;

	for (const struct record *r = m->record; r <= wrong; r++)
		of_key += r->name == wrong->name;
	printf("limit: %" PRIu64 " tokens per %" PRIu64 " ns, capacity %"
	    PRIu64 "; %zu requests of this key in this episode\n",
	    p->tokens, p->period_ns, p->capacity, of_key);
	for (const struct record *r = m->record; r <= wrong; r++) {
		if (r->name != wrong->name || shown++ + HISTORY < of_key)
			continue;
		printf("call %" PRIu32 " now %" PRIu64 " cost %" PRIu64
		    ": %c", r->call, r->now_ns, r->cost,
		    r->verdict == WEIR_PASS ? 'A' : 'D');
		if (r->detailed)
			printf(" left %" PRIu64 " retry %" PRIu64
			    " full in %" PRIu64, r->remaining, r->retry_ns,
			    r->full_ns);
		printf("\n");
	}
}

static void
mismatch(const struct model *m, const struct record *wrong, wide level)
{
	const struct weir_limit_params *p =
	    &m->params[m->limit[wrong->limit]];
	bool pass = oracle_passes(p, level, wrong->cost);

	if (pass)
		level -= (wide)wrong->cost * p->period_ns;
	print_history(m, wrong);
	fflush(stdout);
	ck_abort_msg("WEIR_SEED=0x%" PRIx64 ": the last of these is wrong; "
	    "want %c left %" PRIu64 " retry %" PRIu64 " full in %" PRIu64,
	    m->seed, pass ? 'A' : 'D', oracle_tokens(p, level),
	    pass ? 0 : oracle_wait_ns(p, level, wrong->cost, wrong->now_ns),
	    oracle_full_wait_ns(p, level, wrong->now_ns));
}

/* A wait may be named as past the end if the clock is very late. */
static bool
wait_is_far(const struct oracle_bucket *bucket, const struct record *r,
    uint64_t wait_ns)
{
	return wait_ns == WEIR_NEVER - 1 && bucket->touched &&
	    r->now_ns < bucket->last_ns &&
	    bucket->last_ns - r->now_ns > FAR_NS;
}

static bool
agrees_exactly(const struct weir_limit_params *p,
    const struct oracle_bucket *bucket, wide level, const struct record *r)
{
	bool pass = oracle_passes(p, level, r->cost);

	if (r->verdict != pass)
		return false;
	if (!r->detailed)
		return true;
	if (pass)
		level -= (wide)r->cost * p->period_ns;
	return r->remaining == oracle_tokens(p, level) &&
	    (r->retry_ns == (pass ? 0 : oracle_wait_ns(p, level, r->cost,
	    r->now_ns)) || wait_is_far(bucket, r, r->retry_ns)) &&
	    (r->full_ns == oracle_full_wait_ns(p, level, r->now_ns) ||
	    wait_is_far(bucket, r, r->full_ns));
}

/*
 * By how much the library may think the level higher than it is: a unit, and
 * what a rate that is rounded up by less than 2^-63 of itself gained since
 * the first take.
 */
static wide
level_slack(const struct weir_limit_params *p,
    const struct oracle_bucket *bucket, uint64_t now_ns)
{
	wide by_speed = p->tokens >> 22;
	wide by_capacity = oracle_full(p) >> 54;
	wide drift = 0;

	if (bucket->touched && now_ns > bucket->born_ns)
		drift = (wide)((unsigned __int128)(now_ns - bucket->born_ns) *
		    p->tokens >> 63);
	return (by_speed > by_capacity ? by_speed : by_capacity) + 1 + drift;
}

/* The level after the decision lies between low and high. */
static bool
full_wait_is_near(const struct weir_limit_params *p,
    const struct oracle_bucket *bucket, const struct record *r, wide low,
    wide high)
{
	return wait_is_far(bucket, r, r->full_ns) ||
	    (r->full_ns <= oracle_full_wait_ns(p, low, r->now_ns) &&
	    r->full_ns >= oracle_full_wait_ns(p, high, r->now_ns));
}

static bool
agrees_nearly(const struct weir_limit_params *p,
    const struct oracle_bucket *bucket, wide level, const struct record *r)
{
	wide high = level + level_slack(p, bucket, r->now_ns);
	wide price;

	if (r->verdict != oracle_passes(p, level, r->cost) &&
	    r->verdict != oracle_passes(p, high, r->cost))
		return false;
	if (!r->detailed)
		return true;
	price = (wide)(r->cost <= p->capacity ? r->cost : 0) * p->period_ns;
	if (!full_wait_is_near(p, bucket, r,
	    level - (r->verdict == WEIR_PASS ? price : 0),
	    high - (r->verdict == WEIR_PASS ? price : 0)))
		return false;
	if (r->verdict == WEIR_PASS)
		return r->retry_ns == 0 &&
		    r->remaining >= oracle_tokens(p, level - price) &&
		    r->remaining <= oracle_tokens(p, high - price);
	if (r->remaining < oracle_tokens(p, level) ||
	    r->remaining > oracle_tokens(p, high))
		return false;
	if (wait_is_far(bucket, r, r->retry_ns))
		return true;
	if (r->cost > p->capacity)
		return r->retry_ns == WEIR_NEVER;
	return r->retry_ns != 0 &&
	    r->retry_ns <= oracle_wait_ns(p, level, r->cost, r->now_ns) &&
	    (high >= price ||
	    r->retry_ns >= oracle_wait_ns(p, high, r->cost, r->now_ns));
}

static bool
agrees(const struct weir_limit_params *p, const struct oracle_bucket *bucket,
    wide level, const struct record *r)
{
	return limit_is_exact(p) ? agrees_exactly(p, bucket, level, r) :
	    agrees_nearly(p, bucket, level, r);
}

static void
key_renew(struct model *m, struct key *key)
{
	key->name = m->next_name++;
	key->bucket = (struct oracle_bucket){ 0 };
}

/*
 * A bucket that is full again may be forgotten, and is then full for any
 * clock. Only a clock later than the skew allows can tell. Both answers are
 * right then, and the key is used no more.
 */
static bool
may_be_forgotten(const struct model *m, const struct weir_limit_params *p,
    const struct oracle_bucket *bucket, uint64_t now_ns)
{
	return now_ns < m->latest_ns && m->latest_ns - now_ns > SKEW_NS &&
	    oracle_level(p, bucket, m->latest_ns - SKEW_NS) == oracle_full(p);
}

static void
verify(struct model *m, const struct record *r)
{
	const struct weir_limit_params *p = &m->params[m->limit[r->limit]];
	struct key *key = &m->key[r->limit][r->key];
	wide level = oracle_level(p, &key->bucket, r->now_ns);

	if (level < oracle_full(p) &&
	    may_be_forgotten(m, p, &key->bucket, r->now_ns)) {
		if (!agrees(p, &key->bucket, level, r) &&
		    !agrees(p, &key->bucket, oracle_full(p), r))
			mismatch(m, r, level);
		m->ambiguous++;
		key_renew(m, key);
		return;
	}
	if (!agrees(p, &key->bucket, level, r))
		mismatch(m, r, level);
	if (r->verdict == WEIR_PASS)
		oracle_take(p, &key->bucket, r->now_ns, r->cost);
}

/* Where the interesting costs lie: around what is left. */
static uint64_t
random_cost(struct model *m, const struct weir_limit_params *p,
    const struct oracle_bucket *bucket)
{
	uint64_t dice = rng_below(&m->rng, 100), left;

	if (dice < 35)
		return 1;
	if (dice < 40)
		return 0;
	if (dice < 60)
		return 1 + rng_below(&m->rng, p->capacity);
	if (dice < 75)
		return rng_magnitude(&m->rng, 55) % p->capacity + 1;
	if (dice < 80)
		return p->capacity;
	if (dice < 82)
		return p->capacity + 1;
	if (dice < 84)
		return rng_next(&m->rng);
	if (dice < 86)
		return UINT64_MAX / p->period_ns + rng_below(&m->rng, 3);
	left = oracle_tokens(p, oracle_level(p, bucket, m->now_ns));
	return left + rng_below(&m->rng, 3) - (left > 0);
}

static void
now_forward(struct model *m, uint64_t by_ns)
{
	if (by_ns <= UINT64_MAX - m->now_ns)
		m->now_ns += by_ns;
}

/* To when a random key can pay a random cost, or 1 ns to a side of that. */
static void
now_to_due(struct model *m)
{
	unsigned limit = rng_below(&m->rng, EPISODE_LIMITS);
	const struct weir_limit_params *p = &m->params[m->limit[limit]];
	const struct oracle_bucket *bucket =
	    &m->key[limit][rng_below(&m->rng, KEYS)].bucket;
	uint64_t cost = random_cost(m, p, bucket);
	wide level = oracle_level(p, bucket, m->now_ns);
	uint64_t wait;

	if (oracle_passes(p, level, cost))
		return;
	wait = oracle_wait_ns(p, level, cost, m->now_ns);
	if (wait < WEIR_NEVER - 1)
		now_forward(m, wait + rng_below(&m->rng, 3) - 1);
}

static uint64_t
saturated(wide x, uint64_t most)
{
	return x > (wide)most ? most : (uint64_t)x;
}

static void
move_now(struct model *m)
{
	const struct weir_limit_params *p =
	    &m->params[m->limit[rng_below(&m->rng, EPISODE_LIMITS)]];
	uint64_t token_ns = p->period_ns / p->tokens + 1;
	uint64_t full_ns = saturated(oracle_full(p) / p->tokens, 1ull << 62);
	uint64_t dice = rng_below(&m->rng, 1000), back_ns;

	if (dice < 300)
		return;
	if (dice < 400)
		now_forward(m, 1 + rng_below(&m->rng, 3));
	else if (dice < 600)
		now_forward(m, rng_below(&m->rng,
		    token_ns < 1ull << 62 ? 2 * token_ns : token_ns));
	else if (dice < 700)
		now_forward(m, rng_below(&m->rng, full_ns / 8 + 2));
	else if (dice < 850)
		now_to_due(m);
	else if (dice < 998) {
		back_ns = rng_magnitude(&m->rng, 27) % (SKEW_NS + 1);
		m->now_ns -= back_ns < m->now_ns ? back_ns : m->now_ns;
	} else if (dice < 999)
		now_forward(m, rng_magnitude(&m->rng, 63));
	else { /* very late */
		back_ns = rng_magnitude(&m->rng, 63);
		m->now_ns -= back_ns < m->now_ns ? back_ns : m->now_ns;
	}
}

static struct record *
draw(struct model *m, bool repeat, struct weir_request *request)
{
	struct record *r = &m->record[m->records++];
	const struct weir_limit_params *p;
	const struct key *key;

	memset(r, 0, sizeof(*r));
	r->limit = (uint8_t)rng_below(&m->rng, EPISODE_LIMITS);
	r->key = (uint8_t)rng_below(&m->rng, repeat ? 2 : KEYS);
	p = &m->params[m->limit[r->limit]];
	key = &m->key[r->limit][r->key];
	r->name = key->name;
	r->cost = random_cost(m, p, &key->bucket);
	r->now_ns = m->now_ns;
	r->call = m->call;
	*request = (struct weir_request){
		.key = &key->name,
		.packets = p->unit == WEIR_UNIT_PACKETS ? r->cost : 1,
		.bytes = p->unit == WEIR_UNIT_BYTES ? r->cost : 77,
		.limit = m->id[m->limit[r->limit]],
	};
	return r;
}

static void
keep(struct record *r, const struct weir_decision *decision)
{
	r->detailed = 1;
	r->remaining = decision->remaining;
	r->retry_ns = decision->retry_after_ns;
	r->full_ns = decision->reset_after_ns;
	expect(decision->verdict == r->verdict);
	expect(decision->decided_by == WEIR_BY_BUCKET);
}

static void
call_one(struct model *m)
{
	struct weir_decision decision;
	struct weir_request request;
	bool detailed = rng_below(&m->rng, 2);
	struct record *r = draw(m, false, &request);

	r->verdict = weir_check(m->rig.worker, &request, m->now_ns,
	    detailed ? &decision : NULL);
	if (detailed)
		keep(r, &decision);
	verify(m, r);
	m->requests++;
}

static void
call_burst(struct model *m)
{
	struct weir_request requests[BURST_MAX];
	struct weir_decision decisions[BURST_MAX];
	uint8_t verdicts[BURST_MAX];
	bool detailed = rng_below(&m->rng, 2);
	bool repeat = rng_below(&m->rng, 2);
	size_t n = rng_below(&m->rng, BURST_MAX + 1);
	struct record *first = &m->record[m->records];

	for (size_t i = 0; i < n; i++)
		draw(m, repeat, &requests[i]);
	weir_check_burst(m->rig.worker, requests, n, m->now_ns, verdicts,
	    detailed ? decisions : NULL);
	for (size_t i = 0; i < n; i++) {
		first[i].verdict = verdicts[i];
		if (detailed)
			keep(&first[i], &decisions[i]);
	}
	for (size_t i = 0; i < n; i++) {
		/* renewed within this burst: its later answers are moot */
		if (first[i].name == m->key[first[i].limit][first[i].key].name)
			verify(m, &first[i]);
	}
	m->requests += n;
}

/*
 * The wait that was just returned, tried out: 1 ns less is refused, all of it
 * passes. The answers also go through the oracle.
 */
static void
call_at_due(struct model *m)
{
	const struct record last = m->record[m->records - 1];
	const struct weir_limit_params *p = &m->params[m->limit[last.limit]];
	struct key *key = &m->key[last.limit][last.key];

	if (key->name != last.name || !last.detailed ||
	    last.verdict == WEIR_PASS ||
	    last.retry_ns >= WEIR_NEVER - 1 ||
	    last.retry_ns > rng_magnitude(&m->rng, 60))
		return;
	for (int on_time = 0; on_time < 2; on_time++) {
		struct record *r = &m->record[m->records++];
		struct weir_decision d;

		*r = last;
		r->call = ++m->call;
		r->now_ns = last.now_ns + last.retry_ns - !on_time;
		m->now_ns = r->now_ns;
		d = ask(&m->rig, m->id[m->limit[last.limit]], &key->name,
		    last.cost, r->now_ns);
		r->verdict = d.verdict;
		keep(r, &d);
		verify(m, r);
		m->requests++;
		if (key->name != last.name)
			return;
		if (r->verdict != on_time)
			mismatch(m, r, oracle_level(p, &key->bucket,
			    r->now_ns));
		if (m->now_ns > m->latest_ns)
			m->latest_ns = m->now_ns;
	}
}

static uint64_t
episode_start_ns(struct model *m)
{
	const uint64_t starts_ns[] = { 0, 1ull << 31, 1ull << 32,
		(1ull << 32) * NSEC_PER_MS, 1ull << 56, 1ull << 57,
		1ull << 58, 1ull << 62, 1ull << 63 };
	uint64_t near_ns = rng_magnitude(&m->rng, 32);

	switch (rng_below(&m->rng, 4)) {
	case 0:
		return rng_magnitude(&m->rng, 64);
	case 1:
		return UINT64_MAX - rng_magnitude(&m->rng, 64);
	default:
		near_ns = starts_ns[rng_below(&m->rng, NELEM(starts_ns))] -
		    near_ns;
		return near_ns < 1ull << 63 ? near_ns : 0;
	}
}

static void
episode(struct model *m)
{
	m->now_ns = m->latest_ns = episode_start_ns(m);
	m->records = 0;
	for (unsigned l = 0; l < EPISODE_LIMITS; l++) {
		m->limit[l] =
		    (unsigned)rng_below(&m->rng, NELEM(limits_table));
		for (unsigned k = 0; k < KEYS; k++)
			key_renew(m, &m->key[l][k]);
	}
	while (m->records < EPISODE_REQUESTS) {
		m->call++;
		move_now(m);
		if (m->now_ns > m->latest_ns)
			m->latest_ns = m->now_ns;
		if (rng_below(&m->rng, 16) == 0) {
			call_burst(m);
		} else {
			call_one(m);
			call_at_due(m);
		}
	}
}

START_TEST(ten_million_requests)
{
	struct model *m = &model;
	struct weir_counters counters;
	uint64_t want = test_scale(REQUESTS), counted = 0;

	model_open(m);
	while (m->requests < want)
		episode(m);
	/* The ambiguous must stay a footnote. */
	ck_assert_uint_lt(m->ambiguous, m->requests / 100);
	for (size_t i = 0; i < NELEM(limits_table); i++) {
		ck_assert_int_eq(weir_engine_counters(m->rig.engine,
		    m->id[i], &counters), 0);
		counted += counters.full_denied_packets +
		    counters.full_passed_packets;
	}
	ck_assert_uint_eq(counted, 0);
	printf("%" PRIu64 " requests, %" PRIu64 " ambiguous\n", m->requests,
	    m->ambiguous);
	rig_close(&m->rig);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("bucket model");
	TCase *tc = tcase_create("oracle");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, ten_million_requests);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
