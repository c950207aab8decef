/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy file: an INI file that says what weir-meter holds whom to. See
 * docs/policy.md for the format.
 *
 * A file is either taken whole or refused with file, line, section and field
 * named; nothing in it is guessed, cut or ignored.
 */
#ifndef POLICY_H
#define POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/engine.h>
#include <weir/limit.h>

#define POLICY_TEXT_SIZE 512u /* holds every error and warning as text */

/* One [limit NAME] section. There is one action: drop. */
struct policy_limit {
	char name[WEIR_LIMIT_NAME_MAX + 1];
	uint64_t tokens; /* the rate, exact: tokens per period_ns */
	uint64_t period_ns;
	uint64_t capacity; /* the burst, in tokens */
	enum weir_unit unit;
	char section[64]; /* where it was read from, for errors */
	unsigned int section_line;
	unsigned int rate_line;
	unsigned int burst_line; /* 0: not given, the default was taken */
};

/* All of a policy, defaults filled in. */
struct policy {
	struct policy_limit source;       /* of the limit with key = src */
	struct policy_limit unclassified; /* packets without a readable key */
	unsigned int ipv6_prefix;         /* for pkt_key_rules_init() */
	uint64_t table_capacity;
	enum weir_full_policy table_full;
};

/* Why a file was refused. Empty strings and line 0: does not apply. */
struct policy_error {
	const char *file; /* the path that was given to policy_load() */
	unsigned int line;
	char section[64]; /* without brackets */
	char field[64];
	char reason[200]; /* a short clause */
};

/*
 * Read a policy.
 *
 * => 0 and *policy, or *error and
 *    -EINVAL	the file says something wrong
 *    -ESTALE	it was changed while it was read
 *    -ENOMEM
 *    or what the system answered to opening and reading it
 * => error may not be NULL and is cleared on success.
 */
int
policy_load(const char *path, struct policy *policy,
    struct policy_error *error);

/*
 * Format an error, as `policy.ini:7: [limit per-source] rate: no unit`.
 */
void
policy_error_print(const struct policy_error *error, char *text, size_t size);

/*
 * What is allowed but hardly meant: the warning number index, from 0 upward.
 *
 * => true and the text, or false: there are no more.
 */
bool
policy_warning(const struct policy *policy, unsigned int index, char *text,
    size_t size);

/*
 * A limit as weir_limit_add() takes it. params->name points into *limit.
 */
void
policy_limit_params(const struct policy_limit *limit,
    struct weir_limit_params *params);

/*
 * Which field of the policy a member of struct weir_limit_params came from:
 * "rate", "burst", or NULL for what no field sets.
 */
const char *
policy_field_of(const char *weir_field);

/*
 * Turn a refusal by weir_limit_add() into an error about the file at path,
 * which the limit was read from.
 */
void
policy_error_from_limit(struct policy_error *error, const char *path,
    const struct policy_limit *limit, const struct weir_error *weir_error);

#endif
