# What belongs to a section that could not begin is no mistake of its own.
.mode i8
.core a, 0
.crossbar rows=1, columns=1
  .half 1
.text
  mvm
.core b, 0
.crossbar rows=1, columns=1
  .half 1
.param offset, 1
.text
label: mvm
  wait 1
.for k, 0, 2
  mvm
.endfor
.core c 1
.crossbar rows=1, columns=1
.text
  mvm
.region r, i9, [4]
  .byte 999
  .align 4
.region s, i8, [4]
  .byte 999
.for k, 0, 2
  .core d, 1
#! err_skipped.s:8:7: error: core number 0 is already 'a'
#! err_skipped.s:18:9: error: unexpected '1'
#! err_skipped.s:22:12: error: unknown type 'i9'; there are i8, u8, i32, f32
#! err_skipped.s:26:9: error: .byte is 999, must be -128 to 255
#! err_skipped.s:27:1: error: .for has no .endfor
