/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The report at the end. It is all that standard output ever gets.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdio.h>

#include "args.h"

struct meter;
struct results;

/*
 * Take standard output for the report alone: what anybody else writes there
 * from now on, drivers included, comes out on standard error.
 *
 * => NULL: not to be had.
 */
FILE *
report_open(void);

/*
 * Write the report and close its stream. meter is NULL if there was none.
 *
 * => 0, or a negative errno value: it is not written, or not all of it.
 */
int
report_write(FILE *out, const struct args *args, const struct results *results,
    const struct meter *meter);

#endif
