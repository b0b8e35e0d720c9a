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
    double seconds = 0;           // of the processor, for simulating without reading and building
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
    void connect(const Image &image);

    Pool pool_;
    std::unique_ptr<Memory> memory_;
    std::vector<std::unique_ptr<Core>> cores_;
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
