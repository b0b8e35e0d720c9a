/* Instruction set cim, version 1.0.
   Generated from spec/isa.toml by `cim-isa export c`; do not edit. */
#ifndef CIM_ISA_H
#define CIM_ISA_H

#include <stdint.h>

#define CIM_ISA_VERSION "1.0"
#define CIM_WORD_BITS 64

#define CIM_BUFFER_IB 0
#define CIM_BUFFER_OB 1
#define CIM_BUFFER_PB 2
#define CIM_BUFFER_RB 3

#define CIM_MEMORY_OPCODE_LSB 0
#define CIM_MEMORY_OPCODE_WIDTH 6
#define CIM_MEMORY_BUFFER_LSB 6
#define CIM_MEMORY_BUFFER_WIDTH 3
#define CIM_MEMORY_LO_LSB 9
#define CIM_MEMORY_LO_WIDTH 10
#define CIM_MEMORY_LAST_LSB 19
#define CIM_MEMORY_LAST_WIDTH 10
#define CIM_MEMORY_ADDRESS_LSB 32
#define CIM_MEMORY_ADDRESS_WIDTH 32
#define CIM_PLAIN_OPCODE_LSB 0
#define CIM_PLAIN_OPCODE_WIDTH 6
#define CIM_GPEU_OPCODE_LSB 0
#define CIM_GPEU_OPCODE_WIDTH 6
#define CIM_GPEU_SUB_LSB 6
#define CIM_GPEU_SUB_WIDTH 5
#define CIM_GPEU_DST_LSB 11
#define CIM_GPEU_DST_WIDTH 3
#define CIM_GPEU_A_LSB 14
#define CIM_GPEU_A_WIDTH 3
#define CIM_GPEU_B_LSB 17
#define CIM_GPEU_B_WIDTH 3
#define CIM_GPEU_LAST_LSB 20
#define CIM_GPEU_LAST_WIDTH 10
#define CIM_GPEU_IMM_LSB 32
#define CIM_GPEU_IMM_WIDTH 32
#define CIM_CORE_OPCODE_LSB 0
#define CIM_CORE_OPCODE_WIDTH 6
#define CIM_CORE_CORE_LSB 32
#define CIM_CORE_CORE_WIDTH 16
#define CIM_VALUE_OPCODE_LSB 0
#define CIM_VALUE_OPCODE_WIDTH 6
#define CIM_VALUE_VALUE_LSB 32
#define CIM_VALUE_VALUE_WIDTH 32
#define CIM_COUNTED_OPCODE_LSB 0
#define CIM_COUNTED_OPCODE_WIDTH 6
#define CIM_COUNTED_BUFFER_LSB 6
#define CIM_COUNTED_BUFFER_WIDTH 3
#define CIM_COUNTED_LO_LSB 9
#define CIM_COUNTED_LO_WIDTH 10
#define CIM_COUNTED_LAST_LSB 19
#define CIM_COUNTED_LAST_WIDTH 10
#define CIM_COUNTED_READERS_LSB 29
#define CIM_COUNTED_READERS_WIDTH 3
#define CIM_COUNTED_ADDRESS_LSB 32
#define CIM_COUNTED_ADDRESS_WIDTH 32

/* load BUFFER[LO:HI], ADDRESS */
#define CIM_LOAD_MATCH UINT64_C(0x0000000000000001)
#define CIM_LOAD_MASK  UINT64_C(0x00000000e000003f)
/* store ADDRESS, BUFFER[LO:HI] */
#define CIM_STORE_MATCH UINT64_C(0x0000000000000002)
#define CIM_STORE_MASK  UINT64_C(0x00000000e000003f)
/* mvm */
#define CIM_MVM_MATCH UINT64_C(0x0000000000000003)
#define CIM_MVM_MASK  UINT64_C(0xffffffffffffffff)
/* gpeu.mov DST, A[, len=LEN] */
#define CIM_GPEU_MOV_MATCH UINT64_C(0x0000000000000004)
#define CIM_GPEU_MOV_MASK  UINT64_C(0xffffffffc00e07ff)
/* gpeu.clr DST[, len=LEN] */
#define CIM_GPEU_CLR_MATCH UINT64_C(0x0000000000000044)
#define CIM_GPEU_CLR_MASK  UINT64_C(0xffffffffc00fc7ff)
/* gpeu.add DST, A, B[, len=LEN] */
#define CIM_GPEU_ADD_MATCH UINT64_C(0x0000000000000084)
#define CIM_GPEU_ADD_MASK  UINT64_C(0xffffffffc00007ff)
/* gpeu.add DST, A, IMM[, len=LEN] */
#define CIM_GPEU_ADD_IMM_MATCH UINT64_C(0x00000000000000c4)
#define CIM_GPEU_ADD_IMM_MASK  UINT64_C(0x00000000c00e07ff)
/* gpeu.sub DST, A, B[, len=LEN] */
#define CIM_GPEU_SUB_MATCH UINT64_C(0x0000000000000104)
#define CIM_GPEU_SUB_MASK  UINT64_C(0xffffffffc00007ff)
/* gpeu.mul DST, A, B[, len=LEN] */
#define CIM_GPEU_MUL_MATCH UINT64_C(0x0000000000000144)
#define CIM_GPEU_MUL_MASK  UINT64_C(0xffffffffc00007ff)
/* gpeu.mul DST, A, IMM[, len=LEN] */
#define CIM_GPEU_MUL_IMM_MATCH UINT64_C(0x0000000000000184)
#define CIM_GPEU_MUL_IMM_MASK  UINT64_C(0x00000000c00e07ff)
/* gpeu.max DST, A, B[, len=LEN] */
#define CIM_GPEU_MAX_MATCH UINT64_C(0x00000000000001c4)
#define CIM_GPEU_MAX_MASK  UINT64_C(0xffffffffc00007ff)
/* gpeu.max DST, A, IMM[, len=LEN] */
#define CIM_GPEU_MAX_IMM_MATCH UINT64_C(0x0000000000000204)
#define CIM_GPEU_MAX_IMM_MASK  UINT64_C(0x00000000c00e07ff)
/* gpeu.min DST, A, B[, len=LEN] */
#define CIM_GPEU_MIN_MATCH UINT64_C(0x0000000000000244)
#define CIM_GPEU_MIN_MASK  UINT64_C(0xffffffffc00007ff)
/* gpeu.min DST, A, IMM[, len=LEN] */
#define CIM_GPEU_MIN_IMM_MATCH UINT64_C(0x0000000000000284)
#define CIM_GPEU_MIN_IMM_MASK  UINT64_C(0x00000000c00e07ff)
/* gpeu.relu DST, A[, len=LEN] */
#define CIM_GPEU_RELU_MATCH UINT64_C(0x00000000000002c4)
#define CIM_GPEU_RELU_MASK  UINT64_C(0xffffffffc00e07ff)
/* gpeu.lrelu DST, A[, len=LEN] */
#define CIM_GPEU_LRELU_MATCH UINT64_C(0x0000000000000304)
#define CIM_GPEU_LRELU_MASK  UINT64_C(0xffffffffc00e07ff)
/* gpeu.requant DST, A[, len=LEN] */
#define CIM_GPEU_REQUANT_MATCH UINT64_C(0x0000000000000344)
#define CIM_GPEU_REQUANT_MASK  UINT64_C(0xffffffffc00e07ff)
/* call CORE */
#define CIM_CALL_MATCH UINT64_C(0x0000000000000005)
#define CIM_CALL_MASK  UINT64_C(0xffff0000ffffffff)
/* wait VALUE */
#define CIM_WAIT_MATCH UINT64_C(0x0000000000000006)
#define CIM_WAIT_MASK  UINT64_C(0x00000000ffffffff)
/* take BUFFER[LO:HI], ADDRESS */
#define CIM_TAKE_MATCH UINT64_C(0x0000000000000007)
#define CIM_TAKE_MASK  UINT64_C(0x00000000e000003f)
/* put ADDRESS, BUFFER[LO:HI], READERS */
#define CIM_PUT_MATCH UINT64_C(0x0000000000000008)
#define CIM_PUT_MASK  UINT64_C(0x000000000000003f)

enum cim_kind {
    CIM_ILLEGAL = -1,
    CIM_LOAD = 0,
    CIM_STORE = 1,
    CIM_MVM = 2,
    CIM_GPEU_MOV = 3,
    CIM_GPEU_CLR = 4,
    CIM_GPEU_ADD = 5,
    CIM_GPEU_ADD_IMM = 6,
    CIM_GPEU_SUB = 7,
    CIM_GPEU_MUL = 8,
    CIM_GPEU_MUL_IMM = 9,
    CIM_GPEU_MAX = 10,
    CIM_GPEU_MAX_IMM = 11,
    CIM_GPEU_MIN = 12,
    CIM_GPEU_MIN_IMM = 13,
    CIM_GPEU_RELU = 14,
    CIM_GPEU_LRELU = 15,
    CIM_GPEU_REQUANT = 16,
    CIM_CALL = 17,
    CIM_WAIT = 18,
    CIM_TAKE = 19,
    CIM_PUT = 20,
};

/* Operands that an instruction does not have are 0. */
struct cim_instruction {
    enum cim_kind kind;
    int64_t a;
    int64_t address;
    int64_t b;
    int64_t buffer;
    int64_t core;
    int64_t dst;
    int64_t hi;
    int64_t imm;
    int64_t len;
    int64_t lo;
    int64_t readers;
    int64_t value;
};

static inline struct cim_instruction cim_decode(uint64_t word)
{
    struct cim_instruction out = {CIM_ILLEGAL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    if ((word & CIM_LOAD_MASK) == CIM_LOAD_MATCH) {
        int64_t buffer = (int64_t)((word >> 6) & UINT64_C(0x7));
        int64_t lo = (int64_t)((word >> 9) & UINT64_C(0x3ff));
        int64_t hi = (int64_t)((word >> 19) & UINT64_C(0x3ff)) + 1;
        int64_t address = (int64_t)((word >> 32) & UINT64_C(0xffffffff));
        if (!(buffer < 4 && lo < hi))
            return out;
        out.kind = CIM_LOAD;
        out.buffer = buffer;
        out.lo = lo;
        out.hi = hi;
        out.address = address;
        return out;
    }
    if ((word & CIM_STORE_MASK) == CIM_STORE_MATCH) {
        int64_t address = (int64_t)((word >> 32) & UINT64_C(0xffffffff));
        int64_t buffer = (int64_t)((word >> 6) & UINT64_C(0x7));
        int64_t lo = (int64_t)((word >> 9) & UINT64_C(0x3ff));
        int64_t hi = (int64_t)((word >> 19) & UINT64_C(0x3ff)) + 1;
        if (!(buffer < 4 && lo < hi))
            return out;
        out.kind = CIM_STORE;
        out.address = address;
        out.buffer = buffer;
        out.lo = lo;
        out.hi = hi;
        return out;
    }
    if ((word & CIM_MVM_MASK) == CIM_MVM_MATCH) {
        out.kind = CIM_MVM;
        return out;
    }
    if ((word & CIM_GPEU_MOV_MASK) == CIM_GPEU_MOV_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4))
            return out;
        out.kind = CIM_GPEU_MOV;
        out.dst = dst;
        out.a = a;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_CLR_MASK) == CIM_GPEU_CLR_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4))
            return out;
        out.kind = CIM_GPEU_CLR;
        out.dst = dst;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_ADD_MASK) == CIM_GPEU_ADD_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t b = (int64_t)((word >> 17) & UINT64_C(0x7));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4 && b < 4))
            return out;
        out.kind = CIM_GPEU_ADD;
        out.dst = dst;
        out.a = a;
        out.b = b;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_ADD_IMM_MASK) == CIM_GPEU_ADD_IMM_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t imm = (int64_t)((word >> 32) & UINT64_C(0xffffffff));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4))
            return out;
        out.kind = CIM_GPEU_ADD_IMM;
        out.dst = dst;
        out.a = a;
        out.imm = imm;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_SUB_MASK) == CIM_GPEU_SUB_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t b = (int64_t)((word >> 17) & UINT64_C(0x7));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4 && b < 4))
            return out;
        out.kind = CIM_GPEU_SUB;
        out.dst = dst;
        out.a = a;
        out.b = b;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_MUL_MASK) == CIM_GPEU_MUL_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t b = (int64_t)((word >> 17) & UINT64_C(0x7));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4 && b < 4))
            return out;
        out.kind = CIM_GPEU_MUL;
        out.dst = dst;
        out.a = a;
        out.b = b;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_MUL_IMM_MASK) == CIM_GPEU_MUL_IMM_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t imm = (int64_t)((word >> 32) & UINT64_C(0xffffffff));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4))
            return out;
        out.kind = CIM_GPEU_MUL_IMM;
        out.dst = dst;
        out.a = a;
        out.imm = imm;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_MAX_MASK) == CIM_GPEU_MAX_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t b = (int64_t)((word >> 17) & UINT64_C(0x7));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4 && b < 4))
            return out;
        out.kind = CIM_GPEU_MAX;
        out.dst = dst;
        out.a = a;
        out.b = b;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_MAX_IMM_MASK) == CIM_GPEU_MAX_IMM_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t imm = (int64_t)((word >> 32) & UINT64_C(0xffffffff));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4))
            return out;
        out.kind = CIM_GPEU_MAX_IMM;
        out.dst = dst;
        out.a = a;
        out.imm = imm;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_MIN_MASK) == CIM_GPEU_MIN_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t b = (int64_t)((word >> 17) & UINT64_C(0x7));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4 && b < 4))
            return out;
        out.kind = CIM_GPEU_MIN;
        out.dst = dst;
        out.a = a;
        out.b = b;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_MIN_IMM_MASK) == CIM_GPEU_MIN_IMM_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t imm = (int64_t)((word >> 32) & UINT64_C(0xffffffff));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4))
            return out;
        out.kind = CIM_GPEU_MIN_IMM;
        out.dst = dst;
        out.a = a;
        out.imm = imm;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_RELU_MASK) == CIM_GPEU_RELU_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4))
            return out;
        out.kind = CIM_GPEU_RELU;
        out.dst = dst;
        out.a = a;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_LRELU_MASK) == CIM_GPEU_LRELU_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4))
            return out;
        out.kind = CIM_GPEU_LRELU;
        out.dst = dst;
        out.a = a;
        out.len = len;
        return out;
    }
    if ((word & CIM_GPEU_REQUANT_MASK) == CIM_GPEU_REQUANT_MATCH) {
        int64_t dst = (int64_t)((word >> 11) & UINT64_C(0x7));
        int64_t a = (int64_t)((word >> 14) & UINT64_C(0x7));
        int64_t len = (int64_t)((word >> 20) & UINT64_C(0x3ff)) + 1;
        if (!(dst < 4 && a < 4))
            return out;
        out.kind = CIM_GPEU_REQUANT;
        out.dst = dst;
        out.a = a;
        out.len = len;
        return out;
    }
    if ((word & CIM_CALL_MASK) == CIM_CALL_MATCH) {
        int64_t core = (int64_t)((word >> 32) & UINT64_C(0xffff));
        out.kind = CIM_CALL;
        out.core = core;
        return out;
    }
    if ((word & CIM_WAIT_MASK) == CIM_WAIT_MATCH) {
        int64_t value = (int64_t)((word >> 32) & UINT64_C(0xffffffff));
        out.kind = CIM_WAIT;
        out.value = value;
        return out;
    }
    if ((word & CIM_TAKE_MASK) == CIM_TAKE_MATCH) {
        int64_t buffer = (int64_t)((word >> 6) & UINT64_C(0x7));
        int64_t lo = (int64_t)((word >> 9) & UINT64_C(0x3ff));
        int64_t hi = (int64_t)((word >> 19) & UINT64_C(0x3ff)) + 1;
        int64_t address = (int64_t)((word >> 32) & UINT64_C(0xffffffff));
        if (!(buffer < 4 && lo < hi))
            return out;
        out.kind = CIM_TAKE;
        out.buffer = buffer;
        out.lo = lo;
        out.hi = hi;
        out.address = address;
        return out;
    }
    if ((word & CIM_PUT_MASK) == CIM_PUT_MATCH) {
        int64_t address = (int64_t)((word >> 32) & UINT64_C(0xffffffff));
        int64_t buffer = (int64_t)((word >> 6) & UINT64_C(0x7));
        int64_t lo = (int64_t)((word >> 9) & UINT64_C(0x3ff));
        int64_t hi = (int64_t)((word >> 19) & UINT64_C(0x3ff)) + 1;
        int64_t readers = (int64_t)((word >> 29) & UINT64_C(0x7)) + 1;
        if (!(buffer < 4 && lo < hi))
            return out;
        out.kind = CIM_PUT;
        out.address = address;
        out.buffer = buffer;
        out.lo = lo;
        out.hi = hi;
        out.readers = readers;
        return out;
    }
    return out;
}

static inline uint64_t cim_encode_load(int64_t buffer, int64_t lo, int64_t hi, int64_t address)
{
    return (CIM_LOAD_MATCH)
        | (((uint64_t)buffer & UINT64_C(0x7)) << 6)
        | (((uint64_t)lo & UINT64_C(0x3ff)) << 9)
        | (((uint64_t)(hi - 1) & UINT64_C(0x3ff)) << 19)
        | (((uint64_t)address & UINT64_C(0xffffffff)) << 32);
}

static inline uint64_t cim_encode_store(int64_t address, int64_t buffer, int64_t lo, int64_t hi)
{
    return (CIM_STORE_MATCH)
        | (((uint64_t)address & UINT64_C(0xffffffff)) << 32)
        | (((uint64_t)buffer & UINT64_C(0x7)) << 6)
        | (((uint64_t)lo & UINT64_C(0x3ff)) << 9)
        | (((uint64_t)(hi - 1) & UINT64_C(0x3ff)) << 19);
}

static inline uint64_t cim_encode_mvm(void)
{
    return CIM_MVM_MATCH;
}

static inline uint64_t cim_encode_gpeu_mov(int64_t dst, int64_t a, int64_t len)
{
    return (CIM_GPEU_MOV_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_clr(int64_t dst, int64_t len)
{
    return (CIM_GPEU_CLR_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_add(int64_t dst, int64_t a, int64_t b, int64_t len)
{
    return (CIM_GPEU_ADD_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)b & UINT64_C(0x7)) << 17)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_add_imm(int64_t dst, int64_t a, int64_t imm, int64_t len)
{
    return (CIM_GPEU_ADD_IMM_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)imm & UINT64_C(0xffffffff)) << 32)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_sub(int64_t dst, int64_t a, int64_t b, int64_t len)
{
    return (CIM_GPEU_SUB_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)b & UINT64_C(0x7)) << 17)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_mul(int64_t dst, int64_t a, int64_t b, int64_t len)
{
    return (CIM_GPEU_MUL_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)b & UINT64_C(0x7)) << 17)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_mul_imm(int64_t dst, int64_t a, int64_t imm, int64_t len)
{
    return (CIM_GPEU_MUL_IMM_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)imm & UINT64_C(0xffffffff)) << 32)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_max(int64_t dst, int64_t a, int64_t b, int64_t len)
{
    return (CIM_GPEU_MAX_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)b & UINT64_C(0x7)) << 17)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_max_imm(int64_t dst, int64_t a, int64_t imm, int64_t len)
{
    return (CIM_GPEU_MAX_IMM_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)imm & UINT64_C(0xffffffff)) << 32)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_min(int64_t dst, int64_t a, int64_t b, int64_t len)
{
    return (CIM_GPEU_MIN_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)b & UINT64_C(0x7)) << 17)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_min_imm(int64_t dst, int64_t a, int64_t imm, int64_t len)
{
    return (CIM_GPEU_MIN_IMM_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)imm & UINT64_C(0xffffffff)) << 32)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_relu(int64_t dst, int64_t a, int64_t len)
{
    return (CIM_GPEU_RELU_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_lrelu(int64_t dst, int64_t a, int64_t len)
{
    return (CIM_GPEU_LRELU_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_gpeu_requant(int64_t dst, int64_t a, int64_t len)
{
    return (CIM_GPEU_REQUANT_MATCH)
        | (((uint64_t)dst & UINT64_C(0x7)) << 11)
        | (((uint64_t)a & UINT64_C(0x7)) << 14)
        | (((uint64_t)(len - 1) & UINT64_C(0x3ff)) << 20);
}

static inline uint64_t cim_encode_call(int64_t core)
{
    return (CIM_CALL_MATCH)
        | (((uint64_t)core & UINT64_C(0xffff)) << 32);
}

static inline uint64_t cim_encode_wait(int64_t value)
{
    return (CIM_WAIT_MATCH)
        | (((uint64_t)value & UINT64_C(0xffffffff)) << 32);
}

static inline uint64_t cim_encode_take(int64_t buffer, int64_t lo, int64_t hi, int64_t address)
{
    return (CIM_TAKE_MATCH)
        | (((uint64_t)buffer & UINT64_C(0x7)) << 6)
        | (((uint64_t)lo & UINT64_C(0x3ff)) << 9)
        | (((uint64_t)(hi - 1) & UINT64_C(0x3ff)) << 19)
        | (((uint64_t)address & UINT64_C(0xffffffff)) << 32);
}

static inline uint64_t cim_encode_put(int64_t address, int64_t buffer, int64_t lo, int64_t hi, int64_t readers)
{
    return (CIM_PUT_MATCH)
        | (((uint64_t)address & UINT64_C(0xffffffff)) << 32)
        | (((uint64_t)buffer & UINT64_C(0x7)) << 6)
        | (((uint64_t)lo & UINT64_C(0x3ff)) << 9)
        | (((uint64_t)(hi - 1) & UINT64_C(0x3ff)) << 19)
        | (((uint64_t)(readers - 1) & UINT64_C(0x7)) << 29);
}

#endif
