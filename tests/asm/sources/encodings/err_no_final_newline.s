.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text
  wait 1 +
#! err_no_final_newline.s:6:11: error: the line ends too early; expected '(' or a name or a number