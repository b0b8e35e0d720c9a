#include "system.h"

#include <algorithm>
#include <ctime>

namespace cim {
System::System(sc_core::sc_module_name name, const Image &image)
    : sc_module(name), setup_cycles_(setup_cycles(image)) {
    memory_ = std::make_unique<Memory>("memory", image);
    for (const CoreImage &core : image.cores)
        cores_.push_back(
            std::make_unique<Core>(("core" + std::to_string(core.number)).c_str(), image, core, pool_, *this));
    connect(image);
    SC_HAS_PROCESS(System);
    SC_METHOD(begin);
    SC_METHOD(stop);
    sensitive << faulted_;
    dont_initialize();
}

void System::connect(const Image &image) {
    const auto count = static_cast<std::uint32_t>(cores_.size());
    std::vector<Fetcher *> fetchers;
    for (const auto &core : cores_)
        if (core->fetcher) fetchers.push_back(core->fetcher.get());
    bus_ = std::make_unique<Bus>("bus", image.machine, count, static_cast<std::uint32_t>(fetchers.size()));
    for (std::uint32_t k = 0; k < count; ++k) {
        cores_[k]->port.socket.bind(bus_->initiator(k));
        bus_->register_of(k).bind(cores_[k]->seq_nr);
    }
    for (std::uint32_t k = 0; k < fetchers.size(); ++k) fetchers[k]->port.socket.bind(bus_->initiator(count + k));
    bus_->memory().bind(memory_->socket);
}

void System::begin() {
    for (const auto &core : cores_) core->start();
}

void System::stop() { sc_core::sc_stop(); }

void System::fault(Cycle cycle, std::uint32_t core, Exception exception) {
    const bool first = exception_ == Exception::None || cycle < exception_cycle_ ||
                       (cycle == exception_cycle_ && core < exception_core_);
    if (!first) return;
    exception_ = exception;
    exception_cycle_ = cycle;
    exception_core_ = core;
    faulted_.notify(to_time(cycle - now()));
}

Outcome System::simulate(Cycle limit) {
    const std::clock_t began = std::clock();
    sc_core::sc_start(to_time(limit + 1));
    Outcome outcome;
    outcome.seconds = static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
    outcome.setup_cycles = setup_cycles_;
    judge(limit, outcome);
    return outcome;
}

// spec/timing.md, sections 2 and 6.
void System::judge(Cycle limit, Outcome &outcome) const {
    if (exception_ != Exception::None && exception_cycle_ <= limit) {
        outcome.end = End::Fault;
        outcome.cycle = exception_cycle_;
        outcome.core = exception_core_;
        outcome.exception = exception_;
        return;
    }
    // Every core that is not done waits, unless the limit has cut the run short.
    const Core *blocked = nullptr;
    bool running = exception_ != Exception::None;
    for (const auto &core : cores_) {
        outcome.cycle = std::max(outcome.cycle, core->waiting() ? core->wait_start() : core->finish());
        if (core->fetcher) outcome.cycle = std::max(outcome.cycle, core->fetcher->came());
        if (core->waiting() && blocked == nullptr) blocked = core.get();
        if (!core->waiting() && !core->done()) running = true;
    }
    if (running || outcome.cycle > limit) {
        outcome.end = End::Limit;
        outcome.cycle = limit;
    } else if (blocked != nullptr) {
        outcome.end = End::Deadlock;
        outcome.core = blocked->number();
    }
}

}  // namespace cim
