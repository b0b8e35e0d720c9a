# Sixteen cores add up: output vector o is the sum of the sixteen vectors x[o][v] of four bytes.
# Each core adds its own to the partial sum and hands it on. One WAIT is missing: see docs/debugging.md.

.equ OUTPUTS, 8

.machine "default", "core.crossbar=4x4", "bus.width_bytes=16"
.mode i8, ifm=i8, ofm=i8
.region x, i8, [OUTPUTS, 16, 4], role=ifm
.region ps, i32, [OUTPUTS, 4], role=partial_sum
.region y, i8, [OUTPUTS, 4], role=ofm

.macro adder v
  .core c\v, \v, hg=0, vg=\v
  .crossbar rows=4, columns=4
  .half 1, 0, 0, 0
  .half 0, 1, 0, 0
  .half 0, 0, 1, 0
  .half 0, 0, 0, 1
  .text
  .for o, 0, OUTPUTS
    load ib[0:4], x + o * 64 + \v * 4
    mvm
    .if \v > 0
      .if \v != 9
        wait o + 1
      .endif
      load pb[0:4], ps + o*16
      gpeu.add ob, ob, pb
    .endif
    .if \v < 15
      store ps + o*16, ob[0:4]
      call core(c0) + \v + 1
    .else
      gpeu.mov rb, ob
      store y + o*4, rb[0:4]
    .endif
  .endfor
.endm

.irp v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
  adder \v
.endr
