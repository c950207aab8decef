/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building an engine and taking it down.
 */
#include "engine.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "worker.h"

#define LIMITS_DEFAULT 64u
#define SKEW_DEFAULT_NS 10000u
#define SKEW_MAX_NS 100000000u

static const char *
params_fault(const struct weir_engine_params *p, const char **reason)
{
	if (p->capacity == 0 || p->capacity > WEIR_CAPACITY_MAX) {
		*reason = "must be 1 to 2^32 keys";
		return "capacity";
	}
	if (p->key_size == 0 || p->key_size > WEIR_KEY_SIZE_MAX) {
		*reason = "must be 1 to 40 bytes";
		return "key_size";
	}
	if (p->wide && p->key_size > WEIR_KEY_SIZE_WIDE_MAX) {
		*reason = "must be at most 32 bytes in wide entries";
		return "key_size";
	}
	if (p->max_limits > WEIR_LIMITS_MAX) {
		*reason = "must be at most 65535";
		return "max_limits";
	}
	if ((unsigned)p->full_policy > WEIR_FULL_SHARED) {
		*reason = "must be deny, allow or shared";
		return "full_policy";
	}
	if (p->clock_skew_ns > SKEW_MAX_NS) {
		*reason = "must be at most 100 ms";
		return "clock_skew_ns";
	}
	if (!p->alloc != !p->free) {
		*reason = "set both hooks or neither";
		return p->alloc ? "free" : "alloc";
	}
	return NULL;
}

static unsigned
key_words(uint32_t key_size, bool wide)
{
	if (wide)
		return KEY_WORDS_WIDE;
	return key_size > KEY_WORDS_SMALL * sizeof(uint64_t) ?
	    KEY_WORDS_MAX : KEY_WORDS_SMALL;
}

static int
table_create(struct weir_engine *e, struct table *t, uint64_t slots, bool wide)
{
	unsigned words = key_words(e->key_size, wide);
	size_t bytes = table_bytes(slots, table_entry_bytes(words));
	void *memory = bytes ? memory_take(&e->memory, bytes) : NULL;

	if (!memory)
		return -ENOMEM;
	table_init(t, memory, slots, words);
	return 0;
}

static void
table_destroy(struct weir_engine *e, struct table *t)
{
	memory_give(&e->memory, t->base,
	    (t->line_mask + 1) * (size_t)LINE_BYTES);
}

/* Everything but the engine itself; what failed half-way, engine_free() ends. */
static int
engine_build(struct weir_engine *e, uint64_t capacity, bool wide)
{
	struct limit_set *none;

	if (table_create(e, &e->table, table_slots_for(capacity), wide))
		return -ENOMEM;
	if (e->full_policy == WEIR_FULL_SHARED && table_create(e, &e->overflow,
	    table_slots_for((uint64_t)e->max_limits * OVERFLOW_BUCKETS),
	    wide))
		return -ENOMEM;
	e->gone = memory_take(&e->memory, e->max_limits * sizeof(*e->gone));
	e->removing = memory_take(&e->memory,
	    e->max_limits * sizeof(*e->removing));
	none = memory_take(&e->memory, sizeof(*none));
	atomic_init(&e->limits, none);
	return e->gone && e->removing && none ? 0 : -ENOMEM;
}

static void
limits_free(struct weir_engine *e, struct limit_set *set)
{
	if (!set)
		return;
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->limit[i])
			limit_free(&e->memory, set->limit[i]);
	}
	memory_give(&e->memory, set, limit_set_size(set->count));
}

static void
engine_free(struct weir_engine *e)
{
	struct memory memory = {
		.free = e->memory.free,
		.context = e->memory.context,
	};

	/* relaxed: nobody else uses the engine now. */
	retired_free(&e->memory, &e->retired);
	limits_free(e, atomic_load_explicit(&e->limits, memory_order_relaxed));
	memory_give(&e->memory, e->removing,
	    e->max_limits * sizeof(*e->removing));
	memory_give(&e->memory, e->gone, e->max_limits * sizeof(*e->gone));
	table_destroy(e, &e->overflow);
	table_destroy(e, &e->table);
	pthread_mutex_destroy(&e->lock);
	memory_give(&memory, e, sizeof(*e));
}

/* The kernel's generator does not fail once it is seeded, and it is then
 * interrupted by no signal for so few bytes. */
static uint64_t
random_seed(void)
{
	uint64_t seed;

	while (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		;
	return seed;
}

/* The struct as it was before the first member was added to it. */
#define PARAMS_SIZE_1 offsetof(struct weir_engine_params, wide)

/* Read what a caller gave, who may know fewer members; those are 0. */
static int
params_read(struct weir_engine_params *params,
    const struct weir_engine_params *given, struct weir_error *error)
{
	struct weir_error fault = {
		"size", "must be sizeof(struct weir_engine_params)",
	};

	*params = (struct weir_engine_params){0};
	if (given->size == sizeof(*params) || given->size == PARAMS_SIZE_1) {
		memcpy(params, given, given->size);
		fault = (struct weir_error){0};
		fault.field = params_fault(params, &fault.reason);
	}
	if (error)
		*error = fault;
	return fault.field ? -EINVAL : 0;
}

static int
engine_new(const struct weir_engine_params *params,
    struct weir_engine **engine)
{
	struct memory memory;
	struct weir_engine *e;

	memory_init(&memory, params->alloc, params->free,
	    params->alloc_context);
	e = memory_take(&memory, sizeof(*e));
	if (!e)
		return -ENOMEM;
	memory_init(&e->memory, params->alloc, params->free,
	    params->alloc_context);
	atomic_init(&e->memory.bytes, sizeof(*e));
	pthread_mutex_init(&e->lock, NULL);
	e->key_size = params->key_size;
	e->max_limits = params->max_limits ? params->max_limits :
	    LIMITS_DEFAULT;
	e->full_policy = params->full_policy;
	e->hash_seed = params->seed_fixed ? params->hash_seed : random_seed();
	e->clock_skew_ns = params->clock_skew_ns ? params->clock_skew_ns :
	    SKEW_DEFAULT_NS;
	if (engine_build(e, params->capacity, params->wide)) {
		engine_free(e);
		return -ENOMEM;
	}
	*engine = e;
	return 0;
}

int
weir_engine_create(const struct weir_engine_params *given,
    struct weir_engine **engine, struct weir_error *error)
{
	struct weir_engine_params params;
	int rc = params_read(&params, given, error);

	return rc ? rc : engine_new(&params, engine);
}

int
weir_engine_destroy(struct weir_engine *engine)
{
	bool busy;

	if (!engine)
		return 0;
	pthread_mutex_lock(&engine->lock);
	busy = engine->workers != NULL;
	pthread_mutex_unlock(&engine->lock);
	if (busy)
		return -EBUSY;
	engine_free(engine);
	return 0;
}

void
weir_engine_describe(const struct weir_engine *engine,
    struct weir_engine_info *info)
{
	const struct table *t = &engine->table;

	info->slots = (t->line_mask + 1) * t->line_slots;
	info->entry_bytes = t->entry_bytes;
	info->window_slots = WINDOW_SLOTS;
	/* relaxed: a statistic. */
	info->memory_bytes = atomic_load_explicit(&engine->memory.bytes,
	    memory_order_relaxed);
}
