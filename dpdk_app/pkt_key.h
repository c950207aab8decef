/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key of a packet: its source address. pkt_key.c is the only file of
 * weir-meter that knows what packet headers look like.
 *
 * Not here: the charge. A packet costs 1 packet and rte_pktmbuf_pkt_len()
 * bytes: its layer-2 frame without the frame check sequence, whatever the
 * headers say about lengths.
 */
#ifndef PKT_KEY_H
#define PKT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rte_mbuf;

#define PKT_KEY_SIZE 16u         /* an IPv6 address; IPv4 as ::ffff:a.b.c.d */
#define PKT_KEY_TEXT_SIZE 64u    /* holds every key as text, with its prefix */
#define PKT_KEY_VLAN_TAGS_MAX 4u /* a packet with more has no readable key */
#define PKT_KEY_IPV6_PREFIX_DEFAULT 64u

/* How addresses become keys. Fill in with pkt_key_rules_init(). */
struct pkt_key_rules {
	unsigned int ipv6_prefix;        /* leading bits that count, 1..128 */
	uint8_t ipv6_mask[PKT_KEY_SIZE]; /* the same as a mask */
};

/*
 * Keep the first ipv6_prefix bits of an IPv6 source. IPv4 sources count whole.
 *
 * => 0, or -EINVAL: not in 1..128.
 */
int
pkt_key_rules_init(struct pkt_key_rules *rules, unsigned int ipv6_prefix);

/*
 * Read the key of a packet:
 *
 *	IPv4			::ffff:a.b.c.d
 *	IPv6, IPv4-mapped	the same as that IPv4 address
 *	IPv6 otherwise		the source, cut to the prefix; never looks like
 *				an IPv4 key, whatever the prefix
 *
 * Up to PKT_KEY_VLAN_TAGS_MAX VLAN tags (0x8100, 0x88a8, 0x9100) are skipped;
 * a tag that the NIC has stripped is not missed. Fragments have a source as
 * any other packet. Headers may be spread over segments in any way, and what
 * they say is not trusted: only bytes of the packet are ever read.
 *
 * The key is not readable if the packet is neither IPv4 nor IPv6 (ARP, LLC,
 * MPLS, PPPoE, ...), has too many tags, ends before its IP header does
 * (IPv4: with options; IPv6: the fixed 40 bytes), contradicts its EtherType
 * by the version field, or says it is shorter than its own IPv4 header.
 * Lengths beyond the end of the packet are no fault: captures are cut.
 *
 * => true and the key; or false and 16 zero bytes, so that everything
 *    unclassified has one key, to be used under a limit of its own.
 */
bool
pkt_key_read(const struct rte_mbuf *m, const struct pkt_key_rules *rules,
    uint8_t key[PKT_KEY_SIZE]);

/*
 * Write a key for people: "10.0.0.1", "2001:db8:1:2::/64", and without a
 * suffix if the prefix is 128. Cut to size - 1 characters and terminated;
 * PKT_KEY_TEXT_SIZE is always enough. size is at least 1.
 */
void
pkt_key_print(const uint8_t key[PKT_KEY_SIZE],
    const struct pkt_key_rules *rules, char *text, size_t size);

#endif
