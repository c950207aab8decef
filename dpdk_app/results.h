/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a run came to, and whether it adds up.
 */
#ifndef RESULTS_H
#define RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "meter.h"
#include "talkers.h"

struct ports;
struct worker;

#define RESULTS_LIMITS 2u
#define RESULTS_TOP 10u

struct result_limit {
	const char *name; /* the policy's */
	struct weir_counters counters;
};

struct results {
	uint64_t packets; /* received */
	uint64_t passed;
	uint64_t dropped;
	uint64_t unclassified;
	double seconds; /* from the first packets' arrival to the last's end */
	double mpps;
	struct result_limit limits[RESULTS_LIMITS];
	size_t n_limits; /* 0: everything passed without being asked about */
	struct talker top[RESULTS_TOP];
	size_t n_top;

	uint64_t tx_failed; /* of passed: the port would not take it */
	uint64_t tx_errors; /* of passed: the port took it and failed */
	uint64_t rx_missed;
	uint64_t rx_errors;
	uint64_t rx_no_buffer;
	uint64_t rx_unread;
	uint64_t rx_cut;
	uint64_t unstamped;
	bool accounted; /* nothing lost, and all numbers agree */
};

/*
 * Sum up. What does not add up is said on stderr, a line each.
 *
 * => No worker runs; the ports are still open. meter is NULL if there was
 *    none, and must outlive the results.
 */
void
results_collect(struct results *results, const struct meter *meter,
    const struct ports *ports, const struct worker *workers, size_t n_workers);

#endif
