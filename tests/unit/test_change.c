/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits that change while they are in use. What a bucket holds is known
 * exactly here: rates are whole tokens per second, so that in 10^-9 of a token
 * each nanosecond adds a whole number, and the first rate is one that makes the
 * engine count in these units or finer ones.
 */
#include <errno.h>

#include "../support.h"

#define S NSEC_PER_SEC
#define FIRST_RATE 1001u /* in lowest terms 1001 / 10^9 */
#define FIRST_CAPACITY 10u
#define KEYS 40u

typedef __int128 wide;

static struct rig rig;
static uint32_t limit;

static struct weir_limit_params
rule(uint64_t tokens_ps, uint64_t capacity)
{
	return (struct weir_limit_params){
		.size = sizeof(struct weir_limit_params),
		.name = "change",
		.tokens = tokens_ps,
		.period_ns = S,
		.capacity = capacity,
	};
}

static int
change(uint64_t tokens_ps, uint64_t capacity, uint64_t now_ns)
{
	const struct weir_limit_params params = rule(tokens_ps, capacity);

	return weir_limit_set(rig.engine, limit, &params, now_ns, NULL);
}

static void
setup(void)
{
	const struct weir_engine_params params = rig_params(1000, 4);
	const struct weir_limit_params first =
	    rule(FIRST_RATE, FIRST_CAPACITY);

	rig_open(&rig, &params);
	ck_assert_int_eq(weir_limit_add(rig.engine, &first, &limit, NULL), 0);
}

static void
teardown(void)
{
	rig_close(&rig);
}

static struct weir_decision
spend(uint64_t key, uint64_t cost, uint64_t now_ns)
{
	return ask(&rig, limit, &key, cost, now_ns);
}

static uint64_t
held(uint64_t key, uint64_t now_ns)
{
	return spend(key, 0, now_ns).remaining;
}

/* Down, then up again: what was cut off does not come back by itself. */
START_TEST(capacity_clamps_and_grants_nothing)
{
	ck_assert_uint_eq(spend(1, 2, S).remaining, 8);
	ck_assert_int_eq(change(FIRST_RATE, 5, S), 0);
	ck_assert_uint_eq(held(1, S), 5);
	ck_assert_uint_eq(held(2, S), 5); /* never seen */
	ck_assert_int_eq(change(FIRST_RATE, 100, S), 0);
	ck_assert_uint_eq(held(1, S), 5);
	ck_assert_uint_eq(held(2, S), 5);
	ck_assert_int_eq(spend(2, 6, S).verdict, WEIR_DENY);
	/* 94 tokens and a half at 1001 a second */
	ck_assert_uint_eq(held(2, S + 94 * S / 1001), 98);
	ck_assert_uint_eq(held(2, S + 95 * S / 1001 + 1), 100);
	ck_assert_uint_eq(held(1, 100 * S), 100);
}
END_TEST

/* An hour at one rate is worth that rate, whatever comes later. */
START_TEST(the_past_is_not_priced_anew)
{
	ck_assert_int_eq(change(1, 1000000, 0), 0);
	spend(1, FIRST_CAPACITY, 0);
	spend(2, 1, 0);
	ck_assert_int_eq(change(1000, 1000000, 100 * S), 0);
	ck_assert_uint_eq(held(1, 100 * S), 100);
	ck_assert_uint_eq(held(2, 100 * S), 109);
	ck_assert_uint_eq(held(1, 101 * S), 1100);
	ck_assert_int_eq(change(1, 1000000, 101 * S), 0);
	ck_assert_uint_eq(held(1, 111 * S), 1110);
}
END_TEST

/* The wait is that of the new rate, counted from the caller's own time. */
START_TEST(waits_follow)
{
	ck_assert_uint_eq(spend(1, 10, S).remaining, 0);
	ck_assert_int_eq(change(10, 10, S), 0);
	ck_assert_uint_eq(spend(1, 1, S).retry_after_ns, S / 10);
	ck_assert_uint_eq(spend(1, 1, S / 2).retry_after_ns, S / 2 + S / 10);
	ck_assert_int_eq(spend(1, 1, S + S / 10 - 1).verdict, WEIR_DENY);
	ck_assert_int_eq(spend(1, 1, S + S / 10).verdict, WEIR_PASS);
	ck_assert_uint_eq(spend(1, 11, 2 * S).retry_after_ns, WEIR_NEVER);
	ck_assert_int_eq(change(10, 11, 2 * S), 0);
	ck_assert_uint_eq(spend(1, 11, 2 * S).retry_after_ns, S / 5);
}
END_TEST

/* Half the rate and half the room, in the middle of it all. */
START_TEST(the_change_counts_from_now_on)
{
	ck_assert_int_eq(change(10, 10, 0), 0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(spend(1, 1, 0).verdict, WEIR_PASS);
	ck_assert_int_eq(change(5, 5, 0), 0);
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(spend(1, 1, 0).verdict, WEIR_PASS);
	ck_assert_uint_eq(spend(1, 1, 0).retry_after_ns, S / 5);
}
END_TEST

/* Days to fill: a rate 600 times slower in the units of the first. */
START_TEST(long_waits_are_exact)
{
	uint32_t deep = limit_add(rig.engine, "deep", 1000, S, 250000,
	    WEIR_UNIT_PACKETS);
	const struct weir_limit_params slow = limit_params("deep", 5, 3 * S,
	    250000, WEIR_UNIT_PACKETS);
	uint64_t key = 1;

	ck_assert_int_eq(ask(&rig, deep, &key, 250000, 0).verdict, WEIR_PASS);
	ck_assert_int_eq(weir_limit_set(rig.engine, deep, &slow, 0, NULL), 0);
	ck_assert_uint_eq(ask(&rig, deep, &key, 1000, 0).retry_after_ns,
	    600 * S);
	ck_assert_uint_eq(ask(&rig, deep, &key, 250000, 0).retry_after_ns,
	    150000 * S);
	ck_assert_int_eq(ask(&rig, deep, &key, 250000,
	    150000 * S - 1).verdict, WEIR_DENY);
	ck_assert_int_eq(ask(&rig, deep, &key, 250000, 150000 * S).verdict,
	    WEIR_PASS);
}
END_TEST

/*
 * Buckets that a faster rate has filled stay in the table for clock_skew_ns:
 * somebody may still decide by the rate before, and would meet them full.
 */
START_TEST(nothing_is_dropped_at_once)
{
	const struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = 16,
		.key_size = sizeof(uint64_t),
		.clock_skew_ns = NSEC_PER_MS,
	};
	struct weir_limit_params fast = limit_params("x", 1000000, S, 10,
	    WEIR_UNIT_PACKETS);
	struct rig small;
	uint64_t key = 0;
	uint32_t x;

	rig_open(&small, &params);
	x = limit_add(small.engine, "x", 1, S, 10, WEIR_UNIT_PACKETS);
	while (ask(&small, x, &key, 10, S).decided_by == WEIR_BY_BUCKET)
		key++;
	ck_assert_int_eq(weir_limit_set(small.engine, x, &fast, S, NULL), 0);
	ck_assert_int_eq(ask(&small, x, &key, 1, S + NSEC_PER_MS - 1)
	    .decided_by, WEIR_BY_FULL);
	ck_assert_int_eq(ask(&small, x, &key, 1, S + 2 * NSEC_PER_MS)
	    .decided_by, WEIR_BY_BUCKET);
	rig_close(&small);
}
END_TEST

START_TEST(refusals)
{
	struct weir_limit_params bad[] = {
		rule(0, 1), rule(1, 0), rule(1, 1), rule(1, 1), rule(1, 1),
		rule(UINT64_MAX, 1), rule(1, 1ull << 56), rule(1, 1),
		rule(1, 1),
	};
	static const char *const fields[] = {
		"tokens", "capacity", "period_ns", "name", "unit", "tokens",
		"capacity", "size", "name",
	};
	struct weir_limit_params now = rule(0, 0);
	struct weir_error error;

	bad[2].period_ns = 0;
	bad[3].name = "another";
	bad[4].unit = WEIR_UNIT_BYTES;
	bad[7].size = 1;
	bad[8].name = NULL;
	for (size_t i = 0; i < NELEM(bad); i++) {
		ck_assert_int_eq(weir_limit_set(rig.engine, limit, &bad[i], 0,
		    &error), -EINVAL);
		ck_assert_str_eq(error.field, fields[i]);
		ck_assert_ptr_nonnull(error.reason);
	}
	ck_assert_int_eq(weir_limit_get(rig.engine, limit, &now), 0);
	ck_assert_uint_eq(now.tokens, FIRST_RATE);
	bad[0] = rule(1, 1);
	ck_assert_int_eq(weir_limit_set(rig.engine, limit + 1, &bad[0], 0,
	    &error), -ENOENT);
	ck_assert_int_eq(change(77, 7, 0), 0);
	ck_assert_int_eq(weir_limit_get(rig.engine, limit, &now), 0);
	ck_assert_uint_eq(now.tokens, 77);
	ck_assert_uint_eq(now.capacity, 7);
	ck_assert_str_eq(now.name, "change");
}
END_TEST

/* A year idle, thousands of eras, changes all along. */
START_TEST(long_idle)
{
	uint64_t now_ns = S;

	spend(1, 10, now_ns);
	for (int month = 0; month < 12; month++) {
		now_ns += NSEC_PER_YEAR / 12;
		ck_assert_int_eq(change(month % 2 ? 1 : 100000,
		    10 + (uint64_t)month, now_ns), 0);
	}
	ck_assert_uint_eq(held(1, now_ns), 20);
	ck_assert_uint_eq(held(2, now_ns), 20);
	ck_assert_uint_eq(held(1, now_ns + S), 21);
}
END_TEST

/*
 * A limit whose units are coarse for the rates it is given later: what is below
 * a unit must be carried over each change, or a thousand changes a second leave
 * nothing.
 */
START_TEST(fractions_are_carried)
{
	uint32_t coarse = limit_add(rig.engine, "coarse", 1, 1, 100,
	    WEIR_UNIT_PACKETS);
	struct weir_limit_params slow = limit_params("coarse", 1, 7 * S, 100,
	    WEIR_UNIT_PACKETS);
	uint64_t key = 1, now_ns = S;

	ck_assert_int_eq(ask(&rig, coarse, &key, 100, now_ns).verdict,
	    WEIR_PASS);
	for (int i = 0; i < 70000; i++) {
		slow.tokens = i % 2 ? 3 : 2;
		ck_assert_int_eq(weir_limit_set(rig.engine, coarse, &slow,
		    now_ns, NULL), 0);
		now_ns += NSEC_PER_MS;
	}
	/* 70 s at 2 1/2 in 7 s */
	ck_assert_uint_eq(ask(&rig, coarse, &key, 0,
	    now_ns - 20 * NSEC_PER_MS).remaining, 24);
	ck_assert_uint_eq(ask(&rig, coarse, &key, 0,
	    now_ns + 20 * NSEC_PER_MS).remaining, 25);
}
END_TEST

/* What all keys hold, at one time, in 10^-9 of a token. */
struct world {
	wide level[KEYS];
	uint64_t now_ns, rate, capacity;
};

static void
world_advance(struct world *w, uint64_t ns)
{
	for (size_t k = 0; k < KEYS; k++) {
		w->level[k] += (wide)ns * w->rate;
		if (w->level[k] > (wide)w->capacity * S)
			w->level[k] = (wide)w->capacity * S;
	}
	w->now_ns += ns;
}

static void
world_change(struct world *w, struct rng *rng)
{
	w->rate = 1 + rng_magnitude(rng, 20);
	w->capacity = 1 + rng_magnitude(rng, 12);
	ck_assert_int_eq(change(w->rate, w->capacity, w->now_ns), 0);
	world_advance(w, 0);
}

static void
world_ask(struct world *w, struct rng *rng)
{
	uint64_t key = rng_below(rng, KEYS);
	uint64_t cost = rng_magnitude(rng, 13);
	struct weir_decision d = spend(key, cost, w->now_ns);
	wide price = (wide)cost * S, *level = &w->level[key];
	bool pass = price <= *level && (cost <= w->capacity || cost == 0);

	expect(d.verdict == (pass ? WEIR_PASS : WEIR_DENY));
	if (pass)
		*level -= price;
	else if (cost > w->capacity)
		expect(d.retry_after_ns == WEIR_NEVER);
	else
		expect(d.retry_after_ns == (uint64_t)((price - *level +
		    w->rate - 1) / w->rate));
	expect(d.remaining == (uint64_t)(*level / S));
}

START_TEST(as_the_oracle_says)
{
	struct world w = { .rate = FIRST_RATE, .capacity = FIRST_CAPACITY };
	struct rng rng;

	rng_init(&rng, test_seed("as_the_oracle_says"));
	for (size_t k = 0; k < KEYS; k++)
		w.level[k] = (wide)w.capacity * S;
	for (int n = 0; n < 1000000; n++) {
		unsigned die = (unsigned)rng_below(&rng, 20);

		if (die == 0)
			world_change(&w, &rng);
		else if (die < 6)
			world_advance(&w, rng_magnitude(&rng, 34));
		else
			world_ask(&w, &rng);
		if (n % 64 == 0)
			weir_worker_quiesce(rig.worker);
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("change");
	TCase *tc = tcase_create("change");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, capacity_clamps_and_grants_nothing);
	tcase_add_test(tc, the_past_is_not_priced_anew);
	tcase_add_test(tc, waits_follow);
	tcase_add_test(tc, the_change_counts_from_now_on);
	tcase_add_test(tc, long_waits_are_exact);
	tcase_add_test(tc, nothing_is_dropped_at_once);
	tcase_add_test(tc, refusals);
	tcase_add_test(tc, long_idle);
	tcase_add_test(tc, fractions_are_carried);
	tcase_add_test(tc, as_the_oracle_says);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
