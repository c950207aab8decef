/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Algorithms by name, and the two that keep nothing.
 */
#include "algorithm.h"

/* The same for all keys, for ever: there are no numbers to it. */
static int
constant_make(struct limit *limit, const struct weir_limit_params *params,
    struct weir_error *error)
{
	static const char no_number[] =
	    "must be 0: the limit is unlimited or closed";

	(void)limit;
	if (params->tokens != 0)
		return refuse(error, "tokens", no_number);
	if (params->period_ns != 0)
		return refuse(error, "period_ns", no_number);
	if (params->capacity != 0)
		return refuse(error, "capacity", no_number);
	if (params->debt != 0)
		return refuse(error, "debt", no_number);
	return 0;
}

static int
constant_change(struct limit *limit, const struct limit *old,
    const struct weir_limit_params *params, uint64_t now_ns,
    struct weir_error *error)
{
	(void)old;
	(void)now_ns;
	return constant_make(limit, params, error);
}

static void
constant_at(struct instant *in)
{
	(void)in;
}

/* It has no words: nobody opens an account. */
const struct algorithm algorithm_constant = {
	.make = constant_make,
	.change = constant_change,
	.at = constant_at,
};

const struct algorithm *
algorithm_of(enum weir_algorithm name)
{
	switch (name) {
	case WEIR_TOKEN_BUCKET:
		return &algorithm_bucket;
	case WEIR_FIXED_WINDOW:
		return &algorithm_window;
	case WEIR_UNLIMITED:
	case WEIR_CLOSED:
		return &algorithm_constant;
	}
	return NULL;
}
