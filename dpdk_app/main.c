/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir-meter: forwards packets and holds every source to its limit.
 *
 * The order of things is the point of this file: what people wrote is checked
 * before any port is touched, the engine takes its memory before EAL does, and
 * nothing is counted before everybody who counts has stopped.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "args.h"
#include "meter.h"
#include "ports.h"
#include "report.h"
#include "results.h"
#include "worker.h"

/* Exit statuses; 0 is EXIT_SUCCESS. */
#define EXIT_UNACCOUNTED 1 /* it ran, but not all packets are accounted for */
#define EXIT_REFUSED 2     /* it did not run */

struct run {
	struct args args;
	struct meter meter;
	bool has_meter;
	struct weir_clock *clock;
	struct ports ports;
	struct worker *workers; /* one per core, of which main's is the first */
	unsigned int n_workers;
	struct lane **lanes; /* what the workers' lists point into */
};

static void
on_signal(int signal)
{
	(void)signal;
	workers_stop();
}

/* Who starts a program with a signal ignored does not want it ended so. */
static void
catch_unless_ignored(int signal, const struct sigaction *action)
{
	struct sigaction inherited;

	if (sigaction(signal, NULL, &inherited) != 0 ||
	    inherited.sa_handler != SIG_IGN)
		sigaction(signal, action, NULL);
}

/* The first signal of a kind ends the run, a second one the program. */
static void
catch_signals(void)
{
	struct sigaction action = {
		.sa_handler = on_signal,
		.sa_flags = (int)SA_RESETHAND,
	};

	catch_unless_ignored(SIGINT, &action);
	catch_unless_ignored(SIGTERM, &action);
	sigaction(SIGALRM, &action, NULL);
}

/* The duration ends by a signal, too: then there is one way to end. */
static int
start_duration(uint64_t duration_us)
{
	const struct itimerval timer = {
		.it_value.tv_sec = (time_t)(duration_us / 1000000),
		.it_value.tv_usec = (suseconds_t)(duration_us % 1000000),
	};

	if (setitimer(ITIMER_REAL, &timer, NULL) == 0)
		return 0;
	perror("weir-meter: --duration");
	return -errno;
}

/*
 * Give each worker its lanes. With the lanes of one core side by side, a list
 * per worker is a piece of one list.
 */
static void
deal_lanes(struct run *run)
{
	struct lane **next = run->lanes;

	for (unsigned int i = 0; i < run->n_workers; i++) {
		struct worker *w = &run->workers[i];

		w->lanes = next;
		for (unsigned int l = 0; l < run->ports.n_lanes; l++) {
			if (run->ports.lanes[l].core == i)
				*next++ = &run->ports.lanes[l];
		}
		w->n_lanes = (unsigned int)(next - w->lanes);
	}
}

static int
create_talkers(struct worker *w)
{
	w->talkers = talkers_create(w->lcore,
	    (int)rte_lcore_to_socket_id(w->lcore));
	if (w->talkers != NULL)
		return 0;
	fputs("weir-meter: no memory to follow the most denied; give EAL more "
	    "with -m\n", stderr);
	return -ENOMEM;
}

static int
create_workers(struct run *run)
{
	struct stamp_field stamps;
	unsigned int lcore = rte_get_main_lcore();
	int ret;

	ret = stamp_field_register(&stamps);
	if (ret != 0) {
		fprintf(stderr, "weir-meter: no room for time stamps in "
		    "mbufs: %s\n", strerror(-ret));
		return ret;
	}
	run->workers = calloc(run->n_workers, sizeof(*run->workers));
	run->lanes = calloc(run->ports.n_lanes + 1, sizeof(struct lane *));
	if (run->workers == NULL || run->lanes == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < run->n_workers; i++) {
		struct worker *w = &run->workers[i];

		w->lcore = lcore;
		lcore = rte_get_next_lcore(i == 0 ? (unsigned int)-1 : lcore,
		    1, 0);
		w->meter = run->has_meter ? &run->meter : NULL;
		w->clock = run->clock;
		w->stamps = stamps;
		ret = run->has_meter ? create_talkers(w) : 0;
		if (ret != 0)
			return ret;
	}
	deal_lanes(run);
	return 0;
}

/* => 0, or a negative errno value: somebody could not start. */
static int
run_workers(struct run *run)
{
	int ret = 0;

	/* A core without a lane would only burn. */
	for (unsigned int i = 1; i < run->n_workers; i++) {
		if (run->workers[i].n_lanes > 0)
			rte_eal_remote_launch(worker_run, &run->workers[i],
			    run->workers[i].lcore);
	}
	/* Only now, as starting others may take long on a busy machine. */
	ret = start_duration(run->args.duration_us);
	if (ret != 0)
		workers_stop();
	else if (run->workers[0].n_lanes > 0)
		worker_run(&run->workers[0]);
	rte_eal_mp_wait_lcore();
	for (unsigned int i = 0; i < run->n_workers; i++) {
		if (run->workers[i].error != 0)
			ret = run->workers[i].error;
	}
	if (ret != 0)
		fprintf(stderr, "weir-meter: it could not start: %s\n",
		    strerror(-ret));
	return ret;
}

static int
prepare(struct run *run)
{
	bool capture = run->args.clock == ARGS_CLOCK_CAPTURE;
	int ret;

	run->n_workers = rte_lcore_count();
	ret = ports_open(&run->ports, (uint16_t)run->n_workers, capture);
	if (ret == 0 && !capture) {
		ret = weir_clock_open(WEIR_CLOCK_AUTO, &run->clock);
		if (ret != 0)
			fprintf(stderr, "weir-meter: no clock: %s\n",
			    strerror(-ret));
	}
	if (ret == 0)
		ret = create_workers(run);
	if (ret == 0)
		ret = ports_start(&run->ports);
	return ret;
}

static void
release(struct run *run)
{
	for (unsigned int i = 0; i < run->n_workers && run->workers != NULL;
	     i++)
		talkers_destroy(run->workers[i].talkers);
	free(run->workers);
	free(run->lanes);
	weir_clock_close(run->clock);
	ports_close(&run->ports);
}

/* All that happens while EAL is up. => The exit status. */
static int
meter_packets(struct run *run, FILE *out)
{
	const struct meter *meter = run->has_meter ? &run->meter : NULL;
	struct results results;
	int ret;

	if (prepare(run) != 0)
		return EXIT_REFUSED;
	catch_signals();
	fputs("weir-meter: running\n", stderr);
	if (run_workers(run) != 0)
		return EXIT_REFUSED;
	results_collect(&results, meter, &run->ports, run->workers,
	    run->n_workers);
	ret = report_write(out, &run->args, &results, meter);
	if (ret != 0) {
		fprintf(stderr, "weir-meter: the report is not written: %s\n",
		    strerror(-ret));
		return EXIT_UNACCOUNTED;
	}
	return results.accounted ? EXIT_SUCCESS : EXIT_UNACCOUNTED;
}

int
main(int argc, char **argv)
{
	static struct run run; /* large */
	int status = EXIT_REFUSED;
	FILE *out;

	switch (args_read(argc, argv, &run.args)) {
	case ARGS_HELP:
		return EXIT_SUCCESS;
	case ARGS_REFUSED:
		return EXIT_REFUSED;
	case ARGS_RUN:
		break;
	}
	/* A report that nobody reads is an error to tell, not to die of. */
	signal(SIGPIPE, SIG_IGN);
	out = report_open();
	if (out == NULL) {
		perror("weir-meter: standard output");
		return EXIT_REFUSED;
	}
	if (run.args.policy != NULL) {
		if (meter_open(&run.meter, run.args.policy,
		    run.args.clock == ARGS_CLOCK_CAPTURE) != 0)
			return EXIT_REFUSED;
		run.has_meter = run.args.meter;
	}
	if (rte_eal_init(run.args.eal_argc, argv) < 0) {
		fprintf(stderr, "weir-meter: EAL: %s\n",
		    rte_strerror(rte_errno));
	} else {
		status = meter_packets(&run, out);
		release(&run);
		rte_eal_cleanup();
	}
	meter_close(&run.meter);
	return status;
}
