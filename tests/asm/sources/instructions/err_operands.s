# Operands that no form of the instruction has.
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text

  load
  load ib, 0
  load ib[0:4]
  load xb[0:4], 0
  load ib[0:4], 0, 0
  load ib[0:4], ib
  store ib[0:4], 0
  store 0, ib
  mvm 1
  gpeu.mov rb
  gpeu.mov rb, ob, 1
  gpeu.mov rb, ob, len=2, len=3
  gpeu.clr 3
  gpeu.add ob, ob
  gpeu.add ob, ob, xb
  gpeu.sub ob, ob, 1
  gpeu.mul ob, 1, ob
  gpeu.max rb, ob, 1.5
  gpeu.min rb, ob, "x"
  gpeu.relu rb, ob, pb
  gpeu.lrelu rb
  gpeu.requant rb
  call
  call ib
  call 1, 2
  wait
  wait [1]
  wait 1.5
  wait x
  lod ib[0:4], 0
  gpeu.ad ob, ob, pb
  halt
#! err_operands.s:8:3: error: the operands must be as in 'load BUFFER[LO:HI], ADDRESS'
#! err_operands.s:9:8: error: the operands must be as in 'load BUFFER[LO:HI], ADDRESS'
#! err_operands.s:10:8: error: the operands must be as in 'load BUFFER[LO:HI], ADDRESS'
#! err_operands.s:11:8: error: 'xb' is no buffer; there are ib, ob, pb, rb
#! err_operands.s:12:8: error: the operands must be as in 'load BUFFER[LO:HI], ADDRESS'
#! err_operands.s:13:8: error: the operands must be as in 'load BUFFER[LO:HI], ADDRESS'
#! err_operands.s:14:9: error: the operands must be as in 'store ADDRESS, BUFFER[LO:HI]'
#! err_operands.s:15:9: error: the operands must be as in 'store ADDRESS, BUFFER[LO:HI]'
#! err_operands.s:16:7: error: the operands must be as in 'mvm'
#! err_operands.s:17:12: error: the operands must be as in 'gpeu.mov DST, A[, len=LEN]'
#! err_operands.s:18:12: error: the operands must be as in 'gpeu.mov DST, A[, len=LEN]'
#! err_operands.s:19:12: error: the operands must be as in 'gpeu.mov DST, A[, len=LEN]'
#! err_operands.s:20:12: error: the operands must be as in 'gpeu.clr DST[, len=LEN]'
#! err_operands.s:21:12: error: the operands must be as in 'gpeu.add DST, A, B[, len=LEN]' or 'gpeu.add DST, A, IMM[, len=LEN]'
#! err_operands.s:22:20: error: 'xb' must be a buffer (ib, ob, pb, rb) or a constant
#! err_operands.s:23:12: error: the operands must be as in 'gpeu.sub DST, A, B[, len=LEN]'
#! err_operands.s:24:12: error: the operands must be as in 'gpeu.mul DST, A, B[, len=LEN]' or 'gpeu.mul DST, A, IMM[, len=LEN]'
#! err_operands.s:25:20: error: an immediate must be an integer from -2147483648 to 2147483647
#! err_operands.s:26:12: error: the operands must be as in 'gpeu.min DST, A, B[, len=LEN]' or 'gpeu.min DST, A, IMM[, len=LEN]'
#! err_operands.s:27:13: error: the operands must be as in 'gpeu.relu DST, A[, len=LEN]'
#! err_operands.s:28:14: error: the operands must be as in 'gpeu.lrelu DST, A[, len=LEN]'
#! err_operands.s:29:16: error: the operands must be as in 'gpeu.requant DST, A[, len=LEN]'
#! err_operands.s:30:3: error: the operands must be as in 'call CORE'
#! err_operands.s:31:8: error: the operands must be as in 'call CORE'
#! err_operands.s:32:8: error: the operands must be as in 'call CORE'
#! err_operands.s:33:3: error: the operands must be as in 'wait VALUE'
#! err_operands.s:34:8: error: the operands must be as in 'wait VALUE'
#! err_operands.s:35:8: error: value must be an integer, not 1.5
#! err_operands.s:36:8: error: 'x' must be a constant here (a loop variable, .let or .equ)
#! err_operands.s:37:3: error: unknown instruction 'lod'; did you mean 'load'?
#! err_operands.s:38:3: error: unknown instruction 'gpeu.ad'; did you mean 'gpeu.add'?
#! err_operands.s:39:3: error: unknown instruction 'halt'; a label ends with ':'
