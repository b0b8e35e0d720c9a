# Every field beyond its ends.
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text
  load ib[-1:1], 0
  load ib[0:0], 0
  load ib[1024:1024], 0
  load ib[0:1025], 0
  load ib[2:2], 0
  load ib[3:2], 0
  load ib[0:1], -1
  load ib[0:1], 4294967296
  store -1, ob[0:1]
  store 4294967296, ob[0:1]
  store 0, ob[0:1025]
  call -1
  call 65536
  wait -1
  wait 4294967296
  wait 18446744073709551615
  wait 18446744073709551616
  gpeu.relu rb, ob, len=0
  gpeu.relu rb, ob, len=1025
  gpeu.add ob, ob, -2147483649
  gpeu.add ob, ob, 2147483648
  wait 9223372036854775807 + 1
#! err_fields.s:7:11: error: lo is -1, must be 0 to 1023
#! err_fields.s:8:13: error: hi is 0, must be 1 to 1024
#! err_fields.s:9:11: error: lo is 1024, must be 0 to 1023
#! err_fields.s:10:13: error: hi is 1025, must be 1 to 1024
#! err_fields.s:11:11: error: lo is 2, hi is 2; must be lo < hi
#! err_fields.s:12:11: error: lo is 3, hi is 2; must be lo < hi
#! err_fields.s:13:17: error: address is -1, must be 0 to 4294967295
#! err_fields.s:14:17: error: address is 4294967296, must be 0 to 4294967295
#! err_fields.s:15:9: error: address is -1, must be 0 to 4294967295
#! err_fields.s:16:9: error: address is 4294967296, must be 0 to 4294967295
#! err_fields.s:17:17: error: hi is 1025, must be 1 to 1024
#! err_fields.s:18:8: error: core is -1, must be 0 to 65535
#! err_fields.s:19:8: error: core is 65536, must be 0 to 65535
#! err_fields.s:20:8: error: value is -1, must be 0 to 4294967295
#! err_fields.s:21:8: error: value is 4294967296, must be 0 to 4294967295
#! err_fields.s:22:8: error: value is 18446744073709551615, must be 0 to 4294967295
#! err_fields.s:23:8: error: '18446744073709551616' does not fit 64 bits
#! err_fields.s:24:25: error: len is 0, must be 1 to 1024
#! err_fields.s:25:25: error: len is 1025, must be 1 to 1024
#! err_fields.s:26:20: error: an immediate must be an integer from -2147483648 to 2147483647
#! err_fields.s:27:20: error: an immediate must be an integer from -2147483648 to 2147483647
#! err_fields.s:28:28: error: the result does not fit 64 bits
