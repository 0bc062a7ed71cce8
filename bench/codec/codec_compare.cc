// codec_compare - the same tasks by our codec and by simdjson, in turn.
//
// codec_compare [--rounds N] [--turn-ms N] [--outputs DIRECTORY] CLASS:TASK:FILE...
//
// Files of one class are run one after the other as one measurement. In every round each competitor runs
// every class, so that a phase of the machine meets all alike; what is printed is the median of the
// rounds' own ratios to ours. On a shared machine a neighbour halves the speed for seconds: a round of a class counts
// if each competitor took less than `disturbed` times the least that it took, and rounds are made until N of each
// class count. A competitor's turn is as many times through the files as take us --turn-ms
// (3): the longer, the better does the machine foretell the branches of each. --outputs keeps what each
// competitor wrote, for comparing.
#include "bench/codec/rival.hh"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <simdjson.h>
#include <sstream>
#include <stdexcept>
#include <string>

namespace
{

class Ours : public Rival
{
      public:
	const char *name() const override
	{
		return "ours";
	}
	void run(struct rig *rig, enum task task, slice text) override
	{
		enum err err = rig_run(rig, task, text);
		if (err != ERR_OK)
			throw std::runtime_error(err_info(err)->reason);
	}
};

struct Input {
	enum task task;
	simdjson::padded_string text;
	slice bytes() const
	{
		return slice{ text.data(), text.size() };
	}
};

using Round = std::vector<double>; // ns of each competitor

struct Class {
	std::string name;
	std::vector<Input> inputs;
	unsigned repeats = 1;
	std::vector<Round> rounds;
};

// Of this thread on a CPU: what else runs on the machine does not count.
double now_ns()
{
	timespec now;
	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return double(now.tv_sec) * 1e9 + double(now.tv_nsec);
}

void run_class(struct rig *rig, Rival &rival, const Class &work)
{
	for (const Input &input : work.inputs)
		rival.run(rig, input.task, input.bytes());
}

double time_class(struct rig *rig, Rival &rival, const Class &work)
{
	run_class(rig, rival, work); // whoever came before has left its own in the caches
	double begin = now_ns();
	for (unsigned i = 0; i < work.repeats; i++)
		run_class(rig, rival, work);
	return (now_ns() - begin) / work.repeats;
}

void keep_output(struct rig *rig, Rival &rival, const Class &work, const std::string &directory)
{
	for (size_t i = 0; i < work.inputs.size(); i++) {
		rival.run(rig, work.inputs[i].task, work.inputs[i].bytes());
		std::ofstream file(directory + "/" + work.name + "." + std::to_string(i) + "." +
				   rival.name());
		const struct gather *out = rig_output(rig);
		for (uint32_t k = 0; k < out->count; k++)
			file.write(static_cast<const char *>(out->v[k].iov_base),
				   std::streamsize(out->v[k].iov_len));
		if (!file.flush())
			throw std::runtime_error("cannot write to " + directory);
	}
}

double median(std::vector<double> values)
{
	std::sort(values.begin(), values.end());
	size_t half = values.size() / 2;
	return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

void add_input(std::vector<Class> &classes, const std::string &argument)
{
	size_t first = argument.find(':'), second = argument.find(':', first + 1);
	if (second == std::string::npos)
		throw std::runtime_error(argument + " is not CLASS:TASK:FILE");
	std::string name = argument.substr(0, first),
		    task = argument.substr(first + 1, second - first - 1);
	enum task found = task_find(slice{ task.data(), task.size() });
	if (found == TASK_COUNT)
		throw std::runtime_error(argument + ": no such task");
	if (classes.empty() || classes.back().name != name)
		classes.push_back(Class{ name, {}, 1, {} });
	classes.back().inputs.push_back(
		Input{ found, simdjson::padded_string::load(argument.substr(second + 1)) });
}

constexpr double disturbed = 1.15;
constexpr unsigned patience = 100; // rounds made for one that counts

void make_round(struct rig *rig, std::vector<std::unique_ptr<Rival>> &rivals, Class &work)
{
	Round round;
	for (auto &rival : rivals)
		round.push_back(time_class(rig, *rival, work));
	work.rounds.push_back(round);
}

std::vector<Round> undisturbed(const Class &work)
{
	Round least = work.rounds.front();
	for (const Round &round : work.rounds)
		for (size_t i = 0; i < round.size(); i++)
			least[i] = std::min(least[i], round[i]);
	std::vector<Round> found;
	for (const Round &round : work.rounds) {
		bool counts = true;
		for (size_t i = 0; i < round.size(); i++)
			counts = counts && round[i] < disturbed * least[i];
		if (counts)
			found.push_back(round);
	}
	return found;
}

void measure(struct rig *rig, std::vector<std::unique_ptr<Rival>> &rivals,
	     std::vector<Class> &classes, unsigned rounds, double turn_ns)
{
	for (Class &work : classes) {
		for (auto &rival : rivals)
			run_class(rig, *rival, work); // their memory is taken now
		double once = time_class(rig, *rivals.front(), work);
		work.repeats = unsigned(std::max(1.0, turn_ns / once));
	}
	std::vector<Class *> wanting;
	for (Class &work : classes)
		wanting.push_back(&work);
	for (unsigned made = 0; !wanting.empty(); made++) {
		if (made == patience * rounds)
			throw std::runtime_error("too noisy: " + wanting.front()->name +
						 " has not " + std::to_string(rounds) +
						 " undisturbed rounds of " + std::to_string(made));
		for (Class *work : wanting)
			make_round(rig, rivals, *work);
		wanting.clear();
		for (Class &work : classes)
			if (undisturbed(work).size() < rounds)
				wanting.push_back(&work);
	}
}

void print(const std::vector<std::unique_ptr<Rival>> &rivals, const std::vector<Class> &classes)
{
	std::printf("class\tinputs\tbytes\trounds\tcount\tours ns");
	for (size_t i = 1; i < rivals.size(); i++)
		std::printf("\t%s", rivals[i]->name());
	std::printf("\n");
	for (const Class &work : classes) {
		size_t bytes = 0;
		for (const Input &input : work.inputs)
			bytes += input.text.size();
		const std::vector<Round> rounds = undisturbed(work);
		std::vector<double> ours;
		for (const Round &round : rounds)
			ours.push_back(round[0] / double(work.inputs.size()));
		std::printf("%s\t%zu\t%zu\t%zu\t%zu\t%.0f", work.name.c_str(), work.inputs.size(),
			    bytes, work.rounds.size(), rounds.size(), median(ours));
		for (size_t i = 1; i < rivals.size(); i++) {
			std::vector<double> ratios;
			for (const Round &round : rounds)
				ratios.push_back(round[i] / round[0]);
			std::printf("\t%.3f", median(ratios));
		}
		std::printf("\n");
	}
}

void choose_implementation()
{
	auto *implementation = simdjson::get_available_implementations()[rival_implementation()];
	if (implementation == nullptr || !implementation->supported_by_runtime_system())
		throw std::runtime_error("this machine has not what simdjson was compiled for");
	simdjson::get_active_implementation() = implementation; // before the first parser
}

void compare(int argc, char **argv)
{
	std::vector<Class> classes;
	std::string outputs;
	unsigned rounds = 9;
	double turn_ms = 3;
	for (int i = 1; i < argc; i++) {
		std::string word = argv[i];
		if (word == "--rounds" && i + 1 < argc)
			rounds = unsigned(std::stoul(argv[++i]));
		else if (word == "--turn-ms" && i + 1 < argc)
			turn_ms = std::stod(argv[++i]);
		else if (word == "--outputs" && i + 1 < argc)
			outputs = argv[++i];
		else
			add_input(classes, word);
	}
	if (classes.empty() || rounds == 0 || !(turn_ms > 0))
		throw std::runtime_error("usage: codec_compare [--rounds N] [--turn-ms N] "
					 "[--outputs DIRECTORY] CLASS:TASK:FILE...");
	choose_implementation();
	std::vector<std::unique_ptr<Rival>> rivals;
	rivals.push_back(std::make_unique<Ours>());
	rivals.push_back(rival_ondemand(false));
	rivals.push_back(rival_ondemand(true));
	rivals.push_back(rival_dom());
	const struct codec_set *set = codec_set_find(slice_str(CODEC_SET));
	if (set == nullptr)
		throw std::runtime_error("no instruction set " CODEC_SET " here");
	struct rig *rig = rig_new(set);
	if (!outputs.empty())
		for (const Class &work : classes)
			for (auto &rival : rivals)
				keep_output(rig, *rival, work, outputs);
	measure(rig, rivals, classes, rounds, turn_ms * 1e6);
	print(rivals, classes);
	rig_free(rig);
}

} // namespace

int main(int argc, char **argv)
{
	try {
		compare(argc, argv);
	} catch (const std::exception &error) {
		std::fprintf(stderr, "codec_compare: %s\n", error.what());
		return 2;
	}
	return 0;
}
