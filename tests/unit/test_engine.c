/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of an engine: what it refuses, what memory it takes and gives
 * back, and who keeps it alive.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../support.h"
#include "pages.h"

#define S NSEC_PER_SEC

static void
refused(struct weir_engine_params params, const char *field)
{
	struct weir_engine *engine = NULL;
	struct weir_error error = { NULL, NULL };
	int rc;

	rc = weir_engine_create(&params, &engine, &error);
	ck_assert_msg(rc == -EINVAL, "%s: got %d instead of -EINVAL", field,
	    rc);
	ck_assert_msg(error.field != NULL && strcmp(error.field, field) == 0,
	    "blames %s instead of %s",
	    error.field != NULL ? error.field : "nothing", field);
	ck_assert_ptr_nonnull(error.reason);
	ck_assert_int_eq(weir_engine_create(&params, &engine, NULL), -EINVAL);
}

static void *
no_alloc(size_t size, size_t align, void *context)
{
	(void)size;
	(void)align;
	(void)context;
	return NULL;
}

static void
no_free(void *memory, size_t size, void *context)
{
	(void)memory;
	(void)size;
	(void)context;
}

START_TEST(refusals_name_the_field)
{
	const struct weir_engine_params good = rig_params(100, 4);
	struct weir_engine_params p;

	p = good, p.size = 0;
	refused(p, "size");
	p = good, p.size = sizeof(p) - 1;
	refused(p, "size");
	p = good, p.size = sizeof(p) + 64;
	refused(p, "size");
	p = good, p.capacity = 0;
	refused(p, "capacity");
	p = good, p.capacity = WEIR_CAPACITY_MAX + 1;
	refused(p, "capacity");
	p = good, p.capacity = UINT64_MAX;
	refused(p, "capacity");
	p = good, p.key_size = 0;
	refused(p, "key_size");
	p = good, p.key_size = WEIR_KEY_SIZE_MAX + 1;
	refused(p, "key_size");
	p = good, p.key_size = UINT32_MAX;
	refused(p, "key_size");
	p = good, p.max_limits = WEIR_LIMITS_MAX + 1;
	refused(p, "max_limits");
	p = good, p.max_limits = UINT32_MAX;
	refused(p, "max_limits");
	p = good, p.full_policy = (enum weir_full_policy)3;
	refused(p, "full_policy");
	p = good, p.full_policy = (enum weir_full_policy)-1;
	refused(p, "full_policy");
	p = good, p.clock_skew_ns = 100 * NSEC_PER_MS + 1;
	refused(p, "clock_skew_ns");
	p = good, p.clock_skew_ns = UINT64_MAX;
	refused(p, "clock_skew_ns");
	p = good, p.alloc = no_alloc;
	refused(p, "free");
	p = good, p.free = no_free;
	refused(p, "alloc");
}
END_TEST

/* All that is given out, so that what comes back can be held against it. */
struct ledger {
	struct {
		void *memory;
		size_t size;
	} out[256];
	size_t bytes; /* given out and not back */
	unsigned calls;
	unsigned fail_at; /* the call that gets NULL; 0: none */
	bool wrong;
};

static void *
ledger_alloc(size_t size, size_t align, void *context)
{
	struct ledger *l = context;

	if (align == 0 || (align & (align - 1)) != 0 || size == 0)
		l->wrong = true;
	if (++l->calls == l->fail_at)
		return NULL;
	for (size_t i = 0; i < NELEM(l->out); i++) {
		void *memory = NULL;

		if (l->out[i].memory != NULL)
			continue;
		if (posix_memalign(&memory,
		    align < sizeof(void *) ? sizeof(void *) : align, size))
			return NULL;
		memset(memory, 0, size);
		l->out[i].memory = memory;
		l->out[i].size = size;
		l->bytes += size;
		return memory;
	}
	l->wrong = true;
	return NULL;
}

static void
ledger_free(void *memory, size_t size, void *context)
{
	struct ledger *l = context;

	for (size_t i = 0; i < NELEM(l->out); i++) {
		if (memory == NULL || l->out[i].memory != memory)
			continue;
		l->wrong |= l->out[i].size != size;
		l->bytes -= l->out[i].size;
		l->out[i].memory = NULL;
		free(memory);
		return;
	}
	l->wrong = true; /* never given out, or freed twice */
}

static struct weir_engine_params
ledger_params(struct ledger *ledger)
{
	struct weir_engine_params params = rig_params(1000, 16);

	params.alloc = ledger_alloc;
	params.free = ledger_free;
	params.alloc_context = ledger;
	return params;
}

START_TEST(memory_comes_back)
{
	struct ledger ledger = { 0 };
	struct weir_engine_params params = ledger_params(&ledger);
	struct weir_engine_info info;
	struct weir_worker *second;
	uint8_t key[16] = { 0 };
	uint32_t limit;
	struct rig rig;
	unsigned calls;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 1, WEIR_UNIT_PACKETS);
	weir_engine_describe(rig.engine, &info);
	ck_assert_uint_gt(ledger.bytes, info.slots * info.entry_bytes);
	ck_assert_uint_eq(info.memory_bytes, ledger.bytes);

	/* A decision takes no memory. */
	calls = ledger.calls;
	for (int i = 0; i < 5000; i++) {
		memcpy(key, &i, sizeof(i));
		ask(&rig, limit, key, 1, 0);
	}
	ck_assert_uint_eq(ledger.calls, calls);

	ck_assert_int_eq(weir_worker_attach(rig.engine, &second), 0);
	weir_worker_detach(second);
	rig_close(&rig);
	ck_assert_uint_eq(ledger.bytes, 0);
	ck_assert(!ledger.wrong);
}
END_TEST

/*
 * A denial writes nothing that other cores look at, nor does a request
 * that costs nothing. The table's pages are made read-only: even an attempt
 * to exchange a word for itself would end this test.
 */
START_TEST(denials_write_nothing)
{
	struct pages pages = { NULL, 0 };
	struct weir_engine_params params = rig_params(100000, 16);
	struct weir_request requests[64];
	struct weir_decision decisions[64];
	uint8_t keys[64][16], verdicts[64];
	struct weir_engine_info info;
	uint32_t limit;
	struct rig rig;

	params.alloc = pages_alloc;
	params.free = pages_free;
	params.alloc_context = &pages;
	rig_open(&rig, &params);
	weir_engine_describe(rig.engine, &info);
	ck_assert_uint_ge(pages.size, info.slots * info.entry_bytes);
	limit = limit_add(rig.engine, "l", 1, S, 3, WEIR_UNIT_PACKETS);
	for (int i = 0; i < 64; i++) {
		memset(keys[i], i, sizeof(keys[i]));
		requests[i] = request(limit, keys[i], 3);
	}
	/* half of the keys have an entry, and nothing left */
	weir_check_burst(rig.worker, requests, 32, 0, verdicts, NULL);

	ck_assert_int_eq(mprotect(pages.memory, pages.size, PROT_READ), 0);
	for (int n = 0; n < 1000; n++) {
		uint64_t now_ns = (uint64_t)n * (S - 1) / 1000;

		for (int i = 0; i < 64; i++)
			requests[i].packets = i < 32 ? n % 5 : n % 2 * 4;
		weir_check_burst(rig.worker, requests, 64, now_ns, verdicts,
		    n % 3 == 0 ? decisions : NULL);
		for (int i = 0; i < 64; i++)
			expect(verdicts[i] == (requests[i].packets == 0));
		expect(weir_check(rig.worker, &requests[n % 64], now_ns,
		    NULL) == (requests[n % 64].packets == 0));
	}
	/* full, for a second or for decades, and asked for nothing, or for
	 * more than there can be */
	for (int i = 0; i < 64; i++)
		requests[i].packets = i % 2 * 4;
	for (uint64_t years = 0; years < 500; years++)
		weir_check_burst(rig.worker, requests, 64,
		    3 * S + years * NSEC_PER_YEAR, verdicts,
		    years % 2 == 0 ? NULL : decisions);
	ck_assert_int_eq(mprotect(pages.memory, pages.size,
	    PROT_READ | PROT_WRITE), 0);
	for (int i = 0; i < 64; i++)
		requests[i].packets = 1;
	weir_check_burst(rig.worker, requests, 64, 3 * S, verdicts, NULL);
	for (int i = 0; i < 64; i++)
		ck_assert_uint_eq(verdicts[i], WEIR_PASS);
	rig_close(&rig);
}
END_TEST

/* Let the nth allocation fail, for every n: nothing breaks or is lost. */
START_TEST(no_memory)
{
	unsigned n = 0;
	int rc;

	do {
		struct ledger ledger = { .fail_at = ++n };
		struct weir_engine_params params = ledger_params(&ledger);
		struct weir_limit_params l = limit_params("l", 1, S, 1,
		    WEIR_UNIT_PACKETS);
		struct weir_engine *engine;
		struct weir_worker *worker;
		uint32_t limit;

		rc = weir_engine_create(&params, &engine, NULL);
		if (rc == 0) {
			rc = weir_worker_attach(engine, &worker);
			if (rc == 0) {
				rc = weir_limit_add(engine, &l, &limit, NULL);
				/* it is not there by halves */
				ck_assert_int_eq(
				    weir_limit_find(engine, "l", &limit),
				    rc == 0 ? 0 : -ENOENT);
				weir_worker_detach(worker);
			}
			ck_assert_int_eq(weir_engine_destroy(engine), 0);
		}
		ck_assert(rc == 0 || rc == -ENOMEM);
		/* a failure that was met must not pass for success */
		ck_assert(rc != 0 || ledger.calls < n);
		ck_assert_uint_eq(ledger.bytes, 0);
		ck_assert(!ledger.wrong);
		ck_assert_uint_lt(n, 100);
	} while (rc != 0);
	ck_assert_uint_gt(n, 1); /* else the hooks were never called */
}
END_TEST

/* B074: sizes that do not fit. */
START_TEST(more_than_there_is)
{
	struct weir_engine_params params = rig_params(WEIR_CAPACITY_MAX, 40);
	struct weir_engine *engine;

	params.alloc = no_alloc;
	params.free = no_free;
	ck_assert_int_eq(weir_engine_create(&params, &engine, NULL), -ENOMEM);
}
END_TEST

START_TEST(description)
{
	for (uint32_t size = 1; size <= WEIR_KEY_SIZE_MAX; size++)
		for (uint64_t capacity = 1; capacity < 10000;
		     capacity = capacity * 5 + 1) {
			struct weir_engine_params params =
			    rig_params(capacity, size);
			struct weir_engine_info info;
			struct rig rig;

			rig_open(&rig, &params);
			weir_engine_describe(rig.engine, &info);
			ck_assert_uint_ge(info.slots, 2 * capacity);
			ck_assert_uint_eq(info.entry_bytes,
			    size <= 16 ? 32 : 64);
			ck_assert_uint_ge(info.memory_bytes,
			    info.slots * info.entry_bytes);
			ck_assert_uint_ge(info.window_slots, 1);
			ck_assert_uint_le(info.window_slots, info.slots);
			rig_close(&rig);
		}
}
END_TEST

START_TEST(destroy_waits_for_workers)
{
	struct weir_engine_params params = rig_params(100, 4);
	struct weir_worker *second;
	uint32_t key = 0, limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 1, WEIR_UNIT_PACKETS);
	ck_assert_int_eq(weir_worker_attach(rig.engine, &second), 0);
	ck_assert_int_eq(weir_engine_destroy(rig.engine), -EBUSY);
	weir_worker_detach(second);
	ck_assert_int_eq(weir_engine_destroy(rig.engine), -EBUSY);
	/* and nothing happened */
	ck_assert_int_eq(ask(&rig, limit, &key, 1, 0).verdict, WEIR_PASS);
	ck_assert_int_eq(ask(&rig, limit, &key, 1, 0).verdict, WEIR_DENY);
	rig_close(&rig);
	ck_assert_int_eq(weir_engine_destroy(NULL), 0);
	weir_worker_detach(NULL);
}
END_TEST

/* One thread, many engines and many workers of one. */
START_TEST(several_at_once)
{
	struct weir_engine_params params = rig_params(100, 4);
	struct weir_worker *more[20];
	struct rig rigs[8];
	uint32_t limits[8], key = 7;

	for (int i = 0; i < 8; i++) {
		rig_open(&rigs[i], &params);
		limits[i] = limit_add(rigs[i].engine, "l", 1, S,
		    (uint64_t)i + 1, WEIR_UNIT_PACKETS);
	}
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(
		    weir_worker_attach(rigs[3].engine, &more[i]), 0);
	/* the same key, a bucket in each engine */
	for (int i = 0; i < 8; i++)
		for (int n = 0; n < 10; n++)
			ck_assert_int_eq(
			    ask(&rigs[i], limits[i], &key, 1, 0).verdict,
			    n <= i);
	/* one bucket for all workers of one */
	for (int i = 0; i < 20; i++) {
		struct weir_request r = request(limits[3], &key, 1);

		ck_assert_int_eq(weir_check(more[i], &r, 0, NULL), WEIR_DENY);
		ck_assert_int_eq(weir_check(more[i], &r,
		    (uint64_t)(i + 1) * S, NULL), WEIR_PASS);
		weir_worker_quiesce(more[i]);
	}
	for (int i = 0; i < 20; i++)
		weir_worker_detach(more[i]);
	for (int i = 7; i >= 0; i--)
		rig_close(&rigs[i]);
}
END_TEST

/* Offline, nobody waits for a worker; back online it works as before. */
START_TEST(offline_and_back)
{
	struct weir_engine_params params = rig_params(100, 4);
	uint32_t key = 1, limit;
	struct rig rig;

	rig_open(&rig, &params);
	limit = limit_add(rig.engine, "l", 1, S, 2, WEIR_UNIT_PACKETS);
	ck_assert_int_eq(ask(&rig, limit, &key, 1, 0).verdict, WEIR_PASS);
	weir_worker_offline(rig.worker);
	limit_add(rig.engine, "m", 1, S, 2, WEIR_UNIT_PACKETS);
	weir_worker_online(rig.worker);
	weir_worker_quiesce(rig.worker);
	ck_assert_int_eq(ask(&rig, limit, &key, 1, 0).verdict, WEIR_PASS);
	ck_assert_int_eq(ask(&rig, limit, &key, 1, 0).verdict, WEIR_DENY);
	rig_close(&rig);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("engine");
	TCase *tc = tcase_create("life");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, refusals_name_the_field);
	tcase_add_test(tc, memory_comes_back);
	tcase_add_test(tc, denials_write_nothing);
	tcase_add_test(tc, no_memory);
	tcase_add_test(tc, more_than_there_is);
	tcase_add_test(tc, description);
	tcase_add_test(tc, destroy_waits_for_workers);
	tcase_add_test(tc, several_at_once);
	tcase_add_test(tc, offline_and_back);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
