/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the algorithms that are a token bucket have in common: one word, which
 * holds S, and a purse for an account.
 */
#ifndef WEIR_BUCKET_H
#define WEIR_BUCKET_H

#include "algorithm.h"

/* -EINVAL, with the member at fault named. */
int
bucket_refusal(enum rate_fault fault, struct weir_error *error);

/* Token buckets: limit->rate[0] of params, at first and from now_ns on. */
int
bucket_make(struct limit *limit, const struct weir_limit_params *params,
    struct weir_error *error);
int
bucket_change(struct limit *limit, const struct limit *old,
    const struct weir_limit_params *params, uint64_t now_ns,
    struct weir_error *error);

void
bucket_at(struct instant *in);
bool
bucket_idle(const struct instant *in, const struct cell *cell);
void
bucket_open(struct account *account, const struct instant *in,
    const struct cell *cell);
uint64_t
bucket_spend_some(struct account *account, const struct instant *in,
    uint64_t cost);
uint64_t
bucket_give(struct account *account, const struct instant *in,
    const struct cell *cell, const struct gift *gift);
void
bucket_close(const struct account *account, struct cell *cell);

/* What every bucket can tell: how much it holds, and when it is full. */
void
bucket_tell_level(const struct account *account, const struct instant *in,
    struct weir_decision *decision);

#endif
