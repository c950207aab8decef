/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of {at, cost, expect, retry}: what one key asks of one limit, and the
 * right answers, worked out by hand in the margin.
 */
#ifndef TESTS_UNIT_ROWS_H
#define TESTS_UNIT_ROWS_H

#include "../support.h"

/* Verdicts short enough for a column. */
#define A WEIR_PASS
#define D WEIR_DENY

#define LEFT(n) .left_known = true, .left = (n)

struct row {
	uint64_t at_ns;
	uint64_t cost;
	enum weir_verdict expect;
	uint64_t retry_ns; /* of a denial */
	bool left_known;
	uint64_t left; /* whole tokens left after it */
};

struct row_limit {
	uint64_t tokens;
	uint64_t period_ns;
	uint64_t capacity;
};

/*
 * Play the rows to a fresh key, and again: counted in packets and in bytes;
 * one call per row and one packet burst per instant; with all times shifted
 * to where counters of 31, 32, 62, 63 and 64 bits, of nanoseconds or of
 * milliseconds, come to their end. The answers must not change.
 */
void rows_play(const char *name, struct row_limit limit,
    const struct row *rows, size_t n);

#define ROWS_PLAY(name, limit, ...) \
	do { \
		const struct row rows_[] = { __VA_ARGS__ }; \
		rows_play(name, limit, rows_, NELEM(rows_)); \
	} while (0)

#endif
