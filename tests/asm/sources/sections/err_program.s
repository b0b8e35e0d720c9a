.machine
.machine "none"
.machine "default", "core.crossbar"
.machine "default", "core.crosbar=4x4"
.machine "default", "core.crossbar=0x4"
.machine "default"
.machine "pelke23"
.mode
.mode i9
.mode i8, ifm=i16
.mode i8
.mode f32
.extension
.extension loops
.layer
.layer x
.file
.file 1
.line
.line -1
.text
.crossbar rows=1, columns=1
.param offset, 1
.region
.region r
.region r, i9, [4]
.region r, i8, 4
.region r, i8, [0]
.region r, i8, [4], role=of
.region r, i8, [4], role=ofm
.region r, i8, [4]
.core
.core c
.core c, 65536
.core c, -1
.core c, 0
.core d, 0
.core c, 1
.crossbar
.crossbar rows=0, columns=1
.crossbar rows=2000, columns=1
.crossbar rows=2, columns=2
  .half 1
.crossbar rows=1, columns=1
.param
.param offse, 1
.param offset
.param offset, 1.5
.param offset, 1, 2, 3
.section
.section 1
.data 1
.bss
  .word 1
.dat
.regin x
#! err_program.s:1:1: error: must be: .machine "NAME", "SECTION.KEY=VALUE", …
#! err_program.s:2:10: error: no machine is called 'none'
#! err_program.s:3:21: error: 'core.crossbar': must be SECTION.KEY=VALUE
#! err_program.s:4:21: error: 'core.crosbar=4x4': unknown key 'core.crosbar'; did you mean 'core.crossbar'?
#! err_program.s:5:21: error: 'core.crossbar=0x4': core.crossbar is 0x4: both sides must be 1 to 1024
#! err_program.s:7:1: error: a .machine before is another one; a program has one machine
#! err_program.s:8:1: error: must be: .mode f32|i8|i8n, ifm=TYPE, ofm=TYPE
#! err_program.s:9:7: error: mode must be one of f32, i8, i8n, not 'i9'
#! err_program.s:10:7: error: in mode i8 the IFM must be i8 or u8, not 'i16'
#! err_program.s:12:7: error: a .mode before is another one; a program has one mode
#! err_program.s:13:1: error: must be: .extension NAME
#! err_program.s:14:12: error: unknown extension 'loops'; this toolchain has attribute_buffer
#! err_program.s:16:8: error: must be: .layer KEY=VALUE, …
#! err_program.s:17:1: error: must be: .file "NAME"
#! err_program.s:18:7: error: must be: .file "NAME"
#! err_program.s:19:1: error: must be: .line NUMBER, "FILE"
#! err_program.s:20:7: error: the line must be 1 to 2147483647, not -1
#! err_program.s:21:1: error: .text must come after .core
#! err_program.s:24:1: error: must be: .region NAME, TYPE, [SHAPE], role=, layout=, scale=, zero_point=, align=
#! err_program.s:25:1: error: must be: .region NAME, TYPE, [SHAPE], role=, layout=, scale=, zero_point=, align=
#! err_program.s:26:12: error: unknown type 'i9'; there are i8, u8, i32, f32
#! err_program.s:27:16: error: the shape must be like [8, 8, 3], each dimension an integer from 0
#! err_program.s:29:21: error: unknown role 'of'; there are data, ifm, ofm, partial_sum, bias; did you mean 'ofm'?
#! err_program.s:30:9: error: 'r' is already defined
#! err_program.s:28:9: note: first defined here
#! err_program.s:31:9: error: 'r' is already defined
#! err_program.s:28:9: note: first defined here
#! err_program.s:32:1: error: must be: .core NAME, NUMBER, hg=HG, vg=VG
#! err_program.s:33:1: error: must be: .core NAME, NUMBER, hg=HG, vg=VG
#! err_program.s:34:7: error: the core's number is 65536, must be 0 to 65535
#! err_program.s:35:7: error: the core's number is -1, must be 0 to 65535
#! err_program.s:37:7: error: core number 0 is already 'c'
#! err_program.s:38:7: error: 'c' is already defined
#! err_program.s:36:7: note: first defined here
#! err_program.s:39:1: error: must be: .crossbar rows=ROWS, columns=COLUMNS
#! err_program.s:40:1: error: rows and columns must be at least 1
#! err_program.s:42:1: error: 'c' already has a crossbar
#! err_program.s:44:1: error: 'c' already has a crossbar
#! err_program.s:45:1: error: must be: .param NAME, VALUE, …
#! err_program.s:46:8: error: unknown parameter 'offse'; did you mean 'offset'?
#! err_program.s:47:1: error: must be: .param NAME, VALUE, …
#! err_program.s:48:16: error: offset is 1.5, must be an integer from -2147483648 to 2147483647
#! err_program.s:50:1: error: must be: .section NAME, "aw", nobits
#! err_program.s:51:10: error: must be: .section NAME, "aw", nobits
#! err_program.s:52:7: error: must be: .data
#! err_program.s:54:3: error: .word must be 0 here: the section has no content
#! err_program.s:55:1: error: unknown directive '.dat'; did you mean '.data'?
#! err_program.s:56:1: error: unknown directive '.regin'; did you mean '.region'?
