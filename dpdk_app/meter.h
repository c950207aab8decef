/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What packets are held to: the policy as an engine with its two limits, one
 * for every source and one for all that is unclassified.
 */
#ifndef METER_H
#define METER_H

#include <weir/weir.h>

#include "pkt_key.h"
#include "policy.h"

struct meter {
	struct policy policy;
	struct pkt_key_rules rules;
	struct weir_engine *engine;
	uint32_t source;       /* the limit of every source */
	uint32_t unclassified; /* the limit of packets without a key */
};

/*
 * Load a policy and make an engine that enforces it. With capture_clock, time
 * is that of packets, and may run back a little.
 *
 * => 0, or a negative errno value, having said on stderr which file, section
 *    and field is at fault. Nothing is kept then.
 */
int
meter_open(struct meter *meter, const char *policy_path, bool capture_clock);

/* => No worker is attached. */
void
meter_close(struct meter *meter);

#endif
