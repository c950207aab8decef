/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a packet to its key.
 *
 * Every byte of a header comes through header_at(), which compares a length
 * with what is left behind an offset and never adds the two, so that nothing
 * wraps. Offsets are small anyway: 14 bytes of Ethernet, 4 a VLAN tag, 60 of
 * IPv4. What the packet says about its own length is compared, never used.
 *
 * Why an IPv6 key is never taken for an IPv4 one: a key is read as IPv4 if it
 * starts with the 96 bits of ::ffff:0:0/96, and those are reached by a source
 * that is no mapped address neither with a prefix of 96 or more, as it differs
 * in one of these bits, all of which are kept, nor with a shorter one, as bit
 * 95 is then cleared.
 */
#include "pkt_key.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#define ETHERTYPE_OFFSET 12u /* after two addresses */
#define ETHERTYPE_SIZE 2u
#define VLAN_TAG_SIZE 4u /* one EtherType and two bytes about the VLAN */

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_VLAN = 0x8100,
	ETHERTYPE_QINQ = 0x88a8,
	ETHERTYPE_QINQ_OLD = 0x9100,
};

#define IPV4_SIZE 20u /* without options */
#define IPV4_SIZE_MAX 60u
#define IPV4_VERSION_AND_SIZE 0x45u /* version 4, 5 words: no options */
#define IPV4_TOTAL_LENGTH 2u /* offsets in the header */
#define IPV4_SOURCE 12u

#define IPV6_SIZE 40u
#define IPV6_SOURCE 8u

/* What IPv4 addresses start with when written as IPv6 ones. */
#define MAPPED_SIZE 12u
static const uint8_t mapped[MAPPED_SIZE] = { [10] = 0xff, [11] = 0xff };

int
pkt_key_rules_init(struct pkt_key_rules *rules, unsigned int ipv6_prefix)
{
	unsigned int i;

	if (ipv6_prefix < 1 || ipv6_prefix > 8 * PKT_KEY_SIZE)
		return -EINVAL;
	rules->ipv6_prefix = ipv6_prefix;
	memset(rules->ipv6_mask, 0, sizeof(rules->ipv6_mask));
	for (i = 0; i < ipv6_prefix; i++)
		rules->ipv6_mask[i / 8] |= (uint8_t)(0x80u >> i % 8);
	return 0;
}

/* Gather length bytes that lie in more than one segment, or not at all. */
static const uint8_t *__rte_noinline
header_gather(const struct rte_mbuf *m, uint32_t offset, uint32_t length,
    uint8_t *scratch)
{
	uint32_t done = 0;

	for (; m != NULL && offset >= m->data_len; m = m->next)
		offset -= m->data_len;
	for (; m != NULL; m = m->next) {
		uint32_t n = m->data_len - offset;

		if (n > length - done)
			n = length - done;
		memcpy(scratch + done,
		    rte_pktmbuf_mtod_offset(m, const uint8_t *, offset), n);
		done += n;
		if (done == length)
			return scratch;
		offset = 0;
	}
	return NULL;
}

/*
 * The bytes offset..offset+length of the packet: in place, or copied to
 * scratch. => NULL: the packet does not have them.
 */
static inline const uint8_t *
header_at(const struct rte_mbuf *m, uint32_t offset, uint32_t length,
    uint8_t *scratch)
{
	if (likely(offset <= m->data_len && length <= m->data_len - offset))
		return rte_pktmbuf_mtod_offset(m, const uint8_t *, offset);
	return header_gather(m, offset, length, scratch);
}

static inline uint16_t
read_be16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static inline bool
is_vlan(uint16_t ethertype)
{
	return ethertype == ETHERTYPE_VLAN || ethertype == ETHERTYPE_QINQ ||
	    ethertype == ETHERTYPE_QINQ_OLD;
}

static inline void
key_set_ipv4(uint8_t *key, const uint8_t *address)
{
	memcpy(key, mapped, MAPPED_SIZE);
	memcpy(key + MAPPED_SIZE, address, PKT_KEY_SIZE - MAPPED_SIZE);
}

static inline bool
key_from_ipv4(const struct rte_mbuf *m, uint32_t offset, uint8_t *key)
{
	uint8_t scratch[IPV4_SIZE_MAX];
	const uint8_t *ip = header_at(m, offset, IPV4_SIZE, scratch);
	uint32_t size;

	if (ip == NULL || ip[0] >> 4 != 4)
		return false;
	size = (ip[0] & 0x0fu) * 4;
	if (size < IPV4_SIZE || read_be16(ip + IPV4_TOTAL_LENGTH) < size)
		return false;
	if (size > IPV4_SIZE) {
		ip = header_at(m, offset, size, scratch);
		if (ip == NULL)
			return false;
	}
	key_set_ipv4(key, ip + IPV4_SOURCE);
	return true;
}

static inline bool
key_from_ipv6(const struct rte_mbuf *m, uint32_t offset,
    const struct pkt_key_rules *rules, uint8_t *key)
{
	uint8_t scratch[IPV6_SIZE];
	const uint8_t *ip = header_at(m, offset, IPV6_SIZE, scratch);
	unsigned int i;

	if (ip == NULL || ip[0] >> 4 != 6)
		return false;
	memcpy(key, ip + IPV6_SOURCE, PKT_KEY_SIZE);
	if (memcmp(key, mapped, MAPPED_SIZE) != 0)
		for (i = 0; i < PKT_KEY_SIZE; i++)
			key[i] &= rules->ipv6_mask[i];
	return true;
}

/*
 * What most packets are: IPv4 without options or tags, its header in one piece.
 * One look at four fields instead of a walk; false says nothing about the rest.
 */
static inline bool
key_from_plain_ipv4(const struct rte_mbuf *m, uint8_t *key)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const uint8_t *ip = frame + ETHERTYPE_OFFSET + ETHERTYPE_SIZE;

	if (m->data_len < ETHERTYPE_OFFSET + ETHERTYPE_SIZE + IPV4_SIZE ||
	    read_be16(frame + ETHERTYPE_OFFSET) != ETHERTYPE_IPV4 ||
	    ip[0] != IPV4_VERSION_AND_SIZE ||
	    read_be16(ip + IPV4_TOTAL_LENGTH) < IPV4_SIZE)
		return false;
	key_set_ipv4(key, ip + IPV4_SOURCE);
	return true;
}

static bool __rte_noinline
key_from_any(const struct rte_mbuf *m, const struct pkt_key_rules *rules,
    uint8_t key[PKT_KEY_SIZE])
{
	uint8_t scratch[ETHERTYPE_SIZE];
	uint32_t offset = ETHERTYPE_OFFSET;
	unsigned int tags = 0;
	const uint8_t *ethertype;
	bool readable = false;

	ethertype = header_at(m, offset, ETHERTYPE_SIZE, scratch);
	while (ethertype != NULL && unlikely(is_vlan(read_be16(ethertype)))) {
		offset += VLAN_TAG_SIZE;
		ethertype = ++tags > PKT_KEY_VLAN_TAGS_MAX ?
		    NULL :
		    header_at(m, offset, ETHERTYPE_SIZE, scratch);
	}
	if (ethertype != NULL) {
		offset += ETHERTYPE_SIZE;
		switch (read_be16(ethertype)) {
		case ETHERTYPE_IPV4:
			readable = key_from_ipv4(m, offset, key);
			break;
		case ETHERTYPE_IPV6:
			readable = key_from_ipv6(m, offset, rules, key);
			break;
		}
	}
	if (unlikely(!readable))
		memset(key, 0, PKT_KEY_SIZE);
	return readable;
}

bool
pkt_key_read(const struct rte_mbuf *m, const struct pkt_key_rules *rules,
    uint8_t key[PKT_KEY_SIZE])
{
	return key_from_plain_ipv4(m, key) || key_from_any(m, rules, key);
}

void
pkt_key_print(const uint8_t key[PKT_KEY_SIZE],
    const struct pkt_key_rules *rules, char *text, size_t size)
{
	char address[INET6_ADDRSTRLEN];

	if (memcmp(key, mapped, MAPPED_SIZE) == 0) {
		inet_ntop(AF_INET, key + MAPPED_SIZE, address, sizeof(address));
		snprintf(text, size, "%s", address);
		return;
	}
	inet_ntop(AF_INET6, key, address, sizeof(address));
	if (rules->ipv6_prefix == 8 * PKT_KEY_SIZE)
		snprintf(text, size, "%s", address);
	else
		snprintf(text, size, "%s/%u", address, rules->ipv6_prefix);
}
