/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory: bring an allocator, ask what an engine took, and see what the three
 * full policies do with more keys than there is room for.
 *
 * Every key asks once under a limit that takes an hour to fill a bucket, so no
 * entry can be dropped for another key: the table fills up.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/weir.h>

#define KEYS 10000u

/* An allocator that counts. */
struct pool {
	uint64_t taken_bytes;
	uint64_t returned_bytes;
};

static void *
pool_alloc(size_t size, size_t align, void *context)
{
	struct pool *pool = context;
	void *memory;

	if (align < sizeof(void *))
		align = sizeof(void *);
	if (posix_memalign(&memory, align, size) != 0)
		return NULL;
	pool->taken_bytes += size;
	return memset(memory, 0, size);
}

static void
pool_free(void *memory, size_t size, void *context)
{
	struct pool *pool = context;

	pool->returned_bytes += size;
	free(memory);
}

/* Let KEYS different keys ask once each. => How many were passed. */
static uint64_t
flood(struct weir_worker *worker, uint32_t limit)
{
	uint64_t passed = 0;

	for (uint32_t key = 0; key < KEYS; key++) {
		struct weir_request request = {
			.key = &key,
			.packets = 1,
			.limit = limit,
		};

		if (weir_check(worker, &request, 0, NULL) == WEIR_PASS)
			passed++;
	}
	return passed;
}

/* What must hold after the flood. No key that has room is ever refused. */
static bool
judge(enum weir_full_policy policy, const struct weir_counters *c,
    uint64_t passed, uint64_t slots)
{
	uint64_t full = c->full_passed_packets + c->full_denied_packets;

	if (c->passed_packets > slots || c->denied_packets != 0 ||
	    c->passed_packets + full != KEYS ||
	    c->passed_packets + c->full_passed_packets != passed)
		return false;
	switch (policy) {
	case WEIR_FULL_DENY:
		return c->full_passed_packets == 0;
	case WEIR_FULL_ALLOW:
		return c->full_denied_packets == 0;
	case WEIR_FULL_SHARED:
		return c->full_passed_packets > 0 && c->full_denied_packets > 0;
	}
	return false;
}

static bool
run(struct weir_engine *engine, enum weir_full_policy policy)
{
	static const char *const names[] = { "deny", "allow", "shared" };
	struct weir_limit_params hourly = {
		.size = sizeof(hourly),
		.name = "hourly",
		.tokens = 1,
		.period_ns = 3600000000000,
		.capacity = 1,
	};
	struct weir_engine_info info;
	struct weir_counters counters;
	struct weir_worker *worker;
	uint32_t limit;
	uint64_t passed;

	if (weir_limit_add(engine, &hourly, &limit, NULL) != 0 ||
	    weir_worker_attach(engine, &worker) != 0)
		return false;
	passed = flood(worker, limit);
	weir_worker_detach(worker);
	weir_engine_describe(engine, &info);
	if (weir_engine_counters(engine, limit, &counters) != 0)
		return false;
	printf("%-6s: %" PRIu64 " slots of %" PRIu32 " bytes, %" PRIu64
	       " bytes in all; of %u keys %" PRIu64 " had room, "
	       "else %" PRIu64 " passed, %" PRIu64 " denied\n",
	    names[policy], info.slots, info.entry_bytes, info.memory_bytes,
	    KEYS, counters.passed_packets, counters.full_passed_packets,
	    counters.full_denied_packets);
	return judge(policy, &counters, passed, info.slots);
}

static bool
try_policy(enum weir_full_policy policy)
{
	struct pool pool = { 0, 0 };
	struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = 1000,
		.key_size = sizeof(uint32_t),
		.full_policy = policy,
		.alloc = pool_alloc,
		.free = pool_free,
		.alloc_context = &pool,
	};
	struct weir_engine *engine;
	bool fine;

	if (weir_engine_create(&params, &engine, NULL) != 0)
		return false;
	fine = run(engine, policy);
	if (weir_engine_destroy(engine) != 0)
		return false;
	return fine && pool.taken_bytes > 0 &&
	    pool.returned_bytes == pool.taken_bytes;
}

int
main(void)
{
	bool fine = try_policy(WEIR_FULL_DENY);

	fine = try_policy(WEIR_FULL_ALLOW) && fine;
	fine = try_policy(WEIR_FULL_SHARED) && fine;
	return fine ? 0 : 1;
}
