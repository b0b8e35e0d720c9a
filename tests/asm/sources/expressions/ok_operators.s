# Every operator, with the precedence and the meaning of C.
.mode i8
.region r, i32, [64]
  .word 1 || 0                           #= 01000000
  .word 0 && 1                           #= 00000000
  .word 5 | 2                            #= 07000000
  .word 6 ^ 3                            #= 05000000
  .word 6 & 3                            #= 02000000
  .word 1 == 1                           #= 01000000
  .word 1 != 1                           #= 00000000
  .word 1 < 2                            #= 01000000
  .word 2 <= 1                           #= 00000000
  .word 2 > 1                            #= 01000000
  .word 1 >= 2                           #= 00000000
  .word 1 << 4                           #= 10000000
  .word -16 >> 2                         #= fcffffff
  .word 1 + 2                            #= 03000000
  .word 1 - 2                            #= ffffffff
  .word 3 * 4                            #= 0c000000
  .word -7 / 2                           #= fdffffff
  .word -7 % 2                           #= ffffffff
  .word 7 % -2                           #= 01000000
  .word -3                               #= fdffffff
  .word +3                               #= 03000000
  .word ~3                               #= fcffffff
  .word !3                               #= 00000000
  .word !0                               #= 01000000
  .word - -3                             #= 03000000
  .word 1 + 2 * 3                        #= 07000000
  .word (1 + 2) * 3                      #= 09000000
  .word 1 << 2 + 1                       #= 08000000
  .word 1 | 2 ^ 3 & 4                    #= 03000000
  .word 1 < 2 == 2 > 1                   #= 01000000
  .word 10 - 4 - 3                       #= 03000000
  .word 100 / 10 / 5                     #= 02000000
  .word -2 * -3                          #= 06000000
  .word ~1 & 0xF                         #= 0e000000
  .word 1 || 0 && 0                      #= 01000000
  .word min(3, 4)                        #= 03000000
  .word max(3, 4)                        #= 04000000
  .word min(1 + 2, max(3, 4)) * 2        #= 06000000
  .word . - r                            #= 98000000
  .word 'a' + 1                          #= 62000000
