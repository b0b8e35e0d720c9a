.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text

.macro inner n
  load ib[0:\n], 0
  lod
.endm
.macro outer m:req
  inner \m
.endm
  outer 2000
  outer
  outer 1, 2
  inner 1, n=2
.macro outer
.endm
.macro self
  self
.endm
  self
.macro
.endm
.macro a b c:vararg, d
.endm
.macro e 1
.endm
.endm
.endmacro
  outr 1
.irp v, 2000, 3000
  inner \v
.endr
.for k, 0, 2
  inner 1024 + k
.endfor
.macro open
  mvm
#! err_macros.s:8:13: error: hi is 2000, must be 1 to 1024
#! err_macros.s:12:3: note: in the expansion of macro 'inner'
#! err_macros.s:14:3: note: in the expansion of macro 'outer'
#! err_macros.s:9:3: error: unknown instruction 'lod'; did you mean 'load'?
#! err_macros.s:12:3: note: in the expansion of macro 'inner'
#! err_macros.s:14:3: note: in the expansion of macro 'outer'
#! err_macros.s:15:3: error: macro 'outer' needs 'm'
#! err_macros.s:16:3: error: macro 'outer' takes 1 argument, not 2
#! err_macros.s:17:3: error: 'n' is given twice
#! err_macros.s:18:1: error: macro 'outer' is already defined
#! err_macros.s:21:3: error: macro 'self' is nested deeper than 200 levels: it contains itself
#! err_macros.s:21:3: note: in the expansion of macro 'self'
#! err_macros.s:21:3: note: in the expansion of macro 'self'
#! err_macros.s:21:3: note: in the expansion of macro 'self'
#! note: (194 more levels)
#! err_macros.s:21:3: note: in the expansion of macro 'self'
#! err_macros.s:21:3: note: in the expansion of macro 'self'
#! err_macros.s:23:3: note: in the expansion of macro 'self'
#! err_macros.s:24:1: error: must be: .macro NAME PARAMETER, PARAMETER=DEFAULT, …
#! err_macros.s:26:1: error: 'b c:vararg' is no parameter
#! err_macros.s:28:1: error: '1' is no parameter
#! err_macros.s:30:1: error: .endm without .macro
#! err_macros.s:31:1: error: .endmacro without .macro
#! err_macros.s:32:3: error: unknown instruction 'outr'; did you mean 'outer'?
#! err_macros.s:8:13: error: hi is 2000, must be 1 to 1024
#! err_macros.s:34:3: note: in the expansion of macro 'inner'
#! err_macros.s:33:6: note: in .irp with v = 2000
#! err_macros.s:9:3: error: unknown instruction 'lod'; did you mean 'load'?
#! err_macros.s:34:3: note: in the expansion of macro 'inner'
#! err_macros.s:33:6: note: in .irp with v = 2000
#! err_macros.s:8:13: error: hi is 3000, must be 1 to 1024
#! err_macros.s:34:3: note: in the expansion of macro 'inner'
#! err_macros.s:33:6: note: in .irp with v = 3000
#! err_macros.s:9:3: error: unknown instruction 'lod'; did you mean 'load'?
#! err_macros.s:34:3: note: in the expansion of macro 'inner'
#! err_macros.s:33:6: note: in .irp with v = 3000
#! err_macros.s:8:13: error: hi is 1025, must be 1 to 1024 (where k = 1)
#! err_macros.s:37:3: note: in the expansion of macro 'inner'
#! err_macros.s:9:3: error: unknown instruction 'lod'; did you mean 'load'?
#! err_macros.s:37:3: note: in the expansion of macro 'inner'
#! err_macros.s:39:1: error: .macro has no .endm
