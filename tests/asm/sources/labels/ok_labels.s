.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1                         #= 0100010001000100010001000100010001000100010001000100010001000100
.text

.globl first
first:
second: third: mvm                       #= 0300000000000000
1: wait 1b - first                       #= 0600000008000000
  wait 1f - 1b                           #= 0600000010000000
1: wait 1b - first                       #= 0600000018000000
.Lhere: wait .Lhere - first              #= 0600000020000000
  load ib[0:1], first                    #= 0100000000000000 ADDRESS(0: first+0)
  store second + 8, ob[0:1]              #= 4200000000000000 ADDRESS(0: second+8)
.extern elsewhere
  load ib[0:1], elsewhere                #= 0100000000000000 ADDRESS(0: elsewhere+0)
last:
.core b, 1
.text
.Lhere: wait .Lhere - b                  #= 0600000000000000
.region empty, i8, [4]
  .align 64
at_the_end:
