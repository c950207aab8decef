/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many queues? A port that can spread packets by RSS gets one receive
 * queue for each core. A port that cannot was given its queues by whoever made
 * it (pcap: one per capture; af_packet: qpairs), and packets arrive on all of
 * them: so all are received from, by as many cores as the partner has transmit
 * queues.
 *
 * How many mbufs? A receive call that finds none loses a packet of the capture
 * it reads, so there are always enough: all that the queues, the caches and
 * the packet bursts under way can hold, and what infinite_rx keeps.
 *
 * Is a port missing? EAL goes on without a device that it cannot make, and all
 * ports behind it would move up by one: packets would leave by another port
 * than was meant. So each device that was asked for must have become a port.
 */
#include "ports.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_memory.h>

#include "worker.h"

#define DESCRIPTORS 1024
#define POOL_CACHE 256
#define QUEUES_GIVEN_MAX 16 /* of a port without RSS; pcap's most */
#define SEGMENTS_MAX 33     /* mbufs that the pcap driver makes of 64 KiB */

static int __attribute__((format(printf, 3, 4)))
refuse(const struct port *port, int error, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "weir-meter: port %u (%s): ", port->id, port->name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	if (error != -EINVAL)
		fprintf(stderr, ": %s", strerror(-error));
	fputc('\n', stderr);
	return error;
}

static struct port *
partner_of(struct ports *ports, const struct port *port)
{
	return port->partner != PORT_NONE ? &ports->ports[port->partner] :
	    NULL;
}

static int
find_port(struct ports *ports, struct port *port, uint16_t id)
{
	int ret;

	port->id = id;
	port->partner = PORT_NONE;
	if (rte_eth_dev_get_name_by_port(id, port->name) != 0)
		snprintf(port->name, sizeof(port->name), "?");
	ret = rte_eth_dev_info_get(id, &port->info);
	if (ret != 0)
		return refuse(port, ret, "cannot be described");
	ret = capture_source_find(&port->info, &port->source);
	if (ret != 0)
		return refuse(port, -EINVAL, "its captures cannot be used");
	if (ports->capture_clock && !port->source.stamped)
		return refuse(port, -EINVAL, "its packets carry no time "
		    "stamps, which --clock capture needs%s",
		    port->source.pcap ? " (infinite_rx gives none)" : "");
	/*
	 * Up to DPDK 26.03 the pcap driver stamps every packet, in
	 * microseconds. The change that turned them into nanoseconds also made
	 * them an offload that must be asked for: who offers it, means ns.
	 */
	port->stamp_unit_ns = (port->info.rx_offload_capa &
	    RTE_ETH_RX_OFFLOAD_TIMESTAMP) != 0 ? 1 : 1000;
	return 0;
}

/* Whether one who names this device wants ports: all cards, and of what is
 * virtual that which is called a net. */
static bool
wants_port(const struct rte_devargs *devargs)
{
	const char *bus = rte_bus_name(devargs->bus);

	if (devargs->policy == RTE_DEV_BLOCKED)
		return false;
	if (strcmp(bus, "vdev") == 0)
		return strncmp(devargs->name, "net_", 4) == 0 ||
		    strncmp(devargs->name, "eth_", 4) == 0;
	return strcmp(bus, "pci") == 0;
}

/* Ports that serve a port of another driver are not ours, but count here. */
static bool
has_port(const struct rte_devargs *devargs)
{
	struct rte_eth_dev_info info;
	uint16_t id;

	for (id = rte_eth_find_next(0); id < RTE_MAX_ETHPORTS;
	     id = rte_eth_find_next((uint16_t)(id + 1))) {
		if (rte_eth_dev_info_get(id, &info) == 0 &&
		    rte_dev_devargs(info.device) == devargs)
			return true;
	}
	return false;
}

static int
check_devices(void)
{
	const struct rte_devargs *devargs;
	int ret = 0;

	RTE_EAL_DEVARGS_FOREACH(NULL, devargs) {
		if (!wants_port(devargs) || has_port(devargs))
			continue;
		fprintf(stderr, "weir-meter: device %s (%s) has not become a "
		    "port; what EAL said of it stands above\n", devargs->name,
		    devargs->args != NULL ? devargs->args : "");
		ret = -ENODEV;
	}
	return ret;
}

static int
find_ports(struct ports *ports)
{
	uint16_t id;
	int ret;

	ret = check_devices();
	if (ret != 0)
		return ret;
	RTE_ETH_FOREACH_DEV(id) {
		ret = find_port(ports, &ports->ports[ports->n], id);
		if (ret != 0)
			return ret;
		ports->n++;
	}
	if (ports->n == 0) {
		fputs("weir-meter: no port; give EAL one with --vdev or -a\n",
		    stderr);
		return -ENODEV;
	}
	for (uint16_t i = 0; i + 1 < ports->n; i += 2) {
		ports->ports[i].partner = i + 1;
		ports->ports[i + 1].partner = i;
	}
	return 0;
}

/* How many queues port receives on, and how many cores may serve them. */
static void
plan_port(struct ports *ports, struct port *port)
{
	const struct port *partner = partner_of(ports, port);
	uint16_t cores = ports->n_cores, queues = port->info.max_rx_queues;

	/* Without a transmit queue at the partner it is as if alone. */
	if (partner != NULL && partner->info.max_tx_queues > 0)
		cores = RTE_MIN(cores, partner->info.max_tx_queues);
	port->rss = queues > 1 && cores > 1 &&
	    (port->info.flow_type_rss_offloads & RTE_ETH_RSS_IP) != 0;
	if (port->rss)
		queues = RTE_MIN(queues, cores);
	else if (port->info.flow_type_rss_offloads != 0)
		queues = RTE_MIN(queues, 1);
	else
		queues = RTE_MIN(queues, QUEUES_GIVEN_MAX);
	port->n_rx = queues;
	port->n_cores = RTE_MIN(queues, cores);
}

static void
plan_ports(struct ports *ports)
{
	unsigned int next_core = 0;

	for (uint16_t i = 0; i < ports->n; i++)
		plan_port(ports, &ports->ports[i]);
	for (uint16_t i = 0; i < ports->n; i++) {
		struct port *port = &ports->ports[i];
		const struct port *partner = partner_of(ports, port);

		port->first_core = (uint16_t)(next_core % ports->n_cores);
		next_core += port->n_cores;
		ports->n_lanes += port->n_rx;
		port->n_tx = partner != NULL ? partner->n_cores : 1;
		port->n_tx = RTE_MIN(port->n_tx, port->info.max_tx_queues);
	}
}

static struct lane
plan_lane(struct ports *ports, uint16_t index, uint16_t queue)
{
	const struct port *port = &ports->ports[index];
	const struct port *partner = partner_of(ports, port);
	uint16_t share = (uint16_t)(queue % port->n_cores);
	struct lane lane = {
		.port = index,
		.rx_port = port->id,
		.rx_queue = queue,
		.tx_port = PORT_NONE,
		.stamp_unit_ns = port->stamp_unit_ns,
		.core = (uint16_t)((port->first_core + share) %
		    ports->n_cores),
		.runs_dry = port->source.runs_dry,
	};

	if (partner != NULL && partner->n_tx > 0) {
		lane.tx_port = partner->id;
		lane.tx_queue = share;
	}
	return lane;
}

static int
plan_lanes(struct ports *ports)
{
	unsigned int n = 0;

	ports->lanes = calloc(ports->n_lanes + 1, sizeof(*ports->lanes));
	if (ports->lanes == NULL)
		return -ENOMEM;
	for (uint16_t i = 0; i < ports->n; i++) {
		for (uint16_t q = 0; q < ports->ports[i].n_rx; q++)
			ports->lanes[n++] = plan_lane(ports, i, q);
	}
	return 0;
}

static int
create_pool(struct ports *ports)
{
	uint64_t n = 0;

	n += (uint64_t)(ports->n_cores + 1) *
	    (WORKER_BURST * SEGMENTS_MAX + 2 * POOL_CACHE);
	for (uint16_t i = 0; i < ports->n; i++) {
		const struct port *port = &ports->ports[i];

		n += (uint64_t)(port->n_rx + port->n_tx) * DESCRIPTORS;
		n += port->source.looped;
	}
	if (n <= UINT32_MAX)
		ports->pool = rte_pktmbuf_pool_create("weir-meter",
		    (unsigned int)n, POOL_CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
		    (int)rte_socket_id());
	if (ports->pool != NULL)
		return 0;
	fprintf(stderr, "weir-meter: no memory for %" PRIu64 " mbufs (%" PRIu64
	    " MiB in one piece); EAL has %" PRIu64 " MiB in all, give it more "
	    "with -m\n", n,
	    n * (RTE_MBUF_DEFAULT_BUF_SIZE + sizeof(struct rte_mbuf)) >> 20,
	    (uint64_t)rte_eal_get_physmem_size() >> 20);
	return -ENOMEM;
}

static int
setup_queues(struct ports *ports, struct port *port,
    const struct rte_eth_conf *conf)
{
	struct rte_eth_rxconf rx = port->info.default_rxconf;
	struct rte_eth_txconf tx = port->info.default_txconf;
	uint16_t n_rx_desc = DESCRIPTORS, n_tx_desc = DESCRIPTORS;
	int ret, socket = rte_eth_dev_socket_id(port->id);

	ret = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &n_rx_desc,
	    &n_tx_desc);
	if (ret != 0)
		return refuse(port, ret, "descriptors");
	rx.offloads = conf->rxmode.offloads;
	tx.offloads = conf->txmode.offloads;
	for (uint16_t q = 0; q < port->n_rx; q++) {
		ret = rte_eth_rx_queue_setup(port->id, q, n_rx_desc,
		    (unsigned int)socket, &rx, ports->pool);
		if (ret != 0)
			return refuse(port, ret, "receive queue %u", q);
	}
	for (uint16_t q = 0; q < port->n_tx; q++) {
		ret = rte_eth_tx_queue_setup(port->id, q, n_tx_desc,
		    (unsigned int)socket, &tx);
		if (ret != 0)
			return refuse(port, ret, "transmit queue %u", q);
	}
	return 0;
}

static int
setup_port(struct ports *ports, struct port *port)
{
	struct rte_eth_conf conf = { 0 };
	int ret;

	if (port->rss) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = RTE_ETH_RSS_IP &
		    port->info.flow_type_rss_offloads;
	}
	if (ports->capture_clock)
		conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_TIMESTAMP &
		    port->info.rx_offload_capa;
	conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS &
	    port->info.tx_offload_capa;
	ret = rte_eth_dev_configure(port->id, port->n_rx, port->n_tx, &conf);
	if (ret != 0)
		return refuse(port, ret, "cannot be configured");
	return setup_queues(ports, port, &conf);
}

int
ports_open(struct ports *ports, uint16_t n_cores, bool capture_clock)
{
	int ret;

	memset(ports, 0, sizeof(*ports));
	ports->n_cores = n_cores;
	ports->capture_clock = capture_clock;
	ret = find_ports(ports);
	if (ret != 0)
		return ret;
	plan_ports(ports);
	ret = plan_lanes(ports);
	if (ret == 0)
		ret = create_pool(ports);
	for (uint16_t i = 0; i < ports->n && ret == 0; i++)
		ret = setup_port(ports, &ports->ports[i]);
	return ret;
}

int
ports_start(struct ports *ports)
{
	int ret;

	for (uint16_t i = 0; i < ports->n; i++) {
		struct port *port = &ports->ports[i];

		ret = rte_eth_dev_start(port->id);
		if (ret != 0)
			return refuse(port, ret, "cannot be started");
		port->started = true;
		/* What is not for us passes through as well. */
		ret = rte_eth_promiscuous_enable(port->id);
		if (ret != 0 && ret != -ENOTSUP)
			return refuse(port, ret, "promiscuous mode");
		if (rte_eth_stats_get(port->id, &port->before) != 0)
			memset(&port->before, 0, sizeof(port->before));
	}
	return 0;
}

static uint64_t
lanes_received(const struct ports *ports, uint16_t index)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < ports->n_lanes; i++) {
		if (ports->lanes[i].port == index)
			sum += ports->lanes[i].received;
	}
	return sum;
}

void
ports_losses(const struct ports *ports, uint16_t index,
    struct port_losses *losses)
{
	const struct port *port = &ports->ports[index];
	const struct rte_eth_stats *before = &port->before;
	uint64_t counted, received = lanes_received(ports, index);
	struct rte_eth_stats now;

	memset(losses, 0, sizeof(*losses));
	if (rte_eth_stats_get(port->id, &now) != 0) {
		losses->unsound = port->source.pcap;
		return;
	}
	losses->missed = now.imissed - before->imissed;
	losses->errors = now.ierrors - before->ierrors;
	losses->no_buffer = now.rx_nombuf - before->rx_nombuf;
	losses->tx_errors = now.oerrors - before->oerrors;

	/* The pcap driver counts what it hands out. A card counts what it
	 * takes in, some of which may not have been read; or it counts
	 * nothing. */
	counted = now.ipackets - before->ipackets;
	if (port->source.pcap)
		losses->unsound = counted != received;
	else if (counted != 0)
		losses->unsound = counted < received;
	if (counted > received)
		losses->unread = counted - received;
}

void
ports_close(struct ports *ports)
{
	for (uint16_t i = 0; i < ports->n; i++) {
		struct port *port = &ports->ports[i];

		if (port->started)
			rte_eth_dev_stop(port->id);
		rte_eth_dev_close(port->id);
	}
	rte_mempool_free(ports->pool);
	free(ports->lanes);
}
