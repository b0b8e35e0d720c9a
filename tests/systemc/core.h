// A core: executes its program over its data port, and is called through its SEQ_NR.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <systemc>
#include <tlm>

#include "crossbar.h"
#include "fetcher.h"
#include "port.h"
#include "program.h"

namespace cim {

// Told what ends the inference early, or that a core is done. Cycles may lie in the future.
struct Supervisor {
    virtual void fault(Cycle cycle, std::uint32_t core, Exception exception) = 0;

  protected:
    ~Supervisor() = default;
};

struct CoreCounters {
    std::uint64_t instructions[CLASSES] = {};
    std::uint64_t cycles[CLASSES] = {};  // completion - s
    std::uint64_t issue = 0;
    std::uint64_t fetch = 0;
};

// Nothing in a core needs a process: what it does follows from the cycle in which its last access or CALL ended.
class Core : public sc_core::sc_module, public tlm::tlm_fw_transport_if<>, PortOwner, FetchOwner {
  public:
    Core(sc_core::sc_module_name name, const Image &image, const CoreImage &core, Pool &pool, Supervisor &supervisor);

    void start() { run(0); }

    bool done() const { return at_ == program_.size() && !stopped_; }
    Cycle finish() const { return finish_; }
    bool waiting() const { return waiting_; }
    Cycle wait_start() const { return start_; }  // of the WAIT that blocks it
    std::uint32_t number() const { return number_; }
    const CoreCounters &counters() const { return counters_; }

    Port port;
    std::unique_ptr<Fetcher> fetcher;     // null: the program fits the instruction memory
    tlm::tlm_target_socket<> seq_nr;

  private:
    void run(Cycle completion);
    Cycle complete(Class kind, Cycle start, Cycle completion);
    bool rows_loaded();
    void wrote_input(const Operation &operation);
    void called();

    void completed(Cycle finish) override;                // the access of the port
    void block_came(Cycle from, Cycle reached) override;  // that it waits for
    tlm::tlm_sync_enum nb_transport_fw(tlm::tlm_generic_payload &, tlm::tlm_phase &, sc_core::sc_time &) override;
    void b_transport(tlm::tlm_generic_payload &, sc_core::sc_time &) override;
    bool get_direct_mem_ptr(tlm::tlm_generic_payload &, tlm::tlm_dmi &) override { return false; }
    unsigned transport_dbg(tlm::tlm_generic_payload &) override { return 0; }

    const std::uint32_t number_;
    const Machine &machine_;
    Supervisor &supervisor_;
    const BufferLayout layout_;
    const std::vector<Operation> program_;

    std::vector<std::uint8_t> buffers_;
    std::vector<std::int32_t> y_zp_;
    std::vector<float> mul_pos_, mul_neg_;
    Parameters parameters_{};
    std::unique_ptr<Crossbar> crossbar_;
    std::vector<bool> written_;    // elements of ib
    bool all_rows_loaded_ = false;

    std::uint8_t signal_[REGISTER_BYTES] = {1};  // what a CALL writes
    std::uint32_t seq_nr_value_ = 0;
    std::size_t at_ = 0;           // the next instruction
    std::size_t block_end_ = 0;    // the instruction before which a block of a fetched program begins
    Cycle start_ = 0;              // s of the access or WAIT that it is in
    Cycle finish_ = 0;
    bool waiting_ = false;
    bool stopped_ = false;         // by an exception
    CoreCounters counters_;
};

}  // namespace cim
