/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table against a naive map: an array of oracle buckets, one for each key
 * there is, nothing ever dropped. Far more keys than room, keys of every size
 * that differ in as little as one bit, two limits over the same keys, time in
 * bursts of crowding and of rest.
 *
 * What must hold: an entry whose bucket is not full is found, exactly as the
 * map has it; a refusal for want of room happens only to keys that have none,
 * and only when there are more of these than the table was made for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

#define S NSEC_PER_SEC

enum {
	REQUESTS = 2000000, /* over all key sizes */
	UNIVERSE = 3000,    /* keys there are */
	LIMITS = 2,
	BURST_MAX = 48,
};

#define SKEW_NS 10000u

struct model {
	struct rig rig;
	struct rng rng;
	uint64_t seed;
	uint32_t key_size;
	uint32_t universe;
	uint64_t capacity;
	enum weir_full_policy policy;
	struct weir_limit_params params[LIMITS];
	uint32_t id[LIMITS];
	struct oracle_bucket map[LIMITS][UNIVERSE];
	uint64_t now_ns, latest_ns;
	uint64_t full, full_packets; /* decided for want of room */
};

struct asked {
	unsigned limit, key;
	uint64_t cost;
	unsigned char *memory; /* to be freed */
};

static struct model model;

/*
 * The bytes of key number n. All zeros; then all zeros but one bit; all ones
 * but one bit; then numbers behind a byte with four ones. Short keys are just
 * numbers.
 */
static void
key_bytes(uint32_t n, uint32_t size, unsigned char *bytes)
{
	uint32_t bits = 8 * size;

	memset(bytes, 0, size);
	if (size < 4) {
		for (uint32_t i = 0; i < size; i++)
			bytes[i] = (unsigned char)(n >> (8 * i));
		return;
	}
	if (n == 0)
		return;
	n--;
	if (n < 2 * bits) {
		if (n >= bits)
			memset(bytes, 0xff, size);
		n %= bits;
		bytes[n / 8] ^= (unsigned char)(1u << (n % 8));
		return;
	}
	bytes[size / 2] = 0xc3;
	bytes[0] ^= (unsigned char)n;
	bytes[size - 1] ^= (unsigned char)(n >> 8);
}

/*
 * A block that ends where the key ends, and starts with rubbish before it, so
 * that tools see a read beyond either, and no two are aligned alike.
 */
static const void *
key_placed(struct model *m, struct asked *a)
{
	size_t before = rng_below(&m->rng, 16);

	a->memory = malloc(before + m->key_size);
	expect(a->memory != NULL);
	memset(a->memory, (int)rng_below(&m->rng, 256), before);
	key_bytes(a->key, m->key_size, a->memory + before);
	return a->memory + before;
}

static void
model_open(struct model *m, uint32_t key_size)
{
	struct weir_engine_params params;

	m->key_size = key_size;
	m->universe = key_size == 1 ? 256 : UNIVERSE;
	m->capacity = 1 + rng_magnitude(&m->rng, 9);
	m->policy = rng_below(&m->rng, 2) ? WEIR_FULL_DENY : WEIR_FULL_ALLOW;
	params = rig_params(m->capacity, key_size);
	params.full_policy = m->policy;
	rig_open(&m->rig, &params);
	memset(m->map, 0, sizeof(m->map));
	m->now_ns = m->latest_ns = rng_magnitude(&m->rng, 62);
	for (unsigned l = 0; l < LIMITS; l++) {
		m->params[l] = limit_params(l == 0 ? "slow" : "quick",
		    l == 0 ? 1000 : 77777, S, l == 0 ? 5 : 3,
		    WEIR_UNIT_PACKETS);
		m->id[l] = limit_add(m->rig.engine, m->params[l].name,
		    m->params[l].tokens, S, m->params[l].capacity,
		    WEIR_UNIT_PACKETS);
	}
}

/* Entries that must be in the table now, for they are no fresh ones yet. */
static uint64_t
count_held(const struct model *m)
{
	uint64_t held = 0;

	for (unsigned l = 0; l < LIMITS; l++)
		for (unsigned k = 0; k < m->universe; k++) {
			const struct weir_limit_params *p = &m->params[l];
			uint64_t then_ns = m->now_ns < SKEW_NS ? 0 :
			    m->now_ns - SKEW_NS;

			held += oracle_level(p, &m->map[l][k], then_ns) <
			    oracle_full(p);
		}
	return held;
}

static void
wrong(const struct model *m, const struct asked *a, wide level,
    const struct weir_decision *got, const char *why)
{
	ck_abort_msg("WEIR_SEED=0x%" PRIx64 ": %s: key size %" PRIu32
	    " capacity %" PRIu64 " now %" PRIu64 " limit %s key %u cost %"
	    PRIu64 ", level %.3f of %" PRIu64 ": %c by %d left %" PRIu64
	    " retry %" PRIu64, m->seed, why, m->key_size, m->capacity,
	    m->now_ns, m->params[a->limit].name, a->key, a->cost,
	    (double)level / (double)S, m->params[a->limit].capacity,
	    got->verdict == WEIR_PASS ? 'A' : 'D', (int)got->decided_by,
	    got->remaining, got->retry_after_ns);
}

static void
verify_full(struct model *m, const struct asked *a, wide level,
    const struct weir_decision *got)
{
	if (level < oracle_full(&m->params[a->limit]))
		wrong(m, a, level, got, "a known key was refused room");
	if (a->cost == 0 || a->cost > m->params[a->limit].capacity)
		wrong(m, a, level, got, "a plain cost needs no room");
	if (got->verdict != (m->policy == WEIR_FULL_ALLOW) ||
	    got->remaining != 0 || got->retry_after_ns != 0)
		wrong(m, a, level, got, "not the policy's answer");
	m->full_packets += a->cost;
	/* Counting takes long; a sample will do. */
	if (m->full++ % 64 == 0 && count_held(m) <= m->capacity)
		wrong(m, a, level, got, "there must be room");
}

static void
verify(struct model *m, const struct asked *a,
    const struct weir_decision *got)
{
	const struct weir_limit_params *p = &m->params[a->limit];
	struct oracle_bucket *bucket = &m->map[a->limit][a->key];
	wide level = oracle_level(p, bucket, m->now_ns);
	bool pass = oracle_passes(p, level, a->cost);
	uint64_t wait = pass ? 0 :
	    oracle_wait_ns(p, level, a->cost, m->now_ns);

	if (got->decided_by == WEIR_BY_FULL) {
		verify_full(m, a, level, got);
		return;
	}
	if (pass)
		oracle_take(p, bucket, m->now_ns, a->cost);
	if (got->decided_by != WEIR_BY_BUCKET ||
	    got->verdict != pass || got->retry_after_ns != wait ||
	    got->remaining != oracle_tokens(p,
	    oracle_level(p, bucket, m->now_ns)))
		wrong(m, a, level, got, "not what the map says");
}

/* Crowding: many keys in no time. Rest: all become full again. */
static void
move_now(struct model *m)
{
	uint64_t dice = rng_below(&m->rng, 1000);

	if (dice >= 998)
		m->latest_ns += rng_magnitude(&m->rng, 40);
	else if (dice >= 990)
		m->latest_ns += rng_magnitude(&m->rng, 24);
	else if (dice >= 500)
		m->latest_ns += rng_magnitude(&m->rng, 18);
	/* late at times, but within the skew */
	m->now_ns = m->latest_ns;
	if (dice % 10 == 0)
		m->now_ns -= rng_below(&m->rng,
		    m->now_ns < SKEW_NS ? m->now_ns + 1 : SKEW_NS);
}

static void
call(struct model *m)
{
	struct weir_request requests[BURST_MAX];
	struct weir_decision decisions[BURST_MAX];
	uint8_t verdicts[BURST_MAX];
	struct asked asked[BURST_MAX];
	size_t n = 1 + rng_below(&m->rng, BURST_MAX);
	/* a few keys of the whole, so that some are met again soon */
	unsigned spread = 1 + (unsigned)rng_magnitude(&m->rng, 12);
	unsigned first = (unsigned)rng_below(&m->rng, m->universe);

	for (size_t i = 0; i < n; i++) {
		struct asked *a = &asked[i];

		a->limit = (unsigned)rng_below(&m->rng, LIMITS);
		a->key = (unsigned)((first + rng_below(&m->rng, spread)) %
		    m->universe);
		a->cost = rng_below(&m->rng, 20);
		a->cost = a->cost < 12 ? 1 : a->cost - 12;
		requests[i] = request(m->id[a->limit], key_placed(m, a),
		    a->cost);
	}
	if (rng_below(&m->rng, 2) == 0) {
		weir_check_burst(m->rig.worker, requests, n, m->now_ns,
		    verdicts, decisions);
	} else {
		for (size_t i = 0; i < n; i++)
			verdicts[i] = (uint8_t)weir_check(m->rig.worker,
			    &requests[i], m->now_ns, &decisions[i]);
	}
	for (size_t i = 0; i < n; i++) {
		expect(verdicts[i] == decisions[i].verdict);
		verify(m, &asked[i], &decisions[i]);
		free(asked[i].memory);
	}
}

/* No two numbers below the universe make the same key. */
START_TEST(keys_are_distinct)
{
	static unsigned char bytes[UNIVERSE][WEIR_KEY_SIZE_MAX];

	for (uint32_t size = 2; size <= WEIR_KEY_SIZE_MAX; size += 19) {
		for (uint32_t n = 0; n < UNIVERSE; n++)
			key_bytes(n, size, bytes[n]);
		for (uint32_t n = 0; n < UNIVERSE; n++)
			for (uint32_t k = 0; k < n; k++)
				expect(memcmp(bytes[n], bytes[k], size) != 0);
	}
}
END_TEST

START_TEST(every_key_size)
{
	struct model *m = &model;
	const uint32_t size = (uint32_t)_i;
	const uint64_t calls = test_scale(REQUESTS) / WEIR_KEY_SIZE_MAX /
	    (BURST_MAX / 2) + 1;
	uint64_t counted = 0;

	m->seed = test_seed("table model");
	rng_init(&m->rng, m->seed + size);
	model_open(m, size);
	for (uint64_t i = 0; i < calls; i++) {
		move_now(m);
		call(m);
		weir_worker_quiesce(m->rig.worker);
	}
	for (unsigned l = 0; l < LIMITS; l++) {
		struct weir_counters c;

		weir_engine_counters(m->rig.engine, m->id[l], &c);
		counted += c.full_denied_packets + c.full_passed_packets;
		ck_assert_uint_eq(m->policy == WEIR_FULL_DENY ?
		    c.full_passed_packets : c.full_denied_packets, 0);
	}
	ck_assert_uint_eq(counted, m->full_packets);
	rig_close(&m->rig);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("table model");
	TCase *tc = tcase_create("map");

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, keys_are_distinct);
	tcase_add_loop_test(tc, every_key_size, 1, WEIR_KEY_SIZE_MAX + 1);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
