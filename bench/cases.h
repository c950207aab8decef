/* SPDX-License-Identifier: BSD-3-Clause */
/* The cases, each from the file of its kind. */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include "harness.h"

extern const struct bench_case bench_floor_line;
extern const struct bench_case bench_check_one;
extern const struct bench_case bench_check_burst;
extern const struct bench_case bench_check_pipelined;
extern const struct bench_case bench_rte_hash_meter;
extern const struct bench_case bench_rte_hash_meter_spinlock;
extern const struct bench_case bench_rte_hash_meter_prefetch;

/*
 * The slots and the size of an entry of weir's table for n_keys keys.
 * => false if the engine cannot be made.
 */
bool
bench_weir_shape(uint64_t n_keys, uint64_t *slots, uint32_t *entry_bytes);

/* Undo what the peers did to the process, once, at its end. */
void
bench_rte_close(void);

#endif
