/* SPDX-License-Identifier: BSD-3-Clause */
/* What one must know about the machine to read the numbers. */
#define _GNU_SOURCE /* sched_getcpu */
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <rte_version.h>

#include "harness.h"

/*
 * The rest of the first line of a file that begins with `prefix`, without
 * blanks and a colon before it. => false if there is no such line.
 */
static bool
line_find(const char *path, const char *prefix, char *value, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t prefix_length = strlen(prefix);
	char line[512];
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		const char *rest = line + prefix_length;

		if (strncmp(line, prefix, prefix_length) != 0)
			continue;
		rest += strspn(rest, " \t:");
		snprintf(value, size, "%.*s", (int)strcspn(rest, "\n"), rest);
		found = true;
	}
	fclose(file);
	return found;
}

static void
emit_line(bench_fact_fn emit, const char *name, const char *path,
    const char *prefix)
{
	char value[256];

	if (line_find(path, prefix, value, sizeof(value)))
		emit(name, value);
	else
		emit(name, "unknown");
}

void
bench_facts(bench_fact_fn emit)
{
	struct utsname system;
	char value[256];

	emit_line(emit, "cpu_model", "/proc/cpuinfo", "model name");
	emit_line(emit, "cpu_cache", "/proc/cpuinfo", "cache size");
	snprintf(value, sizeof(value), "%d", sched_getcpu());
	emit("pinned_to_cpu", value);
	if (uname(&system) == 0) {
		snprintf(value, sizeof(value), "%s %s", system.sysname,
		    system.release);
		emit("kernel", value);
	}
	emit_line(emit, "transparent_hugepage",
	    "/sys/kernel/mm/transparent_hugepage/enabled", "");
	emit_line(emit, "hugepages_total", "/proc/meminfo", "HugePages_Total");
	emit_line(emit, "hugepages_free", "/proc/meminfo", "HugePages_Free");
	emit_line(emit, "memory_total", "/proc/meminfo", "MemTotal");
	emit_line(emit, "load_average", "/proc/loadavg", "");
	emit("compiler", __VERSION__);
	emit("dpdk", rte_version());
	emit("memory",
	    "weir, floor and peers: explicit 2 MB pages if reserved, else "
	    "MADV_HUGEPAGE; counter huge is the share of a row's table that "
	    "got 2 MB pages");
}
