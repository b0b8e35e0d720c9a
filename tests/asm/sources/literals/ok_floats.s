# Every way to write a float.
.mode f32
.region r, f32, [16]
  .float 0                               #= 00000000
  .float 1                               #= 0000803f
  .float 1.                              #= 0000803f
  .float 1.5                             #= 0000c03f
  .float 0.25                            #= 0000803e
  .float 2e3                             #= 0000fa44
  .float 2E3                             #= 0000fa44
  .float 2e+3                            #= 0000fa44
  .float 2e-3                            #= 6f12033b
  .float 2.5e-3                          #= 0ad7233b
  .float 1e-45                           #= 01000000
  .float 3.4028235e38                    #= ffff7f7f
