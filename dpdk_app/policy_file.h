/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lines of a policy file, without their meaning.
 *
 * rte_cfgfile reads the file. But it keeps no line numbers and lets things
 * slip that an operator should hear of: it skips lines without "=", ignores
 * what follows a "]", cuts long names and values, takes a directory for an
 * empty file, and stops at a zero byte within a line. So the text is read
 * here as well, strictly, and each item is given out only if both readings
 * say the same.
 */
#ifndef POLICY_FILE_H
#define POLICY_FILE_H

#include "policy.h"

#define POLICY_FILE_BYTES_MAX 65536u
#define POLICY_LINE_MAX 255u /* so that no value can be cut */
#define POLICY_ITEM_NAME_MAX 63u

enum policy_item_kind {
	POLICY_ITEM_SECTION, /* [name] */
	POLICY_ITEM_FIELD,   /* name = value */
};

/* Printable ASCII and tabs, without blanks at the ends; neither is empty. */
struct policy_item {
	enum policy_item_kind kind;
	unsigned int line;
	char name[POLICY_ITEM_NAME_MAX + 1];
	char value[POLICY_LINE_MAX + 1]; /* of a field */
};

struct policy_file;

/*
 * Read a file and check that all its lines are well formed.
 *
 * => 0 and *file, or *error and what policy_load() returns.
 */
int
policy_file_open(const char *path, struct policy_file **file,
    struct policy_error *error);

/*
 * The next section or field.
 *
 * => 1 and *item; 0 at the end; or *error and
 *    -ESTALE	the file has changed meanwhile
 *    -ENOMEM
 */
int
policy_file_next(struct policy_file *file, struct policy_item *item,
    struct policy_error *error);

/* Close a file. NULL is ignored. */
void
policy_file_close(struct policy_file *file);

#endif
