# Immediates are float32 in mode f32.
.mode f32
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 4                            #= 00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
.text

  gpeu.add ob, ob, 1.5                   #= c44830000000c03f
  gpeu.mul ob, ob, -2e-3                 #= 844930006f1203bb
  gpeu.max rb, ob, 0                     #= 045a300000000000
  gpeu.min rb, ob, 6                     #= 845a30000000c040
  gpeu.min rb, ob, 1/4.0                 #= 845a30000000803e
  gpeu.lrelu rb, ob                      #= 045b300000000000
  gpeu.clr rb                            #= 4418300000000000
