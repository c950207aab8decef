/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits: named rules.
 *
 * TOKEN BUCKET. A bucket holds up to `capacity` tokens, starts full and gains `tokens`
 * tokens every `period_ns` nanoseconds, continuously. A request of cost c
 * passes if the bucket holds at least c tokens, and then takes them; a
 * refused request takes nothing. In any interval of length t at most
 *
 *	capacity + tokens * t / period_ns
 *
 * tokens pass for one key.
 *
 * A large cost among many small ones may wait for ever, as they take each token
 * that comes in. With a `debt` it may borrow: a request passes if the bucket
 * holds at least one token and what it leaves is no less than -debt. The bucket
 * is then below zero, and everybody waits until it holds a token again. A full
 * bucket can spend capacity + debt at once, a cost above that never passes, and
 * the bound above is then capacity + debt + tokens * t / period_ns.
 *
 * GCRA and the leaky bucket as a meter give the same
 * verdicts. The rate is a rational number and is kept as one: see
 * docs/design.md, "Arithmetic", for when it is exact and how exact otherwise.
 *
 * FIXED WINDOW. Time is cut into windows [k * period_ns, (k + 1) * period_ns),
 * in each of which `tokens` tokens may pass, at any moment of it. Around the
 * end of a window twice as many may pass at once; where that matters use the
 * bucket. A request that comes late counts in the newest window in which its
 * key took tokens. All is exact.
 *
 * UNLIMITED, CLOSED. Explicit settings, for no number means either. An unlimited
 * limit lets everything pass, a closed one refuses all that costs something,
 * for ever; a cost of zero passes there, too, as it does everywhere. They keep
 * nothing about a key, so a full table has no say in it, and are counted like
 * any other.
 */
#ifndef WEIR_LIMIT_H
#define WEIR_LIMIT_H

#include <weir/base.h>

WEIR_BEGIN_DECLS

#define WEIR_LIMIT_NAME_MAX 63u /* bytes, without the terminating zero */

/* What one token pays for. */
enum weir_unit {
	WEIR_UNIT_PACKETS = 0, /* a request costs its .packets */
	WEIR_UNIT_BYTES,       /* a request costs its .bytes */
};

enum weir_algorithm {
	WEIR_TOKEN_BUCKET = 0,
	WEIR_FIXED_WINDOW, /* `capacity` is 0: a window holds `tokens` */
	WEIR_UNLIMITED,    /* all pass; all numbers are 0 */
	WEIR_CLOSED,       /* none pass; all numbers are 0 */
};

/*
 * For a token bucket 1000 packets/s is {.tokens = 1000, .period_ns = 1000000000};
 * 10 Mbit/s counted in bytes is {.tokens = 1250000, .period_ns = 1000000000};
 * one per hour is {.tokens = 1, .period_ns = 3600000000000}.
 */
struct weir_limit_params {
	size_t size;        /* sizeof(struct weir_limit_params) */
	const char *name;   /* 1..WEIR_LIMIT_NAME_MAX bytes, unique */
	uint64_t tokens;    /* gained per period, at least 1 */
	uint64_t period_ns; /* at least 1 */
	uint64_t capacity;  /* most tokens held, at least 1 */
	enum weir_unit unit;
	enum weir_algorithm algorithm;
	uint64_t debt;      /* most tokens owed; 0: none may be */
};

/*
 * Add a limit while workers run. Every key starts with a full bucket.
 *
 * What cannot be represented is refused, never clamped: rates above 2^23 tokens
 * per ns, capacities (with the debt) and windows above 2^55 tokens. The slowest
 * rate is one token in 2^64 - 1 ns (584 years).
 *
 * The bound above is kept exactly when, in lowest terms, tokens <= 2^23 and
 * (capacity + debt) * period_ns <= 2^55: nearly always. Otherwise a token may
 * come early by less than 2^-22 ns of refill, or, if the bucket takes more than
 * 4.3 s to fill from -debt, by less than 2^-54 of that time, and the rate may be
 * too high by one part in 2^63.
 *
 * => 0 and *limit, the number by which requests name it, or
 *    -EINVAL	*error (if not NULL) names the member at fault
 *    -EEXIST	the name is taken
 *    -ENOSPC	max_limits are there already
 *    -ENOMEM
 * => Any thread. Waits for a grace period of liburcu's, which is the whole
 *    process's: every worker that is online, of any engine, must quiesce once,
 *    or be the caller itself.
 */
WEIR_API int
weir_limit_add(struct weir_engine *engine,
    const struct weir_limit_params *params, uint32_t *limit,
    struct weir_error *error);

/*
 * Change the rate, the capacity and the debt of a limit at the time now_ns, on
 * the clock that decisions use. params is complete; its name, unit and
 * algorithm are those that the limit has.
 *
 * Every bucket keeps the tokens that it holds at now_ns, cut to the new
 * capacity if that is lower: a raised capacity grants nothing, it only lets
 * buckets fill further, and time before now_ns is not priced anew. That holds
 * for all keys, those that were never seen included: they hold the old capacity
 * at now_ns. What a bucket owes it goes on owing under a lower debt. Decisions
 * by a clock that is behind now_ns count as made at now_ns.
 *
 * now_ns is the present: no decision may have been made at a later time yet, but
 * for what clocks differ anyway. What was decided in between counts as decided at
 * the new rate: tokens that the old rate gave are then owed, and those that the
 * new one gives for that time are there twice. A time in the future is the end of
 * the refill until it comes, also if the limit is set again; remove it then.
 *
 * Of a bucket, a token is counted in the units chosen when the limit was made
 * (docs/design.md, "Arithmetic"); a rate above 2^23 units per ns or a capacity
 * and debt above 2^55 units is refused. Where the first rate is exact, a token is of as
 * many units as period_ns has in lowest terms, at least 256 where that fits:
 * from 1000 packets/s one may go up to 8.4 million times that, from 1001
 * packets/s to 8.4 million packets/s. Where it is not, there is little room. If
 * the new rate is no whole number of units per ns, a token may come early by
 * less than one unit, and each change may lose 2^-40 of one.
 *
 * => 0, or
 *    -EINVAL	*error (if not NULL) names the member at fault; nothing changed
 *    -ENOENT	there is no such limit
 *    -ENOMEM
 * => Any thread. Workers don't wait, and neither does the caller, except for
 *    every 32nd change, which waits for a grace period as weir_limit_add()
 *    does, when it is in force already. Until then what the changes replaced
 *    stays in memory.
 */
WEIR_API int
weir_limit_set(struct weir_engine *engine, uint32_t limit,
    const struct weir_limit_params *params, uint64_t now_ns,
    struct weir_error *error);

/*
 * Remove a limit. Requests that name it are denied from then on, as those that
 * name no limit are: WEIR_BY_NO_LIMIT, and counted. Its buckets and counters
 * are gone and its name is free. Its number is given to another limit only when
 * max_limits numbers have been given; so until then a request that comes too
 * late is denied, and never decided by a limit that it does not mean.
 *
 * => 0, -ENOENT if there is no such limit, -ENOMEM (nothing changed).
 * => Any thread. Waits for a grace period, as weir_limit_add() does, and then
 *    looks at every slot of the table: 5 to 16 ms for a million slots.
 */
WEIR_API int
weir_limit_remove(struct weir_engine *engine, uint32_t limit);

/*
 * Find a limit by its name. => 0 and *limit, or -ENOENT. Any thread.
 */
WEIR_API int
weir_limit_find(struct weir_engine *engine, const char *name,
    uint32_t *limit);

/*
 * Read back what was set, to the letter. params->size must be set by the
 * caller; params->name points into the engine, until the limit is removed.
 *
 * => 0, -ENOENT for a number that is no limit, -EINVAL for a wrong size.
 * => Any thread.
 */
WEIR_API int
weir_limit_get(struct weir_engine *engine, uint32_t limit,
    struct weir_limit_params *params);

WEIR_END_DECLS

#endif
