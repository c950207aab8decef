/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peers: what one builds from DPDK's parts. A key is looked up in rte_hash
 * (32 at a time, the mode in which readers take no lock), its position names a
 * meter in an array, and rte_meter decides.
 *
 * rte_meter's update is not atomic. Without a lock a meter may only be used by
 * one thread; with a spinlock in each, threads may share them as weir's
 * workers share entries. Both are measured, and both get what helps them: the
 * CRC hash, 32-byte meters that never straddle a line, all meters of a packet
 * burst prefetched before the first is used, and the same pages as weir.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rte_common.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_hash.h>
#include <rte_hash_crc.h>
#include <rte_malloc.h>
#include <rte_meter.h>
#include <rte_prefetch.h>
#include <rte_spinlock.h>

#include "cases.h"
#include "eal.h"
#include "pages.h"
#include "workload.h"

#define HEAP "weir-bench"
/* At load one half: per key 2 x (key 32, bucket 8, index 4, meter 32), and
 * something for the powers of two that buckets and index are rounded up to. */
#define HEAP_BYTES_PER_KEY 192u
#define HEAP_BYTES_MIN (16u << 20)

struct meter {
	struct rte_meter_srtcm srtcm;
	rte_spinlock_t lock; /* in one of the cases */
} __rte_aligned(32);

struct peer {
	void *memory; /* of the heap */
	size_t memory_bytes;
	bool heap_made;
	bool heap_filled;
	struct rte_hash *hash;
	struct meter *meters; /* by position in the hash */
	struct rte_meter_srtcm_profile profile;
	uint64_t n_keys;
};

static const char *
heap_make(struct peer *p)
{
	p->memory_bytes = p->n_keys * HEAP_BYTES_PER_KEY + HEAP_BYTES_MIN;
	p->memory = pages_alloc(&p->memory_bytes);
	if (!p->memory)
		return "no memory for the heap";
	if (rte_malloc_heap_create(HEAP) != 0)
		return "rte_malloc_heap_create() failed";
	p->heap_made = true;
	if (rte_malloc_heap_memory_add(HEAP, p->memory, p->memory_bytes, NULL,
		p->memory_bytes / PAGES_HUGE_BYTES, PAGES_HUGE_BYTES) != 0)
		return "rte_malloc_heap_memory_add() failed";
	p->heap_filled = true;
	return NULL;
}

static const char *
table_make(struct peer *p)
{
	int socket = rte_malloc_heap_get_socket(HEAP);
	const struct rte_hash_parameters params = {
		.name = "weir-bench",
		.entries = (uint32_t)p->n_keys * 2,
		.key_len = sizeof(struct bench_key),
		.hash_func = rte_hash_crc,
		.socket_id = socket,
		.extra_flag = RTE_HASH_EXTRA_FLAGS_RW_CONCURRENCY_LF,
	};

	p->hash = rte_hash_create(&params);
	if (!p->hash)
		return "rte_hash_create() failed";
	/* Positions lie in 0..entries. */
	p->meters = rte_zmalloc_socket("meters",
	    ((size_t)params.entries + 1) * sizeof(*p->meters),
	    RTE_CACHE_LINE_SIZE, socket);
	return p->meters ? NULL : "no memory for the meters";
}

static const char *
table_fill(struct peer *p)
{
	struct rte_meter_srtcm_params params = {
		.cir = WORKLOAD_RATE_BYTES_PS,
		.cbs = WORKLOAD_CAPACITY_BYTES,
	};

	if (rte_meter_srtcm_profile_config(&p->profile, &params) != 0)
		return "rte_meter_srtcm_profile_config() failed";
	for (uint64_t i = 0; i < p->n_keys; i++) {
		struct bench_key key = bench_key_make(i);
		int32_t position = rte_hash_add_key(p->hash, &key);
		struct meter *m;

		if (position < 0)
			return "a key found no room";
		m = &p->meters[position];
		if (rte_meter_srtcm_config(&m->srtcm, &p->profile) != 0)
			return "rte_meter_srtcm_config() failed";
		rte_spinlock_init(&m->lock);
		if (rte_meter_srtcm_color_blind_check(&m->srtcm, &p->profile,
			rte_rdtsc(), WORKLOAD_FILL_BYTES) != RTE_COLOR_GREEN)
			return "a meter did not let the first packet pass";
	}
	return NULL;
}

static void
peer_teardown(void *state)
{
	struct peer *p = state;

	rte_free(p->meters);
	rte_hash_free(p->hash);
	if (p->heap_filled)
		rte_malloc_heap_memory_remove(HEAP, p->memory, p->memory_bytes);
	if (p->heap_made)
		rte_malloc_heap_destroy(HEAP);
	if (p->memory)
		pages_free(p->memory, p->memory_bytes);
	free(p);
}

static void
table_describe(const struct peer *p, struct bench_table *table)
{
	struct rte_malloc_socket_stats stats;

	if (rte_malloc_get_socket_stats(rte_malloc_heap_get_socket(HEAP),
		&stats) == 0)
		table->bytes = stats.heap_allocsz_bytes;
	/* rte_hash rounds its buckets up to a power of two. */
	table->slots = rte_align64pow2(p->n_keys * 2);
}

static const char *
peer_setup(uint64_t n_keys, void **state, struct bench_table *table)
{
	const char *error = eal_start();
	struct peer *p;

	if (error)
		return error;
	p = calloc(1, sizeof(*p));
	if (!p)
		return "no memory";
	p->n_keys = n_keys;
	error = heap_make(p);
	if (!error)
		error = table_make(p);
	if (!error)
		error = table_fill(p);
	if (error) {
		peer_teardown(p);
		return error;
	}
	table_describe(p, table);
	*state = p;
	return NULL;
}

static inline bool
meter_pass(struct peer *p, struct meter *m, uint64_t now_tsc, bool locked)
{
	enum rte_color color;

	if (locked)
		rte_spinlock_lock(&m->lock);
	color = rte_meter_srtcm_color_blind_check(&m->srtcm, &p->profile,
	    now_tsc, WORKLOAD_PACKET_BYTES);
	if (locked)
		rte_spinlock_unlock(&m->lock);
	return color == RTE_COLOR_GREEN;
}

/* `locked` and `prefetched` are constants where this is inlined. */
static inline __attribute__((always_inline)) uint64_t
peer_run(struct peer *p, const struct bench_key *keys, size_t n, bool locked,
    bool prefetched)
{
	const void *pointers[BENCH_BURST];
	int32_t positions[BENCH_BURST];
	uint64_t passed = 0;

	for (size_t i = 0; i < n; i += BENCH_BURST) {
		uint64_t now_tsc = rte_rdtsc();

		for (size_t j = 0; j < BENCH_BURST; j++)
			pointers[j] = &keys[i + j];
		if (rte_hash_lookup_bulk(p->hash, pointers, BENCH_BURST,
			positions) != 0)
			return 0;
		for (size_t j = 0; prefetched && j < BENCH_BURST; j++) {
			if (positions[j] >= 0)
				rte_prefetch0(&p->meters[positions[j]]);
		}
		for (size_t j = 0; j < BENCH_BURST; j++) {
			if (positions[j] >= 0)
				passed += meter_pass(p,
				    &p->meters[positions[j]], now_tsc, locked);
		}
	}
	return passed;
}

static uint64_t
meter_run(void *state, const struct bench_key *keys, size_t n)
{
	return peer_run(state, keys, n, false, false);
}

static uint64_t
spinlock_run(void *state, const struct bench_key *keys, size_t n)
{
	return peer_run(state, keys, n, true, false);
}

static uint64_t
prefetch_run(void *state, const struct bench_key *keys, size_t n)
{
	return peer_run(state, keys, n, true, true);
}

/* Keys are found, and their meters show that what passed was taken. That all
 * decisions were green has been counted by the harness. */
static const char *
peer_verify(void *state, uint64_t decisions)
{
	const struct peer *p = state;

	(void)decisions;
	for (unsigned i = 0; i < WORKLOAD_SAMPLES; i++) {
		struct bench_key key =
		    bench_key_make(workload_sample(p->n_keys, i));
		int32_t position = rte_hash_lookup(p->hash, &key);

		if (position < 0)
			return "a key was lost";
		if (p->meters[position].srtcm.tc >
		    WORKLOAD_CAPACITY_BYTES - WORKLOAD_FILL_BYTES / 2)
			return "a meter did not take what it let pass";
	}
	return NULL;
}

void
bench_rte_close(void)
{
	eal_stop();
}

const struct bench_case bench_rte_hash_meter = {
	.name = "peer/rte_hash_meter",
	.setup = peer_setup,
	.run = meter_run,
	.verify = peer_verify,
	.teardown = peer_teardown,
};

const struct bench_case bench_rte_hash_meter_prefetch = {
	.name = "peer/rte_hash_meter_spinlock_prefetch",
	.setup = peer_setup,
	.run = prefetch_run,
	.verify = peer_verify,
	.teardown = peer_teardown,
};

const struct bench_case bench_rte_hash_meter_spinlock = {
	.name = "peer/rte_hash_meter_spinlock",
	.setup = peer_setup,
	.run = spinlock_run,
	.verify = peer_verify,
	.teardown = peer_teardown,
};
