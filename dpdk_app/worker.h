/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One worker per core: the packet loop, and what it counts.
 */
#ifndef WORKER_H
#define WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "meter.h"
#include "stamp.h"
#include "talkers.h"

#define WORKER_BURST 64u /* packets received at once */

struct lane;

/*
 * What became of packets. Every packet received is either passed or dropped;
 * the other numbers say something more about some of them.
 */
struct tally {
	uint64_t passed;
	uint64_t dropped;
	uint64_t unclassified; /* had no readable key */
	uint64_t tx_failed;    /* passed, but the port would not take it */
	uint64_t cut;          /* arrived shorter than the driver says */
	uint64_t unstamped;    /* decided at the time of the one before */
	uint64_t first_cycle;  /* TSC when packets were first received */
	uint64_t last_cycle;   /* TSC when the last ones were done; 0: none */
};

struct worker {
	unsigned int lcore;
	const struct meter *meter;      /* NULL: everything passes */
	const struct weir_clock *clock; /* NULL: the capture clock */
	struct stamp_field stamps;
	struct lane **lanes; /* its own, n_lanes of them */
	unsigned int n_lanes;
	struct talkers *talkers; /* NULL without a meter */

	/* Written by the worker, read when it has ended. */
	struct tally tally;
	int error; /* why it could not run, as a negative errno value */
};

/*
 * Serve the worker's lanes until all have run dry or workers_stop() is called.
 * The argument is a struct worker; the result is its .error.
 *
 * => Its own thread.
 */
int
worker_run(void *worker);

/* Make all workers end soon. => Anywhere, signal handlers included. */
void
workers_stop(void);

#endif
