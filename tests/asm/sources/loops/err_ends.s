# Each loop has its own end.
.mode i8
.core a, 0
.text
.rept 2
  wait 0
.endfor
.for k, 0, 2
  wait k
.endr
.rept
.endfor
  lod
#! err_ends.s:7:1: error: .rept must end with .endr, not .endfor
#! err_ends.s:10:1: error: .for must end with .endfor, not .endr
#! err_ends.s:11:1: error: .rept must be: .rept COUNT
#! err_ends.s:12:1: error: .rept must end with .endr, not .endfor
#! err_ends.s:13:3: error: unknown instruction 'lod'; did you mean 'load'?
