# Lines that are no sentences of the language.
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text
  wait (1
  wait 1)
  wait 1 +
  wait + 
  wait 1 2
  wait 1,
  wait ,1
  wait [1
  wait 1]
  wait ib[1
  wait ib[1:
  wait ib[:1]
  wait ib[1:2:3]
  load ib[0:4] 0
  wait @
  wait 1 ? 2
  wait "a
  wait 'a
  wait 'ab'
  wait ''
  wait a=
  wait =1
  wait a=b=1
  1
  label
  label:: mvm
  :
  wait min(
  wait min(,)
  wait é
  mvm mvm
  wait 1
  wait 1 \
  wait {1}
#! err_syntax.s:7:10: error: the line ends too early; expected ')'
#! err_syntax.s:8:9: error: unexpected ')'; expected the end of the line or ','
#! err_syntax.s:9:11: error: the line ends too early; expected '(' or a name or a number
#! err_syntax.s:10:10: error: the line ends too early; expected '(' or a name or a number
#! err_syntax.s:11:10: error: unexpected '2'; expected the end of the line or ','
#! err_syntax.s:12:10: error: the line ends too early
#! err_syntax.s:13:8: error: unexpected ','
#! err_syntax.s:14:10: error: the line ends too early; expected ',' or ']'
#! err_syntax.s:15:9: error: unexpected ']'; expected the end of the line or ','
#! err_syntax.s:16:12: error: the line ends too early; expected ':'
#! err_syntax.s:17:13: error: the line ends too early; expected '(' or a name or a number
#! err_syntax.s:18:11: error: unexpected ':'; expected '(' or a name or a number
#! err_syntax.s:19:14: error: unexpected ':'; expected ']'
#! err_syntax.s:20:16: error: unexpected '0'; expected the end of the line or ','
#! err_syntax.s:21:8: error: unexpected character '@'
#! err_syntax.s:22:10: error: unexpected character '?'
#! err_syntax.s:23:8: error: the string has no end
#! err_syntax.s:24:8: error: a character constant must be one character between quotes, as in 'a'
#! err_syntax.s:25:8: error: a character constant must be one character between quotes, as in 'a'
#! err_syntax.s:26:8: error: a character constant must be one character between quotes, as in 'a'
#! err_syntax.s:27:10: error: the line ends too early
#! err_syntax.s:28:8: error: unexpected '='
#! err_syntax.s:29:8: error: the operands must be as in 'wait VALUE'
#! err_syntax.s:30:4: error: the line ends too early; expected ':'
#! err_syntax.s:31:3: error: unknown instruction 'label'; a label ends with ':'
#! err_syntax.s:32:9: error: unexpected ':'; expected the end of the line or a name or a number
#! err_syntax.s:33:3: error: unexpected ':'; expected the end of the line or a name or a number
#! err_syntax.s:34:12: error: the line ends too early; expected '(' or a name or a number or ')'
#! err_syntax.s:35:12: error: unexpected ','; expected '(' or a name or a number or ')'
#! err_syntax.s:36:8: error: unexpected character 'é' (LATIN SMALL LETTER E WITH ACUTE)
#! err_syntax.s:37:7: error: the operands must be as in 'mvm'
#! err_syntax.s:38:7: error: unexpected character '\xa0' (NO-BREAK SPACE)
#! err_syntax.s:39:10: error: '\' stands before the parameters of a macro, in its body only
#! err_syntax.s:40:8: error: unexpected character '{'
