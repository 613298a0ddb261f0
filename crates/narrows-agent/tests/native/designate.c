// SPDX-License-Identifier: GPL-2.0-only
/*
 * Computes the reports of designated packets with bpf/sender/designate.h, as a normal program. It reads events
 * from standard input, and prints the value of each report. An event is a line:
 *
 *   s TIME_US            the SYN is sent
 *   d TIME_US SEQ COUNT  new data that begins at SEQ is sent as COUNT segments
 *   f TIME_US SEQ        the FIN is sent
 *   a UNA                all data before UNA is acknowledged
 */
#include <linux/types.h>
#include <stdio.h>

#undef __always_inline
#define barrier_var(value)
#define __always_inline inline __attribute__((always_inline))

#include "designate.h"

#define SRTT_US	100000

int main(void)
{
	struct nrw_reports reports = {};
	unsigned long long now, seq, count;
	__u32 una = 0;
	char kind;

	while (scanf(" %c", &kind) == 1) {
		seq = count = 0;
		if (kind == 'a') {
			if (scanf("%llu", &seq) != 1)
				return 1;
			una = seq;
			continue;
		}
		if (scanf("%llu", &now) != 1 || (kind != 's' && scanf("%llu", &seq) != 1) ||
		    (kind == 'd' && scanf("%llu", &count) != 1))
			return 1;
		if (kind == 's')
			nrw_reports_begin(&reports, now);
		else if (nrw_report_is_due(&reports, now, una, SRTT_US, kind == 'f'))
			printf("%u\n", nrw_report(&reports, now, seq, kind == 'f' ? 1 : count, kind == 'f'));
	}
	return 0;
}
