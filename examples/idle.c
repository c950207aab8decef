/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deciding in a thread that sleeps between requests, with a clock to read.
 *
 * A thread that blocks cannot quiesce, so it goes offline first; otherwise
 * control calls on other threads, such as weir_limit_add() below, would wait
 * until it wakes up. Here they would wait for ever, because it is woken only
 * after the limit was added.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <weir/weir.h>

struct service {
	struct weir_engine *engine;
	struct weir_clock *clock;
	int input; /* one limit number per request; its end is the end */
	int failed;
	unsigned int passed;
	unsigned int denied;
};

static void
serve(struct service *service, struct weir_worker *worker, uint32_t limit)
{
	struct weir_request request = {
		.key = "all",
		.packets = 1,
		.limit = limit,
	};
	uint64_t now_ns = weir_clock_now_ns(service->clock);

	if (weir_check(worker, &request, now_ns, NULL) == WEIR_PASS)
		service->passed++;
	else
		service->denied++;
}

static void *
service_loop(void *argument)
{
	struct service *service = argument;
	struct weir_worker *worker;
	uint32_t limit;

	service->failed = weir_worker_attach(service->engine, &worker);
	if (service->failed != 0)
		return NULL;
	for (;;) {
		ssize_t n;

		weir_worker_offline(worker);
		n = read(service->input, &limit, sizeof(limit));
		weir_worker_online(worker);
		if (n != (ssize_t)sizeof(limit))
			break;
		serve(service, worker, limit);
	}
	weir_worker_detach(worker);
	return NULL;
}

/* Add a limit while the thread sleeps, then wake it for five requests. */
static int
use(struct service *service, int output)
{
	struct weir_limit_params params = {
		.size = sizeof(params),
		.name = "three-an-hour",
		.tokens = 3,
		.period_ns = 3600000000000,
		.capacity = 3,
	};
	uint32_t limit;

	if (weir_limit_add(service->engine, &params, &limit, NULL) != 0)
		return 1;
	for (int i = 0; i < 5; i++) {
		if (write(output, &limit, sizeof(limit)) !=
		    (ssize_t)sizeof(limit))
			return 1;
	}
	return 0;
}

/* Three are the capacity, and the next comes after twenty minutes. */
static int
run(struct service *service)
{
	pthread_t thread;
	int ends[2];
	int failed;

	if (pipe(ends) != 0)
		return 1;
	service->input = ends[0];
	if (pthread_create(&thread, NULL, service_loop, service) != 0) {
		close(ends[0]);
		close(ends[1]);
		return 1;
	}
	failed = use(service, ends[1]);
	close(ends[1]);
	pthread_join(thread, NULL);
	close(ends[0]);
	printf("%u passed, %u denied\n", service->passed, service->denied);
	return failed || service->failed || service->passed != 3 ||
	    service->denied != 2;
}

int
main(void)
{
	struct weir_engine_params params = {
		.size = sizeof(params),
		.capacity = 1000,
		.key_size = 3,
	};
	struct service service = { .engine = NULL };
	int failed;

	if (weir_engine_create(&params, &service.engine, NULL) != 0)
		return 1;
	failed = weir_clock_open(WEIR_CLOCK_AUTO, &service.clock);
	if (failed == 0) {
		printf("the clock is %s\n",
		    weir_clock_get_source(service.clock) == WEIR_CLOCK_TSC ?
			"the processor's" :
			"the system's");
		failed = run(&service);
		weir_clock_close(service.clock);
	}
	return weir_engine_destroy(service.engine) != 0 || failed;
}
