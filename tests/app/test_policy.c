/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Policy files: what good ones say, and what is said about the others. Ids
 * like B109 name the known fault a case would show.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cfgfile.h>

#include "../../dpdk_app/policy.h"
#include "support.h"

#define S NSEC_PER_SEC
#define GOOD "[limit a]\nkey = src\nrate = 1000 packets/s\n"
#define TEXT_MAX 70000

static char folder[64];
static char path[96];

/* What the file is to become just before rte_cfgfile reads it, or NULL. */
static const char *text_for_cfgfile;

static void
write_file(const void *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd < 0 || write(fd, bytes, length) != (ssize_t)length)
		ck_abort_msg("cannot write %s", path);
	close(fd);
}

/* Stands before DPDK's function of that name, to come between the readings. */
struct rte_cfgfile *
rte_cfgfile_load(const char *filename, int flags)
{
	const struct rte_cfgfile_parameters parameters = {
		.comment_character = CFG_DEFAULT_COMMENT_CHARACTER,
	};

	if (text_for_cfgfile != NULL)
		write_file(text_for_cfgfile, strlen(text_for_cfgfile));
	return rte_cfgfile_load_with_params(filename, flags, &parameters);
}

static void
folder_make(void)
{
	/* in memory, where there is such a place: thousands are written */
	snprintf(folder, sizeof(folder), "%s/test_policy.XXXXXX",
	    access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/policy.ini", folder);
	text_for_cfgfile = NULL;
}

static void
folder_remove(void)
{
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0);
}

/* The error about the file as people see it, without the path; "" if none. */
static const char *
load_path(struct policy *policy, int *result)
{
	static char text[POLICY_TEXT_SIZE];
	struct policy_error error;

	memset(&error, 0xa5, sizeof(error));
	*result = policy_load(path, policy, &error);
	if (*result == 0) {
		if (error.reason[0] != '\0')
			ck_abort_msg("good, yet %s", error.reason);
		return "";
	}
	policy_error_print(&error, text, sizeof(text));
	if (strncmp(text, path, strlen(path)) != 0)
		ck_abort_msg("not about the file: %s", text);
	return text + strlen(path);
}

static const char *
load_bytes(const void *bytes, size_t length, struct policy *policy)
{
	const char *error;
	int result;

	write_file(bytes, length);
	error = load_path(policy, &result);
	if (result != 0 && result != -EINVAL)
		ck_abort_msg("%d: %s", result, error);
	return error;
}

static const char *
load(const char *text, struct policy *policy)
{
	return load_bytes(text, strlen(text), policy);
}

static void
assert_limit(const struct policy_limit *limit, const char *name,
    uint64_t tokens, uint64_t period_ns, uint64_t capacity,
    enum weir_unit unit)
{
	ck_assert_str_eq(limit->name, name);
	ck_assert_uint_eq(limit->tokens, tokens);
	ck_assert_uint_eq(limit->period_ns, period_ns);
	ck_assert_uint_eq(limit->capacity, capacity);
	ck_assert_uint_eq(limit->unit, unit);
}

START_TEST(everything_given)
{
	struct policy policy;
	const char *error = load(
	    "; who may send what\n"
	    "[limit per-source]\n"
	    "key = src\n"
	    "rate = 1000 packets/s\n"
	    "burst = 200 packets\n"
	    "action = drop\n"
	    "ipv6-prefix = 56\n"
	    "\n"
	    "[limit rest]   ; ARP and the like\n"
	    "\tkey=unclassified\n"
	    "\trate=10 Mbit/s ; all of it\n"
	    "\tburst=64 kB\n"
	    "[table]\n"
	    "capacity = 2M\n"
	    "full = deny", &policy);

	ck_assert_str_eq(error, "");
	assert_limit(&policy.source, "per-source", 1000, S, 200,
	    WEIR_UNIT_PACKETS);
	assert_limit(&policy.unclassified, "rest", 1250000, S, 64000,
	    WEIR_UNIT_BYTES);
	ck_assert_uint_eq(policy.ipv6_prefix, 56);
	ck_assert_uint_eq(policy.table_capacity, 2000000);
	ck_assert_int_eq(policy.table_full, WEIR_FULL_DENY);
	ck_assert_str_eq(policy.source.section, "limit per-source");
	ck_assert_uint_eq(policy.source.section_line, 2);
	ck_assert_uint_eq(policy.source.rate_line, 4);
	ck_assert_uint_eq(policy.source.burst_line, 5);
	ck_assert_uint_eq(policy.unclassified.section_line, 9);
}
END_TEST

START_TEST(defaults)
{
	struct policy policy;

	ck_assert_str_eq(load(GOOD, &policy), "");
	assert_limit(&policy.source, "a", 1000, S, 100, WEIR_UNIT_PACKETS);
	assert_limit(&policy.unclassified, "unclassified", 1000, S, 100,
	    WEIR_UNIT_PACKETS);
	ck_assert_uint_eq(policy.source.burst_line, 0);
	ck_assert_uint_eq(policy.ipv6_prefix, 64);
	ck_assert_uint_eq(policy.table_capacity, 1000000);
	ck_assert_int_eq(policy.table_full, WEIR_FULL_SHARED);
}
END_TEST

/* All of this says the same as GOOD. */
START_TEST(ways_to_write)
{
	static const char *const texts[] = {
		"[limit a]\r\nkey = src\r\nrate = 1000 packets/s\r\n",
		"[limit a]\nkey = src\nrate = 1000 packets/s",
		"\n\n  [ limit \t a ]  \n\n key\t=\tsrc \n rate=1000pps\n\n",
		"[limit a];]\nkey=src;x=y\nrate=1 packet/ms;\\\n;\n; \x80\xff\n",
		"[limit a]\nrate = 1000 packets/s\naction = drop\nkey = src\n",
		"[limit a]\nkey = src\nrate = 1000 packets/s\n[table]\n",
		"[table]\nfull = shared\n[limit a]\nkey=src\nrate=1kpps\n",
		"[limit unclassified]\nkey=unclassified\nrate=1kpps\n" GOOD,
		"[limit a]\nkey=src\nrate=1kpps\nburst=0.1k packets\n"
		"ipv6-prefix=64\n[table]\ncapacity=1000000\n",
	};
	struct policy policy;

	for (size_t i = 0; i < NELEM(texts); i++) {
		const struct policy_limit *limit = &policy.source;

		ck_assert_str_eq(load(texts[i], &policy), "");
		ck_assert_str_eq(limit->name, "a");
		ck_assert_uint_eq(S / limit->period_ns * limit->tokens, 1000);
		ck_assert_uint_eq(limit->capacity, 100);
		ck_assert_str_eq(policy.unclassified.name, "unclassified");
		ck_assert_uint_eq(policy.unclassified.capacity, 100);
		ck_assert_uint_eq(policy.ipv6_prefix, 64);
		ck_assert_uint_eq(policy.table_capacity, 1000000);
		ck_assert_int_eq(policy.table_full, WEIR_FULL_SHARED);
	}
}
END_TEST

#define NO_SOURCE ": [limit NAME] key: no limit has key = src"

static const struct {
	const char *text;
	const char *error;
} wrong[] = {
	/* nothing there */
	{ "", NO_SOURCE },
	{ "\n\n", NO_SOURCE },
	{ "; a comment\n", NO_SOURCE },
	{ ";\r[limit a]\rkey = src\rrate = 1 pps\r", NO_SOURCE },
	{ "[table]\n", NO_SOURCE },
	{ "[limit a]\nkey = unclassified\nrate = 1 pps\n", NO_SOURCE },

	/* lines that rte_cfgfile would skip, cut or take for something else */
	{ "rate = 1 pps\n" GOOD, ":1: a field stands before the first section" },
	{ "rate\n" GOOD, ":1: this is neither \"[section]\" nor "
	    "\"field = value\"" },
	{ GOOD "burst 10 packets\n", ":4: [limit a]: this is neither "
	    "\"[section]\" nor \"field = value\"" },
	{ GOOD "# burst\n", ":4: [limit a]: comments start with \";\"" },
	{ GOOD "#burst = 10 packets\n", ":4: [limit a]: comments start with "
	    "\";\"" },
	{ GOOD "burst =\n", ":4: [limit a]: there is no value after \"=\"" },
	{ GOOD "burst = ; none\n", ":4: [limit a]: there is no value after "
	    "\"=\"" },
	{ GOOD "= 10 packets\n", ":4: [limit a]: there is no field before "
	    "\"=\"" },
	{ GOOD "[table\n", ":4: [limit a]: the section has no closing \"]\"" },
	{ GOOD "[table ;]\n", ":4: [limit a]: the section has no closing "
	    "\"]\"" },
	{ GOOD "[", ":4: [limit a]: the section has no closing \"]\"" },
	{ GOOD "[]\n", ":4: [limit a]: the section has no name" },
	{ GOOD "[ \t ]\n", ":4: [limit a]: the section has no name" },
	{ GOOD "[table] full = deny\n", ":4: [limit a]: there is text after "
	    "the section's \"]\"" },
	{ GOOD "[table]]\n", ":4: [limit a]: there is text after the "
	    "section's \"]\"" },
	{ GOOD "bur\\st = 10 packets\n", ":4: [limit a]: there is a character "
	    "that only a comment may hold" },
	{ GOOD "burst = 10 \\; packets\n", ":4: [limit a]: there is a "
	    "character that only a comment may hold" },
	{ GOOD "burst\xc2\xa0= 10 packets\n", ":4: [limit a]: there is a "
	    "character that only a comment may hold" },
	{ "\xef\xbb\xbf" GOOD, ":1: the file starts with a byte order mark, "
	    "which editors do not show: save it without" },
	{ "\xef\xbb" GOOD, ":1: there is a character that only a comment may "
	    "hold" },
	{ "[limit a]\rkey = src\rrate = 1 pps\r", ":1: there is a character "
	    "that only a comment may hold" },
	{ GOOD "burst = 10\vpackets\n", ":4: [limit a]: there is a character "
	    "that only a comment may hold" },

	/* sections */
	{ GOOD "[limit]\n", ":4: [limit]: a limit needs a name of letters, "
	    "digits, \".\", \"_\" and \"-\": [limit NAME]" },
	{ "[limit a b]\n", ":1: [limit a b]: a limit needs a name of letters, "
	    "digits, \".\", \"_\" and \"-\": [limit NAME]" },
	{ "[limit \"]\n", ":1: [limit \"]: a limit needs a name of letters, "
	    "digits, \".\", \"_\" and \"-\": [limit NAME]" },
	{ "[limits a]\n", ":1: [limits a]: no such section; there are "
	    "[limit NAME] and [table]" },
	{ "[Limit a]\n", ":1: [Limit a]: no such section; there are "
	    "[limit NAME] and [table]" },
	{ "[lim]\n", ":1: [lim]: no such section; there are [limit NAME] and "
	    "[table]" },
	{ "[table 1]\n", ":1: [table 1]: no such section; there are "
	    "[limit NAME] and [table]" },
	{ "[GLOBAL]\n", ":1: [GLOBAL]: no such section; there are "
	    "[limit NAME] and [table]" },
	{ "[table]\n[table]\n" GOOD, ":2: [table]: there is already such a "
	    "section, in line 1" },
	{ GOOD "[limit  a]\nkey = unclassified\nrate = 1 pps\n",
	    ":4: [limit  a]: there is already such a section, in line 1" },
	{ GOOD "[limit b]\nkey = src\nrate = 1 pps\n",
	    ":5: [limit b] key: [limit a] in line 1 has that key already" },
	{ GOOD "[limit b]\nkey = unclassified\nrate = 1 pps\n"
	    "[limit c]\nrate = 1 pps\nkey = unclassified\n",
	    ":9: [limit c] key: [limit b] in line 4 has that key already" },
	{ "[limit unclassified]\nkey = src\nrate = 1 pps\n",
	    ":1: [limit unclassified]: this name is kept for the limit with "
	    "key = unclassified" },

	/* fields */
	{ GOOD "brust = 10 packets\n", ":4: [limit a] brust: no such field in "
	    "this section" },
	{ GOOD "Burst = 10 packets\n", ":4: [limit a] Burst: no such field in "
	    "this section" },
	{ GOOD "capacity = 10\n", ":4: [limit a] capacity: no such field in "
	    "this section" },
	{ GOOD "[table]\nrate = 1 pps\n", ":5: [table] rate: no such field in "
	    "this section" },
	{ GOOD "rate = 1000 packets/s\n", ":4: [limit a] rate: the field was "
	    "already given, in line 3" },
	{ GOOD "[table]\nfull = deny\nfull = deny\n", ":6: [table] full: the "
	    "field was already given, in line 5" },
	{ "[limit a]\nrate = 1 pps\n", ":1: [limit a] key: the field is "
	    "missing" },
	{ "\n[limit a]\nkey = src\n[table]\n", ":2: [limit a] rate: the field "
	    "is missing" },
	{ "[limit a]\n", ":1: [limit a] key: the field is missing" },
	{ "[limit a]\nkey = dst\n", ":2: [limit a] key: the key must be src "
	    "or unclassified" },
	{ "[limit a]\nkey = src x\n", ":2: [limit a] key: the key must be src "
	    "or unclassified" },
	{ GOOD "action = pass\n", ":4: [limit a] action: the action must be "
	    "drop" },
	{ GOOD "action = drop drop\n", ":4: [limit a] action: the action must "
	    "be drop" },
	{ GOOD "burst = 10 kB\n", ":4: [limit a] burst: rate and burst must "
	    "both count packets or both bytes" },
	{ "[limit a]\nkey=src\nburst=10 packets\nrate=1 Mbps\n",
	    ":3: [limit a] burst: rate and burst must both count packets or "
	    "both bytes" },
	{ "[limit a]\nkey=unclassified\nrate=1 pps\nipv6-prefix=64\n",
	    ":4: [limit a] ipv6-prefix: this goes with key = src only" },

	/* values; test_rate_text has more of them */
	{ "[limit a]\nkey=src\nrate=10/sX\n", ":3: [limit a] rate: a unit is "
	    "expected: packets, bit, byte, kB, Mbit, ..." },
	{ "[limit a]\nkey=src\nrate=1000 packets\n", ":3: [limit a] rate: a "
	    "rate needs a time: \"/s\", \"/10s\", ..." },
	{ "[limit a]\nkey=src\nrate=0 packets/s\n", ":3: [limit a] rate: zero "
	    "is not allowed" },
	{ "[limit a]\nkey=src\nrate=1 pps = 2 pps\n", ":3: [limit a] rate: "
	    "there is more text than expected" },
	{ GOOD "burst = 200\n", ":4: [limit a] burst: a unit is expected: "
	    "packets, bit, byte, kB, Mbit, ..." },
	{ GOOD "burst = 200 packets/s\n", ":4: [limit a] burst: there is more "
	    "text than expected" },
	{ GOOD "burst = 18446744073709551616 packets\n", ":4: [limit a] "
	    "burst: the number has too many digits" },
	{ GOOD "ipv6-prefix = 0\n", ":4: [limit a] ipv6-prefix: the prefix "
	    "must be in 1..128" },
	{ GOOD "ipv6-prefix = 129\n", ":4: [limit a] ipv6-prefix: the prefix "
	    "must be in 1..128" },
	{ GOOD "ipv6-prefix = 4294967360\n", ":4: [limit a] ipv6-prefix: the "
	    "prefix must be in 1..128" },
	{ GOOD "ipv6-prefix = /64\n", ":4: [limit a] ipv6-prefix: a number is "
	    "expected" },
	{ GOOD "ipv6-prefix = 64x\n", ":4: [limit a] ipv6-prefix: there is "
	    "more text than expected" },
	{ GOOD "ipv6-prefix = -1\n", ":4: [limit a] ipv6-prefix: a number is "
	    "expected" },
	{ GOOD "[table]\ncapacity = 0\n", ":5: [table] capacity: the capacity "
	    "must be in 1..4294967296 keys" },
	{ GOOD "[table]\ncapacity = 4294967297\n", ":5: [table] capacity: the "
	    "capacity must be in 1..4294967296 keys" },
	{ GOOD "[table]\ncapacity = 18446744073709551617\n", ":5: [table] "
	    "capacity: the number has too many digits" },
	{ GOOD "[table]\ncapacity = 0.5\n", ":5: [table] capacity: a whole "
	    "number is expected" },
	{ GOOD "[table]\ncapacity = 0x10\n", ":5: [table] capacity: there is "
	    "more text than expected" },
	{ GOOD "[table]\nfull = drop\n", ":5: [table] full: full must be "
	    "deny, allow or shared" },
};

START_TEST(wrong_files)
{
	struct policy policy;

	ck_assert_str_eq(load(wrong[_i].text, &policy), wrong[_i].error);
}
END_TEST

/* The borders of what is allowed. */
START_TEST(borders)
{
	static const struct {
		const char *text;
		uint64_t capacity;
		unsigned int prefix;
		enum weir_full_policy full;
	} rows[] = {
		{ GOOD "ipv6-prefix = 1\n[table]\ncapacity = 1\nfull = allow\n",
		    1, 1, WEIR_FULL_ALLOW },
		{ GOOD "ipv6-prefix = 128\n[table]\ncapacity = 4294967296\n",
		    4294967296, 128, WEIR_FULL_SHARED },
	};
	struct policy policy;

	for (size_t i = 0; i < NELEM(rows); i++) {
		ck_assert_str_eq(load(rows[i].text, &policy), "");
		ck_assert_uint_eq(policy.table_capacity, rows[i].capacity);
		ck_assert_uint_eq(policy.ipv6_prefix, rows[i].prefix);
		ck_assert_int_eq(policy.table_full, rows[i].full);
	}
}
END_TEST

/* Lengths at which rte_cfgfile starts to cut: 64 for names, 256, 324. */
START_TEST(long_lines)
{
	char text[1024], name[256];
	struct policy policy;
	const char *error;

	for (unsigned int n = 1; n < 255; n++) {
		memset(name, 'x', n);
		name[n] = '\0';

		snprintf(text, sizeof(text), "[limit %s]\nkey = src\n"
		    "rate = 1 pps\n", name);
		error = load(text, &policy);
		if (n <= 57)
			ck_assert_str_eq(error, "");
		else if (n <= 247)
			ck_assert_str_eq(error, ":1: the section's name is "
			    "longer than 63 characters");
		else
			ck_assert_str_eq(error, ":1: the line is longer than "
			    "255 characters");

		snprintf(text, sizeof(text), GOOD "%s=1", name);
		error = load(text, &policy);
		if (n <= 63)
			ck_assert_ptr_nonnull(strstr(error, "no such field"));
		else
			ck_assert_str_eq(error, n <= 253 ? ":4: [limit a]: "
			    "the field's name is longer than 63 characters" :
			    ":4: [limit a]: the line is longer than 255 "
			    "characters");
	}
	for (int n = 200; n < 700; n++) {
		snprintf(text, sizeof(text), GOOD "burst=%*s;\n", n - 7,
		    "1 packet");
		error = load(text, &policy);
		ck_assert_str_eq(error, n <= 255 ? "" : ":4: [limit a]: the "
		    "line is longer than 255 characters");
		snprintf(text, sizeof(text), ";%*s\n" GOOD, n - 1, "");
		error = load(text, &policy);
		ck_assert_str_eq(error, n <= 255 ? "" : ":1: the line is "
		    "longer than 255 characters");
	}
}
END_TEST

START_TEST(binary_files)
{
	static const char zeros[4096];
	static const char zero_in_comment[] = GOOD "; \0\nburst = 9 packets\n";
	static const char zero_in_value[] = GOOD "burst = 9 packets\0 or so\n";
	static uint8_t noise[4096];
	struct policy policy;
	struct rng rng;

	ck_assert_str_eq(load_bytes(zeros, sizeof(zeros), &policy),
	    ":1: there is a zero byte: this is no text");
	ck_assert_str_eq(load_bytes(zero_in_comment,
	    sizeof(zero_in_comment) - 1, &policy),
	    ":4: [limit a]: there is a zero byte: this is no text");
	ck_assert_str_eq(load_bytes(zero_in_value,
	    sizeof(zero_in_value) - 1, &policy),
	    ":4: [limit a]: there is a zero byte: this is no text");
	rng_init(&rng, test_seed("binary_files"));
	for (unsigned int i = 0; i < 200; i++) {
		for (size_t n = 0; n < sizeof(noise); n++)
			noise[n] = (uint8_t)rng_next(&rng);
		ck_assert_str_ne(load_bytes(noise, sizeof(noise), &policy),
		    "");
	}
}
END_TEST

START_TEST(large_files)
{
	static char text[TEXT_MAX];
	struct policy policy;

	memset(text, '\n', sizeof(text));
	memcpy(text, GOOD, strlen(GOOD));
	ck_assert_str_eq(load_bytes(text, 65536, &policy), "");
	ck_assert_str_eq(load_bytes(text, 65537, &policy),
	    ": the file is larger than 65536 bytes");
	ck_assert_str_eq(load_bytes(text, TEXT_MAX, &policy),
	    ": the file is larger than 65536 bytes");
	memset(text, 'x', sizeof(text));
	ck_assert_str_eq(load_bytes(text, 65536, &policy),
	    ":1: the line is longer than 255 characters");
}
END_TEST

START_TEST(no_files)
{
	struct policy policy;
	int result;

	ck_assert_str_eq(load_path(&policy, &result),
	    ": cannot read the file: No such file or directory");
	ck_assert_int_eq(result, -ENOENT);

	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_str_eq(load_path(&policy, &result),
	    ": cannot read the file: Is a directory");
	ck_assert_int_eq(result, -EISDIR);
	ck_assert_int_eq(rmdir(path), 0);

	/* nobody writes to it: this must not wait */
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_str_eq(load_path(&policy, &result),
	    ": this is not a regular file");
	ck_assert_int_eq(result, -EINVAL);
	ck_assert_int_eq(unlink(path), 0);

	ck_assert_int_eq(symlink("/dev/zero", path), 0);
	ck_assert_str_eq(load_path(&policy, &result),
	    ": this is not a regular file");
	ck_assert_int_eq(result, -EINVAL);
}
END_TEST

/* Two readings of a file that changes between them must not be mixed. */
START_TEST(changing_files)
{
	static const char before[] = "[limit a]\nkey = src\n"
	    "rate = 1000 packets/s\n[table]\nfull = deny\n";
	static const char *const after[] = {
		"",
		"[limit a]\nkey = src\nrate = 1000 packets/s\n",
		"[limit a]\nkey = src\nrate = 2000 packets/s\n[table]\n"
		"full = deny\n",
		"[limit b]\nkey = src\nrate = 1000 packets/s\n[table]\n"
		"full = deny\n",
		"[limit a]\nkey = src\n[table]\nfull = deny\n",
		"[limit a]\nkey = src\nrate = 1000 packets/s\n[table]\n"
		"full = deny\ncapacity = 7\n",
		"[limit a]\nkey = src\nrate = 1000 packets/s\nburst = 1 B\n"
		"[table]\nfull = deny\n",
		"[limit a]\nkey = src\nrate = 1000 packets/s\n[table]\n"
		"full = deny\n[table]\n",
		"[limit a]\nkey = src\nrate = 1000 packets/s\nfull = deny\n",
		"[limit a]\nkey = src\nrates = 1000 packets/s\n[table]\n"
		"full = deny\n",
	};
	struct policy policy;
	const char *error;
	int result;

	for (size_t i = 0; i < NELEM(after); i++) {
		text_for_cfgfile = NULL;
		ck_assert_str_eq(load(before, &policy), "");
		text_for_cfgfile = after[i];
		error = load_path(&policy, &result);
		ck_assert_int_eq(result, -ESTALE);
		ck_assert_ptr_nonnull(strstr(error,
		    "the file has changed while it was read"));
	}
	text_for_cfgfile = NULL;
	ck_assert_str_eq(load(before, &policy), "");
	text_for_cfgfile = "[limit";
	ck_assert_str_eq(load_path(&policy, &result),
	    ": rte_cfgfile cannot read it");
}
END_TEST

/* B102, B103 */
START_TEST(warnings)
{
	static const struct {
		const char *text;
		const char *warnings[4];
	} rows[] = {
		{ GOOD, { NULL } },
		{ "[limit a]\nkey=src\nrate=1 Gbps\nburst=1514 B\n",
		    { NULL } },
		{ "[limit a]\nkey=src\nrate=1 Gbps\nburst=1513 B\n",
		    { "[limit a] burst: 1513 bytes are less than a full-size "
		      "frame (1514): such a frame can never pass" } },
		{ "[limit a]\nkey=src\nrate=1 pps\nburst=86400 packets\n",
		    { NULL } },
		{ "[limit a]\nkey=src\nrate=1 pps\nburst=86401 packets\n",
		    { "[limit a] burst: at this rate an empty bucket needs "
		      "more than a day to fill" } },
		{ "[limit a]\nkey=src\nrate=1 B/d\nburst=1000 B\n"
		  "[limit b]\nkey=unclassified\nrate=1 Gbps\nburst=1 B\n",
		    { "[limit a] burst: 1000 bytes are less than a full-size "
		      "frame (1514): such a frame can never pass",
		      "[limit a] burst: at this rate an empty bucket needs "
		      "more than a day to fill",
		      "[limit b] burst: 1 bytes are less than a full-size "
		      "frame (1514): such a frame can never pass" } },
	};
	char text[POLICY_TEXT_SIZE];
	struct policy policy;

	for (size_t i = 0; i < NELEM(rows); i++) {
		unsigned int n = 0;

		ck_assert_str_eq(load(rows[i].text, &policy), "");
		while (policy_warning(&policy, n, text, sizeof(text))) {
			ck_assert_ptr_nonnull(rows[i].warnings[n]);
			ck_assert_str_eq(text, rows[i].warnings[n]);
			n++;
		}
		ck_assert_ptr_null(rows[i].warnings[n]);
		ck_assert(!policy_warning(&policy, n + 1, text, sizeof(text)));
	}
}
END_TEST

/* Give a limit to an engine. => "" or what it has against it. */
static const char *
add_to_engine(struct weir_engine *engine, const struct policy_limit *limit)
{
	static char text[POLICY_TEXT_SIZE];
	struct weir_limit_params params;
	struct weir_error refusal;
	struct policy_error error;
	uint32_t number;

	policy_limit_params(limit, &params);
	if (weir_limit_add(engine, &params, &number, &refusal) == 0) {
		struct weir_limit_params back = { .size = sizeof(back) };

		ck_assert_int_eq(weir_limit_get(engine, number, &back), 0);
		ck_assert_str_eq(back.name, limit->name);
		ck_assert_uint_eq(back.tokens, limit->tokens);
		ck_assert_uint_eq(back.period_ns, limit->period_ns);
		ck_assert_uint_eq(back.capacity, limit->capacity);
		ck_assert_int_eq(back.unit, limit->unit);
		return "";
	}
	policy_error_from_limit(&error, path, limit, &refusal);
	policy_error_print(&error, text, sizeof(text));
	ck_assert_int_eq(strncmp(text, path, strlen(path)), 0);
	return text + strlen(path);
}

/* What is well formed may still be more than an engine takes. */
START_TEST(engine_has_the_last_word)
{
	static const struct {
		const char *text;
		const char *error; /* how it starts */
	} rows[] = {
		{ GOOD, "" },
		{ "[limit a]\nkey=src\nrate=1 bit/s\nburst=1 B\n", "" },
		{ "[limit a]\nkey=src\nrate=1.6 Tbit/s\n", "" },
		{ "[limit a]\nkey=src\nrate=1 packet/365d\n", "" },
		/* B107: 2^32 works, 2^63 is refused */
		{ GOOD "burst = 4294967296 packets\n", "" },
		{ GOOD "burst = 9223372036854775808 packets\n",
		    ":4: [limit a] burst: " },
		{ "[limit a]\nkey=src\nrate=18446744073709551615 packets/s\n",
		    ":3: [limit a] rate: " },
	};
	struct weir_engine_params params = rig_params(64, 16);
	struct policy policy;
	struct rig rig;

	for (size_t i = 0; i < NELEM(rows); i++) {
		const char *error;

		ck_assert_str_eq(load(rows[i].text, &policy), "");
		rig_open(&rig, &params);
		error = add_to_engine(rig.engine, &policy.source);
		if (rows[i].error[0] == '\0') {
			ck_assert_str_eq(error, "");
			ck_assert_str_eq(add_to_engine(rig.engine,
			    &policy.unclassified), "");
		} else {
			ck_assert_msg(strncmp(error, rows[i].error,
			    strlen(rows[i].error)) == 0, "%s", error);
			ck_assert_uint_gt(strlen(error),
			    strlen(rows[i].error));
		}
		rig_close(&rig);
	}
	ck_assert_str_eq(policy_field_of("tokens"), "rate");
	ck_assert_str_eq(policy_field_of("period_ns"), "rate");
	ck_assert_str_eq(policy_field_of("capacity"), "burst");
	ck_assert_ptr_null(policy_field_of("name"));
	ck_assert_ptr_null(policy_field_of(NULL));
}
END_TEST

START_TEST(errors_fit_any_room)
{
	struct policy_error error = { .file = "policy.ini", .line = 7,
		.section = "limit a", .field = "rate", .reason = "no" };
	static const char full[] = "policy.ini:7: [limit a] rate: no";

	for (size_t size = 1; size <= sizeof(full); size++) {
		char *text = malloc(size);

		policy_error_print(&error, text, size);
		ck_assert_uint_eq(strlen(text), size - 1);
		ck_assert_mem_eq(text, full, size - 1);
		free(text);
	}
}
END_TEST

/*
 * The examples of the manual: all its ```ini blocks. Found from the name of
 * this file, which is absolute or starts at the build folder.
 */
START_TEST(manual_is_right)
{
	static const char here[] = "tests/app/test_policy.c", start[] =
	    "```ini\n";
	static char text[TEXT_MAX];
	char manual[512];
	struct policy policy;
	unsigned int n = 0;
	size_t length;
	FILE *file;

	snprintf(manual, sizeof(manual), "%.*sdocs/policy.md",
	    (int)(strlen(__FILE__) - strlen(here)), __FILE__);
	file = fopen(manual, "r");
	ck_assert_msg(file != NULL, "%s: run this from the build folder",
	    manual);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	for (char *at = text; (at = strstr(at, start)) != NULL; n++) {
		char *end;

		at += strlen(start);
		end = strstr(at, "```");
		ck_assert_ptr_nonnull(end);
		ck_assert_str_eq(load_bytes(at, (size_t)(end - at), &policy),
		    "");
		ck_assert_str_eq(policy.source.name, "per-source");
		at = end + 3;
	}
	ck_assert_uint_eq(n, 2);
}
END_TEST

/* How many lines say something. */
static unsigned int
count_lines(const char *text, size_t length)
{
	unsigned int n = 0;
	bool blank = true, comment = false;

	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\n') {
			blank = true;
			comment = false;
		} else if (text[i] == ';') {
			comment = true;
		} else if (blank && !comment &&
		    strchr(" \t\r", text[i]) == NULL) {
			blank = false;
			n++;
		}
	}
	return n;
}

/* How many of them rte_cfgfile has understood. */
static unsigned int
count_items(void)
{
	struct rte_cfgfile *cfg = rte_cfgfile_load(path, 0);
	char name[CFG_NAME_LEN];
	unsigned int n;
	int sections;

	if (cfg == NULL)
		ck_abort_msg("accepted, but not by rte_cfgfile");
	sections = rte_cfgfile_num_sections(cfg, NULL, 0);
	n = (unsigned int)sections;
	for (int i = 0; i < sections; i++)
		n += (unsigned int)rte_cfgfile_section_num_entries_by_index(
		    cfg, name, i);
	rte_cfgfile_close(cfg);
	return n;
}

static void
check_accepted(const struct policy *policy, const char *text, size_t length)
{
	const struct policy_limit *const limits[] = {
		&policy->source,
		&policy->unclassified,
	};
	char warning[POLICY_TEXT_SIZE];

	for (size_t i = 0; i < NELEM(limits); i++)
		if (limits[i]->name[0] == '\0' || limits[i]->tokens == 0 ||
		    limits[i]->period_ns == 0 || limits[i]->capacity == 0)
			ck_abort_msg("an empty limit of %.*s", (int)length,
			    text);
	if (strcmp(limits[0]->name, limits[1]->name) == 0 ||
	    policy->ipv6_prefix < 1 || policy->ipv6_prefix > 128 ||
	    policy->table_capacity < 1 ||
	    policy->table_capacity > WEIR_CAPACITY_MAX)
		ck_abort_msg("out of range: %.*s", (int)length, text);
	if (count_lines(text, length) != count_items())
		ck_abort_msg("a line is ignored: %.*s", (int)length, text);
	for (unsigned int i = 0; policy_warning(policy, i, warning,
	    sizeof(warning)); i++)
		if (i == 4)
			ck_abort_msg("too many warnings");
}

static void
check_refused(const char *error, const char *text, size_t length)
{
	unsigned int line = 0, lines = 1;

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	if (error[0] != ':' || error[strlen(error) - 1] == ' ')
		ck_abort_msg("no reason: %s", error);
	if (sscanf(error, ":%u:", &line) == 1) {
		if (line < 1 || line > lines)
			ck_abort_msg("no such line: %s", error);
	} else if (strcmp(error, NO_SOURCE) != 0) {
		ck_abort_msg("neither line nor field: %s", error);
	}
	for (size_t i = 0; error[i] != '\0'; i++)
		if ((error[i] < 0x20 || error[i] > 0x7e) && error[i] != '\t')
			ck_abort_msg("not printable: %s", error);
}

static size_t
insert(char *text, size_t length, size_t at, const char *piece, size_t n)
{
	memmove(text + at + n, text + at, length - at);
	memcpy(text + at, piece, n);
	return length + n;
}

/* One random change. text has room for 128 bytes more. */
static size_t
mutate(char *text, size_t length, struct rng *rng)
{
	static const char *const pieces[] = { "[", "]", "=", ";", "#", "\\",
		"\n", "\r", " ", "\t", "/", ".", "0", "9", "k", "M", "b", "B",
		"\n[table]\n", "\n[limit x]\n", "[limit a]", "key = src\n",
		"\nkey = unclassified\n", "\nrate = 1 pps\n", "burst",
		"\nburst = 10 packets\n", "\nfull = allow\n", "\xff", "\x80",
		"18446744073709551616", "ipv6-prefix = 48\n" };
	const char *piece = pieces[rng_below(rng, NELEM(pieces))];
	size_t at = rng_below(rng, length + 1);
	size_t n = rng_below(rng, 24);
	char byte;

	if (n > length - at)
		n = length - at;
	switch (rng_below(rng, 6)) {
	case 0: /* another byte */
		if (at < length)
			text[at] = (char)rng_next(rng);
		return length;
	case 1: /* bytes less */
		memmove(text + at, text + at + n, length - at - n);
		return length - n;
	case 2: /* bytes twice */
		return n == 0 ? length : insert(text, length, at,
		    memcpy((char[24]){ 0 }, text + at, n), n);
	case 3: /* a byte more */
		byte = (char)rng_next(rng);
		return insert(text, length, at, &byte, 1);
	case 4: /* nothing but the start */
		return rng_below(rng, 8) == 0 ? at : length;
	default:
		return insert(text, length, at, piece, strlen(piece));
	}
}

START_TEST(changed_files_do_no_harm)
{
	static const char *const seeds[] = {
		GOOD,
		"; all\n[limit per-source]\nkey = src\nrate = 10 Mbit/s\n"
		"burst = 64 kB\naction = drop\nipv6-prefix = 56\n\n"
		"[limit rest]\nkey = unclassified\nrate = 1 packet/10s\n"
		"[table]\ncapacity = 2M\nfull = deny\n",
		("[table]\r\nfull=shared\r\n[limit x]\r\nrate=2.5 Mbps\r\n"
		 "key=src\r\n"),
	};
	uint64_t n = test_scale(20000), accepted = 0;
	static char text[2048];
	struct policy policy;
	const char *error;
	struct rng rng;

	rng_init(&rng, test_seed("changed_files_do_no_harm"));
	for (uint64_t i = 0; i < n; i++) {
		const char *seed = seeds[rng_below(&rng, NELEM(seeds))];
		size_t length = strlen(seed);
		uint64_t changes = 1 + rng_below(&rng, 4);

		memcpy(text, seed, length);
		for (; changes > 0; changes--)
			length = mutate(text, length, &rng);
		error = load_bytes(text, length, &policy);
		if (error[0] == '\0') {
			accepted++;
			check_accepted(&policy, text, length);
		} else {
			check_refused(error, text, length);
		}
	}
	ck_assert_uint_gt(accepted, n / 50);
	ck_assert_uint_lt(accepted, n / 2);
}
END_TEST

static TCase *
add_case(Suite *s, const char *name)
{
	TCase *c = tcase_create(name);

	tcase_set_timeout(c, 120);
	tcase_add_checked_fixture(c, folder_make, folder_remove);
	suite_add_tcase(s, c);
	return c;
}

static Suite *
suite(void)
{
	Suite *s = suite_create("policy");
	TCase *meaning = add_case(s, "meaning");
	TCase *form = add_case(s, "form");
	TCase *chance = add_case(s, "chance");

	tcase_add_test(meaning, everything_given);
	tcase_add_test(meaning, defaults);
	tcase_add_test(meaning, ways_to_write);
	tcase_add_loop_test(meaning, wrong_files, 0, NELEM(wrong));
	tcase_add_test(meaning, borders);
	tcase_add_test(meaning, warnings);
	tcase_add_test(meaning, engine_has_the_last_word);
	tcase_add_test(meaning, errors_fit_any_room);
	tcase_add_test(meaning, manual_is_right);

	tcase_add_test(form, long_lines);
	tcase_add_test(form, binary_files);
	tcase_add_test(form, large_files);
	tcase_add_test(form, no_files);
	tcase_add_test(form, changing_files);

	tcase_add_test(chance, changed_files_do_no_harm);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
