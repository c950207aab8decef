/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at a bucket without taking from it, taking what there is of a cost, and
 * giving back. Ids like B114 name the known fault a case would show.
 */
#include <string.h>

#include "../support.h"
#include "pages.h"

#define S NSEC_PER_SEC

static struct rig rig;
static uint32_t limit;

static void
open_limit(uint64_t tokens, uint64_t period_ns, uint64_t capacity)
{
	struct weir_engine_params params = rig_params(64, 1);

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", tokens, period_ns, capacity,
	    WEIR_UNIT_PACKETS);
}

static void
close_rig(void)
{
	rig_close(&rig);
}

static struct weir_decision
peek(const void *key, uint64_t cost, uint64_t now_ns)
{
	struct weir_request r = request(limit, key, cost);
	struct weir_decision decision;
	enum weir_verdict verdict;

	memset(&decision, 0xa5, sizeof(decision));
	verdict = weir_peek(rig.worker, &r, now_ns, &decision);
	expect(verdict == decision.verdict);
	expect(weir_peek(rig.worker, &r, now_ns, NULL) == verdict);
	return decision;
}

static void
expect_same(const struct weir_decision *a, const struct weir_decision *b)
{
	expect(a->verdict == b->verdict);
	expect(a->decided_by == b->decided_by);
	expect(a->remaining == b->remaining);
	expect(a->retry_after_ns == b->retry_after_ns);
	expect(a->reset_after_ns == b->reset_after_ns);
	expect(a->limit == b->limit);
}

static uint64_t
counted(uint32_t of)
{
	struct weir_counters c;

	ck_assert_int_eq(weir_engine_counters(rig.engine, of, &c), 0);
	return c.passed_packets + c.denied_packets + c.full_passed_packets +
	    c.full_denied_packets;
}

/* A look is what a check says next, and the first look is not the last. */
START_TEST(peek_is_the_next_check)
{
	uint64_t now_ns = 0, asked = 0;
	struct rng rng;

	rng_init(&rng, test_seed("peek"));
	open_limit(1000, S, 40);
	for (uint64_t i = test_scale(100000); i > 0; i--) {
		uint8_t key = (uint8_t)rng_below(&rng, 4);
		uint64_t cost = rng_below(&rng, 44);
		struct weir_decision looked, checked;

		now_ns += rng_below(&rng, 30 * NSEC_PER_MS);
		looked = peek(&key, cost, now_ns);
		checked = ask(&rig, limit, &key, cost, now_ns);
		expect_same(&looked, &checked);
		asked += cost;
	}
	ck_assert_uint_eq(counted(limit), asked);
}
END_TEST

START_TEST(peek_without_a_limit)
{
	struct weir_decision d;

	open_limit(1, S, 5);
	limit++;
	d = peek("k", 1, 0);
	ck_assert_int_eq(d.verdict, WEIR_DENY);
	ck_assert_int_eq(d.decided_by, WEIR_BY_NO_LIMIT);
	ck_assert_uint_eq(d.limit, limit);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 0);
}
END_TEST

/* On read-only pages: keys that are new, known, empty, idle for ages. */
START_TEST(peek_writes_nothing)
{
	struct pages table = { NULL, 0 };
	struct weir_engine_params params = rig_params(100000, 1);

	params.alloc = pages_alloc;
	params.free = pages_free;
	params.alloc_context = &table;
	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 8, WEIR_UNIT_PACKETS);
	for (uint8_t key = 0; key < 8; key++)
		ask(&rig, limit, &key, key, 0);
	ck_assert_int_eq(mprotect(table.memory, table.size, PROT_READ), 0);
	for (uint8_t key = 0; key < 16; key++) {
		uint64_t level = key < 8 ? 8 - key : 8;

		for (uint64_t cost = 0; cost < 10; cost++) {
			struct weir_decision d = peek(&key, cost, 0);

			ck_assert_int_eq(d.verdict, cost <= level);
			ck_assert_uint_eq(d.remaining,
			    cost <= level ? level - cost : level);
		}
		ck_assert_int_eq(peek(&key, 8, 500 * NSEC_PER_YEAR).verdict,
		    WEIR_PASS);
	}
	ck_assert_uint_eq(counted(limit), 28);
	ck_assert_int_eq(mprotect(table.memory, table.size,
	    PROT_READ | PROT_WRITE), 0);
}
END_TEST

/*
 * A look at a stranger in a table without room says what the policy will. The
 * table has 64 slots, and every key may use them all.
 */
START_TEST(peek_in_a_full_table)
{
	static const enum weir_full_policy policies[] = {
		WEIR_FULL_DENY, WEIR_FULL_ALLOW, WEIR_FULL_SHARED,
	};

	for (size_t p = 0; p < NELEM(policies); p++) {
		struct weir_engine_params params = rig_params(1, 1);
		uint64_t before;

		params.full_policy = policies[p];
		rig_open(&rig, &params);
		limit = limit_add(rig.engine, "l", 1, S, 20,
		    WEIR_UNIT_PACKETS);
		for (uint8_t key = 0; key < 64; key++)
			ask(&rig, limit, &key, 20, 0);
		before = counted(limit);
		for (uint8_t key = 64; key < 84; key++) {
			struct weir_decision looked = peek(&key, key % 8, 0);
			struct weir_decision checked =
			    ask(&rig, limit, &key, key % 8, 0);

			expect_same(&looked, &checked);
			before += key % 8;
			ck_assert_uint_eq(counted(limit), before);
		}
		/* 20 s later all have been full for long: there is room */
		ck_assert_int_eq(peek("\377", 20, 21 * S).decided_by,
		    WEIR_BY_BUCKET);
		if (p + 1 < NELEM(policies))
			rig_close(&rig);
	}
}
END_TEST

static uint64_t
take(const void *key, uint64_t cost, uint64_t now_ns, struct weir_decision *d)
{
	struct weir_request r = request(limit, key, cost);
	uint64_t taken;

	memset(d, 0xa5, sizeof(*d));
	taken = weir_take(rig.worker, &r, now_ns, d);
	expect((d->verdict == WEIR_PASS) == (taken == cost));
	return taken;
}

/* All, some, none; the wait is that of the rest, from both sides. */
START_TEST(take_what_there_is)
{
	struct weir_decision d;

	open_limit(10, S, 20);
	ck_assert_uint_eq(take("k", 15, 0, &d), 15);
	ck_assert_uint_eq(d.remaining, 5);
	ck_assert_uint_eq(d.retry_after_ns, 0);
	ck_assert_uint_eq(d.reset_after_ns, 3 * S / 2);
	ck_assert_uint_eq(take("k", 15, 0, &d), 5);
	ck_assert_uint_eq(d.remaining, 0);
	ck_assert_uint_eq(d.retry_after_ns, S);
	ck_assert_int_eq(d.decided_by, WEIR_BY_BUCKET);
	ck_assert_uint_eq(d.limit, limit);
	ck_assert_int_eq(peek("k", 10, S - 1).verdict, WEIR_DENY);
	ck_assert_int_eq(peek("k", 10, S).verdict, WEIR_PASS);
	ck_assert_uint_eq(take("k", 7, 0, &d), 0);
	ck_assert_uint_eq(d.retry_after_ns, 7 * S / 10);
	/* one and a half are there: the half stays */
	ck_assert_uint_eq(take("k", 7, 3 * S / 20, &d), 1);
	ck_assert_uint_eq(d.retry_after_ns, 55 * S / 100);
	ck_assert_uint_eq(take("k", 7, 2 * S / 10, &d), 1);
	/* more than there ever is: a whole bucket, and the rest is too much */
	ck_assert_uint_eq(take("x", UINT64_MAX, 0, &d), 20);
	ck_assert_uint_eq(d.retry_after_ns, WEIR_NEVER);
	ck_assert_uint_eq(take("y", 30, 0, &d), 20);
	ck_assert_uint_eq(d.retry_after_ns, S);
	/* nothing of nothing */
	ck_assert_uint_eq(take("x", 0, 0, &d), 0);
	ck_assert_int_eq(d.verdict, WEIR_PASS);
	ck_assert_uint_eq(take("z", 0, 0, &d), 0);
	ck_assert_uint_eq(d.remaining, 20);
}
END_TEST

/* Packets and bytes, asked for and got. */
START_TEST(take_is_counted)
{
	struct weir_request r = { .key = "k", .packets = 10, .bytes = 999 };
	struct weir_counters c;

	open_limit(1, S, 4);
	r.limit = limit;
	ck_assert_uint_eq(weir_take(rig.worker, &r, 0, NULL), 4);
	ck_assert_uint_eq(weir_take(rig.worker, &r, 0, NULL), 0);
	r.packets = 0; /* costs nothing: all of it passes */
	ck_assert_uint_eq(weir_take(rig.worker, &r, 0, NULL), 0);
	ck_assert_int_eq(weir_engine_counters(rig.engine, limit, &c), 0);
	ck_assert_uint_eq(c.passed_packets, 4);
	ck_assert_uint_eq(c.denied_packets, 16);
	ck_assert_uint_eq(c.passed_bytes, 399 + 999); /* 4/10 of 999 */
	ck_assert_uint_eq(c.denied_bytes, 600 + 999);
	r.packets = UINT64_MAX;
	r.bytes = UINT64_MAX;
	ck_assert_uint_eq(weir_take(rig.worker, &r, 3 * S, NULL), 3);
	ck_assert_int_eq(weir_engine_counters(rig.engine, limit, &c), 0);
	ck_assert_uint_eq(c.passed_bytes, 399 + 999 + 3);
}
END_TEST

START_TEST(take_without_a_limit)
{
	struct weir_decision d;

	open_limit(1, S, 5);
	limit++;
	ck_assert_uint_eq(take("k", 1, 0, &d), 0);
	ck_assert_int_eq(d.decided_by, WEIR_BY_NO_LIMIT);
	ck_assert_uint_eq(d.limit, limit);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 1);
}
END_TEST

/* In a table without room the policy answers, and is counted for it. */
START_TEST(take_in_a_full_table)
{
	static const struct {
		enum weir_full_policy policy;
		uint64_t first, second;
	} rows[] = {
		{ WEIR_FULL_DENY, 0, 0 },
		{ WEIR_FULL_ALLOW, 50, 50 },
		{ WEIR_FULL_SHARED, 20, 0 },
	};

	for (size_t i = 0; i < NELEM(rows); i++) {
		struct weir_engine_params params = rig_params(1, 1);
		struct weir_counters c;
		struct weir_decision d;

		params.full_policy = rows[i].policy;
		rig_open(&rig, &params);
		limit = limit_add(rig.engine, "l", 1, S, 20,
		    WEIR_UNIT_PACKETS);
		for (uint8_t key = 0; key < 64; key++)
			ask(&rig, limit, &key, 20, 0);
		ck_assert_uint_eq(take("\377", 50, 0, &d), rows[i].first);
		ck_assert_int_eq(d.decided_by, WEIR_BY_FULL);
		ck_assert_uint_eq(take("\377", 50, 0, &d), rows[i].second);
		ck_assert_int_eq(weir_engine_counters(rig.engine, limit, &c),
		    0);
		ck_assert_uint_eq(c.passed_packets, 64 * 20);
		ck_assert_uint_eq(c.denied_packets, 0);
		ck_assert_uint_eq(c.full_passed_packets,
		    rows[i].first + rows[i].second);
		ck_assert_uint_eq(c.full_denied_packets,
		    100 - rows[i].first - rows[i].second);
		if (i + 1 < NELEM(rows))
			rig_close(&rig);
	}
}
END_TEST

static uint64_t
refund(const void *key, uint64_t cost, uint64_t now_ns)
{
	struct weir_request r = request(limit, key, cost);

	return weir_refund(rig.worker, &r, now_ns);
}

static uint64_t
level(const void *key, uint64_t now_ns)
{
	return peek(key, 0, now_ns).remaining;
}

/* B114: at level 0 a refund counts, and a negative cost is none. */
START_TEST(refund_at_zero)
{
	open_limit(1, S, 10);
	ask(&rig, limit, "k", 10, 0);
	ck_assert_int_eq(ask(&rig, limit, "k", (uint64_t)-1, 0).verdict,
	    WEIR_DENY);
	ck_assert_uint_eq(level("k", 0), 0);
	ck_assert_uint_eq(refund("k", 4, 0), 4);
	ck_assert_uint_eq(level("k", 0), 4);
	ck_assert_int_eq(ask(&rig, limit, "k", 5, 0).verdict, WEIR_DENY);
	ck_assert_int_eq(ask(&rig, limit, "k", 4, 0).verdict, WEIR_PASS);
	ck_assert_uint_eq(ask(&rig, limit, "k", 1, 0).retry_after_ns, S);
}
END_TEST

/* B126: it gives back what it says, and never more than there is room for. */
START_TEST(refund_up_to_capacity)
{
	open_limit(10, S, 20);
	ck_assert_int_eq(ask(&rig, limit, "k", 15, 0).verdict, WEIR_PASS);
	ck_assert_int_eq(ask(&rig, limit, "k", 6, S / 10).verdict, WEIR_PASS);
	ck_assert_uint_eq(refund("k", 6, S / 10), 6);
	ck_assert_uint_eq(level("k", S / 10), 6);
	ck_assert_uint_eq(refund("k", 100, S / 10), 14);
	ck_assert_uint_eq(level("k", S / 10), 20);
	/* and no store of it is kept */
	ck_assert_int_eq(ask(&rig, limit, "k", 20, S / 10).verdict, WEIR_PASS);
	ck_assert_uint_eq(ask(&rig, limit, "k", 1, S / 10).retry_after_ns,
	    S / 10);
}
END_TEST

/* Half a token is missing: that half is given, and no whole one. */
START_TEST(refund_of_a_fraction)
{
	open_limit(10, S, 20);
	ask(&rig, limit, "k", 1, 0);
	ck_assert_uint_eq(refund("k", 1, S / 20), 0);
	ck_assert_uint_eq(peek("k", 0, S / 20).reset_after_ns, 0);
	ck_assert_uint_eq(level("k", S / 20), 20);
}
END_TEST

START_TEST(refund_of_any_size)
{
	const uint64_t costs[] = {
		UINT64_MAX, 1ull << 63, 1ull << 62, 1ull << 58, 1ull << 57,
		1ull << 56, 1ull << 55, 1000000,
	};

	open_limit(1000, 3, 1000000);
	for (size_t i = 0; i < NELEM(costs); i++) {
		uint64_t now_ns = i * S;

		ck_assert_uint_eq(refund("k", costs[i], now_ns), 0);
		ask(&rig, limit, "k", 1000000, now_ns);
		ck_assert_uint_eq(refund("k", 0, now_ns), 0);
		ck_assert_uint_eq(level("k", now_ns), 0);
		ck_assert_uint_eq(refund("k", costs[i], now_ns), 1000000);
		ck_assert_uint_eq(level("k", now_ns), 1000000);
		ask(&rig, limit, "k", 999999, now_ns);
		ck_assert_uint_eq(level("k", now_ns), 1);
	}
}
END_TEST

/* A key that was never seen is full, and so is one of long ago. No limit: no
 * bucket. Nothing of it is counted. */
START_TEST(refund_to_nobody)
{
	open_limit(1, S, 5);
	ck_assert_uint_eq(refund("k", 3, 0), 0);
	ck_assert_uint_eq(level("k", 0), 5);
	ask(&rig, limit, "k", 5, 0);
	ck_assert_uint_eq(refund("k", 3, 500 * NSEC_PER_YEAR), 0);
	ck_assert_uint_eq(level("k", 500 * NSEC_PER_YEAR), 5);
	ck_assert_uint_eq(counted(limit), 5);
	limit++;
	ck_assert_uint_eq(refund("k", 3, 0), 0);
	ck_assert_uint_eq(weir_engine_unknown_limits(rig.engine), 0);
	limit--;
}
END_TEST

/* A late clock sees less, and gives no more than fills what it sees. */
START_TEST(refund_by_a_late_clock)
{
	open_limit(10, S, 20);
	ask(&rig, limit, "k", 20, 10 * S);
	/* at 9 s the level is -10: four more make it -6, and 4 at 10 s */
	ck_assert_uint_eq(refund("k", 4, 9 * S), 4);
	ck_assert_uint_eq(level("k", 9 * S), 0);
	ck_assert_uint_eq(level("k", 10 * S), 4);
	/* up to 20 at 9 s, which is full for all who come later */
	ck_assert_uint_eq(refund("k", 1000, 9 * S), 26);
	ck_assert_uint_eq(level("k", 9 * S), 20);
	ck_assert_uint_eq(level("k", 10 * S), 20);
	ask(&rig, limit, "k", 20, 10 * S);
	ck_assert_uint_eq(level("k", 10 * S), 0);
}
END_TEST

/* What the shared bucket of a full table gave is gone. */
START_TEST(refund_in_a_full_table)
{
	struct weir_engine_params params = rig_params(1, 1);

	params.full_policy = WEIR_FULL_SHARED;
	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 20, WEIR_UNIT_PACKETS);
	for (uint8_t key = 0; key < 64; key++)
		ask(&rig, limit, &key, 20, 0);
	ck_assert_int_eq(ask(&rig, limit, "\377", 20, 0).decided_by,
	    WEIR_BY_FULL);
	ck_assert_uint_eq(refund("\377", 20, 0), 0);
	ck_assert_int_eq(ask(&rig, limit, "\377", 1, 0).verdict, WEIR_DENY);
	ck_assert_uint_eq(refund("\001", 7, 0), 7);
	ck_assert_uint_eq(level("\001", 0), 7);
}
END_TEST

/* A raised capacity is room for more; the time it was raised at is kept. */
START_TEST(refund_after_a_change)
{
	struct weir_limit_params p = limit_params("l", 1, S, 30,
	    WEIR_UNIT_PACKETS);

	open_limit(1, S, 10);
	ask(&rig, limit, "k", 4, 100 * S);
	ck_assert_int_eq(weir_limit_set(rig.engine, limit, &p, 100 * S, NULL),
	    0);
	/* what a bucket could hold at that time was 10 */
	ck_assert_uint_eq(refund("k", 50, 100 * S), 4);
	ck_assert_uint_eq(level("k", 100 * S), 10);
	ask(&rig, limit, "k", 10, 100 * S);
	ck_assert_uint_eq(refund("k", 50, 105 * S), 10);
	ck_assert_uint_eq(level("k", 105 * S), 15);
	p.capacity = 5;
	ck_assert_int_eq(weir_limit_set(rig.engine, limit, &p, 105 * S, NULL),
	    0);
	ask(&rig, limit, "k", 5, 105 * S);
	ck_assert_uint_eq(refund("k", 50, 105 * S), 5);
	ck_assert_uint_eq(level("k", 105 * S), 5);
}
END_TEST

/* In a fixed window what is given back is of that window, and no other. */
START_TEST(window)
{
	struct weir_engine_params params = rig_params(64, 1);
	const struct weir_limit_params p = {
		.size = sizeof(p),
		.name = "w",
		.algorithm = WEIR_FIXED_WINDOW,
		.tokens = 10,
		.period_ns = S,
	};
	struct weir_decision d;

	rig_open(&rig, &params);
	ck_assert_int_eq(weir_limit_add(rig.engine, &p, &limit, NULL), 0);
	ck_assert_uint_eq(take("k", 12, 5 * S / 2, &d), 10);
	ck_assert_uint_eq(d.retry_after_ns, S / 2);
	ck_assert_uint_eq(d.reset_after_ns, S / 2);
	ck_assert_uint_eq(refund("k", 4, 3 * S - 1), 4);
	ck_assert_uint_eq(level("k", 3 * S - 1), 4);
	ck_assert_uint_eq(peek("k", 4, 3 * S - 1).reset_after_ns, 1);
	ck_assert_uint_eq(level("k", 3 * S), 10);
	ck_assert_uint_eq(refund("k", 4, 3 * S), 0);
	ck_assert_uint_eq(take("k", 7, 3 * S, &d), 7);
	/* a late one is of the newest window */
	ck_assert_uint_eq(refund("k", 100, 2 * S), 7);
	ck_assert_uint_eq(level("k", 3 * S), 10);
	ck_assert_uint_eq(take("k", 11, 4 * S - 1, &d), 10);
	ck_assert_uint_eq(take("k", 1, 4 * S - 1, &d), 0);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("adjust");
	TCase *look = tcase_create("peek");
	TCase *part = tcase_create("take");
	TCase *back = tcase_create("refund");

	tcase_set_timeout(look, 60);
	tcase_add_checked_fixture(look, NULL, close_rig);
	tcase_add_test(look, peek_is_the_next_check);
	tcase_add_test(look, peek_without_a_limit);
	tcase_add_test(look, peek_writes_nothing);
	tcase_add_test(look, peek_in_a_full_table);
	suite_add_tcase(s, look);

	tcase_add_checked_fixture(part, NULL, close_rig);
	tcase_add_test(part, take_what_there_is);
	tcase_add_test(part, take_is_counted);
	tcase_add_test(part, take_without_a_limit);
	tcase_add_test(part, take_in_a_full_table);
	suite_add_tcase(s, part);

	tcase_add_checked_fixture(back, NULL, close_rig);
	tcase_add_test(back, refund_at_zero);
	tcase_add_test(back, refund_up_to_capacity);
	tcase_add_test(back, refund_of_a_fraction);
	tcase_add_test(back, refund_of_any_size);
	tcase_add_test(back, refund_to_nobody);
	tcase_add_test(back, refund_by_a_late_clock);
	tcase_add_test(back, refund_in_a_full_table);
	tcase_add_test(back, refund_after_a_change);
	tcase_add_test(back, window);
	suite_add_tcase(s, back);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
