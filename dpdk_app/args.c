/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DURATION_MAX_S 1e9 /* 31 years; more is a slip of the finger */

static const char usage[] =
    "usage: weir-meter [EAL options] -- --policy FILE [options]\n"
    "\n"
    "Forwards packets between pairs of ports and holds every source address\n"
    "to the limit that the policy sets.\n"
    "\n"
    "  -p, --policy FILE        what to hold whom to (an INI file)\n"
    "  -c, --clock tsc|capture  time is the machine's (the default), or that\n"
    "                           of the packets of a capture\n"
    "  -s, --stats text|json    the report at the end (text is the default)\n"
    "  -d, --duration SECONDS   stop after so long; decimals are welcome\n"
    "  -n, --no-meter           forward everything, ask nobody\n"
    "  -h, --help               this text\n"
    "\n"
    "Stops when its captures are exhausted, after --duration, on SIGINT and\n"
    "on SIGTERM. EAL options choose ports and cores, for example\n"
    "  --no-huge -m 256 --no-pci -l 0\n"
    "  --vdev net_pcap0,rx_pcap=in.pcap,tx_pcap=back.pcap\n"
    "  --vdev net_pcap1,tx_pcap=out.pcap\n";

static const struct option long_options[] = {
	{ "policy", required_argument, NULL, 'p' },
	{ "clock", required_argument, NULL, 'c' },
	{ "stats", required_argument, NULL, 's' },
	{ "duration", required_argument, NULL, 'd' },
	{ "no-meter", no_argument, NULL, 'n' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static enum args_outcome
refuse(const char *option, const char *value, const char *wanted)
{
	fprintf(stderr, "weir-meter: %s %s: %s\n", option, value, wanted);
	return ARGS_REFUSED;
}

static enum args_outcome
read_clock(const char *value, struct args *args)
{
	if (strcmp(value, "tsc") == 0)
		args->clock = ARGS_CLOCK_TSC;
	else if (strcmp(value, "capture") == 0)
		args->clock = ARGS_CLOCK_CAPTURE;
	else
		return refuse("--clock", value, "must be tsc or capture");
	return ARGS_RUN;
}

static enum args_outcome
read_stats(const char *value, struct args *args)
{
	if (strcmp(value, "text") == 0)
		args->stats = ARGS_STATS_TEXT;
	else if (strcmp(value, "json") == 0)
		args->stats = ARGS_STATS_JSON;
	else
		return refuse("--stats", value, "must be text or json");
	return ARGS_RUN;
}

static enum args_outcome
read_duration(const char *value, struct args *args)
{
	char *end;
	double seconds;

	errno = 0;
	seconds = strtod(value, &end);
	if (end == value || *end != '\0' || errno != 0 ||
	    !isfinite(seconds) || seconds < 1e-6 || seconds > DURATION_MAX_S)
		return refuse("--duration", value,
		    "must be a number of seconds above 0, such as 2.5");
	args->duration_us = (uint64_t)(seconds * 1e6);
	return ARGS_RUN;
}

static enum args_outcome
read_option(int option, const char *value, struct args *args)
{
	switch (option) {
	case 'p':
		args->policy = value;
		return ARGS_RUN;
	case 'c':
		return read_clock(value, args);
	case 's':
		return read_stats(value, args);
	case 'd':
		return read_duration(value, args);
	case 'n':
		args->meter = false;
		return ARGS_RUN;
	case 'h':
		fputs(usage, stdout);
		return ARGS_HELP;
	default: /* getopt_long() has said what is wrong */
		return ARGS_REFUSED;
	}
}

/*
 * Where our half starts: at the first "--", which EAL stops at too. Whoever
 * asks for help without one means us as well as EAL.
 */
static int
find_separator(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0)
			break;
	}
	return i;
}

static bool
asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 ||
		    strcmp(argv[i], "-h") == 0)
			return true;
	}
	return false;
}

static enum args_outcome
check(const struct args *args)
{
	if (args->policy == NULL && args->meter) {
		fputs("weir-meter: --policy FILE is missing (or --no-meter)\n",
		    stderr);
		return ARGS_REFUSED;
	}
	return ARGS_RUN;
}

enum args_outcome
args_read(int argc, char **argv, struct args *args)
{
	static char name[] = "weir-meter";
	int option, separator = find_separator(argc, argv);
	enum args_outcome outcome;

	*args = (struct args){ .meter = true, .eal_argc = separator };
	if (asks_for_help(separator, argv)) {
		fputs(usage, stdout);
		return ARGS_HELP;
	}
	if (separator == argc) {
		fputs("weir-meter: no options after \"--\"; try --help\n",
		    stderr);
		return ARGS_REFUSED;
	}

	/* getopt_long() takes what stands first for the program's name. */
	argc -= separator;
	argv += separator;
	argv[0] = name;
	optind = 1;
	while ((option = getopt_long(argc, argv, "p:c:s:d:nh", long_options,
	    NULL)) != -1) {
		outcome = read_option(option, optarg, args);
		if (outcome != ARGS_RUN)
			return outcome;
	}
	if (optind < argc)
		return refuse("argument", argv[optind], "not an option");
	return check(args);
}
