.mode i8
.core a, 0
.text
# A mistake three files down, and one in a macro there.
.include "sub/bad.inc"
#! sub/worst.inc:2:8: error: '0x' is not a number
#! sub/worse.inc:1:12: note: included from here
#! sub/bad.inc:2:10: note: included from here
#! err_nested.s:5:10: note: included from here
#! sub/worst.inc:4:17: error: address is -1, must be 0 to 4294967295
#! sub/worst.inc:6:3: note: in the expansion of macro 'm'
#! sub/worse.inc:1:12: note: included from here
#! sub/bad.inc:2:10: note: included from here
#! err_nested.s:5:10: note: included from here
