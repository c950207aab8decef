/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading a policy file twice: strictly for its lines (struct scan), and with
 * rte_cfgfile for what it says (struct view). Both go through the same items
 * in the same order, so one step of policy_file_next() is one step of each.
 */
#include "policy_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_cfgfile.h>

_Static_assert(POLICY_ITEM_NAME_MAX < CFG_NAME_LEN, "names are cut");
_Static_assert(POLICY_LINE_MAX < CFG_VALUE_LEN, "values are cut");

#define NO_MEMORY "there is not enough memory"

/* The strict reading: a place in the text. */
struct scan {
	const char *at;
	const char *end;
	unsigned int line;                      /* of what stands before at */
	char section[POLICY_ITEM_NAME_MAX + 1]; /* empty before the first */
};

/* The other reading: a place among the sections of rte_cfgfile. */
struct view {
	struct rte_cfgfile *cfg;
	struct rte_cfgfile_entry *entries; /* of the section */
	int section;                       /* -1 before the first */
	int n_entries;
	int entry; /* the next one to give out */
};

struct policy_file {
	char *text;
	size_t size;
	struct scan scan;
	struct view view;
};

/* A piece of a line; no terminator. */
struct piece {
	const char *start;
	size_t length;
};

static int
refuse(struct policy_error *error, unsigned int line, const char *section,
    const char *reason)
{
	error->line = line;
	snprintf(error->section, sizeof(error->section), "%s", section);
	snprintf(error->reason, sizeof(error->reason), "%s", reason);
	return -EINVAL;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct piece
trim(struct piece piece)
{
	while (piece.length > 0 && is_blank(piece.start[0])) {
		piece.start++;
		piece.length--;
	}
	while (piece.length > 0 && is_blank(piece.start[piece.length - 1]))
		piece.length--;
	return piece;
}

static bool
is_printable(struct piece piece)
{
	size_t i;

	for (i = 0; i < piece.length; i++) {
		unsigned char c = (unsigned char)piece.start[i];

		if (c != '\t' && (c < 0x20 || c > 0x7e))
			return false;
	}
	return true;
}

/* The mark that some editors put before UTF-8, where nobody sees it. */
static bool
has_byte_order_mark(struct piece piece)
{
	return piece.length >= 3 && memcmp(piece.start, "\xef\xbb\xbf", 3) == 0;
}

static void
copy_piece(char *to, struct piece piece)
{
	memcpy(to, piece.start, piece.length);
	to[piece.length] = '\0';
}

/* Take the next line from the scan: all of it, without its "\n" or "\r\n". */
static struct piece
next_line(struct scan *scan)
{
	size_t left = (size_t)(scan->end - scan->at);
	const char *newline = memchr(scan->at, '\n', left);
	struct piece line = { scan->at, left };

	if (newline != NULL)
		line.length = (size_t)(newline - scan->at);
	scan->at += line.length + (newline != NULL);
	scan->line++;
	if (line.length > 0 && line.start[line.length - 1] == '\r')
		line.length--;
	return line;
}

/* "[name]". => NULL, or the reason why not. */
static const char *
read_section(struct scan *scan, struct piece line, struct policy_item *item)
{
	struct piece name = { line.start + 1, line.length - 1 };
	const char *close = memchr(name.start, ']', name.length);

	if (close == NULL)
		return "the section has no closing \"]\"";
	if (close != name.start + name.length - 1)
		return "there is text after the section's \"]\"";
	name.length--;
	name = trim(name);
	if (name.length == 0)
		return "the section has no name";
	if (name.length > POLICY_ITEM_NAME_MAX)
		return "the section's name is longer than 63 characters";
	item->kind = POLICY_ITEM_SECTION;
	copy_piece(item->name, name);
	item->value[0] = '\0';
	memcpy(scan->section, item->name, name.length + 1);
	return NULL;
}

/* "name = value". => NULL, or the reason why not. */
static const char *
read_field(const struct scan *scan, struct piece line, struct policy_item *item)
{
	const char *equals = memchr(line.start, '=', line.length);
	struct piece name = line, value = line;

	if (line.start[0] == '#')
		return "comments start with \";\"";
	if (equals == NULL)
		return "this is neither \"[section]\" nor \"field = value\"";
	name.length = (size_t)(equals - line.start);
	name = trim(name);
	value.start = equals + 1;
	value.length = (size_t)(line.start + line.length - value.start);
	value = trim(value);
	if (name.length == 0)
		return "there is no field before \"=\"";
	if (name.length > POLICY_ITEM_NAME_MAX)
		return "the field's name is longer than 63 characters";
	if (value.length == 0)
		return "there is no value after \"=\"";
	if (scan->section[0] == '\0')
		return "a field stands before the first section";
	item->kind = POLICY_ITEM_FIELD;
	copy_piece(item->name, name);
	copy_piece(item->value, value);
	return NULL;
}

/*
 * Find the next item. A comment reaches from a ";" to the end of its line and
 * may hold anything but zero bytes, which end the line for rte_cfgfile. Before
 * it, a backslash is refused: rte_cfgfile takes some for an escape.
 *
 * => 1 and *item; 0 at the end; -EINVAL and *error.
 */
static int
scan_next(struct scan *scan, struct policy_item *item,
    struct policy_error *error)
{
	while (scan->at != scan->end) {
		struct piece line = next_line(scan);
		const char *comment = memchr(line.start, ';', line.length);
		const char *reason;

		if (memchr(line.start, '\0', line.length) != NULL)
			return refuse(error, scan->line, scan->section,
			    "there is a zero byte: this is no text");
		if (line.length > POLICY_LINE_MAX)
			return refuse(error, scan->line, scan->section,
			    "the line is longer than 255 characters");
		if (scan->line == 1 && has_byte_order_mark(line))
			return refuse(error, scan->line, scan->section,
			    "the file starts with a byte order mark, which "
			    "editors do not show: save it without");
		if (comment != NULL)
			line.length = (size_t)(comment - line.start);
		if (!is_printable(line) ||
		    memchr(line.start, '\\', line.length) != NULL)
			return refuse(error, scan->line, scan->section,
			    "there is a character that only a comment may hold");
		line = trim(line);
		if (line.length == 0)
			continue;
		item->line = scan->line;
		if (line.start[0] == '[')
			reason = read_section(scan, line, item);
		else
			reason = read_field(scan, line, item);
		if (reason != NULL)
			return refuse(error, scan->line, scan->section, reason);
		return 1;
	}
	return 0;
}

static void
scan_start(struct scan *scan, const struct policy_file *file)
{
	*scan = (struct scan){
		.at = file->text,
		.end = file->text + file->size,
	};
}

/* Step to the next section of rte_cfgfile, which should be the item. */
static int
view_section(struct view *view, const struct policy_item *item)
{
	char name[CFG_NAME_LEN];
	int n;

	if (view->entry != view->n_entries)
		return -ESTALE;
	view->section++;
	n = rte_cfgfile_section_num_entries_by_index(view->cfg, name,
	    view->section);
	if (n < 0 || strcmp(name, item->name) != 0)
		return -ESTALE;
	free(view->entries);
	view->entry = view->n_entries = 0;
	view->entries = calloc((size_t)n + 1, sizeof(*view->entries));
	if (view->entries == NULL)
		return -ENOMEM;
	view->n_entries = rte_cfgfile_section_entries_by_index(view->cfg,
	    view->section, name, view->entries, n);
	return view->n_entries == n ? 0 : -ESTALE;
}

/* Step to the next field of rte_cfgfile, which should be the item. */
static int
view_field(struct view *view, const struct policy_item *item)
{
	const struct rte_cfgfile_entry *entry;

	if (view->entry >= view->n_entries)
		return -ESTALE;
	entry = &view->entries[view->entry++];
	return strcmp(entry->name, item->name) == 0 &&
		strcmp(entry->value, item->value) == 0 ?
	    0 :
	    -ESTALE;
}

/* Whether rte_cfgfile has nothing more. */
static int
view_end(const struct view *view)
{
	int n_sections = rte_cfgfile_num_sections(view->cfg, NULL, 0);

	return view->entry == view->n_entries &&
		view->section + 1 == n_sections ?
	    0 :
	    -ESTALE;
}

static int
read_whole(int fd, struct policy_file *file)
{
	size_t room = POLICY_FILE_BYTES_MAX + 1;

	while (file->size < room) {
		ssize_t n =
		    read(fd, file->text + file->size, room - file->size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		file->size += (size_t)n;
	}
	return 0;
}

/* => 0; a negative errno of the system; or -EINVAL and *error filled in. */
static int
read_regular(int fd, struct policy_file *file, struct policy_error *error)
{
	struct stat status;
	int result;

	if (fstat(fd, &status) != 0)
		return -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	if (!S_ISREG(status.st_mode))
		return refuse(error, 0, "", "this is not a regular file");
	if ((result = read_whole(fd, file)) != 0)
		return result;
	if (file->size > POLICY_FILE_BYTES_MAX)
		return refuse(error, 0, "",
		    "the file is larger than 65536 bytes");
	return 0;
}

static int
read_file(const char *path, struct policy_file *file,
    struct policy_error *error)
{
	/* Not to wait for the other end of a pipe. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int result;

	if (fd < 0) {
		result = -errno;
	} else {
		result = read_regular(fd, file, error);
		close(fd);
	}
	if (result != 0 && error->reason[0] == '\0')
		snprintf(error->reason, sizeof(error->reason),
		    "cannot read the file: %s", strerror(-result));
	return result;
}

/* Go through the text once for its form, then let rte_cfgfile read it. */
static int
load(const char *path, struct policy_file *file, struct policy_error *error)
{
	struct policy_item item;
	int result;

	if ((result = read_file(path, file, error)) != 0)
		return result;
	scan_start(&file->scan, file);
	while ((result = scan_next(&file->scan, &item, error)) > 0)
		continue;
	if (result != 0)
		return result;
	scan_start(&file->scan, file);
	file->view.section = -1;
	file->view.cfg = rte_cfgfile_load(path, 0);
	if (file->view.cfg == NULL)
		return refuse(error, 0, "", "rte_cfgfile cannot read it");
	return 0;
}

int
policy_file_open(const char *path, struct policy_file **file,
    struct policy_error *error)
{
	struct policy_file *opened = calloc(1, sizeof(*opened));
	int result;

	if (opened != NULL)
		opened->text = malloc(POLICY_FILE_BYTES_MAX + 1);
	if (opened == NULL || opened->text == NULL) {
		(void)refuse(error, 0, "", NO_MEMORY);
		policy_file_close(opened);
		return -ENOMEM;
	}
	result = load(path, opened, error);
	if (result != 0) {
		policy_file_close(opened);
		return result;
	}
	*file = opened;
	return 0;
}

int
policy_file_next(struct policy_file *file, struct policy_item *item,
    struct policy_error *error)
{
	int result = scan_next(&file->scan, item, error);
	int difference;

	if (result < 0)
		return result;
	if (result == 0)
		difference = view_end(&file->view);
	else if (item->kind == POLICY_ITEM_SECTION)
		difference = view_section(&file->view, item);
	else
		difference = view_field(&file->view, item);
	if (difference == 0)
		return result;
	(void)refuse(error, file->scan.line, file->scan.section,
	    difference == -ENOMEM ? NO_MEMORY :
				    "the file has changed while it was read");
	return difference;
}

void
policy_file_close(struct policy_file *file)
{
	if (file == NULL)
		return;
	if (file->view.cfg != NULL)
		rte_cfgfile_close(file->view.cfg);
	free(file->view.entries);
	free(file->text);
	free(file);
}
