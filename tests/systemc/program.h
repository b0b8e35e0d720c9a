// Programs, decoded once: an operation knows where its operands lie and how long it takes.
#pragma once

#include <cstdint>
#include <vector>

#include "gpeu.h"
#include "image.h"
#include "types.h"

namespace cim {

enum class Exception : std::uint8_t {
    None,
    IllegalInstruction,
    BufferRange,
    MemoryRange,
    NoCrossbar,
    RowsNotLoaded,
    NoSuchCore,
};

const char *name_of(Exception exception);

enum class Class : std::uint8_t { Load, Store, Mvm, Gpeu, Call, Wait, Fault };
constexpr int CLASSES = 6;  // Fault is none that is counted

// Elements of the four buffers, in one piece of memory; numbers of buffers are those of cim_isa.h.
struct BufferLayout {
    explicit BufferLayout(const Image &image);

    Element type[4];
    std::uint32_t length[4];   // elements
    std::uint32_t offset[4];   // bytes
    std::uint32_t bytes;       // of all
};

struct Operation {
    Class kind;
    Exception exception;      // of a Fault
    bool writes_ib = false;
    std::uint32_t lo = 0;     // first element that is written, of ib
    std::uint32_t n = 0;      // load, store: bytes; gpeu: elements
    std::uint32_t dst = 0;    // offsets of elements in the piece of memory; load and store: dst
    std::uint32_t a = 0;
    std::uint32_t b = 0;
    union {
        std::uint64_t address;    // load, store; call: of the SEQ_NR
        std::uint64_t value;      // wait
        std::uint64_t immediate;  // gpeu
    };
    Cycle duration = 0;       // mvm, gpeu
    GpeuFunction gpeu = nullptr;
};

// The operations that a core executes, from its entry on.
std::vector<Operation> decode_program(const Image &image, const CoreImage &core, const BufferLayout &layout);

}  // namespace cim
