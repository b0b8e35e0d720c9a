// The shared memory: its bytes, its latencies and its banks (spec/timing.md, section 3, "Banks").
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include <systemc>
#include <tlm>

#include "image.h"
#include "types.h"

namespace cim {

// A target in two steps. BEGIN_REQ is the burst that reaches the memory, answered at once with BEGIN_RESP and the
// delay after which its data is ready, or its bytes arrive. END_RESP is the cycle in which they are moved: the
// memory is what it is in that cycle. With banks, bursts must come in the order in which they reach it.
class Memory : public sc_core::sc_module, public tlm::tlm_fw_transport_if<> {
  public:
    Memory(sc_core::sc_module_name name, const Image &image);

    const std::uint8_t *bytes() const { return bytes_.get(); }

    tlm::tlm_target_socket<> socket;

  private:
    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload &payload, tlm::tlm_phase &phase,
                                       sc_core::sc_time &delay) override;
    void b_transport(tlm::tlm_generic_payload &, sc_core::sc_time &) override;
    bool get_direct_mem_ptr(tlm::tlm_generic_payload &, tlm::tlm_dmi &) override { return false; }
    unsigned transport_dbg(tlm::tlm_generic_payload &) override { return 0; }

    void move(tlm::tlm_generic_payload &payload);
    Cycle served(std::uint64_t address, std::uint64_t bytes, Cycle reached, std::vector<Cycle> &free_from);

    const Machine &machine_;
    struct Free {
        void operator()(std::uint8_t *bytes) const { std::free(bytes); }
    };
    std::unique_ptr<std::uint8_t, Free> bytes_;
    std::vector<Cycle> write_free_;  // per bank, for reads too unless the ports are separate
    std::vector<Cycle> read_free_;
};

}  // namespace cim
