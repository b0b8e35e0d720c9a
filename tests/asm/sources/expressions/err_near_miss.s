# A name that is nearly a constant's.
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.equ LENGTH, 4
.text
  load ib[0:LENGHT], x
  wait LENTGH
.for step, 0, 2
  load ib[0:stpe], x
.endfor
.if LENGT
.endif
.region x, i8, [4]
#! err_near_miss.s:8:13: error: 'LENGHT' must be a constant here (a loop variable, .let or .equ); did you mean 'LENGTH'?
#! err_near_miss.s:9:8: error: 'LENTGH' must be a constant here (a loop variable, .let or .equ); did you mean 'LENGTH'?
#! err_near_miss.s:11:13: error: 'stpe' must be a constant here (a loop variable, .let or .equ); did you mean 'step'?
#! err_near_miss.s:13:5: error: 'LENGT' must be a constant here (.let or .equ); did you mean 'LENGTH'?
