# Expressions without a value.
.mode i8
.core a, 0
.crossbar rows=4, columns=4
  .fill 16, 2, 1
.text

  wait 1 / 0
  wait 1 % 0
  wait 1 << 64
  wait 1 >> -1
  wait 1.5 + 1
  wait 1.5 & 1
  wait ~1.5
  wait 0x7FFF_FFFF_FFFF_FFFF + 1
  wait 4611686018427387904 * 4
  wait min(1)
  wait max(1, 2, 3)
  wait least(1, 2)
  wait a * 2
  wait a - b
  load ib[0:1], 2 * r
  load ib[0:1], r + r
  load ib[0:1], 1 - r
  load ib[0:1], r + 1.5
  wait nothing
  wait sizeof(nothing)
  wait core(r)
  wait ib
.equ one, two
.equ two, one
  wait one
.region r, i8, [4]
#! err_meaning.s:8:10: error: division by zero
#! err_meaning.s:9:10: error: division by zero
#! err_meaning.s:10:10: error: a shift must be by 0 to 63
#! err_meaning.s:11:10: error: a shift must be by 0 to 63
#! err_meaning.s:12:8: error: value must be an integer, not 2.5
#! err_meaning.s:13:12: error: '&' needs integers, not 1.5
#! err_meaning.s:14:8: error: '~' needs integers, not 1.5
#! err_meaning.s:15:30: error: the result does not fit 64 bits
#! err_meaning.s:16:28: error: the result does not fit 64 bits
#! err_meaning.s:17:8: error: min takes 2 values, not 1
#! err_meaning.s:18:8: error: max takes 2 values, not 3
#! err_meaning.s:19:8: error: unknown function 'least'; there are min, max, sizeof, core, hg, vg
#! err_meaning.s:20:10: error: 'a' must be a constant here (a loop variable, .let or .equ); an address, which the linker sets, can only be moved by + and -
#! err_meaning.s:21:10: error: cannot subtract the address 'b' here: 'b' is not defined in this assembly
#! err_meaning.s:22:19: error: 'r' must be a constant here (a loop variable, .let or .equ); an address, which the linker sets, can only be moved by + and -
#! err_meaning.s:23:19: error: cannot add the address 'r' here
#! err_meaning.s:24:19: error: cannot subtract the address 'r' here
#! err_meaning.s:25:19: error: an address can only be moved by an integer
#! err_meaning.s:26:8: error: 'nothing' must be a constant here (a loop variable, .let or .equ)
#! err_meaning.s:27:8: error: 'nothing' is no core, region or section of this assembly, so its size is not known
#! err_meaning.s:28:8: error: core 'r' is not in this assembly: its number can stand in call and in data, not here
#! err_meaning.s:29:8: error: the operands must be as in 'wait VALUE'
#! err_meaning.s:30:11: error: 'two' is defined by itself: two -> one -> two (in .equ 'two')
#! err_meaning.s:31:11: error: 'one' is defined by itself: one -> two -> one (in .equ 'one')
#! err_meaning.s:32:8: error: 'one' is defined by itself: one -> two -> one (in .equ 'one')
