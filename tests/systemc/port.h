// An initiator on the bus: the data port or the fetch port of a core. It cuts accesses into bursts and keeps to the limit
// of bursts in flight (spec/timing.md, rules 1 of sections 4 and 5).
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include <tlm>

#include "burst.h"

namespace cim {

// Told when the last burst of an access is finished. The cycle may lie in the future.
struct PortOwner {
    virtual void completed(Cycle finish) = 0;

  protected:
    ~PortOwner() = default;
};

class Port : public tlm::tlm_bw_transport_if<> {
  public:
    Port(const char *name, PortOwner &owner, Pool &pool, std::uint64_t width)
        : socket(name), owner_(owner), pool_(pool), width_(width) {
        socket.bind(*this);
    }

    // Ask for the first burst in cycle `start`. One access at a time; `limit` bursts may be in flight.
    void access(Cycle start, tlm::tlm_command command, std::uint64_t address, std::uint8_t *data,
                std::uint64_t bytes, std::uint64_t limit);

    tlm::tlm_initiator_socket<> socket;

  private:
    void ask(Cycle at);
    void granted(Cycle at);
    void finished(tlm::tlm_generic_payload &payload, Cycle finish);

    tlm::tlm_sync_enum nb_transport_bw(tlm::tlm_generic_payload &payload, tlm::tlm_phase &phase,
                                       sc_core::sc_time &delay) override;
    void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

    static constexpr std::uint64_t MOST_IN_FLIGHT = 256;

    PortOwner &owner_;
    Pool &pool_;
    const std::uint64_t width_;

    tlm::tlm_command command_ = tlm::TLM_IGNORE_COMMAND;
    std::uint64_t address_ = 0;  // of the burst that is asked for next
    std::uint64_t end_ = 0;      // of the access
    std::uint8_t *data_ = nullptr;
    std::uint64_t limit_ = 1;
    std::uint64_t asked_ = 0;     // bursts, ever
    std::uint64_t finished_ = 0;  // bursts that are or will be, at a known cycle
    bool held_ = false;           // the next burst waits for one in flight
    Cycle earliest_ = 0;          // the cycle from which it could ask otherwise
    std::array<Cycle, MOST_IN_FLIGHT> finishes_{};  // of burst k at k mod MOST_IN_FLIGHT
};

}  // namespace cim
