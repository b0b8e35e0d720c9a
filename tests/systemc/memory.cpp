#include "memory.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace cim {

Memory::Memory(sc_core::sc_module_name name, const Image &image)
    : sc_module(name), socket("socket"), machine_(image.machine) {
    socket.bind(*this);
    // Zeroed pages cost nothing until they are used.
    bytes_.reset(static_cast<std::uint8_t *>(std::calloc(std::max<std::uint64_t>(image.memory_bytes, 1), 1)));
    if (!bytes_) throw std::bad_alloc();
    for (const CoreImage &core : image.cores)
        std::copy_n(reinterpret_cast<const std::uint8_t *>(core.program.data()), 8 * core.program.size(),
                    bytes_.get() + core.address);
    for (const Region &region : image.regions)
        std::copy(region.content.begin(), region.content.end(), bytes_.get() + region.address);
    if (machine_.banked()) {
        write_free_.resize(machine_.banks);
        read_free_.resize(machine_.banks);
    }
}

tlm::tlm_sync_enum Memory::nb_transport_fw(tlm::tlm_generic_payload &payload, tlm::tlm_phase &phase,
                                           sc_core::sc_time &delay) {
    if (phase == tlm::END_RESP) {
        move(payload);
        return tlm::TLM_COMPLETED;
    }
    Cycle service = to_cycles(delay);
    if (machine_.banked()) {
        auto &free_from = payload.is_read() && machine_.separate_ports ? read_free_ : write_free_;
        const Cycle reached = now() + service;
        service = served(payload.get_address(), payload.get_data_length(), reached, free_from) - now();
    }
    delay = to_time(service + (payload.is_read() ? machine_.read_latency_cycles
                                                 : machine_.write_latency_cycles));
    phase = tlm::BEGIN_RESP;
    return tlm::TLM_UPDATED;
}

void Memory::move(tlm::tlm_generic_payload &payload) {
    std::uint8_t *here = bytes_.get() + payload.get_address();
    if (payload.is_read())
        std::memcpy(payload.get_data_ptr(), here, payload.get_data_length());
    else
        std::memcpy(here, payload.get_data_ptr(), payload.get_data_length());
    payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

Cycle Memory::served(std::uint64_t address, std::uint64_t bytes, Cycle reached, std::vector<Cycle> &free_from) {
    const std::uint64_t interleave = machine_.bank_interleave_bytes;
    const std::uint64_t last = (address + bytes - 1) / interleave;
    Cycle whole = reached;
    for (std::uint64_t unit = address / interleave; unit <= last; ++unit) {
        Cycle &free_at = free_from[unit % machine_.banks];
        const Cycle service = std::max(reached, free_at);
        free_at = service + machine_.bank_cycles;
        whole = std::max(whole, service);
    }
    return whole;
}

void Memory::b_transport(tlm::tlm_generic_payload &payload, sc_core::sc_time &) {
    SC_REPORT_FATAL(name(), "knows the approximately-timed style only");
    payload.set_response_status(tlm::TLM_GENERIC_ERROR_RESPONSE);
}

}  // namespace cim
