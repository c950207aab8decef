/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token bucket, and the fixed window, which is one whose clock moves in
 * steps. All arithmetic is in vclock.h.
 */
#include "bucket.h"

int
bucket_refusal(enum rate_fault fault, struct weir_error *error)
{
	switch (fault) {
	case RATE_ZERO_TOKENS:
		return refuse(error, "tokens", "must be at least 1");
	case RATE_ZERO_PERIOD:
		return refuse(error, "period_ns", "must be at least 1");
	case RATE_ZERO_CAPACITY:
		return refuse(error, "capacity", "must be at least 1");
	case RATE_TOO_FAST:
		return refuse(error, "tokens",
		    "too many per ns to be represented");
	case RATE_TOO_DEEP:
		return refuse(error, "capacity",
		    "too many tokens to be represented");
	case RATE_TOO_INDEBTED:
		return refuse(error, "debt",
		    "too many tokens, with the capacity, to be represented");
	case RATE_OK:
		break;
	}
	return 0;
}

/* The tokens of a window are what it holds, too. */
static int
window_refusal(enum rate_fault fault, struct weir_error *error)
{
	return fault == RATE_TOO_DEEP ? refuse(error, "tokens",
	    "too many to be represented") : bucket_refusal(fault, error);
}

static int
window_unused(const struct weir_limit_params *params, struct weir_error *error)
{
	if (params->capacity != 0)
		return refuse(error, "capacity",
		    "must be 0: a window holds its tokens");
	if (params->debt != 0)
		return refuse(error, "debt", "must be 0 for a window");
	return 0;
}

static int
window_make(struct limit *limit, const struct weir_limit_params *params,
    struct weir_error *error)
{
	struct rate *rate = &limit->rate[0];
	int rc = window_unused(params, error);

	if (rc)
		return rc;
	rc = window_refusal(rate_make_window(rate, params->tokens,
	    params->period_ns), error);
	limit->most_cost = rate->most_cost;
	return rc;
}

static int
window_change(struct limit *limit, const struct limit *old,
    const struct weir_limit_params *params, uint64_t now_ns,
    struct weir_error *error)
{
	struct rate *rate = &limit->rate[0];
	int rc = window_unused(params, error);

	if (rc)
		return rc;
	rc = window_refusal(rate_change_window(rate, &old->rate[0],
	    params->tokens, params->period_ns, now_ns), error);
	limit->most_cost = rate->most_cost;
	return rc;
}

int
bucket_make(struct limit *limit, const struct weir_limit_params *params,
    struct weir_error *error)
{
	struct rate *rate = &limit->rate[0];
	int rc = bucket_refusal(rate_make(rate, params->tokens,
	    params->period_ns, params->capacity, params->debt), error);

	limit->most_cost = rate->most_cost;
	return rc;
}

int
bucket_change(struct limit *limit, const struct limit *old,
    const struct weir_limit_params *params, uint64_t now_ns,
    struct weir_error *error)
{
	struct rate *rate = &limit->rate[0];
	int rc = bucket_refusal(rate_change(rate, &old->rate[0],
	    params->tokens, params->period_ns, params->capacity, params->debt,
	    now_ns), error);

	limit->most_cost = rate->most_cost;
	return rc;
}

void
bucket_at(struct instant *in)
{
	in->at[0] = rate_at(&in->limit->rate[0], in->now_ns);
}

bool
bucket_idle(const struct instant *in, const struct cell *cell)
{
	const struct limit *limit = in->limit;

	return in->now_ns >= limit->settled_ns &&
	    v_since(&in->at[0], cell->word[0], cell->era[0]) >=
	    in->at[0].most + limit->skew[0];
}

void
bucket_open(struct account *account, const struct instant *in,
    const struct cell *cell)
{
	const struct vinstant *at = &in->at[0];

	account->changed = false;
	account->purse = cell ? purse_open(at, cell->word[0],
	    v_since(at, cell->word[0], cell->era[0])) : purse_full(at);
}

static enum weir_verdict
bucket_spend(struct account *account, const struct instant *in, uint64_t cost,
    enum weir_colour colour)
{
	(void)colour;
	if (!purse_spend(&account->purse, &in->limit->rate[0], cost))
		return WEIR_DENY;
	account->changed = true;
	return WEIR_PASS;
}

uint64_t
bucket_spend_some(struct account *account, const struct instant *in,
    uint64_t cost)
{
	const struct rate *rate = &in->limit->rate[0];
	uint64_t some = purse_tokens(&account->purse, rate);

	if (some > cost)
		some = cost;
	if (some == 0)
		return 0;
	purse_spend(&account->purse, rate, some);
	account->changed = true;
	return some;
}

/*
 * A refund moves S down, where all else moves it up. That is harmless as the cap
 * is applied on reading: however far down S is, a bucket holds no more than its
 * capacity.
 */
uint64_t
bucket_give(struct account *account, const struct instant *in,
    const struct cell *cell, const struct gift *gift)
{
	const struct rate *rate = &in->limit->rate[0];
	uint64_t units = purse_refund(&account->purse, rate, &in->at[0],
	    cell->era[0], gift->cost);

	account->changed = units != 0;
	return units / rate->token;
}

void
bucket_tell_level(const struct account *account, const struct instant *in,
    struct weir_decision *decision)
{
	const struct rate *rate = &in->limit->rate[0];
	const struct purse *purse = &account->purse;

	decision->remaining = purse_tokens(purse, rate);
	decision->reset_after_ns = purse_full_wait_ns(purse, rate, &in->at[0]);
	decision->debt = purse_debt(purse, rate);
}

static void
bucket_tell(const struct account *account, const struct instant *in,
    uint64_t rest, enum weir_colour colour, struct weir_decision *decision)
{
	(void)colour;
	bucket_tell_level(account, in, decision);
	decision->retry_after_ns = purse_wait_ns(&account->purse,
	    &in->limit->rate[0], &in->at[0], rest);
}

void
bucket_close(const struct account *account, struct cell *cell)
{
	cell->word[0] = account->purse.base & V_MASK;
}

const struct algorithm algorithm_bucket = {
	.words = 1,
	.eras = 1,
	.make = bucket_make,
	.change = bucket_change,
	.at = bucket_at,
	.idle = bucket_idle,
	.open = bucket_open,
	.spend = bucket_spend,
	.spend_some = bucket_spend_some,
	.give = bucket_give,
	.tell = bucket_tell,
	.close = bucket_close,
};

const struct algorithm algorithm_window = {
	.words = 1,
	.eras = 1,
	.make = window_make,
	.change = window_change,
	.at = bucket_at,
	.idle = bucket_idle,
	.open = bucket_open,
	.spend = bucket_spend,
	.spend_some = bucket_spend_some,
	.give = bucket_give,
	.tell = bucket_tell,
	.close = bucket_close,
};
