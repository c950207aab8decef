/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits that let a bucket go below zero: who passes, what is owed, and that
 * every wait that is named suffices and 1 ns less does not. Ids like B116 name
 * the known fault a case would show.
 */
#include <errno.h>
#include <string.h>

#include "../support.h"

#define S NSEC_PER_SEC

static struct rig rig;
static uint32_t limit;

static struct weir_limit_params
indebted(uint64_t tokens, uint64_t period_ns, uint64_t capacity, uint64_t debt)
{
	struct weir_limit_params p = limit_params("l", tokens, period_ns,
	    capacity, WEIR_UNIT_PACKETS);

	p.debt = debt;
	return p;
}

static void
open_limit(uint64_t tokens, uint64_t period_ns, uint64_t capacity,
    uint64_t debt)
{
	struct weir_limit_params p = indebted(tokens, period_ns, capacity,
	    debt);
	struct weir_engine_params params = rig_params(64, 1);

	rig_open(&rig, &params);
	ck_assert_int_eq(weir_limit_add(rig.engine, &p, &limit, NULL), 0);
}

static void
close_rig(void)
{
	rig_close(&rig);
}

/* The wait of this denial is the least that helps. */
static void
wait_is(const void *key, uint64_t cost, uint64_t now_ns, uint64_t wait_ns)
{
	struct weir_request r = request(limit, key, cost);
	struct weir_decision d = ask(&rig, limit, key, cost, now_ns);

	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_uint_eq(d.retry_after_ns, wait_ns);
	if (wait_ns == WEIR_NEVER)
		return;
	ck_assert_int_eq(weir_peek(rig.worker, &r, now_ns + wait_ns - 1,
	    NULL), WEIR_DENY);
	ck_assert_int_eq(weir_peek(rig.worker, &r, now_ns + wait_ns, NULL),
	    WEIR_PASS);
}

START_TEST(from_full_to_the_bottom)
{
	struct weir_decision d;

	open_limit(10, S, 20, 30);
	/* a full bucket can spend both, and not a token more */
	wait_is("k", 51, 0, WEIR_NEVER);
	d = ask(&rig, limit, "k", 50, 0);
	ck_assert_int_eq(d.verdict, WEIR_PASS);
	ck_assert_uint_eq(d.remaining, 0);
	ck_assert_uint_eq(d.debt, 30);
	ck_assert_uint_eq(d.reset_after_ns, 5 * S);
	/* the small wait for one token, as do all that can be borrowed then */
	wait_is("k", 1, 0, 31 * S / 10);
	wait_is("k", 30, 0, 31 * S / 10);
	wait_is("k", 31, 0, 31 * S / 10);
	wait_is("k", 32, 0, 32 * S / 10);
	wait_is("k", 50, 0, 5 * S);
	wait_is("k", 51, 0, WEIR_NEVER);
	ck_assert_int_eq(ask(&rig, limit, "k", 0, 0).verdict, WEIR_PASS);
	/* half a token is owed: it counts as one */
	d = ask(&rig, limit, "k", 0, 59 * S / 20);
	ck_assert_uint_eq(d.debt, 1);
	ck_assert_uint_eq(d.remaining, 0);
	/* at zero nothing is owed, and nothing is there */
	d = ask(&rig, limit, "k", 1, 3 * S);
	ck_assert_uint_eq(d.debt, 0);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
}
END_TEST

/* A part of a token does not open the door, whatever could be borrowed. */
START_TEST(part_of_a_token)
{
	open_limit(10, S, 20, 30);
	ask(&rig, limit, "k", 20, 0);
	wait_is("k", 5, S / 10 - 1, 1);
	ck_assert_uint_eq(ask(&rig, limit, "k", 5, 3 * S / 20).debt, 4);
	/* -3.5 at 0.15 s */
	wait_is("k", 1, 3 * S / 20, 45 * S / 100);
}
END_TEST

/*
 * B116: a large request among small ones. Without debt none of 61 passes; here
 * it starts a second later, and all others pay for it by waiting.
 */
START_TEST(large_among_small)
{
	unsigned small = 0, large = 0;
	struct weir_decision d;

	open_limit(10, S, 100, 99);
	ask(&rig, limit, "k", 100, 0);
	for (uint64_t k = 0; k <= 1200; k++) {
		uint64_t now_ns = k * 50000000;

		if (k % 20 == 0) {
			d = ask(&rig, limit, "k", 100, now_ns);
			/* at 1 s, and when that is paid for, at 11 s ... */
			ck_assert_int_eq(d.verdict, k % 200 == 20);
			if (d.verdict == WEIR_PASS)
				ck_assert_uint_eq(d.debt, 99);
			large += d.verdict;
		}
		d = ask(&rig, limit, "k", 1, now_ns);
		ck_assert_int_eq(d.verdict, k < 20 && k % 2 == 0 && k > 0);
		small += d.verdict;
	}
	ck_assert_uint_eq(large, 6);
	ck_assert_uint_eq(small, 9);
}
END_TEST

/* One decision for a packet burst, in order, in one call or in two. */
START_TEST(bursts)
{
	const uint64_t costs[] = { 8, 1, 6, 1, 0, 14, 2 };
	const uint8_t want[] = { 1, 1, 1, 0, 1, 0, 0 };
	struct weir_request requests[NELEM(costs)];
	struct weir_decision d[NELEM(costs)];
	uint8_t verdicts[NELEM(costs)];

	open_limit(1, S, 10, 5);
	for (int way = 0; way < 4; way++) {
		const char *key = &"abcd"[way];

		for (size_t i = 0; i < NELEM(costs); i++)
			requests[i] = request(limit, key, costs[i]);
		/* an entry, and a value in it */
		ask(&rig, limit, key, 1, 0);
		memset(verdicts, 0xa5, sizeof(verdicts));
		if (way < 2) {
			weir_check_burst(rig.worker, requests, NELEM(costs), S,
			    verdicts, way == 0 ? d : NULL);
		} else {
			ck_assert_int_eq(weir_prepare(rig.worker, requests,
			    NELEM(costs)), 0);
			ck_assert_uint_eq(weir_decide(rig.worker, S, verdicts,
			    way == 2 ? d : NULL), NELEM(costs));
		}
		ck_assert_mem_eq(verdicts, want, sizeof(want));
		ck_assert_uint_eq(d[2].debt, 5);
		ck_assert_uint_eq(d[3].retry_after_ns, 6 * S);
		ck_assert_uint_eq(d[5].retry_after_ns, 14 * S);
		ck_assert_uint_eq(ask(&rig, limit, key, 0, S).debt, 5);
	}
}
END_TEST

/* What is taken is never borrowed; what is given back pays first. */
START_TEST(take_and_refund)
{
	struct weir_request r;
	struct weir_decision d;

	open_limit(10, S, 20, 30);
	r = request(limit, "k", 50);
	ck_assert_uint_eq(weir_take(rig.worker, &r, 0, &d), 20);
	ck_assert_uint_eq(d.debt, 0);
	/* the rest can be borrowed as soon as a token is there */
	ck_assert_uint_eq(d.retry_after_ns, S / 10);
	wait_is("k", 30, 0, S / 10);
	ck_assert_uint_eq(ask(&rig, limit, "k", 30, S / 10).debt, 29);
	ck_assert_uint_eq(weir_take(rig.worker, &r, S / 10, &d), 0);
	ck_assert_uint_eq(d.debt, 29);
	r = request(limit, "k", 31);
	ck_assert_uint_eq(weir_refund(rig.worker, &r, S / 10), 31);
	ck_assert_uint_eq(ask(&rig, limit, "k", 0, S / 10).remaining, 2);
	ck_assert_uint_eq(ask(&rig, limit, "k", 32, S / 10).debt, 30);
	r = request(limit, "k", UINT64_MAX);
	ck_assert_uint_eq(weir_refund(rig.worker, &r, S / 10), 50);
	ck_assert_uint_eq(ask(&rig, limit, "k", 0, S / 10).remaining, 20);
}
END_TEST

/* An entry in debt is kept, and so is what it owes, in a full table too. */
START_TEST(full_table)
{
	struct weir_engine_params params = rig_params(1, 1);
	struct weir_limit_params p = indebted(1, S, 10, 5);

	params.full_policy = WEIR_FULL_SHARED;
	rig_open(&rig, &params);
	ck_assert_int_eq(weir_limit_add(rig.engine, &p, &limit, NULL), 0);
	for (uint8_t key = 0; key < 64; key++)
		ck_assert_uint_eq(ask(&rig, limit, &key, 15, 0).debt, 5);
	/* for strangers at the last moment at which nobody can go: the shared
	 * bucket, which may owe as well */
	for (int i = 0; i < 3; i++) {
		struct weir_decision d = ask(&rig, limit, "\377", 14, 0);

		ck_assert_int_eq(d.decided_by, WEIR_BY_FULL);
		ck_assert_int_eq(d.verdict, i == 0);
		ck_assert_uint_eq(d.debt, 4);
	}
	wait_is("\377", 16, 15 * S - 1, WEIR_NEVER);
	ck_assert_int_eq(ask(&rig, limit, "\376", 1, 15 * S - 1).decided_by,
	    WEIR_BY_FULL);
	/* those whose bucket is full have room, 10 us of clock skew later */
	ck_assert_int_eq(ask(&rig, limit, "\375", 1, 16 * S).decided_by,
	    WEIR_BY_BUCKET);
}
END_TEST

/* A bucket that owes more than the limit now lets it: it owes it still. */
START_TEST(lowered_debt)
{
	struct weir_limit_params p = indebted(10, S, 20, 5);

	open_limit(10, S, 20, 30);
	ask(&rig, limit, "k", 50, 0);
	ck_assert_int_eq(weir_limit_set(rig.engine, limit, &p, S, NULL), 0);
	ck_assert_uint_eq(ask(&rig, limit, "k", 0, S).debt, 20);
	wait_is("k", 6, S, 21 * S / 10);
	wait_is("k", 7, S, 22 * S / 10);
	wait_is("k", 26, S, WEIR_NEVER);
	p.debt = 30;
	ck_assert_int_eq(weir_limit_set(rig.engine, limit, &p, S, NULL), 0);
	wait_is("k", 26, S, 21 * S / 10);
	ck_assert_uint_eq(ask(&rig, limit, "x", 26, S).debt, 6);
}
END_TEST

/* Read back to the letter, by those too who know no debt. */
START_TEST(kept_with_the_limit)
{
	struct weir_limit_params p = indebted(1, S, 7, 9), back;
	uint32_t other;

	open_limit(1, S, 7, 9);
	memset(&back, 0, sizeof(back));
	back.size = sizeof(back);
	ck_assert_int_eq(weir_limit_get(rig.engine, limit, &back), 0);
	ck_assert_uint_eq(back.debt, 9);

	/* the struct as it was without: what stands behind is not read */
	p.size = offsetof(struct weir_limit_params, debt);
	p.name = "old";
	ck_assert_int_eq(weir_limit_add(rig.engine, &p, &other, NULL), 0);
	ck_assert_int_eq(weir_limit_get(rig.engine, other, &back), 0);
	ck_assert_uint_eq(back.debt, 0);
	ck_assert_uint_eq(back.size, sizeof(back));
	ck_assert_uint_eq(ask(&rig, other, "k", 8, 0).retry_after_ns,
	    WEIR_NEVER);
	/* nor written */
	back.size = p.size;
	back.debt = 77;
	ck_assert_int_eq(weir_limit_get(rig.engine, limit, &back), 0);
	ck_assert_uint_eq(back.capacity, 7);
	ck_assert_uint_eq(back.size, p.size);
	ck_assert_uint_eq(back.debt, 77);
	ck_assert_int_eq(weir_limit_set(rig.engine, other, &p, S, NULL), 0);
}
END_TEST

START_TEST(refused)
{
	const struct weir_limit_params bad[] = {
		indebted(1, 1, 1, 1ull << 55),
		indebted(1, 1, 1ull << 55, 1),
		indebted(1, 1, 1ull << 54, (1ull << 54) + 1),
		indebted(1, S, 1, UINT64_MAX),
	};
	struct weir_limit_params window = {
		.size = sizeof(window),
		.name = "w",
		.tokens = 10,
		.period_ns = S,
		.algorithm = WEIR_FIXED_WINDOW,
		.debt = 1,
	};
	struct weir_limit_params bad_change;
	struct weir_error error;
	uint32_t other;

	open_limit(1, S, 1, 1);
	for (size_t i = 0; i < NELEM(bad); i++) {
		struct weir_limit_params p = bad[i];

		p.name = "bad";
		ck_assert_int_eq(weir_limit_add(rig.engine, &p, &other,
		    &error), -EINVAL);
		ck_assert_str_eq(error.field, "debt");
	}
	/* a second is 10^9 units of this limit: 2^55 of them are 2^25 s */
	bad_change = indebted(1, S, 1, 1 << 26);
	ck_assert_int_eq(weir_limit_set(rig.engine, limit, &bad_change, 0,
	    &error), -EINVAL);
	ck_assert_str_eq(error.field, "debt");
	ck_assert_int_eq(weir_limit_add(rig.engine, &window, &other, &error),
	    -EINVAL);
	ck_assert_str_eq(error.field, "debt");
	ck_assert_uint_eq(ask(&rig, limit, "k", 2, 0).debt, 1);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("debt");
	TCase *tc = tcase_create("debt");

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, NULL, close_rig);
	tcase_add_test(tc, from_full_to_the_bottom);
	tcase_add_test(tc, part_of_a_token);
	tcase_add_test(tc, large_among_small);
	tcase_add_test(tc, bursts);
	tcase_add_test(tc, take_and_refund);
	tcase_add_test(tc, full_table);
	tcase_add_test(tc, lowered_debt);
	tcase_add_test(tc, kept_with_the_limit);
	tcase_add_test(tc, refused);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
