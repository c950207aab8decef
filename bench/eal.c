/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* sched_getcpu */
#include "eal.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#include <rte_common.h>
#include <rte_eal.h>

static bool started, failed;

/*
 * EAL's start waits for threads of its own, which inherit the caller's
 * scheduling. Under a real-time policy and on one processor that may take for
 * ever: start it as an ordinary process, then go back to what we were.
 */
static int
init_unhurried(int argc, char **argv)
{
	struct sched_param ordinary = { 0 }, before;
	int policy = sched_getscheduler(0), result;

	if (policy == SCHED_OTHER || policy < 0 ||
	    sched_getparam(0, &before) != 0 ||
	    sched_setscheduler(0, SCHED_OTHER, &ordinary) != 0)
		return rte_eal_init(argc, argv);
	result = rte_eal_init(argc, argv);
	(void)sched_setscheduler(0, policy, &before); /* slower at worst */
	return result;
}

const char *
eal_start(void)
{
	/* Static: EAL keeps pointers into its arguments. */
	static char lcores[32];
	static char program[] = "weir-bench", lcores_name[] = "--lcores",
		    no_huge[] = "--no-huge", memory[] = "-m64",
		    no_shconf[] = "--no-shconf", no_pci[] = "--no-pci",
		    no_telemetry[] = "--no-telemetry",
		    log_level[] = "--log-level=*:error";
	char *argv[] = { program, lcores_name, lcores, no_huge, memory,
		no_shconf, no_pci, no_telemetry, log_level, NULL };

	if (started)
		return NULL;
	if (failed)
		return "rte_eal_init() failed";
	snprintf(lcores, sizeof(lcores), "0@%d", sched_getcpu());
	/* --in-memory would be the natural choice, but does not go together
	 * with --no-huge in DPDK 22.11; --no-shconf shares no files either. */
	if (init_unhurried(RTE_DIM(argv) - 1, argv) < 0) {
		failed = true; /* and EAL is not made to be asked twice */
		return "rte_eal_init() failed";
	}
	started = true;
	return NULL;
}

void
eal_stop(void)
{
	if (started)
		rte_eal_cleanup();
	started = false;
}
