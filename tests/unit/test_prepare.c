/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet bursts in two halves, by hand: their queue, what may happen between
 * the halves, and that the first one changes nothing. (That they are decided
 * like whole ones, whatever they hold, is test_ways.c.)
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../support.h"

#define S NSEC_PER_SEC

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

/*
 * There is no limit any more, and a new one of the same number is not meant. Of
 * two numbers one is given again at once.
 */
START_TEST(limit_removed_in_between)
{
	struct weir_engine_params params = rig_params(16, 1);
	struct weir_request requests[3];
	struct weir_decision decisions[3];
	uint8_t verdicts[3] = { 1, 1, 1 };
	uint32_t kept, gone, again = UINT32_MAX;
	struct weir_counters c;
	struct rig small;

	params.max_limits = 2;
	rig_open(&small, &params);
	kept = limit_add(small.engine, "kept", 1, S, 1, WEIR_UNIT_PACKETS);
	for (int turn = 0; turn < 2; turn++) {
		gone = limit_add(small.engine, "gone", 1, S, 5,
		    WEIR_UNIT_PACKETS);
		requests[0] = request(gone, "k", 1);
		requests[1] = request(kept, "k", 1);
		requests[2] = request(gone, "k", 0);
		ck_assert_int_eq(weir_prepare(small.worker, requests, 3), 0);
		ck_assert_int_eq(weir_limit_remove(small.engine, gone), 0);
		if (turn == 1) {
			again = limit_add(small.engine, "again", 1, S, 5,
			    WEIR_UNIT_PACKETS);
			ck_assert_uint_eq(again, gone);
		}
		ck_assert_uint_eq(weir_decide(small.worker,
		    (uint64_t)turn * S, verdicts, decisions), 3);
		for (int i = 0; i < 3; i++) {
			ck_assert_uint_eq(verdicts[i], i == 1);
			ck_assert_int_eq(decisions[i].verdict, verdicts[i]);
			ck_assert_int_eq(decisions[i].decided_by, i == 1 ?
			    WEIR_BY_BUCKET : WEIR_BY_NO_LIMIT);
		}
		ck_assert_uint_eq(weir_engine_unknown_limits(small.engine),
		    (uint64_t)(turn + 1) * 2);
	}
	ck_assert_int_eq(weir_engine_counters(small.engine, again, &c), 0);
	ck_assert_uint_eq(c.passed_packets + c.denied_packets, 0);
	rig_close(&small);
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
	TCase *tc = tcase_create("halves");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, sizes_that_are_refused);
	tcase_add_test(tc, two_at_most_in_a_queue);
	tcase_add_test(tc, nothing_waiting);
	tcase_add_test(tc, prepare_changes_nothing);
	tcase_add_test(tc, decided_when_it_is_decided);
	tcase_add_test(tc, limit_added_in_between);
	tcase_add_test(tc, limit_changed_in_between);
	tcase_add_test(tc, limit_removed_in_between);
	tcase_add_test(tc, detach_drops_what_waits);
	tcase_add_test(tc, queues_of_two_workers);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
