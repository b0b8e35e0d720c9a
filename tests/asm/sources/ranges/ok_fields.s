# Every field at its ends.
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1                         #= 0100010001000100010001000100010001000100010001000100010001000100
.text
  load ib[0:1], 0                        #= 0100000000000000
  load ib[1:2], 1                        #= 0102080001000000
  load ib[1022:1023], 4294967294         #= 01fcf71ffeffffff
  load ib[1023:1024], 4294967295         #= 01feff1fffffffff
  store 0, ob[0:1024]                    #= 4200f81f00000000
  store 0xFFFFFFFF, ob[1023:1024]        #= 42feff1fffffffff
  call 0                                 #= 0500000000000000
  call 1                                 #= 0500000001000000
  call 65534                             #= 05000000feff0000
  call 65535                             #= 05000000ffff0000
  wait 0                                 #= 0600000000000000
  wait 1                                 #= 0600000001000000
  wait 4294967294                        #= 06000000feffffff
  wait 4294967295                        #= 06000000ffffffff
  gpeu.relu rb, ob, len=1                #= c45a000000000000
  gpeu.relu rb, ob, len=1024             #= c45af03f00000000
  gpeu.add ob, ob, -2147483648           #= c448300000000080
  gpeu.add ob, ob, 2147483647            #= c4483000ffffff7f
