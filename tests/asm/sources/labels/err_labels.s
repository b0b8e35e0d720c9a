nowhere: .mode i8
.core a, 0
.text
twice: mvm
twice: mvm
a: mvm
ib: mvm
.equ k, 1
k: mvm
  wait 9b
  wait 9f - a
  wait .Lmissing - a
  load ib[0:1], .Lmissin
.Lmissin_g: mvm
1.5: mvm
07: mvm
.globl
.globl 1
.global
.extern
.equ k, 2
.equ
.set 1, 2
.set twice, 1
.let twice = 1
#! err_labels.s:1:1: error: a label must be in a core or region
#! err_labels.s:5:1: error: 'twice' is already defined
#! err_labels.s:4:1: note: first defined here
#! err_labels.s:6:1: error: 'a' is already defined
#! err_labels.s:2:7: note: first defined here
#! err_labels.s:7:1: error: 'ib' is a buffer and must not be a symbol
#! err_labels.s:9:1: error: 'k' is already a constant (.let, .equ or -D)
#! err_labels.s:10:8: error: there is no label '9:' before this line; '9f' is the next after it
#! err_labels.s:11:11: error: there is no label '9:' after this line
#! err_labels.s:12:18: error: cannot subtract the address 'a' here: '.Lmissing' is not defined in this assembly
#! err_labels.s:13:17: error: the local label '.Lmissin' is not defined; did you mean '.Lmissin_g'?
#! err_labels.s:15:1: error: a numeric label must be a decimal number, not '1.5'
#! err_labels.s:16:1: error: '07' must not start with 0; octal is 0o7
#! err_labels.s:17:1: error: must be: .globl NAME
#! err_labels.s:18:8: error: must be: .globl NAME
#! err_labels.s:19:1: error: must be: .globl NAME
#! err_labels.s:20:1: error: must be: .extern NAME
#! err_labels.s:21:6: error: 'k' is already set on line 8; .set may change it
#! err_labels.s:22:1: error: must be: .equ NAME, EXPRESSION
#! err_labels.s:23:1: error: must be: .set NAME, EXPRESSION
#! err_labels.s:24:6: error: 'twice' is already a label
#! err_labels.s:25:6: error: 'twice' is already a label
