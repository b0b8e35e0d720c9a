// Instruction set cim, version 1.0.
// Generated from spec/isa.toml by `cim-isa export sv`; do not edit.
package cim_isa_pkg;

  localparam int CIM_WORD_BITS = 64;

  localparam logic [2:0] CIM_BUFFER_IB = 3'd0;
  localparam logic [2:0] CIM_BUFFER_OB = 3'd1;
  localparam logic [2:0] CIM_BUFFER_PB = 3'd2;
  localparam logic [2:0] CIM_BUFFER_RB = 3'd3;

  localparam int CIM_MEMORY_OPCODE_LSB = 0;
  localparam int CIM_MEMORY_OPCODE_MSB = 5;
  localparam int CIM_MEMORY_BUFFER_LSB = 6;
  localparam int CIM_MEMORY_BUFFER_MSB = 8;
  localparam int CIM_MEMORY_LO_LSB = 9;
  localparam int CIM_MEMORY_LO_MSB = 18;
  localparam int CIM_MEMORY_LAST_LSB = 19;
  localparam int CIM_MEMORY_LAST_MSB = 28;
  localparam int CIM_MEMORY_ADDRESS_LSB = 32;
  localparam int CIM_MEMORY_ADDRESS_MSB = 63;
  localparam int CIM_PLAIN_OPCODE_LSB = 0;
  localparam int CIM_PLAIN_OPCODE_MSB = 5;
  localparam int CIM_GPEU_OPCODE_LSB = 0;
  localparam int CIM_GPEU_OPCODE_MSB = 5;
  localparam int CIM_GPEU_SUB_LSB = 6;
  localparam int CIM_GPEU_SUB_MSB = 10;
  localparam int CIM_GPEU_DST_LSB = 11;
  localparam int CIM_GPEU_DST_MSB = 13;
  localparam int CIM_GPEU_A_LSB = 14;
  localparam int CIM_GPEU_A_MSB = 16;
  localparam int CIM_GPEU_B_LSB = 17;
  localparam int CIM_GPEU_B_MSB = 19;
  localparam int CIM_GPEU_LAST_LSB = 20;
  localparam int CIM_GPEU_LAST_MSB = 29;
  localparam int CIM_GPEU_IMM_LSB = 32;
  localparam int CIM_GPEU_IMM_MSB = 63;
  localparam int CIM_CORE_OPCODE_LSB = 0;
  localparam int CIM_CORE_OPCODE_MSB = 5;
  localparam int CIM_CORE_CORE_LSB = 32;
  localparam int CIM_CORE_CORE_MSB = 47;
  localparam int CIM_VALUE_OPCODE_LSB = 0;
  localparam int CIM_VALUE_OPCODE_MSB = 5;
  localparam int CIM_VALUE_VALUE_LSB = 32;
  localparam int CIM_VALUE_VALUE_MSB = 63;
  localparam int CIM_COUNTED_OPCODE_LSB = 0;
  localparam int CIM_COUNTED_OPCODE_MSB = 5;
  localparam int CIM_COUNTED_BUFFER_LSB = 6;
  localparam int CIM_COUNTED_BUFFER_MSB = 8;
  localparam int CIM_COUNTED_LO_LSB = 9;
  localparam int CIM_COUNTED_LO_MSB = 18;
  localparam int CIM_COUNTED_LAST_LSB = 19;
  localparam int CIM_COUNTED_LAST_MSB = 28;
  localparam int CIM_COUNTED_READERS_LSB = 29;
  localparam int CIM_COUNTED_READERS_MSB = 31;
  localparam int CIM_COUNTED_ADDRESS_LSB = 32;
  localparam int CIM_COUNTED_ADDRESS_MSB = 63;

  // load BUFFER[LO:HI], ADDRESS
  localparam logic [63:0] CIM_LOAD_MATCH = 64'h0000000000000001;
  localparam logic [63:0] CIM_LOAD_MASK = 64'h00000000e000003f;
  // store ADDRESS, BUFFER[LO:HI]
  localparam logic [63:0] CIM_STORE_MATCH = 64'h0000000000000002;
  localparam logic [63:0] CIM_STORE_MASK = 64'h00000000e000003f;
  // mvm
  localparam logic [63:0] CIM_MVM_MATCH = 64'h0000000000000003;
  localparam logic [63:0] CIM_MVM_MASK = 64'hffffffffffffffff;
  // gpeu.mov DST, A[, len=LEN]
  localparam logic [63:0] CIM_GPEU_MOV_MATCH = 64'h0000000000000004;
  localparam logic [63:0] CIM_GPEU_MOV_MASK = 64'hffffffffc00e07ff;
  // gpeu.clr DST[, len=LEN]
  localparam logic [63:0] CIM_GPEU_CLR_MATCH = 64'h0000000000000044;
  localparam logic [63:0] CIM_GPEU_CLR_MASK = 64'hffffffffc00fc7ff;
  // gpeu.add DST, A, B[, len=LEN]
  localparam logic [63:0] CIM_GPEU_ADD_MATCH = 64'h0000000000000084;
  localparam logic [63:0] CIM_GPEU_ADD_MASK = 64'hffffffffc00007ff;
  // gpeu.add DST, A, IMM[, len=LEN]
  localparam logic [63:0] CIM_GPEU_ADD_IMM_MATCH = 64'h00000000000000c4;
  localparam logic [63:0] CIM_GPEU_ADD_IMM_MASK = 64'h00000000c00e07ff;
  // gpeu.sub DST, A, B[, len=LEN]
  localparam logic [63:0] CIM_GPEU_SUB_MATCH = 64'h0000000000000104;
  localparam logic [63:0] CIM_GPEU_SUB_MASK = 64'hffffffffc00007ff;
  // gpeu.mul DST, A, B[, len=LEN]
  localparam logic [63:0] CIM_GPEU_MUL_MATCH = 64'h0000000000000144;
  localparam logic [63:0] CIM_GPEU_MUL_MASK = 64'hffffffffc00007ff;
  // gpeu.mul DST, A, IMM[, len=LEN]
  localparam logic [63:0] CIM_GPEU_MUL_IMM_MATCH = 64'h0000000000000184;
  localparam logic [63:0] CIM_GPEU_MUL_IMM_MASK = 64'h00000000c00e07ff;
  // gpeu.max DST, A, B[, len=LEN]
  localparam logic [63:0] CIM_GPEU_MAX_MATCH = 64'h00000000000001c4;
  localparam logic [63:0] CIM_GPEU_MAX_MASK = 64'hffffffffc00007ff;
  // gpeu.max DST, A, IMM[, len=LEN]
  localparam logic [63:0] CIM_GPEU_MAX_IMM_MATCH = 64'h0000000000000204;
  localparam logic [63:0] CIM_GPEU_MAX_IMM_MASK = 64'h00000000c00e07ff;
  // gpeu.min DST, A, B[, len=LEN]
  localparam logic [63:0] CIM_GPEU_MIN_MATCH = 64'h0000000000000244;
  localparam logic [63:0] CIM_GPEU_MIN_MASK = 64'hffffffffc00007ff;
  // gpeu.min DST, A, IMM[, len=LEN]
  localparam logic [63:0] CIM_GPEU_MIN_IMM_MATCH = 64'h0000000000000284;
  localparam logic [63:0] CIM_GPEU_MIN_IMM_MASK = 64'h00000000c00e07ff;
  // gpeu.relu DST, A[, len=LEN]
  localparam logic [63:0] CIM_GPEU_RELU_MATCH = 64'h00000000000002c4;
  localparam logic [63:0] CIM_GPEU_RELU_MASK = 64'hffffffffc00e07ff;
  // gpeu.lrelu DST, A[, len=LEN]
  localparam logic [63:0] CIM_GPEU_LRELU_MATCH = 64'h0000000000000304;
  localparam logic [63:0] CIM_GPEU_LRELU_MASK = 64'hffffffffc00e07ff;
  // gpeu.requant DST, A[, len=LEN]
  localparam logic [63:0] CIM_GPEU_REQUANT_MATCH = 64'h0000000000000344;
  localparam logic [63:0] CIM_GPEU_REQUANT_MASK = 64'hffffffffc00e07ff;
  // call CORE
  localparam logic [63:0] CIM_CALL_MATCH = 64'h0000000000000005;
  localparam logic [63:0] CIM_CALL_MASK = 64'hffff0000ffffffff;
  // wait VALUE
  localparam logic [63:0] CIM_WAIT_MATCH = 64'h0000000000000006;
  localparam logic [63:0] CIM_WAIT_MASK = 64'h00000000ffffffff;
  // take BUFFER[LO:HI], ADDRESS
  localparam logic [63:0] CIM_TAKE_MATCH = 64'h0000000000000007;
  localparam logic [63:0] CIM_TAKE_MASK = 64'h00000000e000003f;
  // put ADDRESS, BUFFER[LO:HI], READERS
  localparam logic [63:0] CIM_PUT_MATCH = 64'h0000000000000008;
  localparam logic [63:0] CIM_PUT_MASK = 64'h000000000000003f;

  typedef enum logic [4:0] {
    CIM_LOAD = 5'd0,
    CIM_STORE = 5'd1,
    CIM_MVM = 5'd2,
    CIM_GPEU_MOV = 5'd3,
    CIM_GPEU_CLR = 5'd4,
    CIM_GPEU_ADD = 5'd5,
    CIM_GPEU_ADD_IMM = 5'd6,
    CIM_GPEU_SUB = 5'd7,
    CIM_GPEU_MUL = 5'd8,
    CIM_GPEU_MUL_IMM = 5'd9,
    CIM_GPEU_MAX = 5'd10,
    CIM_GPEU_MAX_IMM = 5'd11,
    CIM_GPEU_MIN = 5'd12,
    CIM_GPEU_MIN_IMM = 5'd13,
    CIM_GPEU_RELU = 5'd14,
    CIM_GPEU_LRELU = 5'd15,
    CIM_GPEU_REQUANT = 5'd16,
    CIM_CALL = 5'd17,
    CIM_WAIT = 5'd18,
    CIM_TAKE = 5'd19,
    CIM_PUT = 5'd20,
    CIM_ILLEGAL = 5'd21
  } cim_kind_t;

  function automatic cim_kind_t cim_decode(input logic [63:0] word);
    cim_decode = CIM_ILLEGAL;
    if ((word & CIM_LOAD_MASK) == CIM_LOAD_MATCH && word[8:6] < 4 && ({1'b0, word[18:9]} < {1'b0, word[28:19]} + 11'd1))
      cim_decode = CIM_LOAD;
    if ((word & CIM_STORE_MASK) == CIM_STORE_MATCH && word[8:6] < 4 && ({1'b0, word[18:9]} < {1'b0, word[28:19]} + 11'd1))
      cim_decode = CIM_STORE;
    if ((word & CIM_MVM_MASK) == CIM_MVM_MATCH)
      cim_decode = CIM_MVM;
    if ((word & CIM_GPEU_MOV_MASK) == CIM_GPEU_MOV_MATCH && word[13:11] < 4 && word[16:14] < 4)
      cim_decode = CIM_GPEU_MOV;
    if ((word & CIM_GPEU_CLR_MASK) == CIM_GPEU_CLR_MATCH && word[13:11] < 4)
      cim_decode = CIM_GPEU_CLR;
    if ((word & CIM_GPEU_ADD_MASK) == CIM_GPEU_ADD_MATCH && word[13:11] < 4 && word[16:14] < 4 && word[19:17] < 4)
      cim_decode = CIM_GPEU_ADD;
    if ((word & CIM_GPEU_ADD_IMM_MASK) == CIM_GPEU_ADD_IMM_MATCH && word[13:11] < 4 && word[16:14] < 4)
      cim_decode = CIM_GPEU_ADD_IMM;
    if ((word & CIM_GPEU_SUB_MASK) == CIM_GPEU_SUB_MATCH && word[13:11] < 4 && word[16:14] < 4 && word[19:17] < 4)
      cim_decode = CIM_GPEU_SUB;
    if ((word & CIM_GPEU_MUL_MASK) == CIM_GPEU_MUL_MATCH && word[13:11] < 4 && word[16:14] < 4 && word[19:17] < 4)
      cim_decode = CIM_GPEU_MUL;
    if ((word & CIM_GPEU_MUL_IMM_MASK) == CIM_GPEU_MUL_IMM_MATCH && word[13:11] < 4 && word[16:14] < 4)
      cim_decode = CIM_GPEU_MUL_IMM;
    if ((word & CIM_GPEU_MAX_MASK) == CIM_GPEU_MAX_MATCH && word[13:11] < 4 && word[16:14] < 4 && word[19:17] < 4)
      cim_decode = CIM_GPEU_MAX;
    if ((word & CIM_GPEU_MAX_IMM_MASK) == CIM_GPEU_MAX_IMM_MATCH && word[13:11] < 4 && word[16:14] < 4)
      cim_decode = CIM_GPEU_MAX_IMM;
    if ((word & CIM_GPEU_MIN_MASK) == CIM_GPEU_MIN_MATCH && word[13:11] < 4 && word[16:14] < 4 && word[19:17] < 4)
      cim_decode = CIM_GPEU_MIN;
    if ((word & CIM_GPEU_MIN_IMM_MASK) == CIM_GPEU_MIN_IMM_MATCH && word[13:11] < 4 && word[16:14] < 4)
      cim_decode = CIM_GPEU_MIN_IMM;
    if ((word & CIM_GPEU_RELU_MASK) == CIM_GPEU_RELU_MATCH && word[13:11] < 4 && word[16:14] < 4)
      cim_decode = CIM_GPEU_RELU;
    if ((word & CIM_GPEU_LRELU_MASK) == CIM_GPEU_LRELU_MATCH && word[13:11] < 4 && word[16:14] < 4)
      cim_decode = CIM_GPEU_LRELU;
    if ((word & CIM_GPEU_REQUANT_MASK) == CIM_GPEU_REQUANT_MATCH && word[13:11] < 4 && word[16:14] < 4)
      cim_decode = CIM_GPEU_REQUANT;
    if ((word & CIM_CALL_MASK) == CIM_CALL_MATCH)
      cim_decode = CIM_CALL;
    if ((word & CIM_WAIT_MASK) == CIM_WAIT_MATCH)
      cim_decode = CIM_WAIT;
    if ((word & CIM_TAKE_MASK) == CIM_TAKE_MATCH && word[8:6] < 4 && ({1'b0, word[18:9]} < {1'b0, word[28:19]} + 11'd1))
      cim_decode = CIM_TAKE;
    if ((word & CIM_PUT_MASK) == CIM_PUT_MATCH && word[8:6] < 4 && ({1'b0, word[18:9]} < {1'b0, word[28:19]} + 11'd1))
      cim_decode = CIM_PUT;
  endfunction

endpackage
