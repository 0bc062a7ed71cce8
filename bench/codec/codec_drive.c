/* codec_drive - what the codec takes for given inputs.
 *
 * codec_drive [--rounds N] [--set NAME] TASK:FILE...    TASK as in rig.h, output as in `columns`
 *
 * Under callgrind with --collect-atstart=no every input has a dump of its own, with the input's argument
 * as its trigger, of one run in the steady state. With --rounds the time is taken N times, all inputs in turn, so that a phase of
 * the machine meets all of them alike. */
#include "bench/codec/rig.h"
#include "codec/base/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_TOGGLE_COLLECT ((void)0)
#define CALLGRIND_DUMP_STATS_AT(name) ((void)(name))
#endif

enum { ROUND_NS = 400 * 1000, ROUNDS_MAX = 1000, WARM_RUNS = 2, TRIES = 3 };

static const char columns[] = "input\terror\tbytes\tout\tentries\tallocations\tlong\tborrowed\tns";

struct input {
	const char *argument;
	enum task task;
	struct slice text;
	unsigned repeats;
	uint64_t *round_ps; /* a run, picoseconds */
};

/* ---- calls of libc's allocator by the codec: the linker sends them here ---- */

static size_t allocations;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *at, size_t size);
ssize_t __real_getrandom(void *buffer, size_t size, unsigned flags);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *at, size_t size);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);

void *__wrap_malloc(size_t size)
{
	allocations++;
	return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	allocations++;
	return __real_calloc(count, size);
}

void *__wrap_realloc(void *at, size_t size)
{
	allocations++;
	return __real_realloc(at, size);
}

/* The same seed of the hash tables every time, so that a count of instructions is one number. */
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
	(void)flags;
	(void)memset(buffer, 0x5a, size);
	return (ssize_t)size;
}

/* ---- */

static _Noreturn void give_up(const char *what, const char *why)
{
	(void)fprintf(stderr, "codec_drive: %s: %s\n", what, why);
	exit(2);
}

/* In a block of exactly its size; lives as long as the process. */
static struct slice load(const char *path)
{
	FILE *file = fopen(path, "rb");

	if (file == NULL || fseek(file, 0, SEEK_END) != 0)
		give_up(path, "cannot be read");
	long size = ftell(file);
	if (size < 0 || fseek(file, 0, SEEK_SET) != 0)
		give_up(path, "cannot be read");
	char *bytes = malloc(size == 0 ? 1 : (size_t)size);
	must(bytes != NULL);
	if (fread(bytes, 1, (size_t)size, file) != (size_t)size)
		give_up(path, "cannot be read");
	(void)fclose(file);
	return slice_of(bytes, (size_t)size);
}

static struct input input_of(const char *argument)
{
	struct slice rest = slice_str(argument);
	enum task task = task_find(slice_cut(&rest, ':'));

	if (task == TASK_COUNT || slice_absent(rest))
		give_up(argument, "is not TASK:FILE");
	return (struct input){ .argument = argument, .task = task, .text = load(rest.at) };
}

/* Of this thread on a CPU: what else runs on the machine does not count. */
static uint64_t now_ns(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static uint64_t time_runs(struct rig *rig, const struct input *input, unsigned repeats)
{
	uint64_t begin = now_ns();

	for (unsigned i = 0; i < repeats; i++)
		(void)rig_run(rig, input->task, input->text);
	return now_ns() - begin;
}

/* A run's time, as the least of some: a stall of the machine would make rounds of one run. */
static uint64_t time_once(struct rig *rig, const struct input *input)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		const uint64_t ns = time_runs(rig, input, WARM_RUNS) / WARM_RUNS;
		least = ns < least ? ns : least;
	}
	return least;
}

static void time_all(struct rig *rig, struct input *inputs, size_t count, unsigned rounds)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t once = time_once(rig, &inputs[i]);
		inputs[i].repeats = once < ROUND_NS ? (unsigned)(ROUND_NS / (once + 1)) : 1;
		inputs[i].round_ps = calloc(rounds, sizeof(*inputs[i].round_ps));
		must(inputs[i].round_ps != NULL);
	}
	for (unsigned round = 0; round < rounds; round++)
		for (size_t i = 0; i < count; i++)
			inputs[i].round_ps[round] = time_runs(rig, &inputs[i], inputs[i].repeats) *
						    1000 / inputs[i].repeats;
}

/* One run, counted, after some that were not. */
static void count(struct rig *rig, const struct input *input, unsigned rounds)
{
	enum err err = ERR_OK;

	for (unsigned i = 0; i < WARM_RUNS; i++)
		err = rig_run(rig, input->task, input->text);
	size_t before = allocations;
	CALLGRIND_TOGGLE_COLLECT; /* on: zeroing instead leaves some of the runs before in the sum */
	must(rig_run(rig, input->task, input->text) == err);
	CALLGRIND_TOGGLE_COLLECT;
	size_t taken = allocations - before;
	CALLGRIND_DUMP_STATS_AT(input->argument);

	const struct gather *out = rig_output(rig);
	bool request = out != NULL && (input->task == TASK_REQUEST_ANTHROPIC ||
				       input->task == TASK_REQUEST_OPENAI);
	(void)printf("%s\t%s\t%zu\t%zu\t%u\t%zu\t%zu\t%zu\t", input->argument,
		     err_info(err)->reason, input->text.len, out == NULL ? 0 : out->total,
		     out == NULL ? 0 : out->count, taken, request ? rig_long_bytes(rig) : 0,
		     request ? rig_borrowed_bytes(rig, input->text) : 0);
	for (unsigned round = 0; round < rounds; round++)
		(void)printf("%s%.3f", round == 0 ? "" : ",",
			     (double)input->round_ps[round] / 1000);
	(void)printf("\n");
	if (err != ERR_OK && rig_fault(rig)->detail != NULL)
		(void)fprintf(stderr, "%s: offset %u: %s\n", input->argument,
			      rig_fault(rig)->offset, rig_fault(rig)->detail);
}

int main(int argc, char **argv)
{
	const struct codec_set *set = codec_set_best();
	struct input *inputs = calloc((size_t)argc, sizeof(*inputs));
	unsigned rounds = 0;
	size_t found = 0;

	must(inputs != NULL);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc)
			rounds = (unsigned)strtoul(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--set") == 0 && i + 1 < argc)
			set = codec_set_find(slice_str(argv[++i]));
		else
			inputs[found++] = input_of(argv[i]);
	}
	if (found == 0 || rounds > ROUNDS_MAX)
		give_up("usage", "codec_drive [--rounds N] [--set NAME] TASK:FILE...");
	if (set == NULL)
		give_up("--set", "this build or this machine has it not");
	struct rig *rig = rig_new(set);
	(void)printf("%s\n", columns);
	if (rounds != 0)
		time_all(rig, inputs, found, rounds);
	for (size_t i = 0; i < found; i++)
		count(rig, &inputs[i], rounds);
	for (size_t i = 0; i < found; i++) {
		free(inputs[i].round_ps);
		free((void *)(uintptr_t)inputs[i].text.at);
	}
	free(inputs);
	rig_free(rig);
	return 0;
}
