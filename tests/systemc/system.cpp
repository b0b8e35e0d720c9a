#include "system.h"

#include <algorithm>
#include <chrono>

namespace cim {
namespace {

std::uint64_t cores_of(const Image &image) {
    return image.machine.core_count == UNLIMITED ? image.cores.size() : image.machine.core_count;
}

}  // namespace

IdleRegister::IdleRegister(sc_core::sc_module_name name, Cycle latency)
    : sc_module(name), seq_nr("seq_nr"), latency_(latency) {
    seq_nr.bind(*this);
}

tlm::tlm_sync_enum IdleRegister::nb_transport_fw(tlm::tlm_generic_payload &payload, tlm::tlm_phase &phase,
                                                 sc_core::sc_time &delay) {
    if (phase == tlm::END_RESP) {
        payload.set_response_status(tlm::TLM_OK_RESPONSE);
        return tlm::TLM_COMPLETED;
    }
    delay += to_time(latency_);
    phase = tlm::BEGIN_RESP;
    return tlm::TLM_UPDATED;
}

System::System(sc_core::sc_module_name name, const Image &image)
    : sc_module(name), setup_cycles_(setup_cycles(image)) {
    const std::uint64_t core_count = cores_of(image);
    memory_ = std::make_unique<Memory>("memory", image);
    build_cores(image, core_count);
    connect(image, core_count);
    SC_HAS_PROCESS(System);
    SC_METHOD(begin);
    SC_METHOD(stop);
    sensitive << faulted_;
    dont_initialize();
}

void System::build_cores(const Image &image, std::uint64_t core_count) {
    for (const CoreImage &core : image.cores)
        cores_.push_back(std::make_unique<Core>(("core" + std::to_string(core.number)).c_str(), image, core,
                                                core_count, pool_, *this));
}

void System::connect(const Image &image, std::uint64_t core_count) {
    const auto with_program = static_cast<std::uint32_t>(cores_.size());
    std::vector<Fetcher *> fetchers;
    for (const auto &core : cores_)
        if (core->fetcher) fetchers.push_back(core->fetcher.get());
    const std::uint64_t registers =
        std::max<std::uint64_t>(core_count, cores_.empty() ? 0 : cores_.back()->number() + 1);
    bus_ = std::make_unique<Bus>("bus", image.machine, with_program, static_cast<std::uint32_t>(fetchers.size()),
                                 static_cast<std::uint32_t>(registers));
    for (std::uint32_t k = 0; k < with_program; ++k) cores_[k]->port.socket.bind(bus_->initiator(k));
    for (std::uint32_t k = 0; k < fetchers.size(); ++k)
        fetchers[k]->port.socket.bind(bus_->initiator(with_program + k));
    bus_->memory().bind(memory_->socket);
    auto next = cores_.begin();
    for (std::uint32_t number = 0; number < registers; ++number) {
        if (next != cores_.end() && (*next)->number() == number) {
            bus_->register_of(number).bind((*next++)->seq_nr);
        } else {
            idle_.push_back(std::make_unique<IdleRegister>(("idle" + std::to_string(number)).c_str(),
                                                           image.machine.register_latency_cycles));
            bus_->register_of(number).bind(idle_.back()->seq_nr);
        }
    }
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
    const auto began = std::chrono::steady_clock::now();
    sc_core::sc_start(to_time(limit + 1));
    Outcome outcome;
    outcome.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
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
