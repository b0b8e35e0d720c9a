# Every data directive beyond its range.
.mode i8
.region r, i8, [4096]
  .byte -129
  .byte 256
  .byte 0, 256, 0
  .half -32769
  .half 65536
  .half 0, 65536, 0
  .word -2147483649
  .word 4294967296
  .word 0, 4294967296, 0
  .quad -9223372036854775809
  .quad 18446744073709551616
  .quad 0, 18446744073709551616, 0
  .2byte -32769
  .2byte 65536
  .2byte 0, 65536, 0
  .short -32769
  .short 65536
  .short 0, 65536, 0
  .hword -32769
  .hword 65536
  .hword 0, 65536, 0
  .4byte -2147483649
  .4byte 4294967296
  .4byte 0, 4294967296, 0
  .long -2147483649
  .long 4294967296
  .long 0, 4294967296, 0
  .int -2147483649
  .int 4294967296
  .int 0, 4294967296, 0
  .8byte -9223372036854775809
  .8byte 18446744073709551616
  .8byte 0, 18446744073709551616, 0
  .fill 2, 1, 256
  .fill 2, 2, -32769
  .fill 2, 3, 0
  .fill -1
  .space -1
  .align 0
  .align -4
  .org -1
#! err_data.s:4:9: error: .byte is -129, must be -128 to 255
#! err_data.s:5:9: error: .byte is 256, must be -128 to 255
#! err_data.s:6:12: error: .byte is 256, must be -128 to 255
#! err_data.s:7:9: error: .half is -32769, must be -32768 to 65535
#! err_data.s:8:9: error: .half is 65536, must be -32768 to 65535
#! err_data.s:9:12: error: .half is 65536, must be -32768 to 65535
#! err_data.s:10:9: error: .word is -2147483649, must be -2147483648 to 4294967295
#! err_data.s:11:9: error: .word is 4294967296, must be -2147483648 to 4294967295
#! err_data.s:12:12: error: .word is 4294967296, must be -2147483648 to 4294967295
#! err_data.s:13:9: error: the result does not fit 64 bits
#! err_data.s:14:9: error: '18446744073709551616' does not fit 64 bits
#! err_data.s:15:12: error: '18446744073709551616' does not fit 64 bits
#! err_data.s:16:10: error: .half is -32769, must be -32768 to 65535
#! err_data.s:17:10: error: .half is 65536, must be -32768 to 65535
#! err_data.s:18:13: error: .half is 65536, must be -32768 to 65535
#! err_data.s:19:10: error: .half is -32769, must be -32768 to 65535
#! err_data.s:20:10: error: .half is 65536, must be -32768 to 65535
#! err_data.s:21:13: error: .half is 65536, must be -32768 to 65535
#! err_data.s:22:10: error: .half is -32769, must be -32768 to 65535
#! err_data.s:23:10: error: .half is 65536, must be -32768 to 65535
#! err_data.s:24:13: error: .half is 65536, must be -32768 to 65535
#! err_data.s:25:10: error: .word is -2147483649, must be -2147483648 to 4294967295
#! err_data.s:26:10: error: .word is 4294967296, must be -2147483648 to 4294967295
#! err_data.s:27:13: error: .word is 4294967296, must be -2147483648 to 4294967295
#! err_data.s:28:9: error: .word is -2147483649, must be -2147483648 to 4294967295
#! err_data.s:29:9: error: .word is 4294967296, must be -2147483648 to 4294967295
#! err_data.s:30:12: error: .word is 4294967296, must be -2147483648 to 4294967295
#! err_data.s:31:8: error: .word is -2147483649, must be -2147483648 to 4294967295
#! err_data.s:32:8: error: .word is 4294967296, must be -2147483648 to 4294967295
#! err_data.s:33:11: error: .word is 4294967296, must be -2147483648 to 4294967295
#! err_data.s:34:10: error: the result does not fit 64 bits
#! err_data.s:35:10: error: '18446744073709551616' does not fit 64 bits
#! err_data.s:36:13: error: '18446744073709551616' does not fit 64 bits
#! err_data.s:37:15: error: .byte is 256, must be -128 to 255
#! err_data.s:38:15: error: .half is -32769, must be -32768 to 65535
#! err_data.s:39:12: error: the element size must be 1, 2, 4 or 8
#! err_data.s:40:9: error: the count must not be negative
#! err_data.s:41:10: error: the size must not be negative
#! err_data.s:42:10: error: must be a power of two from 1 to 65536, not 0
#! err_data.s:43:10: error: must be a power of two from 1 to 65536, not -4
#! err_data.s:44:8: error: -1 is behind: the section already has 147 bytes
