/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's environment, started when the first peer needs it.
 *
 * It runs on the processor the process is pinned to, with neither devices nor
 * huge pages of its own: the peers bring their memory along, see pages.h.
 */
#ifndef BENCH_EAL_H
#define BENCH_EAL_H

/* => NULL, or what is wrong. May be called again. */
const char *
eal_start(void);
/* Stop it if it was started. It cannot be started again. */
void
eal_stop(void);

#endif
