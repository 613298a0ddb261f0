/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads rates that arrive in messages (PAC-3b). Messages need no socket: the program takes them from the
 * interface, and passes the rate to the state of the flow's socket. The flow applies the rate at its next ACK.
 */
#ifndef NRW_MESSAGE_H
#define NRW_MESSAGE_H

#define NRW_TCX_DROP	2
#define NRW_UDP_LEN	8

/* A message with the ports of its datagram. */
struct nrw_datagram {
	__be16 sport;
	__be16 dport;
	__be16 length;
	__be16 check;
	struct nrw_message message;
};

/*
 * Reads a message. Returns the offset of the two adjacent addresses in the IP header, or 0 if the packet is
 * not a message. Switches send messages without IP options and extension headers. Corrupted frames do not
 * arrive, because Ethernet has its own checksum.
 */
static __always_inline __u32 nrw_message_read(struct __sk_buff *skb, struct nrw_datagram *d)
{
	__u32 addresses, at;
	__u8 ip[40];

	if (skb->protocol == bpf_htons(NRW_ETH_P_IP)) {
		/* Version 4, 20 bytes, UDP, and not a fragment. */
		if (bpf_skb_load_bytes(skb, NRW_ETH_LEN, ip, 20) || ip[0] != 0x45 || ip[9] != IPPROTO_UDP ||
		    (ip[6] & 0x3f) || ip[7])
			return 0;
		addresses = NRW_ETH_LEN + 12;
		at = NRW_ETH_LEN + 20;
	} else if (skb->protocol == bpf_htons(NRW_ETH_P_IPV6)) {
		if (bpf_skb_load_bytes(skb, NRW_ETH_LEN, ip, 40) || ip[0] >> 4 != 6 || ip[6] != IPPROTO_UDP)
			return 0;
		addresses = NRW_ETH_LEN + 8;
		at = NRW_ETH_LEN + 40;
	} else {
		return 0;
	}
	if (bpf_skb_load_bytes(skb, at, d, sizeof(*d)) || d->dport != bpf_htons(NRW_MESSAGE_PORT) ||
	    d->sport != bpf_htons(NRW_MESSAGE_PORT) || d->length != bpf_htons(sizeof(*d)) ||
	    d->message.exid != bpf_htons(NRW_EXID))
		return 0;
	return addresses;
}

/*
 * Returns whether the message's numbers are acceptable in an ACK of the connection (RFC 5961, section 5.2, and
 * tcp_sequence()). A host that does not see the connection's packets must guess both numbers, as for ACKs.
 */
static __always_inline int nrw_message_believed(const struct tcp_sock *tp, const struct nrw_message *m)
{
	__u32 seq = bpf_ntohl(m->seq), ack = bpf_ntohl(m->ack), oldest = tp->snd_una - tp->max_window;

	return seq - oldest <= tp->snd_nxt - oldest && tp->rcv_nxt - ack <= tp->rcv_wnd;
}

/* Finds the socket of the message's flow, and stores the rate in its state. Returns whether it was stored. */
static __always_inline int nrw_message_deliver(struct __sk_buff *skb, __u32 addresses, const struct nrw_message *m)
{
	int v4 = skb->protocol == bpf_htons(NRW_ETH_P_IP), stored = 0;
	struct bpf_sock_tuple tuple = {};
	struct nrw_conn *conn;
	struct tcp_sock *tp;
	struct bpf_sock *sk;

	/* The datagram comes from the flow's destination. */
	if (v4) {
		if (bpf_skb_load_bytes(skb, addresses, &tuple.ipv4.saddr, 8))
			return 0;
		tuple.ipv4.sport = m->dport;
		tuple.ipv4.dport = m->sport;
		sk = bpf_sk_lookup_tcp(skb, &tuple, sizeof(tuple.ipv4), BPF_F_CURRENT_NETNS, 0);
	} else {
		if (bpf_skb_load_bytes(skb, addresses, &tuple.ipv6.saddr, 32))
			return 0;
		tuple.ipv6.sport = m->dport;
		tuple.ipv6.dport = m->sport;
		sk = bpf_sk_lookup_tcp(skb, &tuple, sizeof(tuple.ipv6), BPF_F_CURRENT_NETNS, 0);
	}
	if (!sk)
		return 0;
	conn = bpf_sk_storage_get(&nrw_conns, sk, NULL, 0);
	tp = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	if (conn && conn->possible && tp && nrw_message_believed(tp, m) && nrw_is_rate(bpf_ntohs(m->code))) {
		conn->word = NRW_WORD_RATE | bpf_ntohs(m->code);
		stored = 1;
	}
	bpf_sk_release(sk);
	return stored;
}

SEC("tcx/ingress")
int nrw_hear(struct __sk_buff *skb)
{
	struct nrw_datagram d = {};
	__u32 addresses = nrw_message_read(skb, &d);

	if (!addresses)
		return NRW_TCX_NEXT;
	/* Later versions may have another layout. */
	if (d.message.version == NRW_MESSAGE_VERSION && nrw_message_deliver(skb, addresses, &d.message))
		nrw_count(messages);
	else
		nrw_count(messages_refused);
	return NRW_TCX_DROP;
}

#endif
