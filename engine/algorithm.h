/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The face of an algorithm.
 *
 * decide.c finds entries and writes outcomes; an algorithm knows what the words
 * of an entry mean. It is a set of functions from what an entry says, the time
 * and a cost to a verdict and what the entry says next: without a side effect,
 * so that a lost race is answered by calling them again.
 *
 *	entry --cell--> open() --account--> spend() ... --> close() --cell--> entry
 *
 * A key without an entry is as a fresh one, opened with no cell. An entry is
 * idle when it says nothing that a fresh one would not say.
 */
#ifndef WEIR_ALGORITHM_H
#define WEIR_ALGORITHM_H

#include <weir/check.h>

#include "limit.h"
#include "table.h"

/* A limit's clock as of one packet burst. */
struct instant {
	uint64_t burst; /* the packet burst it was computed for */
	const struct limit *limit;
	uint64_t now_ns;
	struct vinstant at[2]; /* of those that have token clocks, by word */
} __attribute__((aligned(64)));

/* An entry that was opened at an instant, to be spent from. */
struct account {
	bool changed; /* there is something to write */
	union {
		struct purse purse;
	};
};

/* What comes back of a request. */
struct gift {
	uint64_t cost;
	enum weir_verdict verdict; /* that it got */
	uint64_t mark;             /* reservation or time that it was told */
};

struct algorithm {
	/* How many words of an entry it takes; two are in wide ones only. And
	 * how many of them have eras (vclock.h). */
	unsigned words;
	unsigned eras;

	/*
	 * Fill in limit->rate and limit->most_cost, and refuse what cannot be
	 * represented. => 0, or -EINVAL, and *error names the member.
	 */
	int (*make)(struct limit *limit, const struct weir_limit_params *params,
	    struct weir_error *error);
	/*
	 * The same for a version of `old` that holds from now_ns on. Every key
	 * keeps what it has, in tokens, and gains nothing by the change.
	 */
	int (*change)(struct limit *limit, const struct limit *old,
	    const struct weir_limit_params *params, uint64_t now_ns,
	    struct weir_error *error);

	/* Set the clock to in->now_ns. */
	void (*at)(struct instant *in);
	/* Does it say nothing, to any clock within the skew? */
	bool (*idle)(const struct instant *in, const struct cell *cell);
	void (*open)(struct account *account, const struct instant *in,
	    const struct cell *cell);
	/* The colour is the request's. => 1 <= cost <= limit->most_cost: the
	 * others are decided before. */
	enum weir_verdict (*spend)(struct account *account,
	    const struct instant *in, uint64_t cost, enum weir_colour colour);
	/* Spend up to cost. => How many tokens it was. */
	uint64_t (*spend_some)(struct account *account,
	    const struct instant *in, uint64_t cost);
	/* Give back up to what the gift says, to an entry. => How many tokens
	 * found room. */
	uint64_t (*give)(struct account *account, const struct instant *in,
	    const struct cell *cell, const struct gift *gift);
	/* Fill in what the account holds now that this request was decided:
	 * the verdict and the limit are there already. `rest` is what it did
	 * not get of its cost. */
	void (*tell)(const struct account *account, const struct instant *in,
	    uint64_t rest, enum weir_colour colour,
	    struct weir_decision *decision);
	/* What the entry is to say. */
	void (*close)(const struct account *account, struct cell *cell);
};

extern const struct algorithm algorithm_bucket;
extern const struct algorithm algorithm_window;
extern const struct algorithm algorithm_constant; /* unlimited, closed */

/* => NULL: there is none of that name. */
const struct algorithm *
algorithm_of(enum weir_algorithm name);

#endif
