.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1                         #= 0100010001000100010001000100010001000100010001000100010001000100
.text

.include "sub/one.inc"                   #= 0600000002000000
  wait one                               #= 0600000001000000
  later 3                                #= 0600000003000000
.INCLUDE "sub/two.inc" # and a comment   #= 0600000002000000
