/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The capture clock: the time of a packet is the time stamp that the driver
 * left in it. A replay is then decided as the traffic came, not as fast as
 * this machine can read it, and comes out the same every time.
 *
 * Only the pcap driver's stamps are known to be time. What a network card
 * writes is in ticks of a clock of its own.
 */
#ifndef STAMP_H
#define STAMP_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

/* Where stamps are found in an mbuf. */
struct stamp_field {
	int offset;
	uint64_t flag;
};

/*
 * => 0 or a negative errno value. => EAL is initialised.
 */
int
stamp_field_register(struct stamp_field *field);

/*
 * A stamp of so many ns a unit since 1970 as ns.
 *
 * Classic captures hold seconds in 32 bits, which libpcap widens with their
 * sign; what came after January 2038 thus looks negative and is put right.
 * What is beyond the 64-bit clock (July 2554) is held at its end.
 */
static inline uint64_t
stamp_to_ns(uint64_t stamp, uint32_t unit_ns)
{
	const uint64_t units_ps = 1000000000 / unit_ns;

	if (stamp > UINT64_MAX - (units_ps << 31))
		stamp += units_ps << 32;
	if (stamp > UINT64_MAX / unit_ns)
		return UINT64_MAX;
	return stamp * unit_ns;
}

/* => false: the packet has no stamp. */
static inline bool
stamp_read(const struct rte_mbuf *m, const struct stamp_field *field,
    uint32_t unit_ns, uint64_t *now_ns)
{
	if ((m->ol_flags & field->flag) == 0)
		return false;
	*now_ns = stamp_to_ns(*RTE_MBUF_DYNFIELD(m, field->offset,
	    const rte_mbuf_timestamp_t *), unit_ns);
	return true;
}

#endif
