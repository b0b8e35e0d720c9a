# What must come before an instruction.
  mvm
.region r, i8, [4]
  mvm
.core a, 0
  gpeu.relu rb, ob
  gpeu.add ob, ob, 1, len=2
#! err_before.s:2:3: error: this must be in a core or region: .core or .region must come first
#! err_before.s:3:9: error: region 'r' has 8 bytes of content, its shape and type are 4: 4 too many
#! err_before.s:4:3: error: an instruction must be in a core's program: .core or .text must come first
#! err_before.s:6:3: error: len= must be given: the core has no .crossbar before this line
#! err_before.s:7:20: error: .mode must come before an immediate
