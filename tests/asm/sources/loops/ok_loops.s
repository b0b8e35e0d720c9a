# Loops; the bytes of a loop stand behind its first line.
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1                         #= 0100010001000100010001000100010001000100010001000100010001000100
.text

.for k, 0, 3                             #= 010000000000000001000800000000000100100000000000 ADDRESS(0: r+0) ADDRESS(8: r+4) ADDRESS(16: r+8)
  load ib[0:k + 1], r + 4*k
.endfor
.for k, -1, 1                            #= 060000000600000006000000070000000600000008000000060000000a000000060000000b000000
  .for j, k, 2
    wait 10 + 3*k + j
  .endfor
.endfor
.for k, 3, 3
  wait 1
.endfor
.for k, 5, 2
  wait 1
.endfor
.rept 2                                  #= 03000000000000000300000000000000
  mvm
.endr
.rept 0
  mvm
.endr
.for k, 0, 4                             #= 0500000000000000060000000100000005000000020000000600000003000000
  .let odd = k % 2
  .if odd
    wait k
  .else
    call k
  .endif
.endfor
after:
.irp v, 1, 2 + 3
  .ifdef never
    wait \v
  .endif
.endr
.irp v, 7, 8                             #= 0600000007000000 0600000008000000
  wait \v
.endr
.region r, i8, [64]
.for k, 0, 3                             #= 000001ff0002fe0000
  .byte k, -k
  .space k
.endfor
empty:
.for k, 0, 0
  .byte 1
.endfor
.align 8                                 #= 00000000000000
label:
  .word label - empty                    #= 07000000
