# What looks like a number and is none.
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text
  wait 007
  wait 00
  wait 08
  wait 0x
  wait 0xg
  wait 0x_1
  wait 0x1_
  wait 0b
  wait 0b2
  wait 0o
  wait 0o8
  wait 1_
  wait 1__0
  wait 12ab
  wait 1.2.3
  wait 1e
  wait 0x1.5
  wait 99999999999999999999
  wait '\q'
#! err_numbers.s:7:8: error: '007' must not start with 0; octal is 0o7
#! err_numbers.s:8:8: error: '00' must be written 0
#! err_numbers.s:9:8: error: '08' must not start with 0; octal is 0o8
#! err_numbers.s:10:8: error: '0x' is not a number
#! err_numbers.s:11:8: error: '0xg' is not a number
#! err_numbers.s:12:8: error: '0x_1' is not a number
#! err_numbers.s:13:8: error: '0x1_' is not a number
#! err_numbers.s:14:8: error: there is no label '0:' before this line; '0f' is the next after it
#! err_numbers.s:15:8: error: '0b2' is not a number
#! err_numbers.s:16:8: error: '0o' is not a number
#! err_numbers.s:17:8: error: '0o8' is not a number
#! err_numbers.s:18:8: error: '1_' is not a number
#! err_numbers.s:19:8: error: '1__0' is not a number
#! err_numbers.s:20:8: error: '12ab' is not a number
#! err_numbers.s:21:8: error: '1.2.3' is not a number
#! err_numbers.s:22:8: error: '1e' is not a number
#! err_numbers.s:23:11: error: unexpected '.5'; expected the end of the line or ','
#! err_numbers.s:24:8: error: '99999999999999999999' does not fit 64 bits
#! err_numbers.s:25:8: error: unknown escape '\q'
