#include "core.h"

#include <algorithm>
#include <cstring>

namespace cim {
namespace {

template <class T>
std::vector<T> parameter(const CoreImage &core, const char *name, std::uint32_t length, T missing) {
    std::vector<T> values(length, missing);
    const auto given = core.parameters.find(name);
    if (given != core.parameters.end()) {
        if (given->second.size() > length) throw ImageError(std::string("parameter ") + name + " is too long");
        std::memcpy(values.data(), given->second.data(), 4 * given->second.size());
    }
    return values;
}

}  // namespace

Core::Core(sc_core::sc_module_name name, const Image &image, const CoreImage &core, Pool &pool, Supervisor &supervisor)
    : sc_module(name), port("data", *this, pool, image.machine.width_bytes), seq_nr("seq_nr"),
      number_(core.number), machine_(image.machine), supervisor_(supervisor), layout_(image),
      program_(decode_program(image, core, layout_)), buffers_(layout_.bytes),
      written_(image.machine.inputs) {
    const std::uint32_t outputs = image.machine.outputs;
    y_zp_ = parameter<std::int32_t>(core, "y_zp", outputs, 0);
    mul_pos_ = parameter<float>(core, "mul_pos", outputs, 1);
    mul_neg_ = parameter<float>(core, "mul_neg", outputs, 1);
    parameters_ = {mul_pos_.data(), mul_neg_.data(), y_zp_.data()};
    if (core.rows > 0)
        crossbar_ = std::make_unique<Crossbar>(image, core, parameter<std::int32_t>(core, "offset", outputs, 0),
                                               parameter<float>(core, "adc_mul", outputs, 1));
    block_end_ = program_.size();
    if (core.executed_bytes() > machine_.instruction_memory_bytes) {
        fetcher = std::make_unique<Fetcher>(static_cast<FetchOwner &>(*this), machine_, core, pool);
        block_end_ = fetcher->block_instructions();
    }
    seq_nr.bind(*this);
}

// Executes what follows an instruction that completed in cycle `completion`, up to the next one that must wait.
void Core::run(Cycle completion) {
    while (at_ < program_.size()) {
        if (at_ == block_end_) {
            const std::size_t block = at_ / fetcher->block_instructions();
            block_end_ += fetcher->block_instructions();
            const Cycle reached = completion;
            if (!fetcher->reach(block, reached, completion)) return;
            counters_.fetch += completion - reached;
        }
        const Operation &operation = program_[at_];
        const Cycle start = completion + machine_.issue_cycles;
        switch (operation.kind) {
            case Class::Mvm:
                if (!rows_loaded()) {
                    stopped_ = true;
                    supervisor_.fault(start, number_, Exception::RowsNotLoaded);
                    return;
                }
                crossbar_->multiply(&buffers_[operation.a], &buffers_[operation.dst]);
                completion = complete(Class::Mvm, start, start + operation.duration);
                break;
            case Class::Gpeu:
                operation.gpeu(&buffers_[operation.dst], &buffers_[operation.a], &buffers_[operation.b],
                               static_cast<std::uint32_t>(operation.immediate), operation.n, parameters_);
                if (operation.writes_ib) wrote_input(operation);
                completion = complete(Class::Gpeu, start, start + operation.duration);
                break;
            case Class::Wait:
                if (seq_nr_value_ < operation.value) {
                    waiting_ = true;
                    start_ = start;
                    return;
                }
                completion = complete(Class::Wait, start, start);
                break;
            case Class::Load:
                start_ = start;
                port.access(start, tlm::TLM_READ_COMMAND, operation.address, &buffers_[operation.dst], operation.n,
                            machine_.read_outstanding);
                return;
            case Class::Store:
                start_ = start;
                port.access(start, tlm::TLM_WRITE_COMMAND, operation.address, &buffers_[operation.dst],
                            operation.n, machine_.write_outstanding);
                return;
            case Class::Call:
                start_ = start;
                port.access(start, tlm::TLM_WRITE_COMMAND, operation.address, signal_, REGISTER_BYTES,
                            machine_.write_outstanding);
                return;
            case Class::Fault:
                stopped_ = true;
                supervisor_.fault(start, number_, operation.exception);
                return;
        }
    }
    finish_ = program_.empty() ? 0 : completion;
}

Cycle Core::complete(Class kind, Cycle start, Cycle completion) {
    const auto k = static_cast<std::size_t>(kind);
    ++counters_.instructions[k];
    counters_.cycles[k] += completion - start;
    counters_.issue += machine_.issue_cycles;
    ++at_;
    return completion;
}

void Core::completed(Cycle finish) {
    const Operation &operation = program_[at_];
    if (operation.writes_ib) wrote_input(operation);
    run(complete(operation.kind, start_, finish));
}

void Core::block_came(Cycle from, Cycle reached) {
    counters_.fetch += from - reached;
    run(from);
}

bool Core::rows_loaded() {
    if (!all_rows_loaded_)
        all_rows_loaded_ = std::all_of(written_.begin(), written_.begin() + crossbar_->rows(),
                                       [](bool written) { return written; });
    return all_rows_loaded_;
}

void Core::wrote_input(const Operation &operation) {
    if (all_rows_loaded_) return;
    const bool load = operation.kind == Class::Load;
    const std::uint32_t first = load ? operation.lo : 0;
    const std::uint32_t count = load ? operation.n / element_bytes(layout_.type[CIM_BUFFER_IB]) : operation.n;
    std::fill_n(written_.begin() + first, count, true);
}

// A CALL arrives.
void Core::called() {
    ++seq_nr_value_;
    if (!waiting_ || seq_nr_value_ < program_[at_].value) return;
    waiting_ = false;
    run(complete(Class::Wait, start_, std::max(start_, now())));
}

tlm::tlm_sync_enum Core::nb_transport_fw(tlm::tlm_generic_payload &payload, tlm::tlm_phase &phase,
                                         sc_core::sc_time &delay) {
    if (phase == tlm::END_RESP) {
        payload.set_response_status(tlm::TLM_OK_RESPONSE);
        called();
        return tlm::TLM_COMPLETED;
    }
    delay += to_time(machine_.register_latency_cycles);
    phase = tlm::BEGIN_RESP;
    return tlm::TLM_UPDATED;
}

void Core::b_transport(tlm::tlm_generic_payload &payload, sc_core::sc_time &) {
    SC_REPORT_FATAL(name(), "knows the approximately-timed style only");
    payload.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);
}

}  // namespace cim
