.param offset, 1
#! err_param_first.s:1:1: error: .param must come after .core
