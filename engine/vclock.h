/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token clock: the arithmetic of a token bucket, as pure functions.
 *
 * Let V(now) be the tokens that a rate has produced since time 0, in units
 * that are small fractions of a token. A bucket is one number S: the value
 * that V had when the bucket would have been empty. So
 *
 *	level = min(capacity, V(now) - S)
 *	taking c:    S' = max(S, V(now) - capacity) + c, if that is <= V(now)
 *
 * V is computed from absolute time each time, by one multiplication. Nothing
 * is accumulated, hence nothing drifts and nothing is lost at any call rate.
 * A smaller `now` gives a smaller V, thus fewer tokens, and S never moves
 * back: late clocks need no special case.
 *
 * UNITS. With tokens / period in lowest terms p / q, one token is q units and
 * V advances p units per ns: exact. That needs (capacity + debt) * q <= 2^55 and
 * p <= 2^23, which holds for almost every rate people write. (Of a token with
 * few units, units are halved until it has 256, which keeps what is exact.)
 * Otherwise a token is 2^f units with the largest f within the same two bounds, and p / q is
 * rounded up (ratio.h), so that a token is there at the instant it is due.
 * V is then cut to whole units, which may let a token through early by less
 * than one unit: less than 2^-22 ns of refill, or, for a bucket that takes
 * more than 4.3 s to fill, than 2^-54 of that time (1 per day with a
 * capacity of 100,000: 314 ns in 274 years). The rate itself is then too high
 * by less than one part in 2^63.
 *
 * WINDOWS. A fixed window of N tokens is a bucket whose V stands still inside a
 * window and grows by N at its end: full at the start of each, whatever was
 * spent before. Only a late `now` has a rule of its own: if S lies ahead of V,
 * it is of a later window, and that one is meant.
 *
 * DEBT. A limit may let a bucket go below zero, down to -debt: a request passes
 * if at least one token is there and what it leaves is no less than that. S then
 * lies up to debt units ahead of V.
 *
 * RING. S is kept modulo 2^58 (the rest of its word belongs to the table). To
 * read it after any idle time, time is divided into *eras* of 2^56 units, and
 * the entry remembers, beside S, in which era S was written, give or take one.
 * An era is 2.3 years at one unit per ns and 8.6 s at 2^23. Eras are counted
 * modulo 2^32; the whole 64-bit clock has at most 2^31.
 */
#ifndef WEIR_VCLOCK_H
#define WEIR_VCLOCK_H

#include <stdbool.h>

#include "ratio.h"

#define V_BITS 58
#define V_MASK ((1ull << V_BITS) - 1)
#define V_FULL_MAX (1ull << 55)      /* most units from -debt to full */
#define V_SPEED_MAX (1ull << 23)     /* most units per ns */
#define V_TOKEN_FINE (1ull << 8)     /* units per token that changes of */
#define V_SPEED_ROOM (1ull << 13)    /* rate deserve, as far as that leaves */
#define V_FULL_ROOM (1ull << 45)     /* them room, too */
#define V_ERA_SHIFT 56
#define V_ERA_UNITS (1ull << V_ERA_SHIFT)
#define V_FAR (1ll << 62)            /* a difference too large to matter */
#define V_NO_FLOOR (-((int128_t)1 << 100))

typedef __int128 int128_t;

struct rate {
	uint64_t window_ns;  /* V grows by `full` at the end of each; 0: it
	                        grows by per_ns all the time */
	struct ratio per_ns; /* units per ns */
	uint64_t token;      /* units per token */
	uint64_t capacity;   /* tokens */
	uint64_t most_cost;  /* tokens: capacity + debt, what can pass at once */
	uint64_t full;       /* capacity in units */
	uint64_t debt;       /* in units; full + debt <= V_FULL_MAX */
	/* Since its last change; all 0, and no floor, before the first. */
	uint64_t from_ns;
	uint128_t from_v;    /* V then, rounded down */
	uint128_t from_below; /* and what that cut off */
	int128_t floor;      /* no S counts as less; see rate_change() */
};

/* A rate at one moment. */
struct vinstant {
	uint64_t v; /* V rounded down, modulo 2^64 */
	uint32_t era;
	uint64_t now_ns;
	uint64_t early_ns; /* how far now_ns lies before the last change */
	uint128_t whole;   /* V, of which v and era are parts */
	uint128_t below;   /* what rounding down cut off */
	int64_t most;      /* units a bucket can hold now, <= full */
	/* Of windows only: */
	uint64_t step;     /* what V grows by at the end of each; 0: none */
	uint64_t window_ns;
	uint64_t end_ns;   /* of this one; UINT64_MAX: after the clock's */
};

enum rate_fault {
	RATE_OK = 0,
	RATE_ZERO_TOKENS,
	RATE_ZERO_PERIOD,
	RATE_ZERO_CAPACITY,
	RATE_TOO_FAST,
	RATE_TOO_DEEP,
	RATE_TOO_INDEBTED,
};

static inline uint64_t
gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* The number that must not be 0 and is. */
static inline enum rate_fault
rate_zero(uint64_t tokens, uint64_t period_ns, uint64_t capacity)
{
	if (tokens == 0)
		return RATE_ZERO_TOKENS;
	if (period_ns == 0)
		return RATE_ZERO_PERIOD;
	return capacity == 0 ? RATE_ZERO_CAPACITY : RATE_OK;
}

/* tokens per period_ns, and a bucket of -debt to capacity tokens. */
static inline enum rate_fault
rate_make(struct rate *rate, uint64_t tokens, uint64_t period_ns,
    uint64_t capacity, uint64_t debt)
{
	uint64_t divisor, p, q, span;
	unsigned f = 0;
	enum rate_fault fault = rate_zero(tokens, period_ns, capacity);

	if (fault)
		return fault;
	divisor = gcd(tokens, period_ns);
	p = tokens / divisor;
	q = period_ns / divisor;
	if (p > (uint128_t)q * V_SPEED_MAX)
		return RATE_TOO_FAST;
	if (capacity > V_FULL_MAX)
		return RATE_TOO_DEEP;
	if (debt > V_FULL_MAX - capacity)
		return RATE_TOO_INDEBTED;

	span = capacity + debt;
	*rate = (struct rate){
		.capacity = capacity,
		.most_cost = span,
		.floor = V_NO_FLOOR,
	};
	if (p <= V_SPEED_MAX && q <= V_FULL_MAX / span) {
		while (q << f < V_TOKEN_FINE && p << f < V_SPEED_ROOM &&
		    span * q << f < V_FULL_ROOM)
			f++;
		rate->per_ns = ratio_make(p << f, 1);
		rate->token = q << f;
		rate->full = capacity * q << f;
		rate->debt = debt * q << f;
		return RATE_OK;
	}
	while (span << (f + 1) <= V_FULL_MAX &&
	    (uint128_t)p << (f + 1) <= (uint128_t)q * V_SPEED_MAX)
		f++;
	rate->per_ns = ratio_make(p, q);
	rate->per_ns.shift -= f; /* stays >= 40: at most 2^23 units/ns */
	rate->token = 1ull << f;
	rate->full = capacity << f;
	rate->debt = debt << f;
	return RATE_OK;
}

/* N tokens in each window. */
static inline enum rate_fault
rate_make_window(struct rate *rate, uint64_t tokens, uint64_t window_ns)
{
	enum rate_fault fault = rate_zero(tokens, window_ns, tokens);

	if (fault)
		return fault;
	if (tokens > V_FULL_MAX)
		return RATE_TOO_DEEP;
	if (tokens > (uint128_t)window_ns * V_SPEED_MAX)
		return RATE_TOO_FAST;
	*rate = (struct rate){
		.window_ns = window_ns,
		.token = 1,
		.capacity = tokens,
		.most_cost = tokens,
		.full = tokens,
		.from_v = tokens, /* the first window's */
		.floor = V_NO_FLOOR,
	};
	return RATE_OK;
}

/* V at since_ns after the last change, for windows. */
static inline uint128_t
windows_at(const struct rate *rate, uint64_t since_ns, struct vinstant *in)
{
	uint64_t first = rate->from_ns / rate->window_ns;
	uint64_t window = (rate->from_ns + since_ns) / rate->window_ns;

	in->step = rate->full;
	in->window_ns = rate->window_ns;
	if (__builtin_mul_overflow(window + 1, rate->window_ns, &in->end_ns))
		in->end_ns = UINT64_MAX;
	return rate->from_v + (uint128_t)(window - first) * rate->full;
}

static inline struct vinstant
rate_at(const struct rate *rate, uint64_t now_ns)
{
	struct vinstant in = {.now_ns = now_ns};
	uint64_t since_ns = 0;
	uint128_t v;
	int128_t above_floor;

	if (now_ns >= rate->from_ns)
		since_ns = now_ns - rate->from_ns;
	else
		in.early_ns = rate->from_ns - now_ns;
	if (rate->window_ns)
		v = windows_at(rate, since_ns, &in);
	else
		v = rate->from_v + ratio_apply_rest(rate->per_ns, since_ns,
		    rate->from_below, &in.below);
	above_floor = (int128_t)v - rate->floor;
	in.whole = v;
	in.v = (uint64_t)v;
	in.era = (uint32_t)(v >> V_ERA_SHIFT);
	in.most = above_floor < (int64_t)rate->full ? (int64_t)above_floor :
	    (int64_t)rate->full;
	return in;
}

/* Move a fraction in 2^-from to 2^-to. */
static inline uint128_t
fraction_move(uint128_t below, unsigned from, unsigned to)
{
	return to >= from ? below << (to - from) : below >> (from - to);
}

/* From now_ns on, V goes on from where it is with the old rate. */
static inline void
rate_follow(struct rate *rate, const struct rate *old, uint64_t now_ns)
{
	struct vinstant in = rate_at(old, now_ns);
	int128_t held = (int128_t)in.whole - (int64_t)old->full;

	rate->from_ns = now_ns + in.early_ns;
	rate->from_v = in.whole;
	rate->from_below = fraction_move(in.below, old->per_ns.shift,
	    rate->per_ns.shift);
	rate->floor = held > old->floor ? held : old->floor;
}

/*
 * The rate from now_ns on, in place of `old`: V goes on from where it is, in the
 * same units, so that every S keeps its meaning. No bucket held more than the
 * old capacity at that moment, touched or not; that is the floor, below which
 * no S counts. So a raised capacity grants nothing, and time that has passed is
 * not priced anew.
 *
 * A time before the last change is taken as that of the last change.
 * => RATE_TOO_FAST, _DEEP, _INDEBTED also if the units do not allow it, which
 *    were chosen when the limit was made.
 */
static inline enum rate_fault
rate_change(struct rate *rate, const struct rate *old, uint64_t tokens,
    uint64_t period_ns, uint64_t capacity, uint64_t debt, uint64_t now_ns)
{
	uint64_t common;
	enum rate_fault fault = rate_zero(tokens, period_ns, capacity);

	if (fault)
		return fault;
	common = gcd(old->token, period_ns);
	period_ns /= common;
	if ((uint128_t)tokens * (old->token / common) >
	    (uint128_t)period_ns * V_SPEED_MAX)
		return RATE_TOO_FAST;
	if (capacity > V_FULL_MAX / old->token)
		return RATE_TOO_DEEP;
	if (debt > V_FULL_MAX / old->token - capacity)
		return RATE_TOO_INDEBTED;

	*rate = (struct rate){
		.per_ns = ratio_make((uint128_t)tokens *
		    (old->token / common), period_ns),
		.token = old->token,
		.capacity = capacity,
		.most_cost = capacity + debt,
		.full = capacity * old->token,
		.debt = debt * old->token,
	};
	rate_follow(rate, old, now_ns);
	return RATE_OK;
}

/* The same for windows. */
static inline enum rate_fault
rate_change_window(struct rate *rate, const struct rate *old, uint64_t tokens,
    uint64_t window_ns, uint64_t now_ns)
{
	enum rate_fault fault = rate_make_window(rate, tokens, window_ns);

	if (fault == RATE_OK)
		rate_follow(rate, old, now_ns);
	return fault;
}

/* Units that come within skew_ns, and one for the cut. */
static inline int64_t
rate_skew(const struct rate *rate, uint64_t skew_ns)
{
	uint128_t units = rate->window_ns ?
	    (uint128_t)(skew_ns / rate->window_ns + 1) * rate->full :
	    ratio_apply(rate->per_ns, skew_ns);

	return units < V_FAR / 2 ? (int64_t)units + 1 : V_FAR / 2;
}

/* Signed distance on the ring of S. */
static inline int64_t
v_distance(uint64_t to, uint64_t from)
{
	return (int64_t)((to - from) << (64 - V_BITS)) >> (64 - V_BITS);
}

/* How many eras the instant lies after `era`; negative if before. */
static inline int32_t
v_eras_since(const struct vinstant *in, uint32_t era)
{
	return (int32_t)(in->era - era);
}

/*
 * V - S: the level before the cap. Negative when S lies ahead of this clock.
 * Measured from the era's base, as V and S lie up to an era apart on either side
 * of it. Beyond 32 eras a bare +-V_FAR.
 */
static inline int64_t
v_since(const struct vinstant *in, uint64_t s, uint32_t era)
{
	int32_t eras = v_eras_since(in, era);

	if (eras > 32 || eras < -32)
		return eras > 0 ? V_FAR : -V_FAR;
	return eras * (int64_t)V_ERA_UNITS +
	    (int64_t)(in->v & (V_ERA_UNITS - 1)) -
	    v_distance(s, (uint64_t)era << V_ERA_SHIFT);
}

/*
 * A bucket opened at an instant, to be spent from: `base` is S after the cap,
 * `left` the units it holds now. Spending c adds c to base and takes c off
 * left; `base` is what goes back into the word.
 */
struct purse {
	uint64_t base;
	int64_t left;
	uint64_t ahead; /* windows between that of the instant and its own */
};

static inline struct purse
purse_full(const struct vinstant *in)
{
	return (struct purse){
		.base = in->v - (uint64_t)in->most,
		.left = in->most,
	};
}

static inline struct purse
purse_open(const struct vinstant *in, uint64_t s, int64_t since)
{
	if (since >= in->most)
		return purse_full(in);
	if (since < 0 && since > -V_FAR && in->step) {
		uint64_t ahead = ((uint64_t)-since + in->step - 1) / in->step;

		return (struct purse){
			.base = s,
			.left = since + (int64_t)(ahead * in->step),
			.ahead = ahead,
		};
	}
	return (struct purse){.base = s, .left = since};
}

/*
 * The level at which this cost passes: what leaves -debt or more, but at least a
 * token, whatever may be owed. Without debt that is the cost.
 * => 1 <= cost <= most_cost.
 */
static inline int64_t
rate_threshold(const struct rate *rate, uint64_t cost)
{
	int64_t level = (int64_t)(cost * rate->token) - (int64_t)rate->debt;

	return level > (int64_t)rate->token ? level : (int64_t)rate->token;
}

/*
 * A cost of zero passes whatever the level; above capacity + debt, which is
 * what a full bucket can spend, nothing passes.
 */
static inline bool
purse_spend(struct purse *purse, const struct rate *rate, uint64_t cost)
{
	uint64_t units = cost * rate->token;

	if (cost == 0)
		return true;
	if (cost > rate->most_cost ||
	    purse->left < rate_threshold(rate, cost))
		return false;
	purse->base += units;
	purse->left -= (int64_t)units;
	return true;
}

/*
 * Give cost tokens back, as far as there is room for them: S moves down, to V
 * less a full bucket at most. For a clock that is in an earlier era than the
 * entry that could be so far down that it could not be read in the entry's
 * era, so there it stops at the era's base less a full bucket; who comes later
 * than that base sees a full bucket either way.
 *
 * => How many units found room.
 */
static inline uint64_t
purse_refund(struct purse *purse, const struct rate *rate,
    const struct vinstant *in, uint32_t era, uint64_t cost)
{
	uint32_t latest = v_eras_since(in, era) < 0 ? era : in->era;
	uint128_t units = (uint128_t)cost * rate->token;
	int64_t room = in->most - purse->left;
	int64_t above = v_distance(purse->base,
	    (uint64_t)latest << V_ERA_SHIFT) + (int64_t)rate->full;

	if (room > above)
		room = above;
	if (room <= 0)
		return 0;
	if (units > (uint64_t)room)
		units = (uint64_t)room;
	purse->base -= (uint64_t)units;
	purse->left += (int64_t)units;
	return (uint64_t)units;
}

static inline uint64_t
purse_tokens(const struct purse *purse, const struct rate *rate)
{
	return purse->left > 0 ? (uint64_t)purse->left / rate->token : 0;
}

/* Until the end of the purse's window. */
static inline uint64_t
purse_window_wait_ns(const struct purse *purse, const struct vinstant *in)
{
	uint128_t end_ns = in->end_ns +
	    (uint128_t)purse->ahead * in->window_ns;

	return in->end_ns == UINT64_MAX || end_ns > UINT64_MAX ?
	    UINT64_MAX - 1 : (uint64_t)end_ns - in->now_ns;
}

/* Tokens below zero, counting a part as one. UINT64_MAX: too many to tell. */
static inline uint64_t
purse_debt(const struct purse *purse, const struct rate *rate)
{
	if (purse->left >= 0)
		return 0;
	if (purse->left <= -V_FAR)
		return UINT64_MAX;
	return ((uint64_t)-purse->left + rate->token - 1) / rate->token;
}

/*
 * How long until the purse holds this many units, if nobody takes any: exact,
 * in that V reaches the sum at now + wait and not 1 ns before. UINT64_MAX - 1:
 * not before the clock ends, or S lies further ahead than v_since() can tell.
 */
static inline uint64_t
purse_level_wait_ns(const struct purse *purse, const struct rate *rate,
    const struct vinstant *in, int64_t level)
{
	uint64_t wait;

	if (purse->left >= level)
		return 0;
	if (purse->left <= -V_FAR)
		return UINT64_MAX - 1;
	if (in->step)
		return purse_window_wait_ns(purse, in);
	wait = ratio_invert(rate->per_ns, (uint64_t)(level - purse->left),
	    in->below);
	if (wait == UINT64_MAX ||
	    wait > UINT64_MAX - in->early_ns - in->now_ns)
		return UINT64_MAX - 1;
	return in->early_ns + wait;
}

/* Until it can pay cost, and 0 if it can. UINT64_MAX: never. */
static inline uint64_t
purse_wait_ns(const struct purse *purse, const struct rate *rate,
    const struct vinstant *in, uint64_t cost)
{
	if (cost > rate->most_cost)
		return UINT64_MAX;
	if (cost == 0)
		return 0;
	return purse_level_wait_ns(purse, rate, in,
	    rate_threshold(rate, cost));
}

/*
 * Until it is full. What it can hold now may be less, after a change of the
 * capacity, but grows with V as the level does.
 */
static inline uint64_t
purse_full_wait_ns(const struct purse *purse, const struct rate *rate,
    const struct vinstant *in)
{
	return purse_level_wait_ns(purse, rate, in, (int64_t)rate->full);
}

#endif
