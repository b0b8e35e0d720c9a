.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text

.include "sub/bad.inc"
.include "missing.inc"
.include
.include missing.inc
.include "sub/cycle.inc"
.include "sub"
.include "sub/latin.inc"
#! sub/worst.inc:2:8: error: '0x' is not a number
#! sub/worse.inc:1:12: note: included from here
#! sub/bad.inc:2:10: note: included from here
#! err_include.s:7:10: note: included from here
#! err_include.s:8:10: error: cannot read 'missing.inc': No such file or directory
#! err_include.s:9:1: error: must be: .include "FILE"
#! err_include.s:10:1: error: must be: .include "FILE"
#! sub/cycle.inc:1:1: error: 'cycle.inc' is nested deeper than 200 levels: it contains itself
#! sub/cycle.inc:1:10: note: included from here
#! sub/cycle.inc:1:10: note: included from here
#! sub/cycle.inc:1:10: note: included from here
#! note: (194 more levels)
#! sub/cycle.inc:1:10: note: included from here
#! sub/cycle.inc:1:10: note: included from here
#! err_include.s:11:10: note: included from here
#! err_include.s:12:10: error: cannot read 'sub': Is a directory
#! err_include.s:13:10: error: cannot read 'sub/latin.inc': it is not UTF-8 text
