// What the bus has to do in which cycle, in the order in which a cycle's effects happen.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "burst.h"
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
    Cycle cycle;
    std::uint32_t rank;  // in its cycle: by kind, then by initiator
    Kind kind;
    Burst *burst;

    Event() = default;
    Event(Cycle cycle, Kind kind, std::uint32_t initiator, Burst *burst)
        : cycle(cycle), rank(phase(kind) << INITIATOR_BITS | initiator), kind(kind), burst(burst) {}

    std::uint32_t initiator() const { return rank & ((std::uint32_t{1} << INITIATOR_BITS) - 1); }
    bool operator>(const Event &other) const { return cycle > other.cycle; }

  private:
    static constexpr int INITIATOR_BITS = 18;  // 2 * 65,536 initiators at most
    static std::uint32_t phase(Kind kind) { return kind < Kind::AskAddress ? static_cast<std::uint32_t>(kind) : 3; }
};

// A timing wheel: one list for each of the next SPAN cycles, sorted by rank, and a heap for what is later.
class Agenda {
  public:
    static constexpr Cycle NEVER = ~Cycle{0};

    Agenda();

    void add(Cycle cycle, Kind kind, std::uint32_t initiator, Burst *burst) {
        const Event event(cycle, kind, initiator, burst);
        if (cycle - present_ < SPAN)
            insert(event);
        else
            later_.push(event);
    }

    // The next cycle of any event, or NEVER.
    Cycle next() const;

    // No event lies before `cycle`, and none will.
    void advance(Cycle cycle);

    // Takes the next event of the cycle to which it has advanced; false if there is none.
    bool take(Event &event);

  private:
    static constexpr std::uint32_t SPAN = 2048;
    static constexpr std::uint32_t WORDS = SPAN / 64;
    static constexpr std::uint32_t NONE = ~std::uint32_t{0};

    struct Node {
        Event event;
        std::uint32_t next;
    };
    struct List {
        std::uint32_t first = NONE;
        std::uint32_t last = NONE;
    };

    void insert(const Event &event);
    std::uint32_t new_node(const Event &event);

    Cycle present_ = 0;
    std::array<List, SPAN> lists_;
    std::array<std::uint64_t, WORDS> used_{};  // a bit for every list that is not empty
    std::uint32_t used_words_ = 0;             // a bit for every word of used_ that is not 0
    std::vector<Node> nodes_;
    std::uint32_t free_ = NONE;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> later_;
};

}  // namespace cim
