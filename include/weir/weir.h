/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * weir: may this key spend this cost now?
 *
 * This is the one header to include. The life of a program that uses weir:
 *
 *	weir_engine_create()		memory is taken here, once
 *	weir_limit_add()		name a rate and a capacity
 *	weir_worker_attach()		on each thread that decides
 *	    weir_check_burst()		for each packet burst; never blocks
 *	    weir_worker_quiesce()	at the end of each turn of the poll loop
 *	weir_worker_detach()
 *	weir_engine_destroy()
 *
 * Words: a *limit* is a named rule; a *key* is the bytes that are limited; an
 * *entry* is limit + key + state in the table; a *worker* is one thread's
 * handle; *capacity* is what other limiters call the burst size of a bucket;
 * a *packet burst* is a handful of packets received together.
 *
 * Control calls return 0 or a negative errno value. Decisions return verdicts
 * and never errors.
 */
#ifndef WEIR_WEIR_H
#define WEIR_WEIR_H

#include <weir/check.h>
#include <weir/clock.h>
#include <weir/engine.h>
#include <weir/limit.h>
#include <weir/worker.h>

#endif
