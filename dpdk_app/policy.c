/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fields of a policy file mean.
 *
 * A section is read field by field into a struct section; only when the next
 * one starts, or the file ends, is it looked at as a whole and becomes part of
 * the policy. So the order of fields is free, and each error knows its line.
 */
#include "policy.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pkt_key.h"
#include "policy_file.h"
#include "rate_text.h"

#define FIELDS_MAX 5
#define TABLE_CAPACITY_DEFAULT 1000000u
#define NS_PER_DAY 86400000000000ull
#define UNCLASSIFIED "unclassified"

enum limit_key {
	KEY_SRC,
	KEY_UNCLASSIFIED,
};

/* The section that is being read. */
struct section {
	const struct field *fields; /* NULL: there is none yet */
	char name[POLICY_ITEM_NAME_MAX + 1];
	unsigned int line;
	unsigned int field_line[FIELDS_MAX]; /* 0: not given */

	char limit_name[POLICY_ITEM_NAME_MAX + 1];
	enum limit_key key;
	struct rate_text_rate rate;
	struct rate_text_burst burst;
	uint64_t ipv6_prefix;

	uint64_t capacity;
	enum weir_full_policy full;
};

/* A field by its name, and how its value gets into a section. */
struct field {
	const char *name;
	int (*parse)(struct section *section, const char *value,
	    const char **reason);
};

struct reader {
	struct policy *policy;
	struct policy_error *error;
	struct section section;
	unsigned int table_line; /* 0: no [table] yet */
};

static int
parse_key(struct section *section, const char *value, const char **reason)
{
	if (strcmp(value, "src") == 0) {
		section->key = KEY_SRC;
	} else if (strcmp(value, UNCLASSIFIED) == 0) {
		section->key = KEY_UNCLASSIFIED;
	} else {
		*reason = "the key must be src or unclassified";
		return -EINVAL;
	}
	return 0;
}

static int
parse_rate(struct section *section, const char *value, const char **reason)
{
	return rate_text_parse_rate(value, &section->rate, reason);
}

static int
parse_burst(struct section *section, const char *value, const char **reason)
{
	return rate_text_parse_burst(value, &section->burst, reason);
}

static int
parse_action(struct section *section, const char *value, const char **reason)
{
	(void)section;
	if (strcmp(value, "drop") == 0)
		return 0;
	*reason = "the action must be drop";
	return -EINVAL;
}

static int
parse_ipv6_prefix(struct section *section, const char *value,
    const char **reason)
{
	struct pkt_key_rules rules;
	int error;

	error = rate_text_parse_count(value, &section->ipv6_prefix, reason);
	if (error != 0)
		return error;
	if (section->ipv6_prefix > UINT8_MAX ||
	    pkt_key_rules_init(&rules, (unsigned int)section->ipv6_prefix)) {
		*reason = "the prefix must be in 1..128";
		return -EINVAL;
	}
	return 0;
}

static int
parse_capacity(struct section *section, const char *value, const char **reason)
{
	int error = rate_text_parse_count(value, &section->capacity, reason);

	if (error == 0 &&
	    (section->capacity < 1 || section->capacity > WEIR_CAPACITY_MAX)) {
		*reason = "the capacity must be in 1..4294967296 keys";
		error = -EINVAL;
	}
	return error;
}

static int
parse_full(struct section *section, const char *value, const char **reason)
{
	if (strcmp(value, "deny") == 0) {
		section->full = WEIR_FULL_DENY;
	} else if (strcmp(value, "allow") == 0) {
		section->full = WEIR_FULL_ALLOW;
	} else if (strcmp(value, "shared") == 0) {
		section->full = WEIR_FULL_SHARED;
	} else {
		*reason = "full must be deny, allow or shared";
		return -EINVAL;
	}
	return 0;
}

enum {
	LIMIT_KEY,
	LIMIT_RATE,
	LIMIT_BURST,
	LIMIT_ACTION,
	LIMIT_IPV6_PREFIX,
};

static const struct field limit_fields[FIELDS_MAX + 1] = {
	[LIMIT_KEY] = { "key", parse_key },
	[LIMIT_RATE] = { "rate", parse_rate },
	[LIMIT_BURST] = { "burst", parse_burst },
	[LIMIT_ACTION] = { "action", parse_action },
	[LIMIT_IPV6_PREFIX] = { "ipv6-prefix", parse_ipv6_prefix },
};

enum {
	TABLE_CAPACITY,
	TABLE_FULL,
};

static const struct field table_fields[FIELDS_MAX + 1] = {
	[TABLE_CAPACITY] = { "capacity", parse_capacity },
	[TABLE_FULL] = { "full", parse_full },
};

static int
refuse(struct reader *reader, unsigned int line, const char *field,
    const char *reason, ...) __attribute__((format(printf, 4, 5)));

/* Fill in the error about the section being read. field may be NULL. */
static int
refuse(struct reader *reader, unsigned int line, const char *field,
    const char *reason, ...)
{
	struct policy_error *error = reader->error;
	va_list arguments;

	error->line = line;
	snprintf(error->section, sizeof(error->section), "%s",
	    reader->section.name);
	snprintf(error->field, sizeof(error->field), "%s",
	    field == NULL ? "" : field);
	va_start(arguments, reason);
	vsnprintf(error->reason, sizeof(error->reason), reason, arguments);
	va_end(arguments);
	return -EINVAL;
}

/*
 * Names get into tables and JSON as they are, so only characters that mean
 * nothing there are allowed.
 */
static bool
is_limit_name(const char *name)
{
	size_t good = strspn(name,
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	    "0123456789._-");

	return good > 0 && name[good] == '\0';
}

/* [limit NAME] */
static int
start_limit(struct reader *reader, const char *name)
{
	const struct policy *policy = reader->policy;
	struct section *section = &reader->section;
	const struct policy_limit *limits[] = {
		&policy->source,
		&policy->unclassified,
	};
	size_t i;

	if (!is_limit_name(name))
		return refuse(reader, section->line, NULL,
		    "a limit needs a name of letters, digits, \".\", \"_\" "
		    "and \"-\": [limit NAME]");
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (strcmp(limits[i]->name, name) == 0)
			return refuse(reader, section->line, NULL,
			    "there is already such a section, in line %u",
			    limits[i]->section_line);
	snprintf(section->limit_name, sizeof(section->limit_name), "%s", name);
	section->fields = limit_fields;
	return 0;
}

/* [table] */
static int
start_table(struct reader *reader)
{
	struct section *section = &reader->section;

	if (reader->table_line != 0)
		return refuse(reader, section->line, NULL,
		    "there is already such a section, in line %u",
		    reader->table_line);
	reader->table_line = section->line;
	section->fields = table_fields;
	return 0;
}

static int
start_section(struct reader *reader, const struct policy_item *item)
{
	static const char limit[] = "limit";
	const size_t length = sizeof(limit) - 1;
	const char *rest;

	memset(&reader->section, 0, sizeof(reader->section));
	snprintf(reader->section.name, sizeof(reader->section.name), "%s",
	    item->name);
	reader->section.line = item->line;
	if (strcmp(item->name, "table") == 0)
		return start_table(reader);
	if (strncmp(item->name, limit, length) == 0) {
		rest = item->name + length;
		rest += strspn(rest, " \t");
		if (rest != item->name + length || *rest == '\0')
			return start_limit(reader, rest);
	}
	return refuse(reader, item->line, NULL,
	    "no such section; there are [limit NAME] and [table]");
}

static int
read_field(struct reader *reader, const struct policy_item *item)
{
	struct section *section = &reader->section;
	const struct field *field = section->fields;
	const char *reason;
	unsigned int *line;

	while (field->name != NULL && strcmp(field->name, item->name) != 0)
		field++;
	if (field->name == NULL)
		return refuse(reader, item->line, item->name,
		    "no such field in this section");
	line = &section->field_line[field - section->fields];
	if (*line != 0)
		return refuse(reader, item->line, item->name,
		    "the field was already given, in line %u", *line);
	*line = item->line;
	if (field->parse(section, item->value, &reason) != 0)
		return refuse(reader, item->line, item->name, "%s", reason);
	return 0;
}

static void
take_limit(const struct section *section, struct policy_limit *limit)
{
	snprintf(limit->name, sizeof(limit->name), "%s", section->limit_name);
	snprintf(limit->section, sizeof(limit->section), "%s", section->name);
	limit->tokens = section->rate.tokens;
	limit->period_ns = section->rate.period_ns;
	limit->unit = section->rate.unit;
	limit->capacity = section->field_line[LIMIT_BURST] != 0 ?
	    section->burst.tokens :
	    rate_text_default_burst(&section->rate);
	limit->section_line = section->line;
	limit->rate_line = section->field_line[LIMIT_RATE];
	limit->burst_line = section->field_line[LIMIT_BURST];
}

static int
finish_limit(struct reader *reader)
{
	struct section *section = &reader->section;
	const unsigned int *line = section->field_line;
	struct policy *policy = reader->policy;
	struct policy_limit *limit;

	if (line[LIMIT_KEY] == 0)
		return refuse(reader, section->line, "key",
		    "the field is missing");
	if (line[LIMIT_RATE] == 0)
		return refuse(reader, section->line, "rate",
		    "the field is missing");
	if (line[LIMIT_BURST] != 0 && section->burst.unit != section->rate.unit)
		return refuse(reader, line[LIMIT_BURST], "burst",
		    "rate and burst must both count packets or both bytes");
	if (line[LIMIT_IPV6_PREFIX] != 0 && section->key != KEY_SRC)
		return refuse(reader, line[LIMIT_IPV6_PREFIX], "ipv6-prefix",
		    "this goes with key = src only");
	limit =
	    section->key == KEY_SRC ? &policy->source : &policy->unclassified;
	if (limit->section_line != 0)
		return refuse(reader, line[LIMIT_KEY], "key",
		    "[%s] in line %u has that key already", limit->section,
		    limit->section_line);
	take_limit(section, limit);
	if (line[LIMIT_IPV6_PREFIX] != 0)
		policy->ipv6_prefix = (unsigned int)section->ipv6_prefix;
	return 0;
}

static void
finish_table(struct reader *reader)
{
	const struct section *section = &reader->section;

	if (section->field_line[TABLE_CAPACITY] != 0)
		reader->policy->table_capacity = section->capacity;
	if (section->field_line[TABLE_FULL] != 0)
		reader->policy->table_full = section->full;
}

static int
finish_section(struct reader *reader)
{
	if (reader->section.fields == limit_fields)
		return finish_limit(reader);
	if (reader->section.fields == table_fields)
		finish_table(reader);
	return 0;
}

/* The policy as a whole, after the last section. */
static int
finish_policy(struct reader *reader)
{
	struct policy *policy = reader->policy;

	memset(&reader->section, 0, sizeof(reader->section));
	if (policy->source.section_line == 0) {
		strcpy(reader->section.name, "limit NAME");
		return refuse(reader, 0, "key", "no limit has key = src");
	}
	if (policy->unclassified.section_line != 0)
		return 0;
	if (strcmp(policy->source.name, UNCLASSIFIED) == 0) {
		strcpy(reader->section.name, policy->source.section);
		return refuse(reader, policy->source.section_line, NULL,
		    "this name is kept for the limit with key = unclassified");
	}
	policy->unclassified = policy->source;
	strcpy(policy->unclassified.name, UNCLASSIFIED);
	return 0;
}

static int
read_policy(struct reader *reader, struct policy_file *file)
{
	struct policy_item item;
	int result;

	while ((result = policy_file_next(file, &item, reader->error)) > 0) {
		if (item.kind == POLICY_ITEM_FIELD) {
			result = read_field(reader, &item);
		} else {
			result = finish_section(reader);
			if (result == 0)
				result = start_section(reader, &item);
		}
		if (result != 0)
			return result;
	}
	if (result == 0)
		result = finish_section(reader);
	if (result == 0)
		result = finish_policy(reader);
	return result;
}

int
policy_load(const char *path, struct policy *policy, struct policy_error *error)
{
	struct reader reader = { .policy = policy, .error = error };
	struct policy_file *file;
	int result;

	*policy = (struct policy){
		.ipv6_prefix = PKT_KEY_IPV6_PREFIX_DEFAULT,
		.table_capacity = TABLE_CAPACITY_DEFAULT,
		.table_full = WEIR_FULL_SHARED,
	};
	*error = (struct policy_error){ .file = path };
	result = policy_file_open(path, &file, error);
	if (result != 0)
		return result;
	result = read_policy(&reader, file);
	policy_file_close(file);
	return result;
}

void
policy_error_print(const struct policy_error *error, char *text, size_t size)
{
	char line[16] = "";
	const char *section = error->section, *field = error->field;

	if (error->line != 0)
		snprintf(line, sizeof(line), ":%u", error->line);
	snprintf(text, size, "%s%s: %s%s%s%s%s%s%s", error->file, line,
	    *section ? "[" : "", section, *section ? "]" : "",
	    *section && *field ? " " : "", field,
	    *section || *field ? ": " : "", error->reason);
}

/* The warning number *index about one limit; counts *index down past others. */
static bool
limit_warning(const struct policy_limit *limit, unsigned int *index, char *text,
    size_t size)
{
	unsigned __int128 fill_ns = (unsigned __int128)limit->capacity *
	    limit->period_ns / limit->tokens;

	if (limit->unit == WEIR_UNIT_BYTES &&
	    limit->capacity < RATE_TEXT_FULL_FRAME_BYTES && (*index)-- == 0) {
		snprintf(text, size,
		    "[%s] burst: %llu bytes are less than a "
		    "full-size frame (%u): such a frame can never pass",
		    limit->section, (unsigned long long)limit->capacity,
		    RATE_TEXT_FULL_FRAME_BYTES);
		return true;
	}
	if (fill_ns > NS_PER_DAY && (*index)-- == 0) {
		snprintf(text, size,
		    "[%s] burst: at this rate an empty bucket "
		    "needs more than a day to fill",
		    limit->section);
		return true;
	}
	return false;
}

bool
policy_warning(const struct policy *policy, unsigned int index, char *text,
    size_t size)
{
	const struct policy_limit *source = &policy->source;
	const struct policy_limit *unclassified = &policy->unclassified;

	if (limit_warning(source, &index, text, size))
		return true;
	/* A copy of the source's limit needs no second warning. */
	return unclassified->section_line != source->section_line &&
	    limit_warning(unclassified, &index, text, size);
}

void
policy_limit_params(const struct policy_limit *limit,
    struct weir_limit_params *params)
{
	*params = (struct weir_limit_params){
		.size = sizeof(*params),
		.name = limit->name,
		.tokens = limit->tokens,
		.period_ns = limit->period_ns,
		.capacity = limit->capacity,
		.unit = limit->unit,
	};
}

const char *
policy_field_of(const char *weir_field)
{
	if (weir_field == NULL)
		return NULL;
	if (strcmp(weir_field, "tokens") == 0 ||
	    strcmp(weir_field, "period_ns") == 0 ||
	    strcmp(weir_field, "unit") == 0)
		return "rate";
	if (strcmp(weir_field, "capacity") == 0)
		return "burst";
	return NULL;
}

void
policy_error_from_limit(struct policy_error *error, const char *path,
    const struct policy_limit *limit, const struct weir_error *weir_error)
{
	const char *field = policy_field_of(weir_error->field);
	const char *reason = weir_error->reason;

	*error = (struct policy_error){ .file = path };
	if (field != NULL && strcmp(field, "rate") == 0)
		error->line = limit->rate_line;
	else if (field != NULL)
		error->line = limit->burst_line;
	if (error->line == 0)
		error->line = limit->section_line;
	snprintf(error->section, sizeof(error->section), "%s", limit->section);
	snprintf(error->field, sizeof(error->field), "%s",
	    field == NULL ? "" : field);
	snprintf(error->reason, sizeof(error->reason), "%s",
	    reason == NULL ? "the engine refuses this limit" : reason);
}
