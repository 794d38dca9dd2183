// A matrix product. c is given as memory that the result may lie in.
module @matmul {
  func.func public @main(%a: tensor<${a.type}>, %b: tensor<${b.type}>, %c: tensor<${c.type}> {tf.aliasing_output = 0 : i32})
      -> tensor<${c.type}> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [${transpose_b + 0}], precision = [HIGHEST, HIGHEST]
        : (tensor<${a.type}>, tensor<${b.type}>) -> tensor<${c.type}>
    return %0 : tensor<${c.type}>
  }
}
