# Every instruction, in each of its forms.
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1                         #= 0100010001000100010001000100010001000100010001000100010001000100
.text

  load ib[0:4], 0x1000                   #= 0100180000100000
  load OB[1:2], x + 4                    #= 4102080000000000 ADDRESS(0: x+4)
  store 0x2000, rb[0:4]                  #= c200180000200000
  store x - 1, pb[3:4]                   #= 8206180000000000 ADDRESS(0: x-1)
  mvm                                    #= 0300000000000000
  MVM                                    #= 0300000000000000
  gpeu.mov rb, ob                        #= 0458300000000000
  gpeu.clr pb                            #= 4410300000000000
  gpeu.add ob, ob, pb                    #= 8448340000000000
  gpeu.add ob, ob, -1                    #= c4483000ffffffff
  gpeu.sub ob, ob, pb                    #= 0449340000000000
  gpeu.mul ob, ob, pb                    #= 4449340000000000
  gpeu.mul ob, ob, 3, len=2              #= 8449100003000000
  gpeu.max rb, ob, rb                    #= c459360000000000
  gpeu.max rb, ob, -128                  #= 045a300080ffffff
  gpeu.min rb, ob, rb                    #= 445a360000000000
  gpeu.min rb, ob, 127                   #= 845a30007f000000
  gpeu.relu rb, ob                       #= c45a300000000000
  gpeu.requant rb, ob, LEN=1             #= 445b000000000000
  call a                                 #= 0500000000000000 CORE(0: a+0)
  call 65535                             #= 05000000ffff0000
  call b + 1                             #= 0500000000000000 CORE(0: b+1)
  wait 0                                 #= 0600000000000000
  wait 0xFFFF_FFFF                       #= 06000000ffffffff
.region x, i8, [8]
