// The machine of a cfg file (spec/image.md, section 3, "The machine").
#pragma once

#include <cstdint>
#include <limits>

namespace cim {

constexpr std::uint64_t UNLIMITED = std::numeric_limits<std::uint64_t>::max();

enum class Arbitration { RoundRobin, OldestFirst };

struct Machine {
    std::uint32_t inputs = 0;   // N
    std::uint32_t outputs = 0;  // M
    std::uint64_t instruction_memory_bytes = UNLIMITED;
    std::uint64_t issue_cycles = 1;
    std::uint64_t mvm_cycles = 1;  // derived already
    std::uint64_t gpeu_lanes = 1;
    std::uint64_t gpeu_latency_cycles = 0;

    std::uint64_t width_bytes = 1;
    bool per_target = false;
    Arbitration arbitration = Arbitration::RoundRobin;
    std::uint64_t read_outstanding = 1;
    std::uint64_t write_outstanding = 1;
    std::uint64_t register_latency_cycles = 0;

    std::uint64_t read_latency_cycles = 0;
    std::uint64_t write_latency_cycles = 0;
    std::uint64_t memory_read_outstanding = UNLIMITED;
    std::uint64_t memory_write_outstanding = UNLIMITED;
    std::uint64_t banks = UNLIMITED;
    std::uint64_t bank_interleave_bytes = 64;
    std::uint64_t bank_cycles = 1;
    bool separate_ports = false;

    std::uint64_t row_program_cycles = 0;
    std::uint64_t register_write_cycles = 0;

    bool banked() const { return banks != UNLIMITED; }
};

}  // namespace cim
