.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text
	wait	0x
		wait		(1	+
  	lod
#! err_tabs.s:6:7: error: '0x' is not a number
#! err_tabs.s:7:13: error: the line ends too early; expected '(' or a name or a number
#! err_tabs.s:8:4: error: unknown instruction 'lod'; did you mean 'load'?
