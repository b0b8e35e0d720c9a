// cim-systemc: run images on the approximately-timed model and print one line of JSON for each.
//
//     cim-systemc [--max-cycles L] [--dump FILE] IMAGE.cfg
//     cim-systemc --list FILE          FILE has a line for every image: its cfg, L and where to dump memory, by tabs
//
// Exit codes are those of cim-emu: 0 done, 1 bad file, 2 usage, 3 exception, 4 deadlock, 5 cycle limit. With --list it
// is 0 if every image could be run, and the lines tell the rest.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include <systemc>

#include "image.h"
#include "report.h"
#include "system.h"

namespace {

constexpr int BAD_FILE = 1, USAGE = 2;
constexpr cim::Cycle NO_LIMIT = cim::Cycle{1} << 40;

struct Job {
    std::string cfg;
    cim::Cycle limit = NO_LIMIT;
    std::string dump;  // empty: none
};

int exit_code(cim::End end) {
    switch (end) {
        case cim::End::Done: return 0;
        case cim::End::Fault: return 3;
        case cim::End::Deadlock: return 4;
        case cim::End::Limit: return 5;
    }
    return 70;
}

void write_memory(const Job &job, const cim::System &system, std::uint64_t bytes) {
    if (job.dump.empty()) return;
    std::ofstream out(job.dump, std::ios::binary);
    out.write(reinterpret_cast<const char *>(system.memory().bytes()), static_cast<std::streamsize>(bytes));
    if (!out) throw cim::ImageError(job.dump + ": cannot be written");
}

int run(const Job &job) {
    try {
        const cim::Image image = cim::read_image(job.cfg);
        cim::System system("system", image);
        const cim::Outcome outcome = system.simulate(job.limit);
        write_memory(job, system, image.memory_bytes);
        std::cout << cim::report(system, outcome) << std::endl;
        return exit_code(outcome.end);
    } catch (const cim::ImageError &problem) {
        std::cerr << "error: " << problem.what() << std::endl;
        return BAD_FILE;
    }
}

// A process simulates once, so every image of a list has one of its own.
int run_list(const std::string &path) {
    std::ifstream list(path);
    if (!list) {
        std::cerr << "error: " << path << ": cannot be read" << std::endl;
        return BAD_FILE;
    }
    int result = 0;
    for (std::string line; std::getline(list, line);) {
        Job job;
        std::string limit;
        std::istringstream fields(line);
        std::getline(fields, job.cfg, '\t');
        if (std::getline(fields, limit, '\t') && !limit.empty()) job.limit = std::stoull(limit);
        std::getline(fields, job.dump, '\t');
        const pid_t child = fork();
        if (child == 0) {
            const int code = run(job);
            std::cout.flush();
            _exit(code);
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) == BAD_FILE) result = BAD_FILE;
    }
    return result;
}

int usage() {
    std::cerr << "usage: cim-systemc [--max-cycles L] [--dump FILE] IMAGE.cfg | --list FILE" << std::endl;
    return USAGE;
}

}  // namespace

int sc_main(int argc, char *argv[]) {
    sc_core::sc_set_time_resolution(1, sc_core::SC_NS);
    // It would tell on stdout that the simulation was stopped.
    sc_core::sc_report_handler::set_actions("/OSCI/SystemC", sc_core::SC_DO_NOTHING);
    Job job;
    std::string list;
    for (int k = 1; k < argc; ++k) {
        const std::string argument = argv[k];
        const bool has_value = k + 1 < argc;
        if (argument == "--max-cycles" && has_value)
            job.limit = std::stoull(argv[++k]);
        else if (argument == "--dump" && has_value)
            job.dump = argv[++k];
        else if (argument == "--list" && has_value)
            list = argv[++k];
        else if (argument.rfind("--", 0) != 0 && job.cfg.empty())
            job.cfg = argument;
        else
            return usage();
    }
    if (list.empty() == job.cfg.empty()) return usage();
    return list.empty() ? run(job) : run_list(list);
}
