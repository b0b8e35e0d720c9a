# Loops that cannot be unrolled, and mistakes in one.
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text

.for k, 0
.endfor
.for 1, 0, 2
.endfor
.for k, 0, 1.5
.endfor
.for k, 0, x
.endfor
.for k, 0, 8000001
.endfor
.rept
.endr
.rept -1
  wait 77777777777
.endr
.irp
.endr
.for k, 0, 2
  label: mvm
.endfor
.for k, 0, 5
  .for j, 0, 3
    load ib[0:1020 + 2*k + j], 0
  .endfor
.endfor
.for k, 0, 2
  .core b, 1
.endfor
.for k, 0, 2
  wait 1 / k
  wait q
.endfor
.endfor
.endr
.let
.let k
.for k, 0, 2
.rept 3
#! err_loops.s:8:1: error: .for must be: .for NAME, FIRST, LAST (LAST excluded)
#! err_loops.s:10:1: error: .for must be: .for NAME, FIRST, LAST (LAST excluded)
#! err_loops.s:12:12: error: must be an integer, not 1.5
#! err_loops.s:14:12: error: 'x' must be a constant here (a loop variable, .let or .equ)
#! err_loops.s:16:9: error: the loop has 8000001 iterations, must be at most 8000000
#! err_loops.s:18:1: error: .rept must be: .rept COUNT
#! err_loops.s:20:7: error: the count is -1, must not be negative
#! err_loops.s:23:1: error: must be: .irp NAME, VALUE, …
#! err_loops.s:26:3: error: a label must not be in a loop, where it would have many places
#! err_loops.s:30:15: error: hi is 1025, must be 1 to 1024 (where k = 2, j = 1)
#! err_loops.s:34:3: error: .core must not be inside .for or .if
#! err_loops.s:37:10: error: division by zero
#! err_loops.s:38:8: error: 'q' must be a constant here (a loop variable, .let or .equ)
#! err_loops.s:40:1: error: .endfor without .for
#! err_loops.s:41:1: error: .endr without .rept
#! err_loops.s:42:1: error: .let must be: .let NAME = EXPRESSION
#! err_loops.s:43:1: error: .let must be: .let NAME = EXPRESSION
#! err_loops.s:44:1: error: .for has no .endfor
#! err_loops.s:45:1: error: .rept has no .endr
