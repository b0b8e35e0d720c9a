#include "program.h"

#include <algorithm>

#include "burst.h"

namespace cim {
namespace {

constexpr std::uint32_t ALIGNMENT = 64;

Operation fault(Exception exception) {
    Operation out{};
    out.kind = Class::Fault;
    out.exception = exception;
    return out;
}

struct Decoder {
    const Image &image;
    const CoreImage &core;
    const BufferLayout &layout;

    Operation memory_access(const cim_instruction &in) const {
        if (in.hi > layout.length[in.buffer]) return fault(Exception::BufferRange);
        const std::uint32_t width = element_bytes(layout.type[in.buffer]);
        const std::uint64_t bytes = static_cast<std::uint64_t>(in.hi - in.lo) * width;
        if (static_cast<std::uint64_t>(in.address) + bytes > image.memory_bytes)
            return fault(Exception::MemoryRange);
        Operation out{};
        out.kind = in.kind == CIM_LOAD ? Class::Load : Class::Store;
        out.writes_ib = in.kind == CIM_LOAD && in.buffer == CIM_BUFFER_IB;
        out.lo = static_cast<std::uint32_t>(in.lo);
        out.n = static_cast<std::uint32_t>(bytes);
        out.dst = layout.offset[in.buffer] + out.lo * width;
        out.address = static_cast<std::uint64_t>(in.address);
        return out;
    }

    Operation mvm() const {
        if (core.rows == 0) return fault(Exception::NoCrossbar);
        Operation out{};
        out.kind = Class::Mvm;
        out.dst = layout.offset[CIM_BUFFER_OB];
        out.a = layout.offset[CIM_BUFFER_IB];
        out.duration = image.machine.mvm_cycles;
        return out;
    }

    Operation gpeu(const cim_instruction &in) const {
        const bool floats = image.mode == Mode::F32;
        if ((in.kind == CIM_GPEU_LRELU && !floats) || (in.kind == CIM_GPEU_REQUANT && floats))
            return fault(Exception::IllegalInstruction);
        const bool by_parameters = in.kind == CIM_GPEU_LRELU || in.kind == CIM_GPEU_REQUANT;
        const bool has_a = in.kind != CIM_GPEU_CLR;
        const bool has_b = in.kind == CIM_GPEU_ADD || in.kind == CIM_GPEU_SUB || in.kind == CIM_GPEU_MUL ||
                           in.kind == CIM_GPEU_MAX || in.kind == CIM_GPEU_MIN;
        if (in.len > layout.length[in.dst] || (has_a && in.len > layout.length[in.a]) ||
            (has_b && in.len > layout.length[in.b]) ||
            (by_parameters && in.len > layout.length[CIM_BUFFER_OB]))
            return fault(Exception::BufferRange);
        Operation out{};
        out.kind = Class::Gpeu;
        out.writes_ib = in.dst == CIM_BUFFER_IB;
        out.n = static_cast<std::uint32_t>(in.len);
        out.dst = layout.offset[in.dst];
        out.a = layout.offset[in.a];
        out.b = layout.offset[in.b];
        out.immediate = static_cast<std::uint32_t>(in.imm);
        out.duration = image.machine.gpeu_latency_cycles + ceil_div(out.n, image.machine.gpeu_lanes);
        out.gpeu = gpeu_function(in.kind, layout.type[in.dst], layout.type[in.a], layout.type[in.b]);
        return out;
    }

    Operation call(const cim_instruction &in) const {
        const auto called = std::lower_bound(image.cores.begin(), image.cores.end(), in.core,
                                             [](const CoreImage &one, std::int64_t number) { return one.number < number; });
        if (called == image.cores.end() || called->number != in.core) return fault(Exception::NoSuchCore);
        Operation out{};
        out.kind = Class::Call;
        out.address = REGISTERS + REGISTER_BYTES * static_cast<std::uint64_t>(called - image.cores.begin());
        return out;
    }

    Operation operator()(std::uint64_t word) const {
        const cim_instruction in = cim_decode(word);
        switch (in.kind) {
            case CIM_TAKE:  // of an extension: no image that names one is read
            case CIM_PUT:
            case CIM_ILLEGAL: return fault(Exception::IllegalInstruction);
            case CIM_LOAD:
            case CIM_STORE: return memory_access(in);
            case CIM_MVM: return mvm();
            case CIM_CALL: return call(in);
            case CIM_WAIT: {
                Operation out{};
                out.kind = Class::Wait;
                out.value = static_cast<std::uint64_t>(in.value);
                return out;
            }
            default: return gpeu(in);
        }
    }
};

}  // namespace

const char *name_of(Exception exception) {
    switch (exception) {
        case Exception::None: return "none";
        case Exception::IllegalInstruction: return "illegal_instruction";
        case Exception::BufferRange: return "buffer_range";
        case Exception::MemoryRange: return "memory_range";
        case Exception::NoCrossbar: return "no_crossbar";
        case Exception::RowsNotLoaded: return "rows_not_loaded";
        case Exception::NoSuchCore: return "no_such_core";
    }
    return "";
}

BufferLayout::BufferLayout(const Image &image) {
    type[CIM_BUFFER_IB] = image.ifm;
    type[CIM_BUFFER_OB] = type[CIM_BUFFER_PB] = image.partial_sum();
    type[CIM_BUFFER_RB] = image.ofm;
    bytes = 0;
    for (int k = 0; k < 4; ++k) {
        length[k] = k == CIM_BUFFER_IB ? image.machine.inputs : image.machine.outputs;
        offset[k] = bytes;
        bytes += static_cast<std::uint32_t>(ceil_div(length[k] * element_bytes(type[k]), ALIGNMENT)) * ALIGNMENT;
    }
}

std::vector<Operation> decode_program(const Image &image, const CoreImage &core, const BufferLayout &layout) {
    const Decoder decode{image, core, layout};
    std::vector<Operation> operations;
    operations.reserve(core.program.size() - core.first());
    for (std::size_t k = core.first(); k < core.program.size(); ++k)
        operations.push_back(decode(core.program[k]));
    return operations;
}

}  // namespace cim
