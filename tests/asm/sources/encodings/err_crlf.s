.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text
  wait 0x # é
  wait "
  wait 1 +
#! err_crlf.s:6:8: error: '0x' is not a number
#! err_crlf.s:7:8: error: the string has no end
#! err_crlf.s:8:11: error: the line ends too early; expected '(' or a name or a number
