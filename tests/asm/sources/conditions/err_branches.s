.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text

.if
.endif
.if 1, 2
.endif
.if x
.endif
.if 1
.else
.elif 1
.else
.endif
.else
.elif 1
.endif
.ifdef
.endif
.ifndef 1
.endif
.if 1
.else 2
.endif
.assert 1 > 2, "one is not larger"
.assert 0
.assert
.error "stop here"
.error
.error 1
.warning "a warning first"
.warning 1
.print 1
.for k, 0, 3
  .assert k < 2, "k grew"
.endfor
.if 1
#! err_branches.s:34:1: warning: a warning first
#! err_branches.s:7:1: error: .if must have one expression
#! err_branches.s:9:1: error: .if must have one expression
#! err_branches.s:11:5: error: 'x' must be a constant here (.let or .equ)
#! err_branches.s:15:1: error: .elif after .else
#! err_branches.s:16:1: error: .else after .else
#! err_branches.s:18:1: error: .else without .if
#! err_branches.s:19:1: error: .elif without .if
#! err_branches.s:20:1: error: .endif without .if
#! err_branches.s:21:1: error: .ifdef must be: .ifdef NAME
#! err_branches.s:23:1: error: .ifndef must be: .ifndef NAME
#! err_branches.s:26:7: error: .else takes nothing
#! err_branches.s:28:9: error: one is not larger
#! err_branches.s:29:9: error: the assertion does not hold
#! err_branches.s:30:1: error: .assert must be: .assert EXPRESSION, "TEXT"
#! err_branches.s:31:1: error: stop here
#! err_branches.s:32:1: error: .error directive
#! err_branches.s:33:1: error: .error must be: .error "TEXT"
#! err_branches.s:35:1: error: .warning must be: .warning "TEXT"
#! err_branches.s:36:1: error: .print must be: .print "TEXT"
#! err_branches.s:38:11: error: k grew (where k = 2)
#! err_branches.s:40:1: error: .if has no .endif
