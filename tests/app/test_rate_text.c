/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rates and bursts as text: exact results, and exact refusals. Ids like B095
 * name the known fault a case would show.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../dpdk_app/rate_text.h"
#include "support.h"

#define S NSEC_PER_SEC
#define PACKETS WEIR_UNIT_PACKETS
#define BYTES WEIR_UNIT_BYTES

typedef unsigned __int128 u128;

static const struct {
	const char *text;
	uint64_t tokens;
	uint64_t period_ns;
	enum weir_unit unit;
} good_rates[] = {
	{ "1000 packets/s", 1000, S, PACKETS },
	{ "1 packet/s", 1, S, PACKETS },
	{ "1packet/s", 1, S, PACKETS },
	{ "1 packet/10s", 1, 10 * S, PACKETS },
	{ "1 packet / 10 s", 1, 10 * S, PACKETS },
	{ " \t7\tpackets\t/\ts\t ", 7, S, PACKETS },
	{ "3 packets/1m", 3, 60 * S, PACKETS },
	{ "3 packets/2min", 3, 120 * S, PACKETS },
	{ "1 packet/h", 1, 3600 * S, PACKETS },
	{ "1 packet/365d", 1, 365 * NSEC_PER_DAY, PACKETS },
	{ "1 packet/ns", 1, 1, PACKETS },
	{ "5 packets/250us", 5, 250000, PACKETS },
	{ "5 packets/250ms", 5, 250000000, PACKETS },
	{ "10k packets/s", 10000, S, PACKETS },
	{ "10 kpackets/s", 10000, S, PACKETS },
	{ "2M packets/s", 2000000, S, PACKETS },
	{ "1.5G packets/s", 1500000000, S, PACKETS },
	{ "1.488095 Mpps", 1488095, S, PACKETS },
	{ "20 pps", 20, S, PACKETS },
	{ "0.5 packets/s", 1, 2 * S, PACKETS },
	{ "0.1 packets/s", 1, 10 * S, PACKETS },
	{ "0.3 packets/s", 3, 10 * S, PACKETS },
	{ "2.50 packets/s", 5, 2 * S, PACKETS },
	{ "007 packets/s", 7, S, PACKETS },
	{ "60 packets/60s", 60, 60 * S, PACKETS }, /* not made 1 per s */

	{ "5 kbyte/s", 5000, S, BYTES },
	{ "1 byte/s", 1, S, BYTES },
	{ "3 bytes/s", 3, S, BYTES },
	{ "64 kB/s", 64000, S, BYTES },
	{ "64k B/s", 64000, S, BYTES },
	{ "100 MB/s", 100000000, S, BYTES },
	{ "12.5 GB/s", 12500000000ull, S, BYTES },
	{ "10 Mbit/s", 1250000, S, BYTES },
	{ "10M bits/s", 1250000, S, BYTES },
	{ "10 Mb/s", 1250000, S, BYTES },
	{ "2.5 Gbit/s", 312500000, S, BYTES },
	{ "2.5 Mbit/s", 312500, S, BYTES },
	{ "1.6 Tbit/s", 200000000000ull, S, BYTES },
	{ "8 bit/s", 1, S, BYTES },
	{ "1 bit/s", 1, 8 * S, BYTES },
	{ "7999 bit/s", 7999, 8 * S, BYTES },
	{ "12 bit/s", 3, 2 * S, BYTES },
	{ "0.1 bit/s", 1, 80 * S, BYTES },
	/* B001, B002: around 2^32 bit/s */
	{ "4294967 kbit/s", 536870875, S, BYTES },
	{ "4294967295 bit/s", 4294967295, 8 * S, BYTES },
	{ "4294967296 bit/s", 536870912, S, BYTES },
	/* B095: bits for bytes, 1024 for 1000 */
	{ "100Mbps", 12500000, S, BYTES },
	{ "100MBps", 100000000, S, BYTES },
	{ "100 Mbps", 12500000, S, BYTES },
	{ "100M Bps", 100000000, S, BYTES },
	{ "8bps", 1, S, BYTES },
	{ "1Bps", 1, S, BYTES },

	/* The ends of 64 bits. An engine takes less, but that is its word. */
	{ "18446744073709551615 packets/s", UINT64_MAX, S, PACKETS },
	{ "18446744073709551.615 kpackets/s", UINT64_MAX, S, PACKETS },
	{ "1 packet/18446744073709551615ns", 1, UINT64_MAX, PACKETS },
	{ "1 packet/213503d", 1, 213503 * NSEC_PER_DAY, PACKETS },
	/* 10^-18 of 10^12 per s is 10^-15 per ns */
	{ "0.000000000000000001 Tpackets/s", 1, 1000000 * S, PACKETS },
	/* 10^-18 per ns: 10^18 ns; the same per s would need 10^27 */
	{ "0.000000000000000001 packets/ns", 1, 1000000000000000000ull,
	    PACKETS },
	/* 1000 x 2^63 B in 1000 s, reduced to fit: 10^9 / 2^9 = 1953125 */
	{ "9223372036854775808 kB/1000s", 1ull << 54, 1953125, BYTES },
};

START_TEST(rates_are_exact)
{
	struct rate_text_rate rate;
	const char *reason = "-";
	int rc = rate_text_parse_rate(good_rates[_i].text, &rate, &reason);

	ck_assert_msg(rc == 0, "%s: %s", good_rates[_i].text, reason);
	ck_assert_uint_eq(rate.tokens, good_rates[_i].tokens);
	ck_assert_uint_eq(rate.period_ns, good_rates[_i].period_ns);
	ck_assert_uint_eq(rate.unit, good_rates[_i].unit);
}
END_TEST

static const struct {
	const char *text;
	uint64_t tokens;
	enum weir_unit unit;
} good_bursts[] = {
	{ "200 packets", 200, PACKETS },
	{ "1packet", 1, PACKETS },
	{ "10k packets", 10000, PACKETS }, /* B095: not 10,240 */
	{ "0.001k packets", 1, PACKETS },
	{ "64 kB", 64000, BYTES },
	{ "64 kbyte", 64000, BYTES },
	{ "1.5 kB", 1500, BYTES },
	{ "8000 kbit", 1000000, BYTES }, /* B095: not 125,000 */
	{ "8bits", 1, BYTES },
	{ "2 MB", 2000000, BYTES },
	{ " 1 B ", 1, BYTES },
	{ "4294967296 bytes", 4294967296, BYTES }, /* B107 */
	{ "9223372036854775808 B", 1ull << 63, BYTES },
	{ "18446744073709551615 packets", UINT64_MAX, PACKETS },
};

START_TEST(bursts_are_exact)
{
	struct rate_text_burst burst;
	const char *reason = "-";
	int rc = rate_text_parse_burst(good_bursts[_i].text, &burst, &reason);

	ck_assert_msg(rc == 0, "%s: %s", good_bursts[_i].text, reason);
	ck_assert_uint_eq(burst.tokens, good_bursts[_i].tokens);
	ck_assert_uint_eq(burst.unit, good_bursts[_i].unit);
}
END_TEST

/* B098 and relatives: no text here is a rate, a burst or a count. */
static const char *const rubbish[] = {
	"", " ", "\t", "/", "/s", "x", "packets", "packets/s", ".", ".5",
	"5.", "5. packets", ".5 packets/s", "1..5 packets", "1.2.3 packets",
	"10/sX", "10/s", "10abc", "1e400", "1e3", "1e3 packets/s", "-5",
	"-5 packets/s", "+5", "+5 packets/s", "- 5 packets", "0x10",
	"0x10 packets/s", "1,000 packets/s", "1_000 packets/s",
	"18446744073709551616", "18446744073709551616 packets/s",
	"18446744073709551616 packets", "184467440737095516160 B",
	"99999999999999999999999999999999999999999 packets",
	"1.0000000000000000000 packets", "0 packets/s", "0 packets",
	"0.0 packets", "0 B", "0k packets", "0 bps", "1000 Packets/s",
	"1000 PACKETS/s", "1000 packetss/s", "1000 packe/s", "1000 pkts/s",
	"10 k packets/s", "10k kbit/s", "10kk packets", "10 K packets",
	"10K packets", "10 KB", "10 Kbit/s", "10 mbit/s", "10 gbit/s",
	"10 KiB", "10 kiB", "10 MiB", "10 MBIT/s", "10 Mbit/S", "10 bitt",
	"10 octets", "10 packets packets", "10 packets/s s",
	"10 packets/s/s", "10 packets//s", "10 packets/", "10 packets/0s",
	"10 packets/00s", "10 packets/-1s", "10 packets/1.5s",
	"10 packets/0.5s", "10 packets/x", "10 packets/sec",
	"10 packets/second", "10 packets/sX", "10 packets/10", "10 packets/w",
	"10 packets/M", "10 packets/H", "10 packets/s;", "10 packets/s\n",
	"10 packets\n/s", "10 packets/18446744073709551616ns",
	"10 packets/18446744073709551615us", "10 packets/213504d",
	"10 packets per s", "10 pps/s", "10 Mbps/s", "10 mbps", "10 KBps",
	"10 packets\xc2\xa0/s", "\xef\xbb\xbf 10 packets/s", "10 packets\x80",
	"\xff", "nan packets/s", "inf packets/s", "1 packet/infs",
	"0.000000000000000001 packets/s", /* 10^27 ns */
	"18446744073709551615 kpackets/ns", "18446744073709551616 B/1s",
	"0.1234567890123456789 packets/s", "%s", "%n packets/s",
};

START_TEST(rubbish_is_refused)
{
	const char *text = rubbish[_i];
	struct rate_text_rate rate;
	struct rate_text_burst burst;
	const char *reason = NULL;
	uint64_t count;

	ck_assert_int_eq(rate_text_parse_rate(text, &rate, &reason), -EINVAL);
	ck_assert_msg(reason != NULL && reason[0] != '\0', "%s", text);
	reason = NULL;
	ck_assert_int_eq(rate_text_parse_burst(text, &burst, &reason), -EINVAL);
	ck_assert_msg(reason != NULL && reason[0] != '\0', "%s", text);
	reason = NULL;
	ck_assert_int_eq(rate_text_parse_count(text, &count, &reason), -EINVAL);
	ck_assert_msg(reason != NULL && reason[0] != '\0', "%s", text);
}
END_TEST

/* Good as one thing, and therefore not as the other. */
START_TEST(kinds_are_not_mixed_up)
{
	static const char *const no_burst[] = {
		"1000 packets/s", "10 Mbit/s", "10 Mbps", "5 pps", "1 bit",
		"12 bits", "0.5 packets", "1.5 B", "0.0001 kB", "1.0001 kbit",
		"18446744073709551615 kB",
	};
	static const char *const no_rate[] = {
		"1000 packets", "64 kB", "8000 kbit", "1000", "1k",
	};
	struct rate_text_rate rate;
	struct rate_text_burst burst;
	const char *reason;
	size_t i;

	for (i = 0; i < NELEM(no_burst); i++)
		ck_assert_msg(rate_text_parse_burst(no_burst[i], &burst,
		    &reason) == -EINVAL, "%s", no_burst[i]);
	for (i = 0; i < NELEM(no_rate); i++)
		ck_assert_msg(rate_text_parse_rate(no_rate[i], &rate,
		    &reason) == -EINVAL, "%s", no_rate[i]);
}
END_TEST

START_TEST(counts_are_exact)
{
	static const struct {
		const char *text;
		uint64_t count; /* UINT64_MAX - 1: refused */
	} rows[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ " 64 ", 64 },
		{ "1000000", 1000000 },
		{ "1M", 1000000 },
		{ "2.5M", 2500000 },
		{ "0.001k", 1 },
		{ "18446744073709551615", UINT64_MAX },
		{ "0.5", UINT64_MAX - 1 },
		{ "2.5", UINT64_MAX - 1 },
		{ "1.0001k", UINT64_MAX - 1 },
		{ "18446744073709551616", UINT64_MAX - 1 },
		{ "18446744073709551615k", UINT64_MAX - 1 },
		{ "1Mi", UINT64_MAX - 1 },
		{ "1 M", UINT64_MAX - 1 },
		{ "1m", UINT64_MAX - 1 },
		{ "1 keys", UINT64_MAX - 1 },
		{ "64/", UINT64_MAX - 1 },
	};
	const char *reason;
	uint64_t count;
	size_t i;

	for (i = 0; i < NELEM(rows); i++) {
		bool good = rows[i].count != UINT64_MAX - 1;
		int rc = rate_text_parse_count(rows[i].text, &count, &reason);

		ck_assert_msg(rc == (good ? 0 : -EINVAL), "%s", rows[i].text);
		if (good)
			ck_assert_uint_eq(count, rows[i].count);
	}
}
END_TEST

/* B108, B109: covers a normal burst, and is small against a second. */
START_TEST(default_bursts)
{
	static const struct {
		const char *rate;
		uint64_t tokens;
	} rows[] = {
		{ "1 packet/10s", 10 },
		{ "100 packets/s", 10 },
		{ "101 packets/s", 11 }, /* 10.1, rounded up */
		{ "1000 packets/s", 100 },
		{ "60k packets/1min", 100 },
		{ "1 bit/s", 15140 },
		{ "10 Mbit/s", 125000 },
		{ "151400 B/s", 15140 },
		{ "151401 B/s", 15141 },
		{ "100 Gbit/s", 1250000000 },
		{ "1.6 Tbit/s", 20000000000ull },
		{ "18446744073709551615 packets/ns", UINT64_MAX },
	};
	struct rate_text_rate rate;
	const char *reason;
	size_t i;

	for (i = 0; i < NELEM(rows); i++) {
		ck_assert_int_eq(rate_text_parse_rate(rows[i].rate, &rate,
		    &reason), 0);
		ck_assert_msg(rate_text_default_burst(&rate) == rows[i].tokens,
		    "%s", rows[i].rate);
	}
}
END_TEST

/* A rate made from numbers that are known, so that the answer is, too. */
struct made {
	char text[128];
	u128 tokens; /* the rate is tokens / period_ns, in lowest terms */
	u128 period_ns;
	enum weir_unit unit;
};

struct word {
	const char *text;
	uint64_t value;
};

static const struct word prefixes[] = {
	{ "", 1 }, { "k", 1000 }, { "M", 1000000 }, { "G", 1000000000 },
	{ "T", 1000000000000 },
};

/* How many make a token; 0: the token is a packet. */
static const struct word units[] = {
	{ "packet", 0 }, { "packets", 0 }, { "bit", 8 }, { "bits", 8 },
	{ "b", 8 }, { "byte", 1 }, { "bytes", 1 }, { "B", 1 },
};

static const struct word times[] = {
	{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", S },
	{ "m", 60 * S }, { "min", 60 * S }, { "h", 3600 * S },
	{ "d", 86400 * S },
};

static void
made_to_lowest_terms(struct made *made)
{
	u128 a = made->tokens, b = made->period_ns;

	while (b != 0) {
		u128 rest = a % b;

		a = b;
		b = rest;
	}
	made->tokens /= a;
	made->period_ns /= a;
}

/*
 * digits < 2^41, a prefix < 2^40: tokens < 2^81. 10^6 < 2^20, a count < 2^15,
 * a day < 2^47 ns, 8 bits: period_ns < 2^85.
 */
static void
make_rate(struct rng *rng, struct made *made)
{
	const struct word *prefix = &prefixes[rng_below(rng, NELEM(prefixes))];
	const struct word *unit = &units[rng_below(rng, NELEM(units))];
	const struct word *time = &times[rng_below(rng, NELEM(times))];
	static const char *const blanks[] = { "", " ", "\t " };
	const char *blank[3];
	uint64_t whole = rng_magnitude(rng, 20);
	uint64_t rest = 1 + rng_below(rng, 999999);
	uint64_t count = 1 + rng_magnitude(rng, 14);
	bool decimals = rng_below(rng, 2);
	char number[32];

	for (unsigned i = 0; i < 3; i++)
		blank[i] = blanks[rng_below(rng, NELEM(blanks))];
	if (decimals)
		snprintf(number, sizeof(number), "%llu.%06llu",
		    (unsigned long long)whole, (unsigned long long)rest);
	else
		snprintf(number, sizeof(number), "%llu",
		    (unsigned long long)(whole += rest));
	snprintf(made->text, sizeof(made->text), "%s%s%s%s%s/%s%llu%s", number,
	    blank[0], prefix->text, unit->text, blank[1], blank[2],
	    (unsigned long long)count, time->text);
	made->tokens = decimals ? whole * 1000000 + rest : whole;
	made->tokens *= prefix->value;
	made->period_ns = decimals ? 1000000 : 1;
	made->period_ns *= count * time->value;
	if (unit->value != 0)
		made->period_ns *= unit->value;
	made->unit = unit->value == 0 ? PACKETS : BYTES;
	made_to_lowest_terms(made);
}

/* Random rates against what they were made from. */
START_TEST(rates_round_trip)
{
	uint64_t n = test_scale(1000000), kept = 0;
	struct rate_text_rate rate;
	const char *reason;
	struct made made;
	struct rng rng;

	rng_init(&rng, test_seed("rates_round_trip"));
	for (uint64_t i = 0; i < n; i++) {
		make_rate(&rng, &made);
		if (rate_text_parse_rate(made.text, &rate, &reason) != 0) {
			/* only for what 64 bits cannot hold */
			if (made.tokens <= UINT64_MAX &&
			    made.period_ns <= UINT64_MAX)
				ck_abort_msg("%s: %s", made.text, reason);
			continue;
		}
		kept++;
		if (rate.tokens % made.tokens != 0 ||
		    rate.period_ns % made.period_ns != 0 ||
		    rate.tokens / made.tokens !=
		    rate.period_ns / made.period_ns || rate.unit != made.unit)
			ck_abort_msg("%s: %llu / %llu", made.text,
			    (unsigned long long)rate.tokens,
			    (unsigned long long)rate.period_ns);
	}
	ck_assert_uint_gt(kept, n / 2);
}
END_TEST

/*
 * Texts with random changes, each in memory of just its size. Whatever is
 * made of them, it is within its promises.
 */
START_TEST(changed_texts_do_no_harm)
{
	static const char alphabet[] = "0123456789.kMGTbBpsmhdu/ \t-+exK\xff";
	uint64_t n = test_scale(300000), kept = 0;
	struct rate_text_rate rate;
	struct rate_text_burst burst;
	const char *reason;
	struct rng rng;

	rng_init(&rng, test_seed("changed_texts_do_no_harm"));
	for (uint64_t i = 0; i < n; i++) {
		const char *from = good_rates[rng_below(&rng,
		    NELEM(good_rates))].text;
		size_t length = strlen(from);
		char *text = strdup(from);

		for (uint64_t k = rng_below(&rng, 3); k > 0; k--)
			text[rng_below(&rng, length)] =
			    alphabet[rng_below(&rng, sizeof(alphabet))];
		reason = NULL;
		if (rate_text_parse_rate(text, &rate, &reason) == 0) {
			kept++;
			if (rate.tokens == 0 || rate.period_ns == 0 ||
			    rate_text_default_burst(&rate) == 0)
				ck_abort_msg("%s: nothing", text);
		} else if (reason == NULL) {
			ck_abort_msg("%s: no reason", text);
		}
		if (rate_text_parse_burst(text, &burst, &reason) == 0 &&
		    burst.tokens == 0)
			ck_abort_msg("%s: nothing", text);
		free(text);
	}
	ck_assert_uint_gt(kept, n / 10);
	ck_assert_uint_lt(kept, n);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("rate_text");
	TCase *rows = tcase_create("rows");
	TCase *chance = tcase_create("chance");

	tcase_add_loop_test(rows, rates_are_exact, 0, NELEM(good_rates));
	tcase_add_loop_test(rows, bursts_are_exact, 0, NELEM(good_bursts));
	tcase_add_loop_test(rows, rubbish_is_refused, 0, NELEM(rubbish));
	tcase_add_test(rows, kinds_are_not_mixed_up);
	tcase_add_test(rows, counts_are_exact);
	tcase_add_test(rows, default_bursts);
	suite_add_tcase(s, rows);

	tcase_set_timeout(chance, 120);
	tcase_add_test(chance, rates_round_trip);
	tcase_add_test(chance, changed_texts_do_no_harm);
	suite_add_tcase(s, chance);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
