/* SPDX-License-Identifier: BSD-3-Clause */
#include "stamp.h"

#include <rte_errno.h>

int
stamp_field_register(struct stamp_field *field)
{
	int ret;

	ret = rte_mbuf_dyn_rx_timestamp_register(&field->offset, &field->flag);
	return ret == 0 ? 0 : -rte_errno;
}
