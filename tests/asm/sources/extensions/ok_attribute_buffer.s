# Loads and stores that the memory counts.
.mode i8
.extension attribute_buffer
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1                         #= 0100010001000100010001000100010001000100010001000100010001000100
.text
  take pb[0:4], x                        #= 8700180000000000 ADDRESS(0: x+0)
  take ib[2:3], 0xFFFF_FFFF              #= 07041000ffffffff
  put x + 16, ob[0:4], 1                 #= 4800180000000000 ADDRESS(0: x+16)
  put 0, rb[0:1], 8                      #= c80000e000000000
.region x, i32, [8]
