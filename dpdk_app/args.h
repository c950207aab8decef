/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line:
 *
 *	weir-meter [EAL options] -- [weir-meter options]
 *
 * Our half is read before EAL is started, so that what is wrong with it, or
 * with the policy it names, is said at once and costs no port its traffic.
 */
#ifndef ARGS_H
#define ARGS_H

#include <stdbool.h>
#include <stdint.h>

enum args_clock {
	ARGS_CLOCK_TSC = 0, /* the machine's clock, read once a packet burst */
	ARGS_CLOCK_CAPTURE, /* the time stamps of the packets */
};

enum args_stats {
	ARGS_STATS_TEXT = 0,
	ARGS_STATS_JSON,
};

struct args {
	const char *policy; /* a path, or NULL: only without metering */
	enum args_clock clock;
	enum args_stats stats;
	uint64_t duration_us; /* 0: until told to stop */
	bool meter;
	int eal_argc; /* the part of argv that is EAL's, program name first */
};

enum args_outcome {
	ARGS_RUN = 0,
	ARGS_HELP,    /* asked for and printed: nothing else to do */
	ARGS_REFUSED, /* said why on stderr */
};

/*
 * Read the command line. The strings in *args are those of argv.
 */
enum args_outcome
args_read(int argc, char **argv, struct args *args);

#endif
