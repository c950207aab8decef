/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows: so many tokens in each stretch of time, and everything anew at its
 * end. The oracle is a count and the number of the window it belongs to.
 */
#include <errno.h>

#include "../support.h"

#define S NSEC_PER_SEC
#define MS NSEC_PER_MS

static struct rig rig;

static void
setup(void)
{
	const struct weir_engine_params params = rig_params(1000, 8);

	rig_open(&rig, &params);
}

static void
teardown(void)
{
	rig_close(&rig);
}

static struct weir_limit_params
window(const char *name, uint64_t tokens, uint64_t window_ns)
{
	return (struct weir_limit_params){
		.size = sizeof(struct weir_limit_params),
		.name = name,
		.algorithm = WEIR_FIXED_WINDOW,
		.tokens = tokens,
		.period_ns = window_ns,
	};
}

static uint32_t
add(const char *name, uint64_t tokens, uint64_t window_ns)
{
	const struct weir_limit_params params =
	    window(name, tokens, window_ns);
	uint32_t limit;

	ck_assert_int_eq(weir_limit_add(rig.engine, &params, &limit, NULL), 0);
	return limit;
}

static struct weir_decision
spend(uint32_t limit, uint64_t key, uint64_t cost, uint64_t now_ns)
{
	return ask(&rig, limit, &key, cost, now_ns);
}

static unsigned
passes(uint32_t limit, unsigned n, uint64_t now_ns)
{
	unsigned passed = 0;

	while (n--)
		passed += spend(limit, 1, 1, now_ns).verdict == WEIR_PASS;
	return passed;
}

/* A window longer than a second; one that is skipped. */
START_TEST(windows_turn)
{
	uint32_t limit = add("w", 5, 10 * S);
	struct weir_decision d;

	ck_assert_uint_eq(passes(limit, 5, S / 2), 5);
	d = spend(limit, 1, 1, 99 * S / 10);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_uint_eq(d.retry_after_ns, 100 * MS);
	ck_assert_int_eq(spend(limit, 1, 1, 10 * S).verdict, WEIR_PASS);
	d = spend(limit, 1, 1, 253 * S / 10);
	ck_assert_int_eq(d.verdict, WEIR_PASS);
	ck_assert_uint_eq(d.remaining, 4);
}
END_TEST

/* Twice the limit around a boundary: that is what a fixed window does. */
START_TEST(boundary)
{
	uint32_t limit = add("w", 60, 60 * S);

	ck_assert_uint_eq(passes(limit, 61, 599 * S / 10), 60);
	ck_assert_uint_eq(passes(limit, 61, 60 * S), 60);
	ck_assert_uint_eq(spend(limit, 1, 1, 90 * S).retry_after_ns, 30 * S);
	ck_assert_uint_eq(passes(limit, 61, 120 * S), 60);
}
END_TEST

START_TEST(waits)
{
	uint32_t limit = add("w", 1, 900 * S);

	ck_assert_uint_eq(passes(limit, 1, 0), 1);
	ck_assert_uint_eq(spend(limit, 1, 1, 10 * S).retry_after_ns, 890 * S);
	ck_assert_uint_eq(spend(limit, 1, 1, 900 * S - 1).retry_after_ns, 1);
	ck_assert_uint_eq(spend(limit, 1, 2, 0).retry_after_ns, WEIR_NEVER);
	ck_assert_uint_eq(spend(limit, 1, 1, 900 * S).verdict, WEIR_PASS);
}
END_TEST

/* What comes late counts in the newest window, once. */
START_TEST(late)
{
	uint32_t limit = add("w", 3, S);
	struct weir_decision d;

	ck_assert_int_eq(spend(limit, 1, 1, 5 * S).verdict, WEIR_PASS);
	ck_assert_uint_eq(spend(limit, 1, 1, 4 * S).remaining, 1);
	ck_assert_uint_eq(spend(limit, 1, 1, 2 * S + 1).remaining, 0);
	d = spend(limit, 1, 1, 4 * S);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_uint_eq(d.retry_after_ns, 2 * S);
	ck_assert_int_eq(spend(limit, 1, 1, 5 * S).verdict, WEIR_DENY);
	ck_assert_uint_eq(passes(limit, 5, 6 * S), 3);
}
END_TEST

START_TEST(refusals)
{
	struct weir_limit_params bad[] = {
		window("w", 0, S), window("w", 1, 0),
		window("w", 1ull << 56, S), window("w", 1, S),
	};
	static const char *const fields[] = {
		"tokens", "period_ns", "tokens", "capacity",
	};
	struct weir_error error;
	uint32_t limit;

	bad[3].capacity = 1;
	for (size_t i = 0; i < NELEM(bad); i++) {
		ck_assert_int_eq(weir_limit_add(rig.engine, &bad[i], &limit,
		    &error), -EINVAL);
		ck_assert_str_eq(error.field, fields[i]);
	}
}
END_TEST

/* The level is kept, cut to the new size; the new windows count from there. */
START_TEST(changes)
{
	uint32_t limit = add("w", 10, 10 * S);
	struct weir_limit_params other = window("w", 4, S);

	ck_assert_uint_eq(passes(limit, 3, 5 * S), 3);
	ck_assert_int_eq(weir_limit_set(rig.engine, limit, &other,
	    5 * S + 1, NULL), 0);
	ck_assert_uint_eq(passes(limit, 9, 5 * S + 2), 4);
	ck_assert_uint_eq(passes(limit, 9, 6 * S - 1), 0);
	ck_assert_uint_eq(passes(limit, 9, 6 * S), 4);
	other.tokens = 100;
	ck_assert_int_eq(weir_limit_set(rig.engine, limit, &other, 6 * S + 5,
	    NULL), 0);
	ck_assert_uint_eq(passes(limit, 9, 6 * S + 6), 0);
	ck_assert_uint_eq(passes(limit, 109, 7 * S), 100);
	other.algorithm = WEIR_TOKEN_BUCKET;
	other.capacity = 100;
	ck_assert_int_eq(weir_limit_set(rig.engine, limit, &other, 8 * S,
	    NULL), -EINVAL);
}
END_TEST

struct oracle {
	uint64_t window, count;
};

#define KEYS 16u

START_TEST(as_the_oracle_says)
{
	static const struct {
		uint64_t tokens, window_ns;
	} rows[] = {
		{ 1, 1 }, { 7, 13 }, { 100, S }, { 1000000007, 3600 * S },
		{ 1ull << 22, 1000 }, { 3, UINT64_MAX },
	};
	struct rng rng;

	rng_init(&rng, test_seed("as_the_oracle_says"));
	for (size_t r = 0; r < NELEM(rows); r++) {
		uint64_t n = rows[r].tokens, w = rows[r].window_ns, now_ns = 0;
		char name[2] = { (char)('a' + r), 0 };
		uint32_t limit = add(name, n, w);
		struct oracle oracle[KEYS] = { { 0, 0 } };

		for (int i = 0; i < 300000; i++) {
			uint64_t key = rng_below(&rng, KEYS), asked_ns;
			uint64_t cost = rng_magnitude(&rng, 56) >>
			    rng_below(&rng, 56);
			struct oracle *o = &oracle[key], now;
			struct weir_decision d;
			bool pass;

			now_ns += rng_magnitude(&rng, 40) >>
			    rng_below(&rng, 41);
			asked_ns = now_ns;
			if (rng_below(&rng, 8) == 0)
				asked_ns -= rng_below(&rng, now_ns + 1) >>
				    rng_below(&rng, 60);
			/* The window that is meant: this or a later one. */
			now = *o;
			if (asked_ns / w > now.window)
				now = (struct oracle){ asked_ns / w, 0 };
			pass = cost == 0 ||
			    (cost <= n && now.count <= n - cost);
			d = spend(limit, key, cost, asked_ns);
			expect(d.verdict == (pass ? WEIR_PASS : WEIR_DENY));
			if (pass)
				now.count += cost;
			expect(d.remaining == n - now.count);
			if (!pass && cost > n)
				expect(d.retry_after_ns == WEIR_NEVER);
			else if (!pass && w != UINT64_MAX)
				expect(d.retry_after_ns ==
				    (now.window + 1) * w - asked_ns);
			if (pass && cost != 0)
				*o = now;
		}
	}
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("window");
	TCase *tc = tcase_create("window");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, windows_turn);
	tcase_add_test(tc, boundary);
	tcase_add_test(tc, waits);
	tcase_add_test(tc, late);
	tcase_add_test(tc, refusals);
	tcase_add_test(tc, changes);
	tcase_add_test(tc, as_the_oracle_says);
	suite_add_tcase(suite, tc);
	return test_run(suite);
}
