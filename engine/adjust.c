/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One request that is not a plain check: look without taking.
 *
 * It goes the long way of decide.c, as a chunk of one with another intent.
 * There is one arithmetic and one set of cases; what differs is how much is
 * spent, and whether the outcome is written.
 */
#include "chunk.h"

enum weir_verdict
weir_peek(struct weir_worker *worker, const struct weir_request *request,
    uint64_t now_ns, struct weir_decision *decision)
{
	struct chunk c;

	if (!chunk_of_one(&c, worker, request, PEEK, now_ns, decision)) {
		chunk_tell_unknown(&c, 0);
		return WEIR_DENY;
	}
	decide_group(&c, 0);
	return c.item[0].class & 1 ? WEIR_PASS : WEIR_DENY;
}
