module @m {
  func.func public @main(%arg0: tensor<8x16xf32> loc("x"), %arg1: tensor<16x4xf32> loc("y")) -> tensor<8x16xf32> {
    %0 = stablehlo.custom_call @hone(%arg0, %arg1) {backend_config = "{hone_call = \22matmul(f32[8,16], f32[16,4])\22, hone_label = \22hone#matmul.v1:0123456789abcdef\22}"} : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32> loc("jit(f)/ffi_call")
    %c = stablehlo.constant dense<0> : tensor<i32> loc("jit(f)")
    %1:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0) : tensor<i32>, tensor<8x16xf32>
    cond {
      %c_1 = stablehlo.constant dense<7> : tensor<i32> loc("jit(f)/while/cond")
      %2 = stablehlo.compare  LT, %iterArg, %c_1,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc("jit(f)/while/cond/lt")
      stablehlo.return %2 : tensor<i1> loc("jit(f)/while")
    } do {
      %2 = func.call @b(%iterArg_0) : (tensor<8x16xf32>) -> tensor<8x16xf32> loc("jit(f)/while/body/call")
      %c_1 = stablehlo.constant dense<1> : tensor<i32> loc("jit(f)/while/body")
      %3 = stablehlo.add %iterArg, %c_1 : tensor<i32> loc("jit(f)/while/body/add")
      stablehlo.return %3, %2 : tensor<i32>, tensor<8x16xf32> loc("jit(f)/while")
    } loc("jit(f)/while")
    return %1#1 : tensor<8x16xf32> loc("jit(f)")
  } loc("jit(f)")
  func.func private @b(%arg0: tensor<8x16xf32> loc("x")) -> tensor<8x16xf32> {
    %0 = stablehlo.sine %arg0 : tensor<8x16xf32> loc("jit(f)/ejkernel_ops#x@v0:0123456789abcdef/sin")
    return %0 : tensor<8x16xf32> loc("jit(f)")
  } loc("jit(f)")
} loc("m")
