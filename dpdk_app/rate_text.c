/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading rates and bursts.
 *
 * A number is kept as a fraction of integers from the first digit to the
 * last step: amount = digits / 10^decimals, times the prefix, divided by 8
 * for bits. Floating point never comes in, so 0.1 is a tenth. The ranges
 *
 *	digits < 2^64, prefix <= 10^12 < 2^40	numerator   < 2^104
 *	10^decimals <= 10^18, times 8 < 2^63	denominator < 2^63
 *	period_ns < 2^64			denominator * period < 2^127
 *
 * fit 128 bits, and only the last step has to ask whether the result fits 64.
 */
#include "rate_text.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define DECIMALS_MAX 18u
#define NS_PER_S 1000000000ull

typedef unsigned __int128 u128;

struct fraction {
	u128 numerator;
	u128 denominator;
};

struct name {
	const char *text;
	uint64_t value; /* what it stands for; see the tables */
};

enum {
	PACKET = 1,
	BIT = 2,
	BYTE = 4,
	PER_SECOND = 8, /* or-ed in: the unit names the time as well */
};

static const struct name units[] = {
	{ "packet", PACKET },
	{ "packets", PACKET },
	{ "bit", BIT },
	{ "bits", BIT },
	{ "b", BIT },
	{ "byte", BYTE },
	{ "bytes", BYTE },
	{ "B", BYTE },
	{ "pps", PACKET | PER_SECOND },
	{ "bps", BIT | PER_SECOND },
	{ "Bps", BYTE | PER_SECOND },
	{ NULL, 0 },
};

static const struct name times[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "ms", 1000000 },
	{ "s", NS_PER_S },
	{ "m", 60 * NS_PER_S },
	{ "min", 60 * NS_PER_S },
	{ "h", 3600 * NS_PER_S },
	{ "d", 86400 * NS_PER_S },
	{ NULL, 0 },
};

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void
skip_blanks(const char **at)
{
	while (**at == ' ' || **at == '\t')
		(*at)++;
}

/* Read digits into *value, which goes on from what it holds. */
static int
read_digits(const char **at, uint64_t *value, const char **reason)
{
	if (!is_digit(**at)) {
		*reason = "a number is expected";
		return -EINVAL;
	}
	for (; is_digit(**at); (*at)++) {
		uint64_t digit = (uint64_t)(**at - '0');

		if (*value > (UINT64_MAX - digit) / 10) {
			*reason = "the number has too many digits";
			return -EINVAL;
		}
		*value = *value * 10 + digit;
	}
	return 0;
}

static int
read_decimal(const char **at, struct fraction *amount, const char **reason)
{
	const char *start;
	uint64_t digits = 0;
	int error;

	skip_blanks(at);
	if ((error = read_digits(at, &digits, reason)) != 0)
		return error;
	amount->denominator = 1;
	if (**at == '.') {
		start = ++*at;
		if ((error = read_digits(at, &digits, reason)) != 0)
			return error;
		if ((size_t)(*at - start) > DECIMALS_MAX) {
			*reason = "the number has too many decimals";
			return -EINVAL;
		}
		for (; start != *at; start++)
			amount->denominator *= 10;
	}
	amount->numerator = digits;
	return 0;
}

/* 1 for what is no prefix. */
static uint64_t
prefix_value(char c)
{
	switch (c) {
	case 'k':
		return 1000ull;
	case 'M':
		return 1000000ull;
	case 'G':
		return 1000000000ull;
	case 'T':
		return 1000000000000ull;
	default:
		return 1;
	}
}

/* The word at *at as a name of the table; moves past it only if it is one. */
static const struct name *
read_name(const char **at, const struct name *table)
{
	size_t length = 0;

	while (is_letter((*at)[length]))
		length++;
	for (; table->text != NULL; table++) {
		if (strlen(table->text) == length &&
		    memcmp(table->text, *at, length) == 0) {
			*at += length;
			return table;
		}
	}
	return NULL;
}

/* Take a prefix, if there is one. => Whether there was. */
static bool
read_prefix(const char **at, struct fraction *amount)
{
	uint64_t prefix = prefix_value(**at);

	if (prefix == 1)
		return false;
	amount->numerator *= prefix;
	(*at)++;
	return true;
}

/*
 * The unit after a number. One prefix may touch the number or the unit or,
 * as in "10kbit", both. No unit starts like a prefix.
 */
static const struct name *
read_unit(const char **at, struct fraction *amount)
{
	bool prefixed = read_prefix(at, amount);

	skip_blanks(at);
	if (!prefixed)
		(void)read_prefix(at, amount);
	return read_name(at, units);
}

static int
read_end(const char *at, const char **reason)
{
	skip_blanks(&at);
	if (*at == '\0')
		return 0;
	*reason = "there is more text than expected";
	return -EINVAL;
}

static u128
gcd(u128 a, u128 b)
{
	while (b != 0) {
		u128 rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static void
reduce(struct fraction *f)
{
	u128 divisor = gcd(f->numerator, f->denominator);

	f->numerator /= divisor;
	f->denominator /= divisor;
}

/*
 * An amount of packets or bytes, in lowest terms; above zero.
 * => Its unit, a value of the table; or NULL and *reason.
 */
static const struct name *
read_amount(const char **at, struct fraction *amount, const char **reason)
{
	const struct name *unit;

	if (read_decimal(at, amount, reason) != 0)
		return NULL;
	unit = read_unit(at, amount);
	if (unit == NULL) {
		*reason = **at == '\0' || **at == '/' ?
		    "a unit is expected: packets, bit, byte, kB, Mbit, ..." :
		    "the unit is not known (case counts)";
		return NULL;
	}
	if (amount->numerator == 0) {
		*reason = "zero is not allowed";
		return NULL;
	}
	if (unit->value & BIT)
		amount->denominator *= 8;
	reduce(amount);
	return unit;
}

static enum weir_unit
token_of(const struct name *unit)
{
	return unit->value & PACKET ? WEIR_UNIT_PACKETS : WEIR_UNIT_BYTES;
}

/* "/s", "/10s": the period in ns. */
static int
read_period(const char **at, uint64_t *period_ns, const char **reason)
{
	const struct name *name;
	uint64_t count = 0;
	int error;

	skip_blanks(at);
	if (**at != '/') {
		*reason = "a rate needs a time: \"/s\", \"/10s\", ...";
		return -EINVAL;
	}
	(*at)++;
	skip_blanks(at);
	if (!is_digit(**at))
		count = 1;
	else if ((error = read_digits(at, &count, reason)) != 0)
		return error;
	skip_blanks(at);
	name = read_name(at, times);
	if (name == NULL) {
		*reason = "the time must be in ns, us, ms, s, m, min, h or d";
		return -EINVAL;
	}
	if (count == 0) {
		*reason = "a time of zero is not allowed";
		return -EINVAL;
	}
	if (count > UINT64_MAX / name->value) {
		*reason = "the time is too long";
		return -EINVAL;
	}
	*period_ns = count * name->value;
	return 0;
}

/* amount per period as two 64-bit numbers, reduced only if it must be. */
static int
settle_rate(const struct fraction *amount, uint64_t period_ns,
    struct rate_text_rate *rate, const char **reason)
{
	struct fraction f = {
		amount->numerator,
		amount->denominator * period_ns,
	};

	if (f.numerator > UINT64_MAX || f.denominator > UINT64_MAX)
		reduce(&f);
	if (f.numerator > UINT64_MAX || f.denominator > UINT64_MAX) {
		*reason = "the rate is too large, small or precise to be kept";
		return -EINVAL;
	}
	rate->tokens = (uint64_t)f.numerator;
	rate->period_ns = (uint64_t)f.denominator;
	return 0;
}

int
rate_text_parse_rate(const char *text, struct rate_text_rate *rate,
    const char **reason)
{
	struct fraction amount;
	uint64_t period_ns = NS_PER_S;
	const struct name *unit = read_amount(&text, &amount, reason);
	int error;

	if (unit == NULL)
		return -EINVAL;
	if (!(unit->value & PER_SECOND) &&
	    (error = read_period(&text, &period_ns, reason)) != 0)
		return error;
	if ((error = read_end(text, reason)) != 0)
		return error;
	rate->unit = token_of(unit);
	return settle_rate(&amount, period_ns, rate, reason);
}

/* The value of an amount that has to be a whole number of 64 bits. */
static int
settle_whole(const struct fraction *amount, uint64_t *whole,
    const char **reason)
{
	if (amount->denominator != 1) {
		*reason = "this is not a whole number of packets or bytes";
		return -EINVAL;
	}
	if (amount->numerator > UINT64_MAX) {
		*reason = "the number is too large";
		return -EINVAL;
	}
	*whole = (uint64_t)amount->numerator;
	return 0;
}

int
rate_text_parse_burst(const char *text, struct rate_text_burst *burst,
    const char **reason)
{
	struct fraction amount;
	const struct name *unit = read_amount(&text, &amount, reason);
	int error;

	if (unit == NULL)
		return -EINVAL;
	if ((error = read_end(text, reason)) != 0)
		return error;
	if (unit->value & PER_SECOND) {
		*reason = "a burst is an amount, not a rate";
		return -EINVAL;
	}
	burst->unit = token_of(unit);
	return settle_whole(&amount, &burst->tokens, reason);
}

int
rate_text_parse_count(const char *text, uint64_t *count, const char **reason)
{
	struct fraction amount;
	int error;

	if ((error = read_decimal(&text, &amount, reason)) != 0)
		return error;
	(void)read_prefix(&text, &amount);
	if ((error = read_end(text, reason)) != 0)
		return error;
	reduce(&amount);
	if (amount.denominator != 1) {
		*reason = "a whole number is expected";
		return -EINVAL;
	}
	return settle_whole(&amount, count, reason);
}

uint64_t
rate_text_default_burst(const struct rate_text_rate *rate)
{
	u128 period_ns = rate->period_ns;
	u128 burst =
	    ((u128)rate->tokens * (NS_PER_S / 10) + period_ns - 1) / period_ns;
	u128 least = rate->unit == WEIR_UNIT_PACKETS ?
	    10 :
	    10 * RATE_TEXT_FULL_FRAME_BYTES;

	if (burst < least)
		burst = least;
	/* Only rates far beyond what an engine accepts get here. */
	return burst > UINT64_MAX ? UINT64_MAX : (uint64_t)burst;
}
