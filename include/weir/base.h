/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every other weir header needs: export marks, errors, opaque types.
 */
#ifndef WEIR_BASE_H
#define WEIR_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WEIR_BEGIN_DECLS extern "C" {
#define WEIR_END_DECLS }
#else
#define WEIR_BEGIN_DECLS
#define WEIR_END_DECLS
#endif

#define WEIR_API __attribute__((visibility("default")))

WEIR_BEGIN_DECLS

struct weir_engine;
struct weir_worker;
struct weir_clock;

/*
 * Why a control call refused its arguments. Both strings are static: they
 * need no freeing and stay valid for the life of the program. After success
 * both are NULL.
 */
struct weir_error {
	const char *field;  /* the member of the params struct at fault */
	const char *reason; /* what is wrong with it, as a short clause */
};

/* A wait that no amount of waiting ends. */
#define WEIR_NEVER UINT64_MAX

WEIR_END_DECLS

#endif
