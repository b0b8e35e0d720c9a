// Bursts as TLM transactions: the pool that owns them, what they carry, and where one ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <tlm>

#include "types.h"

namespace cim {

// Shared memory has addresses below this one; the SEQ_NR of the n-th core, counted from 0, is 4 bytes at REGISTERS + 4 n.
constexpr std::uint64_t REGISTERS = std::uint64_t{1} << 32;
constexpr std::uint32_t REGISTER_BYTES = 4;

constexpr std::uint64_t MAX_BEATS = 256;
constexpr std::uint64_t BOUNDARY = 4096;

// The address at which the burst that begins at `address` of an access up to `end` must end.
inline std::uint64_t burst_end(std::uint64_t address, std::uint64_t end, std::uint64_t width) {
    const std::uint64_t word = address / width * width;
    return std::min({end, word + MAX_BEATS * width, (address / BOUNDARY + 1) * BOUNDARY});
}

inline std::uint64_t beats(std::uint64_t address, std::uint64_t end, std::uint64_t width) {
    return (end - 1) / width - address / width + 1;
}

// What bus and ports know of a transaction beside the generic payload. Every payload of the pool has one for life.
struct Burst : tlm::tlm_extension<Burst> {
    explicit Burst(tlm::tlm_generic_payload &payload) : payload(payload) {}

    tlm::tlm_generic_payload &payload;  // whose extension it is
    std::uint64_t beats = 0;
    bool read = false;
    std::uint32_t target = 0;      // 0: the memory; 1 + n: SEQ_NR of the n-th core
    Cycle asked = 0;               // when it asked for AR or AW
    Cycle ready = 0;               // when its data or response was ready
    bool is_ready = false;         // whether it is
    Burst *next = nullptr;         // the one of its initiator that was granted AR or AW after it

    tlm::tlm_extension_base *clone() const override { return nullptr; }  // it stays with its payload
    void copy_from(const tlm::tlm_extension_base &) override {}
};

// Payloads for reuse.
class Pool : public tlm::tlm_mm_interface {
  public:
    tlm::tlm_generic_payload *take() {
        if (free_.empty()) grow();
        auto *payload = free_.back();
        free_.pop_back();
        payload->acquire();
        return payload;
    }

    void free(tlm::tlm_generic_payload *payload) override { free_.push_back(payload); }

  private:
    void grow() {
        all_.push_back(std::make_unique<tlm::tlm_generic_payload>(this));
        all_.back()->set_extension(new Burst(*all_.back()));  // the payload deletes it
        free_.push_back(all_.back().get());
    }

    std::vector<std::unique_ptr<tlm::tlm_generic_payload>> all_;
    std::vector<tlm::tlm_generic_payload *> free_;
};

}  // namespace cim
