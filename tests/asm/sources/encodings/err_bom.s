mvm 1
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text
  wait é
  wait ﻿1
  wait 1 
  wait 1  
#! err_bom.s:1:1: error: this must be in a core or region: .core or .region must come first
#! err_bom.s:7:8: error: unexpected character 'é' (LATIN SMALL LETTER E WITH ACUTE)
#! err_bom.s:8:8: error: unexpected character '\ufeff' (ZERO WIDTH NO-BREAK SPACE)
#! err_bom.s:9:9: error: unexpected character '\u2028' (LINE SEPARATOR)
#! err_bom.s:10:10: error: unexpected character '\xa0' (NO-BREAK SPACE)
