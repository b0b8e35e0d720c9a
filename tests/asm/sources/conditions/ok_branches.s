.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1                         #= 0100010001000100010001000100010001000100010001000100010001000100
.text

.equ yes, 1
.if yes
  wait 1                                 #= 0600000001000000
.elif 1 / 0
  wait 2
.else
  wait 3
.endif
.if 0
  wait 4
.elif yes == 1
  wait 5                                 #= 0600000005000000
.endif
.ifdef yes
  wait 6                                 #= 0600000006000000
.endif
.ifdef no
  wait 7
.else
  wait 8                                 #= 0600000008000000
.endif
.ifndef no
  .region in_a_branch, i8, [4]
    .byte 9                              #= 09
.endif
.assert yes, "never said"
.print "a note"
.warning "a warning"
#! ok_branches.s:33:1: note: a note
#! ok_branches.s:34:1: warning: a warning
