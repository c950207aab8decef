/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <weir/weir.h>

int
main(void)
{
	struct weir_engine_params size = { .size = sizeof(size),
		.capacity = 100000, .key_size = 4 };
	struct weir_limit_params rule = { .size = sizeof(rule), .name = "each",
		.tokens = 1000, .period_ns = 1000000000, .capacity = 3 };
	struct weir_request ask = { .key = "\x0a\0\0\1", .packets = 1 };
	struct weir_engine *engine;
	struct weir_worker *worker;
	if (weir_engine_create(&size, &engine, NULL) != 0 ||
	    weir_limit_add(engine, &rule, &ask.limit, NULL) != 0 ||
	    weir_worker_attach(engine, &worker) != 0)
		return 1;
	for (unsigned int us = 0; us <= 2000; us += 250) {
		bool pass = weir_check(worker, &ask, us * 1000ull, NULL);
		printf("%4u us: %s\n", us, pass ? "pass" : "deny");
		weir_worker_quiesce(worker);
	}
	weir_worker_detach(worker);
	return weir_engine_destroy(engine) != 0;
}
