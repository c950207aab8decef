/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A token bucket as one would explain it, in exact integers: the level at the
 * time of the last take, counted in 1/period_ns of a token, so that each
 * nanosecond adds exactly `tokens` of them. Slow, plain, and written without
 * a look at how the library does it.
 */
#ifndef TESTS_MODEL_ORACLE_H
#define TESTS_MODEL_ORACLE_H

#include "../support.h"

typedef __int128 wide;

struct oracle_bucket {
	wide level;       /* at last_ns; the cap is applied on reading */
	uint64_t last_ns; /* the latest time at which it was changed */
	uint64_t born_ns; /* the first such time */
	bool touched;     /* before the first take it is full at any time */
};

static inline wide
oracle_full(const struct weir_limit_params *limit)
{
	return (wide)limit->capacity * limit->period_ns;
}

/*
 * The level as a clock that shows now_ns sees it. A time before the last take
 * sees what had not come in by then: less, and below 0 if need be.
 */
static inline wide
oracle_level(const struct weir_limit_params *limit,
    const struct oracle_bucket *bucket, uint64_t now_ns)
{
	wide full = oracle_full(limit), missing = full - bucket->level;
	uint64_t elapsed_ns;

	if (!bucket->touched)
		return full;
	if (now_ns < bucket->last_ns) {
		missing += (wide)(bucket->last_ns - now_ns) * limit->tokens;
		return missing > 0 ? full - missing : full;
	}
	elapsed_ns = now_ns - bucket->last_ns;
	/* Not to multiply what may overflow: is it full by then? */
	if (missing <= 0 || elapsed_ns > missing / limit->tokens)
		return full;
	return bucket->level + (wide)elapsed_ns * limit->tokens;
}

/* Take cost tokens; whether they are there has been asked before. */
static inline void
oracle_take(const struct weir_limit_params *limit,
    struct oracle_bucket *bucket, uint64_t now_ns, uint64_t cost)
{
	wide price = (wide)cost * limit->period_ns;

	if (cost == 0)
		return;
	if (bucket->touched && now_ns < bucket->last_ns) {
		bucket->level = oracle_level(limit, bucket, now_ns) - price +
		    (wide)(bucket->last_ns - now_ns) * limit->tokens;
		return;
	}
	bucket->level = oracle_level(limit, bucket, now_ns) - price;
	bucket->last_ns = now_ns;
	if (!bucket->touched)
		bucket->born_ns = now_ns;
	bucket->touched = true;
}

static inline bool
oracle_passes(const struct weir_limit_params *limit, wide level,
    uint64_t cost)
{
	if (cost == 0)
		return true;
	return cost <= limit->capacity + limit->debt &&
	    level >= limit->period_ns &&
	    level - (wide)cost * limit->period_ns >=
	    -(wide)limit->debt * limit->period_ns;
}

static inline uint64_t
oracle_tokens(const struct weir_limit_params *limit, wide level)
{
	return level > 0 ? (uint64_t)(level / limit->period_ns) : 0;
}

/* What is owed, a part of a token counting as one. */
static inline uint64_t
oracle_debt(const struct weir_limit_params *limit, wide level)
{
	return level >= 0 ? 0 :
	    (uint64_t)((-level + limit->period_ns - 1) / limit->period_ns);
}

/* What a wait that ends behind the clock is called. */
static inline uint64_t
oracle_wait_named(wide wait, uint64_t now_ns)
{
	return wait > (wide)(UINT64_MAX - now_ns) || wait > WEIR_NEVER - 1 ?
	    WEIR_NEVER - 1 : (uint64_t)wait;
}

/* The wait of a request that does not pass at this level. */
static inline uint64_t
oracle_wait_ns(const struct weir_limit_params *limit, wide level,
    uint64_t cost, uint64_t now_ns)
{
	wide missing, wait;

	if (cost > limit->capacity + limit->debt)
		return WEIR_NEVER;
	/* one token at least, and the cost if nothing can be borrowed */
	missing = (wide)(cost > limit->debt ? cost - limit->debt : 1) *
	    limit->period_ns - level;
	wait = missing / limit->tokens + (missing % limit->tokens != 0);
	return oracle_wait_named(wait, now_ns);
}

/* Give back what there is room for at now_ns. => How much that was. */
static inline wide
oracle_refund(const struct weir_limit_params *limit,
    struct oracle_bucket *bucket, uint64_t now_ns, uint64_t cost)
{
	wide level = oracle_level(limit, bucket, now_ns);
	wide room = oracle_full(limit) - level;
	wide given = cost > room / limit->period_ns ? room :
	    (wide)cost * limit->period_ns;

	if (given == 0)
		return 0;
	if (now_ns < bucket->last_ns) {
		bucket->level += given;
		return given;
	}
	bucket->level = level + given;
	bucket->last_ns = now_ns;
	return given;
}

/* The wait until the bucket is full. */
static inline uint64_t
oracle_full_wait_ns(const struct weir_limit_params *limit, wide level,
    uint64_t now_ns)
{
	wide missing = oracle_full(limit) - level, wait;

	if (missing <= 0)
		return 0;
	wait = missing / limit->tokens + (missing % limit->tokens != 0);
	return oracle_wait_named(wait, now_ns);
}

#endif
