// The bus: five channels a set, arbitration, order within a cycle (spec/timing.md, sections 3 to 5).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <systemc>
#include <tlm>

#include "agenda.h"
#include "arbiter.h"
#include "burst.h"
#include "machine.h"

namespace cim {

// spec/timing.md, section 9.
struct Traffic {
    std::uint64_t issued = 0;
    std::uint64_t completed = 0;
    std::uint64_t bytes = 0;
};

struct BusCounters {
    struct Channel {
        std::uint64_t stalls = 0;
        std::uint64_t busy = 0;
    };
    Channel ar, r, aw, w, b;
    Traffic load, fetch, store, call;
};

class Bus : public sc_core::sc_module {
  public:
    // The data ports of `cores` come first among the initiators, then `fetchers` fetch ports. Targets are the memory and
    // the SEQ_NR of every core.
    Bus(sc_core::sc_module_name name, const Machine &machine, std::uint32_t cores, std::uint32_t fetchers);

    tlm::tlm_target_socket<> &initiator(std::uint32_t index) { return initiators_[index]->socket; }
    tlm::tlm_initiator_socket<> &memory() { return targets_[0]->socket; }
    tlm::tlm_initiator_socket<> &register_of(std::uint32_t nth) { return targets_[1 + nth]->socket; }
    const BusCounters &counters() const { return counters_; }

  private:
    using Payload = tlm::tlm_generic_payload;

    // Where an initiator is connected, and its bursts that have been granted AR or AW but not yet R or B.
    struct Initiator : tlm::tlm_fw_transport_if<> {
        Initiator(Bus &bus, std::uint32_t index, const char *name);
        tlm::tlm_sync_enum nb_transport_fw(Payload &, tlm::tlm_phase &, sc_core::sc_time &) override;
        void b_transport(Payload &, sc_core::sc_time &) override;
        bool get_direct_mem_ptr(Payload &, tlm::tlm_dmi &) override { return false; }
        unsigned transport_dbg(Payload &) override { return 0; }

        Bus &bus;
        const std::uint32_t index;
        tlm::tlm_target_socket<> socket;
        Burst *request = nullptr;    // that asks for AR or AW
        Burst *oldest = nullptr;
        Burst *newest = nullptr;
        Cycle arrival = 0;           // of its last write burst
        Cycle drained = 0;           // the end of the data of its last read burst
    };

    // Targets answer at once, so nothing comes backwards.
    struct Target : tlm::tlm_bw_transport_if<> {
        explicit Target(const char *name) : socket(name) { socket.bind(*this); }
        tlm::tlm_sync_enum nb_transport_bw(Payload &, tlm::tlm_phase &, sc_core::sc_time &) override {
            return tlm::TLM_COMPLETED;
        }
        void invalidate_direct_mem_ptr(sc_dt::uint64, sc_dt::uint64) override {}

        tlm::tlm_initiator_socket<> socket;
    };

    enum class Role : std::uint8_t { AR, R, AW, B };

    struct Set;
    struct Channel {
        Channel(Role role, Set &set, Arbitration policy, std::uint32_t initiators)
            : role(role), set(set), arbiter(policy, initiators) {}

        const Role role;
        Set &set;
        Arbiter arbiter;
        Cycle free_from = 0;
        bool listed = false;  // in asked_
    };

    struct Set {
        Set(bool to_memory, Arbitration policy, std::uint32_t initiators);

        const bool to_memory;
        Channel ar, r, aw, b;
        Cycle data_end = 0;  // of the last burst on W
    };

    void cycle();
    void handle(const Event &event);
    bool arbitrate(Channel &channel);
    bool blocked(const Channel &channel) const;
    void schedule();

    void ask(Channel &channel, std::uint32_t initiator);
    void respond(Initiator &initiator, Burst &burst);
    void grant_ar(Initiator &initiator);
    void grant_aw(Set &set, Initiator &initiator);
    void grant_r(Set &set, Initiator &initiator);
    void grant_b(Set &set, Initiator &initiator);
    void await_response(Initiator &initiator, Burst &burst);
    Burst &take_response(Initiator &initiator);
    Cycle reach(Burst &burst, Cycle at);
    void move(Burst &burst);

    Set &set_of(const Burst &burst) { return *sets_[per_target_ ? burst.target : 0]; }
    Traffic &traffic_of(const Initiator &initiator, const Burst &burst);
    void end_request(Initiator &initiator, Burst &burst);
    void begin_response(Initiator &initiator, Burst &burst, Cycle duration);

    const bool per_target_;
    const bool banked_;
    const std::uint32_t cores_;
    const std::uint64_t most_reads_, most_writes_;  // in flight at the memory
    std::uint64_t reads_ = 0, writes_ = 0;          // in flight, counted where there is a limit

    std::vector<std::unique_ptr<Initiator>> initiators_;
    std::vector<std::unique_ptr<Target>> targets_;
    std::vector<std::unique_ptr<Set>> sets_;
    std::vector<Channel *> asked_;  // channels that someone asks for
    Agenda agenda_;
    sc_core::sc_event wake_;
    Cycle present_ = 0;  // while it works, the cycle
    bool working_ = false;
    Cycle retry_ = 0;  // the next cycle in which a channel of asked_ can be granted, or NEVER
    BusCounters counters_;
};

}  // namespace cim
