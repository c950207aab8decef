/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port's packets come from. A port that reads capture files runs dry,
 * and that is how a replay ends; only the pcap driver's device arguments tell.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

struct rte_eth_dev_info;

struct capture_source {
	bool pcap;       /* the pcap driver's, which counts exactly */
	bool runs_dry;   /* capture files, each read once; or nothing at all */
	bool stamped;    /* every packet carries the time it was captured */
	uint64_t looped; /* packets that infinite_rx holds in mbufs for good */
};

/*
 * Find out about a port, and look into its captures: a capture that is not of
 * Ethernet is refused, because the driver would not tell.
 *
 * => 0 and *source; or -EINVAL, -EIO or -ENOMEM, having said why on stderr.
 */
int
capture_source_find(const struct rte_eth_dev_info *info,
    struct capture_source *source);

#endif
