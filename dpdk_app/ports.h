/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports, and the ways packets take through them.
 *
 * Ports are paired in the order EAL found them: the first with the second, the
 * third with the fourth, each sending what the other received. A port without
 * a partner receives and counts.
 *
 * A *lane* leads from one receive queue to one transmit queue of the partner.
 * A lane belongs to one core, and so does every transmit queue: that is why
 * no queue needs a lock.
 */
#ifndef PORTS_H
#define PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_ethdev.h>

#include "capture.h"

#define PORT_NONE UINT16_MAX

struct port {
	uint16_t id;
	uint16_t partner; /* index in struct ports, or PORT_NONE */
	char name[RTE_ETH_NAME_MAX_LEN];
	struct rte_eth_dev_info info;
	struct capture_source source;
	uint32_t stamp_unit_ns; /* what one unit of its time stamps is */
	uint16_t n_rx;     /* receive queues */
	uint16_t n_tx;     /* transmit queues */
	uint16_t n_cores;  /* that share the receive queues */
	uint16_t first_core;
	bool rss;
	bool started;
	struct rte_eth_stats before; /* when it started */
};

struct lane {
	uint16_t port; /* index in struct ports */
	uint16_t rx_port, rx_queue;
	uint16_t tx_port, tx_queue; /* tx_port PORT_NONE: count and free */
	uint32_t stamp_unit_ns;
	uint16_t core;     /* 0..n_cores - 1 */
	bool runs_dry;     /* receiving nothing means it is done */
	uint64_t received; /* written by its core only */
};

struct ports {
	struct port ports[RTE_MAX_ETHPORTS];
	uint16_t n;
	uint16_t n_cores;
	bool capture_clock;
	struct lane *lanes;
	unsigned int n_lanes;
	struct rte_mempool *pool;
};

/* What a port says became of its packets since it was started. */
struct port_losses {
	uint64_t missed;    /* no room in the receive queue */
	uint64_t errors;    /* could not be received */
	uint64_t no_buffer; /* no mbuf for them */
	uint64_t tx_errors; /* taken for sending, then not sent */
	uint64_t unread;    /* still in the queue at the end */
	bool unsound;       /* the driver's count and ours contradict */
};

/*
 * Find all ports, plan their lanes for n_cores cores and set all up. No port
 * is started. With capture_clock, ports without time stamps are refused.
 *
 * => 0, or a negative errno value, having said why on stderr; then
 *    ports_close() is due all the same.
 */
int
ports_open(struct ports *ports, uint16_t n_cores, bool capture_clock);

/* => 0, or a negative errno value, having said why on stderr. */
int
ports_start(struct ports *ports);

/*
 * Compare a port's own count with what its lanes received.
 * => No lane is served.
 */
void
ports_losses(const struct ports *ports, uint16_t index,
    struct port_losses *losses);

/* Stop and close everything. => No lane is served. */
void
ports_close(struct ports *ports);

#endif
