# Two cores share one output vector. Core `head` multiplies its half of the input and leaves the partial
# sum in memory; core `tail` waits for the CALL, adds its own half and applies the ReLU.

.machine "default", "core.crossbar=4x4", "bus.width_bytes=8"
.mode i8, ifm=i8, ofm=i8

.region x, i8, [8], role=ifm               # the input vector: 4 values for each core
.region sums, i32, [4], role=partial_sum
.region y, i8, [4], role=ofm

.core head, 0, hg=0, vg=0
.crossbar rows=4, columns=4
  .half 1, 0, 0, 0                         # one line a row (wordline): row, then its columns
  .half 0, 1, 0, 0
  .half 0, 0, 1, 0
  .half 0, 0, 0, 1
.text
  load ib[0:4], x
  mvm
  store sums, ob[0:4]
  call tail                                # hand the partial sum over

.core tail, 1, hg=0, vg=1
.crossbar rows=4, columns=4
  .half 2, 0, 0, 0
  .half 0, 2, 0, 0
  .half 0, 0, 2, 0
  .half 0, 0, 0, 2
.text
  load ib[0:4], x + 4
  mvm
  wait 1                                   # until `head` has called once
  load pb[0:4], sums
  gpeu.add ob, ob, pb
  gpeu.relu rb, ob
  store y, rb[0:4]
