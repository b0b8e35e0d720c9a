#include "report.h"

#include <nlohmann/json.hpp>

namespace cim {
namespace {

using nlohmann::json;

constexpr const char *CLASS_NAMES[CLASSES] = {"load", "store", "mvm", "gpeu", "call", "wait"};

json of_cores(const System &system, Cycle latency, json &instructions) {
    CoreCounters sum;
    std::uint64_t idle = 0;
    for (const auto &core : system.cores()) {
        for (int k = 0; k < CLASSES; ++k) {
            sum.instructions[k] += core->counters().instructions[k];
            sum.cycles[k] += core->counters().cycles[k];
        }
        sum.issue += core->counters().issue;
        sum.fetch += core->counters().fetch;
        idle += latency - core->finish();
    }
    json cycles = {{"issue", sum.issue}, {"fetch", sum.fetch}, {"idle", idle}};
    for (int k = 0; k < CLASSES; ++k) {
        instructions[CLASS_NAMES[k]] = sum.instructions[k];
        cycles[CLASS_NAMES[k]] = sum.cycles[k];
    }
    return cycles;
}

void add_counters(const System &system, const Outcome &outcome, json &out) {
    const BusCounters &bus = system.bus();
    json &finish = out["finish"] = json::array();
    for (const auto &core : system.cores()) finish.push_back(core->finish());
    out["core_cycles"] = of_cores(system, outcome.cycle, out["instructions"]);
    out["stalls"] = {{"ar", bus.ar.stalls}, {"r", bus.r.stalls}, {"aw", bus.aw.stalls},
                     {"w", bus.w.stalls},   {"b", bus.b.stalls}, {"seq_nr", out["core_cycles"]["wait"]}};
    out["bytes"] = {{"load", bus.load.bytes}, {"store", bus.store.bytes},
                    {"call", bus.call.bytes}, {"fetch", bus.fetch.bytes}};
    const auto traffic = [](const Traffic &one) {
        return json{{"issued", one.issued}, {"completed", one.completed}};
    };
    out["bus"] = {{"ar_busy_cycles", bus.ar.busy},
                  {"r_busy_cycles", bus.r.busy},
                  {"aw_busy_cycles", bus.aw.busy},
                  {"w_busy_cycles", bus.w.busy},
                  {"b_busy_cycles", bus.b.busy},
                  {"transactions",
                   {{"read", traffic(bus.load)},
                    {"fetch", traffic(bus.fetch)},
                    {"write", traffic(bus.store)},
                    {"call", traffic(bus.call)}}}};
}

}  // namespace

std::string report(const System &system, const Outcome &outcome) {
    json out = {{"seconds", outcome.seconds}, {"setup_cycles", outcome.setup_cycles}};
    switch (outcome.end) {
        case End::Done:
            out["end"] = "done";
            out["cycles"] = outcome.cycle;
            add_counters(system, outcome, out);
            break;
        case End::Fault:
            out["end"] = "fault";
            out["cycle"] = outcome.cycle;
            out["core"] = outcome.core;
            out["exception"] = name_of(outcome.exception);
            break;
        case End::Deadlock:
            out["end"] = "deadlock";
            out["cycle"] = outcome.cycle;
            out["core"] = outcome.core;
            break;
        case End::Limit:
            out["end"] = "limit";
            out["cycle"] = outcome.cycle;
            break;
    }
    return out.dump();
}

}  // namespace cim
