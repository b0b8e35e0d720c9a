# An extension that is not named, or not there; operands out of range.
.mode i8
.core a, 0
.text
  take pb[0:4], 0
.extension attribute_bufer
.extension attribute_buffer
.text
  take pb[0:4]
  take 0, pb[0:4]
  put 0, ob[0:4]
  put 0, ob[0:4], 0
  put 0, ob[0:4], 9
  put ob[0:4], 0, 1
#! err_attribute_buffer.s:5:3: error: take needs .extension attribute_buffer before it
#! err_attribute_buffer.s:6:12: error: unknown extension 'attribute_bufer'; this toolchain has attribute_buffer
#! err_attribute_buffer.s:9:8: error: the operands must be as in 'take BUFFER[LO:HI], ADDRESS'
#! err_attribute_buffer.s:10:8: error: the operands must be as in 'take BUFFER[LO:HI], ADDRESS'
#! err_attribute_buffer.s:11:7: error: the operands must be as in 'put ADDRESS, BUFFER[LO:HI], READERS'
#! err_attribute_buffer.s:12:19: error: readers is 0, must be 1 to 8
#! err_attribute_buffer.s:13:19: error: readers is 9, must be 1 to 8
#! err_attribute_buffer.s:14:7: error: the operands must be as in 'put ADDRESS, BUFFER[LO:HI], READERS'
