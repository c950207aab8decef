/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hands the cases to Google Benchmark. The only file that knows it, and the
 * only C++ here; it knows nothing of what the cases do.
 *
 * One iteration is one decision, so a row's time is the time per decision.
 */
#include <benchmark/benchmark.h>

#include <string>

#include "harness.h"

namespace {

bool any_row_failed;

void
fail(benchmark::State &state, const char *why)
{
	any_row_failed = true;
	state.SkipWithError(why);
}

void
row(benchmark::State &state, const bench_case *c, uint64_t n_keys)
{
	bench_table table;

	if (const char *why = bench_begin(c, n_keys, &table)) {
		fail(state, why);
		return;
	}
	while (state.KeepRunningBatch(BENCH_CHUNK))
		bench_run();
	if (const char *why = bench_end()) {
		fail(state, why);
		return;
	}
	state.SetItemsProcessed(state.iterations());
	state.counters["MB"] = double(table.bytes) / 1e6;
	state.counters["huge"] =
	    table.bytes ? double(table.huge_bytes) / double(table.bytes) : 0;
	if (table.slots)
		state.counters["load"] = double(n_keys) / double(table.slots);
}

void
rows_register()
{
	for (const bench_case *const *c = bench_cases; *c; c++) {
		for (const uint64_t *n = bench_keys; *n; n++) {
			std::string name = std::string((*c)->name) +
			    "/keys:" + std::to_string(*n);

			benchmark::RegisterBenchmark(name.c_str(), row, *c, *n);
		}
	}
}

void
context_add(const char *name, const char *value)
{
	benchmark::AddCustomContext(name, value);
}

} // namespace

int
main(int argc, char **argv)
{
	benchmark::Initialize(&argc, argv);
	if (benchmark::ReportUnrecognizedArguments(argc, argv))
		return 2;
	if (!bench_open()) {
		fputs("weir-bench: cannot pin to a processor\n", stderr);
		return 2;
	}
	bench_facts(context_add);
	rows_register();
	benchmark::RunSpecifiedBenchmarks();
	benchmark::Shutdown();
	bench_close();
	return any_row_failed ? 1 : 0;
}
