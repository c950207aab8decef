/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys of packets, good, cut, split and hostile. Ids like B076 name the known
 * fault a case would show.
 *
 * The mbufs are made by hand, without EAL: each segment is in memory of just
 * its size, so that AddressSanitizer sees a read of one byte too many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For header_at(), which no caller can give the offsets it must refuse. */
#include "../../dpdk_app/pkt_key.c"
#include "support.h"

#define FRAME_MAX 192
#define SEGMENTS_MAX (FRAME_MAX + 2)
#define TAGS_MAX 9

/* A packet as bytes. */
struct frame {
	uint8_t bytes[FRAME_MAX];
	size_t length;
	size_t ip; /* where the IP header starts */
};

/* A packet as mbufs. */
struct chain {
	struct rte_mbuf segments[SEGMENTS_MAX];
	size_t n;
};

static struct pkt_key_rules
rules_for(unsigned int prefix)
{
	struct pkt_key_rules rules;

	ck_assert_int_eq(pkt_key_rules_init(&rules, prefix), 0);
	return rules;
}

static void
chain_add(struct chain *chain, const uint8_t *bytes, size_t length,
    uint16_t headroom)
{
	struct rte_mbuf *m = &chain->segments[chain->n];

	memset(m, 0, sizeof(*m));
	m->buf_addr = malloc(headroom + length);
	if (m->buf_addr == NULL)
		ck_abort_msg("no memory");
	m->data_off = headroom;
	m->data_len = (uint16_t)length;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), bytes, length);
	if (chain->n > 0)
		chain->segments[chain->n - 1].next = m;
	chain->n++;
	chain->segments[0].pkt_len += (uint32_t)length;
	chain->segments[0].nb_segs = (uint16_t)chain->n;
}

static void
chain_free(struct chain *chain)
{
	while (chain->n > 0)
		free(chain->segments[--chain->n].buf_addr);
}

/* The key of length bytes that are split before each of the ascending cuts. */
static bool
read_split(const uint8_t *bytes, size_t length, const size_t *cuts,
    size_t n_cuts, const struct pkt_key_rules *rules, uint8_t *key)
{
	static struct chain chain;
	size_t from = 0;
	bool readable;

	for (size_t i = 0; i < n_cuts; i++) {
		chain_add(&chain, bytes + from, cuts[i] - from,
		    (uint16_t)(3 * i));
		from = cuts[i];
	}
	chain_add(&chain, bytes + from, length - from, 5);
	memset(key, 0xa5, PKT_KEY_SIZE);
	readable = pkt_key_read(&chain.segments[0], rules, key);
	chain_free(&chain);
	return readable;
}

static bool
read_whole(const uint8_t *bytes, size_t length,
    const struct pkt_key_rules *rules, uint8_t *key)
{
	return read_split(bytes, length, NULL, 0, rules, key);
}

/*
 * Some millions of packets pass the helpers above and below. An assertion of
 * check writes to a file each time, so these compare first and then complain.
 */

/* "" for no key; otherwise as people see it. */
static const char *
key_text(bool readable, const uint8_t *key, const struct pkt_key_rules *rules)
{
	static char text[PKT_KEY_TEXT_SIZE];
	static const uint8_t none[PKT_KEY_SIZE];

	if (readable) {
		pkt_key_print(key, rules, text, sizeof(text));
		return text;
	}
	if (memcmp(key, none, PKT_KEY_SIZE) != 0)
		return "no key, but one that is not zero";
	return "";
}

struct layout {
	const char *name;
	uint16_t tags[TAGS_MAX]; /* 0 ends the list */
	uint16_t ethertype;
	uint8_t first_byte;    /* of the IP header */
	uint16_t total_length; /* IPv4 */
	uint16_t fragment;     /* IPv4: flags and offset */
	uint8_t next_header;   /* IPv6 */
	const char *source;
	const char *key; /* "": not readable */
	size_t need;     /* bytes the packet must have to be readable */
};

#define IPV4(ihl, length) \
	.ethertype = 0x0800, .first_byte = 0x40 | (ihl), \
	.total_length = (length), .source = "10.0.0.1"
#define IPV6 \
	.ethertype = 0x86dd, .first_byte = 0x60, \
	.source = "2001:db8:1:2:3:4:5:6"

static const struct layout layouts[] = {
	{ "IPv4", IPV4(5, 28), .key = "10.0.0.1", .need = 34 },
	{ "no payload", IPV4(5, 20), .key = "10.0.0.1", .need = 34 },
	{ "cut capture", IPV4(5, 65535), .key = "10.0.0.1", .need = 34 },
	{ "padded", IPV4(5, 21), .key = "10.0.0.1", .need = 34 }, /* B088 */
	/* B080 */
	{ "options", IPV4(6, 32), .key = "10.0.0.1", .need = 38 },
	{ "options only", IPV4(6, 24), .key = "10.0.0.1", .need = 38 },
	{ "most options", IPV4(15, 60), .key = "10.0.0.1", .need = 74 },
	{ "first fragment", IPV4(5, 28), .fragment = 0x2000,
	    .key = "10.0.0.1", .need = 34 },
	{ "fragment", IPV4(5, 28), .fragment = 0x2001, .key = "10.0.0.1",
	    .need = 34 },
	/* B082: the end of this fragment lies beyond 65,535 */
	{ "late fragment", IPV4(5, 1020), .fragment = 0x1fff,
	    .key = "10.0.0.1", .need = 34 },
	{ "0.0.0.0", .ethertype = 0x0800, .first_byte = 0x45,
	    .total_length = 28, .source = "0.0.0.0", .key = "0.0.0.0",
	    .need = 34 },
	{ "255.255.255.255", .ethertype = 0x0800, .first_byte = 0x45,
	    .total_length = 28, .source = "255.255.255.255",
	    .key = "255.255.255.255", .need = 34 },

	{ "0x8100", { 0x8100 }, IPV4(5, 28), .key = "10.0.0.1", .need = 38 },
	{ "0x88a8", { 0x88a8 }, IPV4(5, 28), .key = "10.0.0.1", .need = 38 },
	{ "0x9100", { 0x9100 }, IPV4(5, 28), .key = "10.0.0.1", .need = 38 },
	{ "QinQ", { 0x88a8, 0x8100 }, IPV4(5, 28), .key = "10.0.0.1",
	    .need = 42 },
	{ "QinQ, IPv6", { 0x88a8, 0x8100 }, IPV6,
	    .key = "2001:db8:1:2::/64", .need = 62 },
	/* B076: the IPv4 header at byte 26 */
	{ "three tags", { 0x88a8, 0x88a8, 0x8100 }, IPV4(5, 28),
	    .key = "10.0.0.1", .need = 46 },
	{ "four tags", { 0x9100, 0x8100, 0x8100, 0x8100 }, IPV4(15, 60),
	    .key = "10.0.0.1", .need = 90 },
	{ "five tags", { 0x8100, 0x8100, 0x8100, 0x8100, 0x8100 },
	    IPV4(5, 28), .key = "" },
	{ "nine tags", { 0x8100, 0x8100, 0x8100, 0x8100, 0x8100, 0x8100,
	    0x8100, 0x8100, 0x8100 }, IPV4(5, 28), .key = "" },

	{ "IPv6", IPV6, .next_header = 17, .key = "2001:db8:1:2::/64",
	    .need = 54 },
	/* B080: extension headers come after the source */
	{ "hop-by-hop", IPV6, .next_header = 0, .key = "2001:db8:1:2::/64",
	    .need = 54 },
	{ "IPv6 fragment", IPV6, .next_header = 44,
	    .key = "2001:db8:1:2::/64", .need = 54 },
	{ "::", .ethertype = 0x86dd, .first_byte = 0x60, .source = "::",
	    .key = "::/64", .need = 54 },
	/* B089 */
	{ "mapped", .ethertype = 0x86dd, .first_byte = 0x60,
	    .source = "::ffff:1.2.3.4", .key = "1.2.3.4", .need = 54 },
	{ "ends like IPv4", .ethertype = 0x86dd, .first_byte = 0x60,
	    .source = "2001:db8:1234:5678::102:304",
	    .key = "2001:db8:1234:5678::/64", .need = 54 },
	{ "compatible", .ethertype = 0x86dd, .first_byte = 0x60,
	    .source = "::1.2.3.4", .key = "::/64", .need = 54 },
	/* B091: translated clients share a /64, as docs/policy.md says */
	{ "NAT64", .ethertype = 0x86dd, .first_byte = 0x60,
	    .source = "64:ff9b::808:808", .key = "64:ff9b::/64", .need = 54 },

	{ "IHL 0", IPV4(0, 28), .key = "" },
	{ "IHL 4", IPV4(4, 28), .key = "" },
	{ "length 0", IPV4(5, 0), .key = "" },
	{ "length 19", IPV4(5, 19), .key = "" },
	{ "shorter than its options", IPV4(6, 23), .key = "" },
	{ "IPv6 as IPv4", .ethertype = 0x0800, .first_byte = 0x65,
	    .total_length = 28, .source = "10.0.0.1", .key = "" },
	{ "version 5", .ethertype = 0x0800, .first_byte = 0x55,
	    .total_length = 28, .source = "10.0.0.1", .key = "" },
	{ "IPv4 as IPv6", .ethertype = 0x86dd, .first_byte = 0x45,
	    .source = "2001:db8::1", .key = "" },
	{ "version 7", .ethertype = 0x86dd, .first_byte = 0x70,
	    .source = "2001:db8::1", .key = "" },
	{ "ARP", .ethertype = 0x0806, .first_byte = 0x45,
	    .total_length = 28, .source = "10.0.0.1", .key = "" },
	{ "LLC", .ethertype = 0x0026, .first_byte = 0x45,
	    .total_length = 28, .source = "10.0.0.1", .key = "" },
	{ "MPLS", .ethertype = 0x8847, .first_byte = 0x45,
	    .total_length = 28, .source = "10.0.0.1", .key = "" },
	{ "PPPoE", .ethertype = 0x8864, .first_byte = 0x45,
	    .total_length = 28, .source = "10.0.0.1", .key = "" },
	{ "byte order", .ethertype = 0x0008, .first_byte = 0x45,
	    .total_length = 28, .source = "10.0.0.1", .key = "" },
	{ "tag of ARP", { 0x8100 }, .ethertype = 0x0806, .first_byte = 0x45,
	    .total_length = 28, .source = "10.0.0.1", .key = "" },
};

static void
frame_put(struct frame *frame, unsigned int value)
{
	frame->bytes[frame->length++] = (uint8_t)value;
}

static void
frame_put16(struct frame *frame, unsigned int value)
{
	frame_put(frame, value >> 8);
	frame_put(frame, value & 0xff);
}

/* The addresses and the rest of a frame with this source; 8 bytes payload. */
static void
frame_fill(struct frame *frame, const struct layout *layout)
{
	uint8_t *ip = &frame->bytes[frame->ip];
	size_t ihl = layout->first_byte & 0x0f;
	bool ipv6 = strchr(layout->source, ':') != NULL;

	frame->length += (ipv6 ? 40 : ihl < 5 ? 20 : 4 * ihl) + 8;
	ck_assert_uint_le(frame->length, FRAME_MAX);
	ip[0] = layout->first_byte;
	if (ipv6) {
		ip[6] = layout->next_header;
		ck_assert_int_eq(inet_pton(AF_INET6, layout->source, ip + 8),
		    1);
		return;
	}
	ip[2] = (uint8_t)(layout->total_length >> 8);
	ip[3] = (uint8_t)layout->total_length;
	ip[6] = (uint8_t)(layout->fragment >> 8);
	ip[7] = (uint8_t)layout->fragment;
	ck_assert_int_eq(inet_pton(AF_INET, layout->source, ip + 12), 1);
}

static void
frame_build(struct frame *frame, const struct layout *layout)
{
	/* What is not set below is 0xff, which is no good header anywhere. */
	memset(frame->bytes, 0xff, sizeof(frame->bytes));
	frame->length = 12;
	for (unsigned i = 0; i < TAGS_MAX && layout->tags[i] != 0; i++) {
		frame_put16(frame, layout->tags[i]);
		frame_put16(frame, 0x0064);
	}
	frame_put16(frame, layout->ethertype);
	frame->ip = frame->length;
	frame_fill(frame, layout);
}

/* The text of the key must be the layout's, or "" for a packet too short. */
static void
expect_key(const struct layout *layout, size_t length, bool readable,
    const uint8_t *key, const struct pkt_key_rules *rules)
{
	const char *want = length < layout->need ? "" : layout->key;
	const char *text = key_text(readable, key, rules);

	if (strcmp(text, want) != 0)
		ck_abort_msg("%s, %zu bytes: \"%s\", not \"%s\"",
		    layout->name, length, text, want);
}

/* Every length of every packet, and every way to split that in two. */
START_TEST(cut_and_split)
{
	const struct layout *layout = &layouts[_i];
	struct pkt_key_rules rules = rules_for(64);
	uint8_t key[PKT_KEY_SIZE];
	struct frame frame;
	bool readable;

	frame_build(&frame, layout);
	if (layout->key[0] != '\0')
		ck_assert_uint_ge(frame.length, layout->need);
	for (size_t length = 0; length <= frame.length; length++) {
		readable = read_whole(frame.bytes, length, &rules, key);
		expect_key(layout, length, readable, key, &rules);
		for (size_t cut = 0; cut <= length; cut++) {
			/* the second time with an empty segment between */
			for (size_t n = 1; n <= 2; n++) {
				readable = read_split(frame.bytes, length,
				    (size_t[]){ cut, cut }, n, &rules, key);
				expect_key(layout, length, readable, key,
				    &rules);
			}
		}
	}
}
END_TEST

START_TEST(segments_of_one_byte)
{
	const struct layout *layout = &layouts[_i];
	struct pkt_key_rules rules = rules_for(64);
	uint8_t key[PKT_KEY_SIZE];
	size_t cuts[FRAME_MAX];
	struct frame frame;

	for (size_t i = 0; i < FRAME_MAX; i++)
		cuts[i] = i + 1;
	frame_build(&frame, layout);
	for (size_t length = 1; length <= frame.length; length++) {
		bool readable = read_split(frame.bytes, length, cuts,
		    length - 1, &rules, key);

		expect_key(layout, length, readable, key, &rules);
	}
}
END_TEST

/* All EtherTypes: IPv4 and IPv6 have keys, tags lead on, nothing else does. */
START_TEST(all_ethertypes)
{
	static const struct layout plain = { "", IPV4(5, 28) };
	struct pkt_key_rules rules = rules_for(64);
	uint8_t key[PKT_KEY_SIZE];
	struct frame frame;

	frame_build(&frame, &plain);
	for (unsigned type = 0; type <= UINT16_MAX; type++) {
		frame.bytes[12] = (uint8_t)(type >> 8);
		frame.bytes[13] = (uint8_t)type;
		ck_assert_msg(read_whole(frame.bytes, frame.length, &rules,
		    key) == (type == 0x0800), "0x%04x", type);
	}
}
END_TEST

/* B086: the first segment is not the packet. */
START_TEST(large_chain)
{
	static const struct layout plain = { "", IPV4(5, 4986) };
	struct pkt_key_rules rules = rules_for(64);
	static uint8_t bytes[2048];
	static struct chain chain;
	uint8_t key[PKT_KEY_SIZE];
	struct frame frame;

	frame_build(&frame, &plain);
	memcpy(bytes, frame.bytes, frame.length);
	chain_add(&chain, bytes, 2048, 128);
	chain_add(&chain, bytes, 2048, 0);
	chain_add(&chain, bytes, 904, 0);
	ck_assert(pkt_key_read(&chain.segments[0], &rules, key));
	ck_assert_str_eq(key_text(true, key, &rules), "10.0.0.1");
	ck_assert_uint_eq(rte_pktmbuf_pkt_len(&chain.segments[0]), 5000);
	chain_free(&chain);
}
END_TEST

/* B094: what lies beyond the packet, by sums that would wrap. */
START_TEST(offsets_do_not_wrap)
{
	static const struct {
		uint32_t offset;
		uint32_t length;
		bool there;
	} rows[] = {
		{ 0, 60, true }, { 40, 20, true }, { 59, 1, true },
		{ 41, 20, false }, { 60, 1, false }, { 61, 1, false },
		{ 4294967280u, 20, false }, { 4294967295u, 1, false },
		{ 4294967295u, 2, false }, { 4294967236u, 60, false },
		{ 2147483648u, 60, false }, { 65536, 1, false },
	};
	static const uint8_t bytes[60];
	uint8_t scratch[60];

	for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
		static struct chain chain;

		chain_add(&chain, bytes, cut, 7);
		chain_add(&chain, bytes + cut, sizeof(bytes) - cut, 7);
		for (size_t i = 0; i < NELEM(rows); i++)
			ck_assert_msg((header_at(&chain.segments[0],
			    rows[i].offset, rows[i].length, scratch) != NULL)
			    == rows[i].there, "%u, %u split at %zu",
			    rows[i].offset, rows[i].length, cut);
		chain_free(&chain);
	}
}
END_TEST

START_TEST(rules_in_range)
{
	static const unsigned int wrong[] = { 0, 129, 255, 256, 320,
		UINT32_MAX };
	struct pkt_key_rules rules;

	for (size_t i = 0; i < NELEM(wrong); i++)
		ck_assert_int_eq(pkt_key_rules_init(&rules, wrong[i]),
		    -EINVAL);
	for (unsigned int prefix = 1; prefix <= 128; prefix++)
		ck_assert_uint_eq(rules_for(prefix).ipv6_prefix, prefix);
}
END_TEST

static void
ipv6_frame(struct frame *frame, const char *source)
{
	struct layout layout = { "", IPV6 };

	layout.source = source;
	frame_build(frame, &layout);
}

/* B090: two sources share a key if and only if they share the prefix. */
START_TEST(prefix_decides)
{
	uint8_t key[PKT_KEY_SIZE], other[PKT_KEY_SIZE];
	struct frame frame;

	ipv6_frame(&frame, "2001:db8:1:2:3:4:5:6");
	for (unsigned int prefix = 1; prefix <= 128; prefix++) {
		struct pkt_key_rules rules = rules_for(prefix);

		ck_assert(read_whole(frame.bytes, frame.length, &rules, key));
		for (unsigned int bit = 0; bit < 128; bit++) {
			uint8_t *byte = &frame.bytes[frame.ip + 8 + bit / 8];

			*byte ^= (uint8_t)(0x80 >> bit % 8);
			ck_assert(read_whole(frame.bytes, frame.length,
			    &rules, other));
			ck_assert_msg((memcmp(key, other, sizeof(key)) == 0)
			    == (bit >= prefix), "/%u, bit %u", prefix, bit);
			*byte ^= (uint8_t)(0x80 >> bit % 8);
		}
	}
}
END_TEST

/*
 * B089: each of the 96 leading bits decides whether an address is a mapped
 * one, and one that is not never looks like one, whatever the prefix.
 */
START_TEST(mapped_to_the_bit)
{
	static const uint8_t ipv4[PKT_KEY_SIZE] = { [10] = 0xff, [11] = 0xff,
		1, 2, 3, 4 };
	uint8_t key[PKT_KEY_SIZE];
	struct frame frame;

	ipv6_frame(&frame, "::ffff:1.2.3.4");
	for (unsigned int prefix = 1; prefix <= 128; prefix++) {
		struct pkt_key_rules rules = rules_for(prefix);

		ck_assert(read_whole(frame.bytes, frame.length, &rules, key));
		ck_assert_mem_eq(key, ipv4, sizeof(key));
		for (unsigned int bit = 0; bit < 96; bit++) {
			uint8_t *byte = &frame.bytes[frame.ip + 8 + bit / 8];

			*byte ^= (uint8_t)(0x80 >> bit % 8);
			ck_assert(read_whole(frame.bytes, frame.length,
			    &rules, key));
			ck_assert_msg(memcmp(key, ipv4, 12) != 0,
			    "/%u, bit %u", prefix, bit);
			*byte ^= (uint8_t)(0x80 >> bit % 8);
		}
	}
}
END_TEST

START_TEST(keys_as_text)
{
	static const struct {
		const char *source; /* IPv6 */
		unsigned int prefix;
		const char *text;
	} rows[] = {
		{ "::ffff:10.0.0.1", 64, "10.0.0.1" },
		{ "::ffff:10.0.0.1", 1, "10.0.0.1" },
		{ "::ffff:0.0.0.0", 128, "0.0.0.0" },
		{ "2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64" },
		{ "2001:db8:1:2:3:4:5:6", 128, "2001:db8:1:2:3:4:5:6" },
		{ "2001:db8:1:2:3:4:5:6", 127, "2001:db8:1:2:3:4:5:6/127" },
		{ "2001:db8:ffff::1", 33, "2001:db8:8000::/33" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255", 127,
		    "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127" },
		{ "::", 1, "::/1" },
		{ "8000::", 1, "8000::/1" },
		{ "::1", 128, "::1" },
	};
	uint8_t key[PKT_KEY_SIZE];
	struct frame frame;

	for (size_t i = 0; i < NELEM(rows); i++) {
		struct pkt_key_rules rules = rules_for(rows[i].prefix);
		size_t length = strlen(rows[i].text);

		ipv6_frame(&frame, rows[i].source);
		ck_assert(read_whole(frame.bytes, frame.length, &rules, key));
		ck_assert_str_eq(key_text(true, key, &rules), rows[i].text);
		/* in too little room: cut and terminated, not overrun */
		for (size_t size = 1; size <= length + 1; size++) {
			char *text = malloc(size);

			pkt_key_print(key, &rules, text, size);
			ck_assert_uint_eq(strlen(text), size - 1);
			ck_assert_mem_eq(text, rows[i].text, size - 1);
			free(text);
		}
	}
}
END_TEST

/* The same rules again, over bytes in a row and without any haste. */
static bool
naive_key(const uint8_t *at, size_t left, unsigned int prefix, uint8_t *key)
{
	unsigned int type, tags = 0, i;

	memset(key, 0, 16);
	if (left < 14)
		return false;
	at += 12;
	left -= 12;
	for (;;) {
		if (left < 2)
			return false;
		type = at[0] * 256u + at[1];
		if (type != 0x8100 && type != 0x88a8 && type != 0x9100)
			break;
		if (left < 4 || ++tags == 5)
			return false;
		at += 4;
		left -= 4;
	}
	at += 2;
	left -= 2;
	if (type == 0x0800) {
		if (left < 20 || at[0] < 0x45 || at[0] > 0x4f ||
		    left < at[0] % 16u * 4 ||
		    at[2] * 256u + at[3] < at[0] % 16u * 4)
			return false;
		key[10] = key[11] = 255;
		for (i = 0; i < 4; i++)
			key[12 + i] = at[12 + i];
		return true;
	}
	if (type != 0x86dd || left < 40 || at[0] / 16 != 6)
		return false;
	for (i = 0; i < 16; i++)
		key[i] = at[8 + i];
	for (i = 0; i < 10 && key[i] == 0; i++)
		;
	if (i == 10 && key[10] == 255 && key[11] == 255)
		return true;
	for (i = prefix; i < 128; i++)
		key[i / 8] &= (uint8_t)~(128 >> i % 8);
	return true;
}

/* Change a good packet a little, a lot, or throw it away for noise. */
static void
frame_mutate(struct frame *frame, struct rng *rng)
{
	static const uint8_t telling[] = { 0x00, 0x08, 0x81, 0x88, 0xa8, 0x91,
		0x86, 0xdd, 0x45, 0x46, 0x4f, 0x44, 0x60, 0x65, 0x14, 0xff };
	uint64_t changes = rng_below(rng, 4);
	bool noise = rng_below(rng, 16) == 0;

	for (size_t i = 0; noise && i < frame->length; i++)
		frame->bytes[i] = (uint8_t)rng_next(rng);
	for (; changes > 0; changes--) {
		size_t at = rng_below(rng, 2) == 0 ?
		    rng_below(rng, frame->length) :
		    12 + rng_below(rng, 24);

		frame->bytes[at] = rng_below(rng, 2) == 0 ?
		    (uint8_t)rng_next(rng) :
		    telling[rng_below(rng, NELEM(telling))];
	}
	if (rng_below(rng, 4) == 0)
		frame->length = rng_below(rng, frame->length + 1);
}

START_TEST(hostile_packets)
{
	uint64_t n = test_scale(1000000), n_readable = 0;
	uint8_t key[PKT_KEY_SIZE], want[PKT_KEY_SIZE];
	static struct frame frames[NELEM(layouts)];
	static struct pkt_key_rules all_rules[129];
	size_t cuts[4], n_cuts;
	struct rng rng;

	rng_init(&rng, test_seed("hostile_packets"));
	for (size_t i = 0; i < NELEM(layouts); i++)
		frame_build(&frames[i], &layouts[i]);
	for (unsigned int prefix = 1; prefix <= 128; prefix++)
		all_rules[prefix] = rules_for(prefix);
	for (uint64_t i = 0; i < n; i++) {
		unsigned int prefix = 1 + (unsigned int)rng_below(&rng, 128);
		struct frame frame = frames[rng_below(&rng, NELEM(frames))];
		bool readable, want_readable;

		frame_mutate(&frame, &rng);
		n_cuts = rng_below(&rng, NELEM(cuts) + 1);
		for (size_t c = 0, from = 0; c < n_cuts; c++)
			from = cuts[c] = from + rng_below(&rng,
			    frame.length - from + 1);
		readable = read_split(frame.bytes, frame.length, cuts, n_cuts,
		    &all_rules[prefix], key);
		want_readable = naive_key(frame.bytes, frame.length, prefix,
		    want);
		n_readable += readable;
		if (readable != want_readable ||
		    memcmp(key, want, sizeof(key)) != 0)
			ck_abort_msg("packet %llu: %s, not %s",
			    (unsigned long long)i,
			    readable ? "readable" : "unreadable",
			    want_readable ? "so" : "that");
	}
	ck_assert_uint_gt(n_readable, n / 4);
	ck_assert_uint_lt(n_readable, n - n / 4);
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("pkt_key");
	TCase *rows = tcase_create("rows");
	TCase *keys = tcase_create("keys");
	TCase *chance = tcase_create("chance");

	tcase_set_timeout(rows, 60);
	tcase_add_loop_test(rows, cut_and_split, 0, NELEM(layouts));
	tcase_add_loop_test(rows, segments_of_one_byte, 0, NELEM(layouts));
	tcase_add_test(rows, all_ethertypes);
	tcase_add_test(rows, large_chain);
	tcase_add_test(rows, offsets_do_not_wrap);
	suite_add_tcase(s, rows);

	tcase_set_timeout(keys, 60);
	tcase_add_test(keys, rules_in_range);
	tcase_add_test(keys, prefix_decides);
	tcase_add_test(keys, mapped_to_the_bit);
	tcase_add_test(keys, keys_as_text);
	suite_add_tcase(s, keys);

	tcase_set_timeout(chance, 120);
	tcase_add_test(chance, hostile_packets);
	suite_add_tcase(s, chance);
	return s;
}

int
main(void)
{
	return test_run(suite());
}
