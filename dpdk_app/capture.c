/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture.h"

#include <errno.h>
#include <pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>
#include <rte_kvargs.h>

/* The pcap driver's arguments, of which the first present one of each line
 * decides what is received. */
#define ARG_IFACE "iface"
#define ARG_RX_FILE "rx_pcap"
#define ARG_RX_IFACE "rx_iface"
#define ARG_RX_IFACE_IN "rx_iface_in"
#define ARG_INFINITE "infinite_rx"

static uint64_t
count_packets(pcap_t *pcap)
{
	struct pcap_pkthdr *header;
	const u_char *data;
	uint64_t n = 0;

	/* A damaged end is the driver's to report; it stops there too. */
	while (pcap_next_ex(pcap, &header, &data) == 1)
		n++;
	return n;
}

/* Look into one capture, unless looking would take packets away. */
static int
inspect(const char *path, struct capture_source *source)
{
	char error[PCAP_ERRBUF_SIZE];
	struct stat status;
	const char *name;
	pcap_t *pcap;
	int ret = 0, type;

	if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
		return 0;
	pcap = pcap_open_offline(path, error);
	if (pcap == NULL) {
		fprintf(stderr, "weir-meter: %s: %s\n", path, error);
		return -EIO;
	}
	type = pcap_datalink(pcap);
	if (type != DLT_EN10MB) {
		name = pcap_datalink_val_to_name(type);
		fprintf(stderr, "weir-meter: %s: link type %s, not EN10MB\n",
		    path, name != NULL ? name : "unknown");
		ret = -EINVAL;
	} else if (!source->runs_dry) {
		source->looped += count_packets(pcap);
	}
	pcap_close(pcap);
	return ret;
}

static int
visit_file(const char *key, const char *path, void *source)
{
	(void)key;
	return path != NULL ? inspect(path, source) : 0;
}

/* The driver heeds this argument if it is there once, and reads it so. */
static bool
is_infinite(const struct rte_kvargs *args)
{
	const char *value = rte_kvargs_get(args, ARG_INFINITE);

	return rte_kvargs_count(args, ARG_INFINITE) == 1 && value != NULL &&
	    atoi(value) > 0;
}

static int
read_arguments(const struct rte_kvargs *args, struct capture_source *source)
{
	bool live;

	source->pcap = true;
	source->stamped = true;
	if (rte_kvargs_count(args, ARG_IFACE) == 1)
		return 0;
	if (rte_kvargs_count(args, ARG_RX_FILE) == 0) {
		live = rte_kvargs_count(args, ARG_RX_IFACE) > 0 ||
		    rte_kvargs_count(args, ARG_RX_IFACE_IN) > 0;
		source->runs_dry = !live;
		return 0;
	}
	source->runs_dry = !is_infinite(args);
	source->stamped = source->runs_dry;
	return rte_kvargs_process(args, ARG_RX_FILE, visit_file, source);
}

int
capture_source_find(const struct rte_eth_dev_info *info,
    struct capture_source *source)
{
	const struct rte_devargs *devargs;
	struct rte_kvargs *args;
	int ret;

	*source = (struct capture_source){ .pcap = false };
	if (strcmp(info->driver_name, "net_pcap") != 0)
		return 0;
	devargs = rte_dev_devargs(info->device);
	if (devargs == NULL || devargs->args == NULL)
		return 0;
	args = rte_kvargs_parse(devargs->args, NULL);
	if (args == NULL) {
		fprintf(stderr, "weir-meter: %s: cannot read its arguments\n",
		    rte_dev_name(info->device));
		return -EINVAL;
	}
	ret = read_arguments(args, source);
	rte_kvargs_free(args);
	return ret;
}
