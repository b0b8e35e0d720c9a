.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1                         #= 0100010001000100010001000100010001000100010001000100010001000100
.text

.macro hand from=1, to, rest:vararg
  wait \from
  call \to
.irp v, \rest
  wait \v
.endr
.endm
  hand 1, 2                              #= 0600000001000000 0500000002000000
  HAND to=3                              #= 0600000001000000 0500000003000000
  hand 4, a, 5, 6                        #= 0600000004000000 0500000000000000 CORE(0: a+0) 0600000005000000 0600000006000000
label: hand 7, max(8, 9)                 #= 0600000007000000 0500000009000000
.macro unique
l\@: mvm
.endm
  unique                                 #= 0300000000000000
  unique                                 #= 0300000000000000
.macro outer n:req
  hand \n, \n\()0
.endm
  outer 3                                #= 0600000003000000 050000001e000000
.for k, 0, 2                             #= 0600000000000000050000000500000006000000010000000500000005000000
  hand k, 5
.endfor
.macro llvm
  mvm
.endmacro
  llvm                                   #= 0300000000000000
.macro opens
.for i, 0, 2
.endm
  opens                                  #= 06000000000000000600000001000000
  wait i
.endfor
