/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Adding limits, changing and removing them, and reading them back.
 */
#include "limit.h"

#include <errno.h>
#include <string.h>

#include "algorithm.h"
#include "hash.h"
#include "worker.h"

int
refuse(struct weir_error *error, const char *field, const char *reason)
{
	if (error)
		*error = (struct weir_error){field, reason};
	return -EINVAL;
}

/* The struct as it was before the first member was added to it. */
#define PARAMS_SIZE_1 offsetof(struct weir_limit_params, debt)

static bool
params_size_known(size_t size)
{
	return size == sizeof(struct weir_limit_params) ||
	    size == PARAMS_SIZE_1;
}

/*
 * Read what a caller gave, who may know fewer members; those are 0. Refuse what
 * is wrong with it, but for the rate.
 */
static int
params_read(struct weir_limit_params *params,
    const struct weir_limit_params *given, struct weir_error *error)
{
	size_t length;

	if (error)
		*error = (struct weir_error){0};
	if (!params_size_known(given->size))
		return refuse(error, "size",
		    "must be sizeof(struct weir_limit_params)");
	*params = (struct weir_limit_params){0};
	memcpy(params, given, given->size);
	length = params->name ?
	    strnlen(params->name, WEIR_LIMIT_NAME_MAX + 1) : 0;
	if (length == 0 || length > WEIR_LIMIT_NAME_MAX)
		return refuse(error, "name", "must have 1 to 63 bytes");
	if (params->unit != WEIR_UNIT_PACKETS &&
	    params->unit != WEIR_UNIT_BYTES)
		return refuse(error, "unit", "must be packets or bytes");
	if (!algorithm_of(params->algorithm))
		return refuse(error, "algorithm", "is none that there is");
	return 0;
}

static void
limit_fill(struct limit *limit, const struct weir_limit_params *params,
    char *name)
{
	limit->name = name;
	limit->params = *params;
	limit->params.name = name;
	limit->unit = params->unit;
	limit->algorithm = algorithm_of(params->algorithm);
}

void
limit_free(struct memory *memory, const struct limit *limit)
{
	memory_give(memory, limit->name, LIMIT_NAME_BYTES);
	memory_give(memory, (void *)(uintptr_t)limit, sizeof(*limit));
}

/* A limit and its name. => NULL: no memory. */
static struct limit *
limit_new(struct weir_engine *engine)
{
	struct limit *limit = memory_take(&engine->memory, sizeof(*limit));

	if (!limit)
		return NULL;
	limit->name = memory_take(&engine->memory, LIMIT_NAME_BYTES);
	if (limit->name)
		return limit;
	memory_give(&engine->memory, limit, sizeof(*limit));
	return NULL;
}

/* Constants that depend on the engine and on the place in it. */
static void
limit_settle(struct limit *limit, const struct weir_engine *engine,
    uint32_t id)
{
	limit->id = id;
	limit->hash_seed = hash_seed_of(engine->hash_seed, id);
	limit->skew_ns = engine->clock_skew_ns;
	for (unsigned i = 0; i < limit->algorithm->eras; i++)
		limit->skew[i] = rate_skew(&limit->rate[i], limit->skew_ns);
}

static struct limit_set *
set_current(struct weir_engine *engine)
{
	/* relaxed: engine->lock is held, and orders it. */
	return atomic_load_explicit(&engine->limits, memory_order_relaxed);
}

static const struct limit *
set_find(const struct limit_set *set, const char *name)
{
	for (uint32_t i = 0; i < set->count; i++) {
		if (set->limit[i] && strcmp(set->limit[i]->name, name) == 0)
			return set->limit[i];
	}
	return NULL;
}

/* A copy of the current set, for count limits. => NULL: no memory. */
static struct limit_set *
set_copy(struct weir_engine *engine, uint32_t count)
{
	const struct limit_set *old = set_current(engine);
	struct limit_set *new = memory_take(&engine->memory,
	    limit_set_size(count));

	if (!new)
		return NULL;
	memcpy(new->limit, old->limit, old->count * sizeof(old->limit[0]));
	new->count = count;
	return new;
}

/* E1 release -> acquire in check.c: the set and its limits. */
static void
set_publish(struct weir_engine *engine, struct limit_set *new)
{
	atomic_store_explicit(&engine->limits, new, memory_order_release);
}

/*
 * A number for a new limit: one that was never given while there are any, for
 * somebody may still ask by the number of a limit that was removed. => -ENOSPC
 */
static int
set_place(const struct weir_engine *engine, const struct limit_set *set,
    uint32_t *id)
{
	if (set->count < engine->max_limits) {
		*id = set->count;
		return 0;
	}
	for (*id = 0; *id < set->count; ++*id) {
		if (!set->limit[*id] && !engine->removing[*id])
			return 0;
	}
	return -ENOSPC;
}

/*
 * Publish a set with one more limit in it. => engine->lock is held; *replaced
 * is the old set, which workers may still hold.
 */
static int
set_append(struct weir_engine *engine, struct limit *limit,
    struct limit_set **replaced)
{
	struct limit_set *old = set_current(engine), *new;
	uint32_t id;
	int rc;

	if (set_find(old, limit->name))
		return -EEXIST;
	rc = set_place(engine, old, &id);
	if (rc)
		return rc;
	new = set_copy(engine, id < old->count ? old->count : id + 1);
	if (!new)
		return -ENOMEM;
	limit_settle(limit, engine, id);
	limit->serial = engine->next_serial++;
	new->limit[id] = limit;
	set_publish(engine, new);
	*replaced = old;
	return 0;
}

/* => *id; the limit itself may be changed and freed as soon as it is there. */
static int
limit_publish(struct weir_engine *engine, struct limit *limit, uint32_t *id)
{
	struct limit_set *replaced;
	int rc;

	pthread_mutex_lock(&engine->lock);
	rc = set_append(engine, limit, &replaced);
	if (rc == 0)
		*id = limit->id;
	pthread_mutex_unlock(&engine->lock);
	if (rc)
		return rc;
	workers_synchronize(engine);
	memory_give(&engine->memory, replaced, limit_set_size(replaced->count));
	return 0;
}

static int
algorithm_refusal(const struct weir_engine *engine,
    const struct weir_limit_params *params, struct weir_error *error)
{
	if (algorithm_of(params->algorithm)->words > 1 &&
	    !table_is_wide(&engine->table))
		return refuse(error, "algorithm",
		    "needs an engine with wide entries");
	return 0;
}

int
weir_limit_add(struct weir_engine *engine,
    const struct weir_limit_params *given, uint32_t *id,
    struct weir_error *error)
{
	struct weir_limit_params params;
	struct limit *limit;
	int rc;

	rc = params_read(&params, given, error);
	if (rc)
		return rc;
	limit = limit_new(engine);
	if (!limit)
		return -ENOMEM;
	rc = algorithm_refusal(engine, &params, error);
	if (rc == 0)
		rc = algorithm_of(params.algorithm)->make(limit, &params,
		    error);
	if (rc == 0) {
		/* Bounded: it may have grown since it was looked at. */
		strncpy(limit->name, params.name, WEIR_LIMIT_NAME_MAX);
		limit_fill(limit, &params, limit->name);
		rc = limit_publish(engine, limit, id);
	}
	if (rc == -EEXIST && error)
		*error = (struct weir_error){"name", "is taken"};
	if (rc)
		limit_free(&engine->memory, limit);
	return rc;
}

void
retired_free(struct memory *memory, struct retired *retired)
{
	for (unsigned i = 0; i < retired->n; i++)
		memory_give(memory, retired->block[i].memory,
		    retired->block[i].size);
	retired->n = 0;
}

static void
retire(struct retired *retired, void *memory, size_t size)
{
	retired->block[retired->n].memory = memory;
	retired->block[retired->n].size = size;
	retired->n++;
}

/*
 * Take away what was retired, if there is no room for two more. => Under the
 * lock, after each change; so there is always room.
 */
static void
retired_take(struct weir_engine *engine, struct retired *full)
{
	full->n = 0;
	if (engine->retired.n + 2 <= RETIRED_MAX)
		return;
	*full = engine->retired;
	engine->retired.n = 0;
}

/*
 * Make new the version of `old` that follows from params at now_ns. => Under
 * the lock, for each version continues the one before.
 */
static int
limit_derive(struct limit *new, const struct limit *old,
    const struct weir_limit_params *params, uint64_t now_ns,
    const struct weir_engine *engine, struct weir_error *error)
{
	int rc;

	if (strcmp(params->name, old->name) != 0)
		return refuse(error, "name", "is not that of the limit");
	if (params->unit != old->unit)
		return refuse(error, "unit", "cannot be changed");
	if (params->algorithm != old->params.algorithm)
		return refuse(error, "algorithm", "cannot be changed");
	rc = old->algorithm->change(new, old, params, now_ns, error);
	if (rc)
		return rc;
	limit_fill(new, params, old->name);
	if (__builtin_add_overflow(now_ns, engine->clock_skew_ns,
	    &new->settled_ns))
		new->settled_ns = UINT64_MAX;
	if (new->settled_ns < old->settled_ns)
		new->settled_ns = old->settled_ns;
	limit_settle(new, engine, old->id);
	new->serial = old->serial;
	return 0;
}

/* => Under the lock. */
static int
limit_replace(struct weir_engine *engine, uint32_t id, struct limit *limit,
    const struct weir_limit_params *params, uint64_t now_ns,
    struct weir_error *error)
{
	struct limit_set *old = set_current(engine), *new;
	const struct limit *replaced = limit_at(old, id);
	int rc;

	if (!replaced)
		return -ENOENT;
	rc = limit_derive(limit, replaced, params, now_ns, engine, error);
	if (rc)
		return rc;
	new = set_copy(engine, old->count);
	if (!new)
		return -ENOMEM;
	new->limit[id] = limit;
	retire(&engine->retired, old, limit_set_size(old->count));
	retire(&engine->retired, (void *)(uintptr_t)replaced,
	    sizeof(*replaced));
	set_publish(engine, new);
	return 0;
}

int
weir_limit_set(struct weir_engine *engine, uint32_t id,
    const struct weir_limit_params *given, uint64_t now_ns,
    struct weir_error *error)
{
	struct weir_limit_params params;
	struct retired full;
	struct limit *limit;
	int rc;

	rc = params_read(&params, given, error);
	if (rc)
		return rc;
	limit = memory_take(&engine->memory, sizeof(*limit));
	if (!limit)
		return -ENOMEM;
	pthread_mutex_lock(&engine->lock);
	rc = limit_replace(engine, id, limit, &params, now_ns, error);
	retired_take(engine, &full);
	pthread_mutex_unlock(&engine->lock);
	if (rc)
		memory_give(&engine->memory, limit, sizeof(*limit));
	/* The change is in force; only now there is time to wait. */
	if (full.n) {
		workers_synchronize(engine);
		retired_free(&engine->memory, &full);
	}
	return rc;
}

/* Publish a set without this limit. => Under the lock. */
static int
limit_unpublish(struct weir_engine *engine, uint32_t id,
    struct limit_set **replaced)
{
	struct limit_set *old = set_current(engine), *new;

	if (!limit_at(old, id))
		return -ENOENT;
	new = set_copy(engine, old->count);
	if (!new)
		return -ENOMEM;
	new->limit[id] = NULL;
	engine->removing[id] = true;
	set_publish(engine, new);
	*replaced = old;
	return 0;
}

/*
 * Nobody decides by this limit any more: drop its entries and its counters, so
 * that its number can be given again.
 */
static void
limit_erase(struct weir_engine *engine, uint32_t id)
{
	table_drop_limit(&engine->table, id);
	if (engine->overflow.base)
		table_drop_limit(&engine->overflow, id);
	pthread_mutex_lock(&engine->lock);
	workers_clear_counters(engine, id);
	engine->removing[id] = false;
	pthread_mutex_unlock(&engine->lock);
}

int
weir_limit_remove(struct weir_engine *engine, uint32_t id)
{
	struct limit_set *replaced;
	int rc;

	pthread_mutex_lock(&engine->lock);
	rc = limit_unpublish(engine, id, &replaced);
	pthread_mutex_unlock(&engine->lock);
	if (rc)
		return rc;
	workers_synchronize(engine);
	limit_erase(engine, id);
	limit_free(&engine->memory, replaced->limit[id]);
	memory_give(&engine->memory, replaced,
	    limit_set_size(replaced->count));
	return 0;
}

int
weir_limit_find(struct weir_engine *engine, const char *name, uint32_t *id)
{
	const struct limit *limit;

	pthread_mutex_lock(&engine->lock);
	limit = set_find(set_current(engine), name);
	if (limit)
		*id = limit->id;
	pthread_mutex_unlock(&engine->lock);
	return limit ? 0 : -ENOENT;
}

int
weir_limit_get(struct weir_engine *engine, uint32_t id,
    struct weir_limit_params *params)
{
	const struct limit_set *set;
	size_t size = params->size;
	int rc = -ENOENT;

	if (!params_size_known(size))
		return -EINVAL;
	pthread_mutex_lock(&engine->lock);
	set = set_current(engine);
	if (limit_at(set, id)) {
		memcpy(params, &set->limit[id]->params, size);
		params->size = size;
		rc = 0;
	}
	pthread_mutex_unlock(&engine->lock);
	return rc;
}
