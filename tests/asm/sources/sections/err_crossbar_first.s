.crossbar rows=1, columns=1
  .half 1
.region r, i8, [1]
  .byte 999
#! err_crossbar_first.s:1:1: error: .crossbar must come after .core
#! err_crossbar_first.s:4:9: error: .byte is 999, must be -128 to 255
