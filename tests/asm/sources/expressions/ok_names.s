.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1                         #= 0100010001000100010001000100010001000100010001000100010001000100
.text

.equ size, late * 2
.set n, 3
.let m = n + 1
  wait n                                 #= 0600000003000000
  wait m                                 #= 0600000004000000
  wait size                              #= 060000000e000000
.set n, 5
  wait n                                 #= 0600000005000000
  load ib[0:1], r + size                 #= 0100000000000000 ADDRESS(0: r+14)
  load ib[0:1], size + r - 2             #= 0100000000000000 ADDRESS(0: r+12)
  wait end - begin                       #= 0600000008000000
  call core(a) + 1                       #= 0500000001000000
begin:
  mvm                                    #= 0300000000000000
end:
.equ late, 7
.region r, i8, [64]
  .word sizeof(r), sizeof(a), hg(a), vg(a) #= 40000000480000000000000000000000
  .half core(a)                          #= 0000
  .word r + 1                            #= 00000000 ABS32(0: r+1)
  .quad begin                            #= 0000000000000000 ABS64(0: begin+0)
