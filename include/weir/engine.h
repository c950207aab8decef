/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: a table of entries and the limits they are held to.
 */
#ifndef WEIR_ENGINE_H
#define WEIR_ENGINE_H

#include <weir/base.h>

WEIR_BEGIN_DECLS

#define WEIR_KEY_SIZE_MAX 40u      /* an IPv6 5-tuple has 37 bytes */
#define WEIR_KEY_SIZE_WIDE_MAX 32u
#define WEIR_CAPACITY_MAX (1ull << 32)
#define WEIR_LIMITS_MAX 65535u

/*
 * What happens to a key that finds no room: every slot it may use holds an
 * entry whose bucket is not full again, so none may be dropped. All three
 * are decided in bounded time and counted apart (struct weir_counters).
 */
enum weir_full_policy {
	WEIR_FULL_DENY = 0, /* refuse: closed */
	WEIR_FULL_ALLOW,    /* let pass: open, by explicit choice only */
	WEIR_FULL_SHARED,   /* strangers share a few buckets of the same limit */
};

/*
 * How to build an engine. Set .size = sizeof(struct weir_engine_params) and
 * zero the rest; then set capacity and key_size and whatever else you need.
 * Zero always means the default. A struct that grew in a later version is
 * told apart by .size.
 */
struct weir_engine_params {
	size_t size;       /* sizeof(struct weir_engine_params) */
	uint64_t capacity; /* keys to hold at once, 1..WEIR_CAPACITY_MAX;
	                      the table has at least four times as many
	                      slots, and room for more keys as it fills up */
	uint32_t key_size; /* bytes of every key, 1..WEIR_KEY_SIZE_MAX; up to
	                      16 an entry takes 32 bytes, beyond that 64 */
	uint32_t max_limits; /* limits at most, 1..WEIR_LIMITS_MAX; 0: 64 */
	enum weir_full_policy full_policy;
	bool seed_fixed;    /* use hash_seed; for tests only: who knows the
	                       seed can aim keys at one slot */
	uint64_t hash_seed; /* otherwise the seed is drawn from the kernel */
	/*
	 * How far the clocks of two workers may lie apart, in ns, at most
	 * 100,000,000; 0: 10,000.
	 * An entry is dropped only when its bucket has been full for that
	 * long, so that no worker whose clock is late can meet the key anew
	 * before it was full. Invariant TSCs need far less than the default.
	 */
	uint64_t clock_skew_ns;
	/*
	 * Where memory comes from; both or neither. alloc() returns zeroed
	 * memory aligned to align (a power of two), or NULL. The default asks
	 * for explicit huge pages, then for transparent ones, then takes what
	 * there is, and touches every page. Called by control calls only,
	 * never by a decision; by several threads at once, if they make
	 * control calls at once, and with the engine's lock held, so the hooks
	 * may not call the same engine.
	 */
	void *(*alloc)(size_t size, size_t align, void *context);
	void (*free)(void *memory, size_t size, void *context);
	void *alloc_context;
	/*
	 * Entries of 64 bytes whatever the key, which is of 32 bytes at most,
	 * with room for the state of every algorithm. Token buckets, fixed
	 * windows and queues do without; the rest need it.
	 */
	bool wide;
};

/* What an engine is made of, for capacity planning and for the curious. */
struct weir_engine_info {
	uint64_t slots;        /* entries the table can hold */
	uint64_t memory_bytes; /* everything taken from alloc() so far */
	uint32_t entry_bytes;  /* 32 or 64 */
	uint32_t window_slots; /* slots one key may live in; a decision looks
	                          through them once, for a new key a few
	                          times */
};

/*
 * Create an engine. Takes all memory of the table at once.
 *
 * => 0 and *engine, or
 *    -EINVAL	a parameter is out of range: *error (if not NULL) names it
 *    -ENOMEM	alloc() returned NULL; nothing is kept
 * => Any thread.
 */
WEIR_API int
weir_engine_create(const struct weir_engine_params *params,
    struct weir_engine **engine, struct weir_error *error);

/*
 * Destroy an engine and give all its memory back.
 *
 * => 0, or -EBUSY while a worker is attached: then nothing happened.
 * => Any thread, once, when no other call uses the engine. NULL is ignored.
 */
WEIR_API int
weir_engine_destroy(struct weir_engine *engine);

/*
 * Describe an engine. => Any thread, at any time.
 */
WEIR_API void
weir_engine_describe(const struct weir_engine *engine,
    struct weir_engine_info *info);

WEIR_END_DECLS

#endif
