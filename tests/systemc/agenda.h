// What the bus has to do in which cycle, in the order in which a cycle's effects happen.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include <tlm>

#include "types.h"

namespace cim {

enum class Kind : std::uint8_t {
    WriteReaches,  // a write burst reaches the memory
    ReadReaches,   // a read burst does
    Arrives,       // the bytes of a store or a CALL take effect, its response is ready
    AskAddress,    // a burst asks for AR or AW
    DataReady,     // the data of a read burst is ready
    AskData,       // a burst asks for R after an older one of its initiator
    ReadLeaves,    // a read burst is finished
    WriteLeaves,   // a write burst is finished
};

struct Event {
    std::uint64_t key;  // cycle, rank, initiator
    tlm::tlm_generic_payload *payload;
    Kind kind;

    Cycle cycle() const { return key >> SHIFT; }
    std::uint32_t initiator() const { return key & INITIATOR_MASK; }
    bool operator>(const Event &other) const { return key > other.key; }

    static constexpr int INITIATOR_BITS = 18;  // 2 * 65,536 initiators and some
    static constexpr int SHIFT = INITIATOR_BITS + 2;
    static constexpr std::uint64_t INITIATOR_MASK = (std::uint64_t{1} << INITIATOR_BITS) - 1;
};

class Agenda {
  public:
    void add(Cycle cycle, Kind kind, std::uint32_t initiator, tlm::tlm_generic_payload *payload) {
        const std::uint64_t rank = kind < Kind::AskAddress ? static_cast<std::uint64_t>(kind) : 3;
        const std::uint64_t key =
            cycle << Event::SHIFT | rank << Event::INITIATOR_BITS | initiator;
        events_.push({key, payload, kind});
    }

    bool empty() const { return events_.empty(); }
    Cycle next() const { return events_.top().cycle(); }

    Event take() {
        const Event event = events_.top();
        events_.pop();
        return event;
    }

  private:
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace cim
