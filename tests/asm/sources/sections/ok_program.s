# Everything that is not bytes.
.machine "default", "core.crossbar=8x8", "bus.width_bytes=8"
.mode i8, ifm=i8, ofm=u8
.file "other.s"
.line 100
.layer name="x"
.region x, i8, [2, 4], role=ifm, layout="HWC", scale=0.5, zero_point=-3, align=128
.region y, u8, [4], role=ofm
.core a, 7, hg=1, vg=2
.crossbar rows=1, columns=2
  .half 1, -2                            #= 0100feff
.param offset, 1, -2
.param y_zp, 3
.param mul_pos, 0.5
.text
  mvm                                    #= 0300000000000000
.core b, 8
.crossbar rows=1, columns=1
  .half 256                              #= 0001
.param offset, 1
.data
  .word 1, x                             #= 0100000000000000 ABS32(4: x+0)
.bss
  .space 8                               #= 0000000000000000
.section .mine
  .asciz "s"                             #= 7300
.section .more, "aw", nobits
  .zero 4                                #= 00000000
.text
  wait 1                                 #= 0600000001000000
  .quad 3                                #= 0300000000000000
l:
.global l
