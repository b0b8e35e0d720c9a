# Three cores, one after the other: each multiplies its third of an input vector and adds it to the partial
# sum that the core before has left in memory. The last one applies the ReLU. Three vectors follow each other, so
# that all cores are at work at the same time.

.machine "default", "core.crossbar=4x4", "bus.width_bytes=8"
.mode i8, ifm=i8, ofm=i8

.equ PARTS, 2
.equ VECTORS, 3
.include "steps.inc"

.region x, i8, [VECTORS, 3*PARTS], role=ifm
.region sums, i32, [VECTORS, 4], role=partial_sum
.region y, i8, [VECTORS, 4], role=ofm

.core first, 0, vg=0
.crossbar rows=PARTS, columns=4
  .half 1, 0, 2, -1
  .half 0, 1, 1, -1
.text
.for o, 0, VECTORS
  multiply 0
  hand_on second
.endfor

.core second, 1, vg=1
.crossbar rows=PARTS, columns=4
  .half 1, 1, 0, -1
  .half 1, 0, 1, -1
.text
.for o, 0, VECTORS
  multiply 1
  receive
  hand_on third
.endfor

.core third, 2, vg=2
.crossbar rows=PARTS, columns=4
  .fill PARTS*4, 2, 1
.text
.for o, 0, VECTORS
  multiply 2
  receive
  gpeu.relu rb, ob
  store y + o*4, rb[0:4]
.endfor
