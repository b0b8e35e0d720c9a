// The wires of one AXI4 interface, which cocotbext-axi drives from both sides.
`timescale 1ns / 1ns

module axi_wires #(parameter BYTES = 4) (
    input clk,
    input rst,

    input [7:0] awid, arid, bid, rid,
    input [31:0] awaddr, araddr,
    input [7:0] awlen, arlen,
    input [2:0] awsize, arsize, awprot, arprot,
    input [1:0] awburst, arburst, bresp, rresp,
    input awlock, arlock,
    input [3:0] awcache, arcache,
    input [8*BYTES-1:0] wdata, rdata,
    input [BYTES-1:0] wstrb,
    input wlast, rlast,
    input awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready
);
endmodule
