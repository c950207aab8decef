/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking at a bucket without taking from it.
 */
#include <string.h>
#include <sys/mman.h>

#include "../support.h"

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

struct pages {
	void *memory;
	size_t size;
};

static void *
pages_alloc(size_t size, size_t align, void *context)
{
	struct pages *largest = context;
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)align; /* a page's will do */
	if (memory == MAP_FAILED)
		return NULL;
	if (size > largest->size)
		*largest = (struct pages){ memory, size };
	return memory;
}

static void
pages_free(void *memory, size_t size, void *context)
{
	(void)context;
	munmap(memory, size);
}

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

static Suite *
suite(void)
{
	Suite *s = suite_create("adjust");
	TCase *look = tcase_create("peek");

	tcase_set_timeout(look, 60);
	tcase_add_checked_fixture(look, NULL, close_rig);
	tcase_add_test(look, peek_is_the_next_check);
	tcase_add_test(look, peek_without_a_limit);
	tcase_add_test(look, peek_writes_nothing);
	tcase_add_test(look, peek_in_a_full_table);
	suite_add_tcase(s, look);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
