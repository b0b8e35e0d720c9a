# Data directives that cannot be read.
.mode i8
  .byte 1
.region r, u8, [256]
  .byte
  .byte 1.5
  .byte "a"
  .half x
  .word x*2
  .quad -x
  .float x
  .float "1"
  .single x
  .string
  .zero
  .skip x
  .ascii
  .ascii 1
  .asciz "a", "b"
  .ascii "a\q"
  .space
  .space 1, 2
  .space x
  .fill
  .fill 1, 2, 3, 4
  .fill 1, 4, x
  .incbin
  .incbin bytes.bin
  .incbin "missing.bin"
  .incbin "bytes.bin", 6
  .incbin "bytes.bin", 0, 6
  .align
  .align 3, 4
  .balign x
  .org
  .org x
  .org 4
  .word 1
  .org 4
.core a, 0
.text
  .byte 1
  .align 8
  .quad 1.5
#! err_forms.s:3:3: error: this must be in a core or region: .core or .region must come first
#! err_forms.s:5:3: error: .byte needs a value
#! err_forms.s:6:9: error: .byte must have an integer, not 1.5
#! err_forms.s:7:9: error: must be a number
#! err_forms.s:8:9: error: an address needs .word or .quad, not .half
#! err_forms.s:9:10: error: 'x' must be a constant here (a loop variable, .let or .equ); an address, which the linker sets, can only be moved by + and -
#! err_forms.s:10:9: error: 'x' must be a constant here (a loop variable, .let or .equ); an address, which the linker sets, can only be moved by + and -
#! err_forms.s:11:10: error: an address needs .word or .quad, not .float
#! err_forms.s:12:10: error: must be a number
#! err_forms.s:13:11: error: an address needs .word or .quad, not .float
#! err_forms.s:14:3: error: .asciz must be: .asciz "TEXT"
#! err_forms.s:15:3: error: .space must be: .space BYTES
#! err_forms.s:16:9: error: the size must be an integer constant
#! err_forms.s:17:3: error: .ascii must be: .ascii "TEXT"
#! err_forms.s:18:3: error: .ascii must be: .ascii "TEXT"
#! err_forms.s:19:3: error: .asciz must be: .asciz "TEXT"
#! err_forms.s:20:10: error: unknown escape '\q'
#! err_forms.s:21:3: error: .space must be: .space BYTES
#! err_forms.s:22:3: error: .space must be: .space BYTES
#! err_forms.s:23:10: error: the size must be an integer constant
#! err_forms.s:24:3: error: .fill must be: .fill COUNT, BYTES, VALUE
#! err_forms.s:25:3: error: .fill must be: .fill COUNT, BYTES, VALUE
#! err_forms.s:26:15: error: the value must be a constant
#! err_forms.s:27:3: error: .incbin must be: .incbin "FILE", OFFSET, BYTES
#! err_forms.s:28:3: error: .incbin must be: .incbin "FILE", OFFSET, BYTES
#! err_forms.s:29:11: error: cannot read 'missing.bin': No such file or directory
#! err_forms.s:30:24: error: 'bytes.bin' has 5 bytes, the offset must not be 6
#! err_forms.s:31:11: error: 'bytes.bin' has 5 bytes, bytes 0 to 6 are needed
#! err_forms.s:32:3: error: must be: .align BYTES
#! err_forms.s:33:13: error: must be: .align BYTES
#! err_forms.s:34:11: error: 'x' must be a constant here (.let or .equ)
#! err_forms.s:35:3: error: must be: .org OFFSET
#! err_forms.s:36:8: error: 'x' must be a constant here (.let or .equ)
#! err_forms.s:37:8: error: 4 is behind: the section already has 32 bytes
#! err_forms.s:39:8: error: 4 is behind: the section already has 36 bytes
#! err_forms.s:42:3: error: .byte must not be in a program: only instructions and .quad words are
#! err_forms.s:44:9: error: .quad must have an integer, not 1.5
