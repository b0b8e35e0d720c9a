// The whole machine, from an image to the end of one inference.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <systemc>

#include "bus.h"
#include "core.h"
#include "image.h"
#include "memory.h"

namespace cim {

enum class End { Done, Fault, Deadlock, Limit };

struct Outcome {
    End end = End::Done;
    Cycle cycle = 0;              // latency; or that of the exception, the deadlock, the limit
    std::uint32_t core = 0;       // that raised the exception, or the first that blocks
    Exception exception = Exception::None;
    std::uint64_t setup_cycles = 0;
    double seconds = 0;           // of simulating, without reading and building
};

// The SEQ_NR of a core that has no program: it can be called, and nobody waits for it.
class IdleRegister : public sc_core::sc_module, public tlm::tlm_fw_transport_if<> {
  public:
    IdleRegister(sc_core::sc_module_name name, Cycle latency);

    tlm::tlm_target_socket<> seq_nr;

  private:
    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload &, tlm::tlm_phase &, sc_core::sc_time &) override;
    void b_transport(tlm::tlm_generic_payload &, sc_core::sc_time &) override {}
    bool get_direct_mem_ptr(tlm::tlm_generic_payload &, tlm::tlm_dmi &) override { return false; }
    unsigned transport_dbg(tlm::tlm_generic_payload &) override { return 0; }

    const Cycle latency_;
};

class System : public sc_core::sc_module, public Supervisor {
  public:
    System(sc_core::sc_module_name name, const Image &image);

    // Runs one inference of the process: the simulator cannot be started again.
    Outcome simulate(Cycle limit);

    const std::vector<std::unique_ptr<Core>> &cores() const { return cores_; }
    const BusCounters &bus() const { return bus_->counters(); }
    const Memory &memory() const { return *memory_; }

  private:
    void begin();
    void stop();
    void fault(Cycle cycle, std::uint32_t core, Exception exception) override;
    void judge(Cycle limit, Outcome &outcome) const;
    void build_cores(const Image &image, std::uint64_t core_count);
    void connect(const Image &image, std::uint64_t core_count);

    Pool pool_;
    std::unique_ptr<Memory> memory_;
    std::vector<std::unique_ptr<Core>> cores_;
    std::vector<std::unique_ptr<IdleRegister>> idle_;
    std::unique_ptr<Bus> bus_;
    const std::uint64_t setup_cycles_;

    sc_core::sc_event faulted_;
    Exception exception_ = Exception::None;  // the first in time, of the core with the lowest number
    Cycle exception_cycle_ = 0;
    std::uint32_t exception_core_ = 0;
};

// spec/timing.md, section 8, for one image.
std::uint64_t setup_cycles(const Image &image);

}  // namespace cim
