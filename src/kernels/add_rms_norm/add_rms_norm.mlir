// A residual added and the sum normalised over the last axis, in f32. The results are given as memory that they may lie in.
module @add_rms_norm {
  func.func public @main(%x: tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>,
      %residual: tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>, %weight: tensor<${weight.type}>,
      %sum: tensor<${x.size / max(dim, 1)}x${dim}x${x.element}> {tf.aliasing_output = 0 : i32},
      %y: tensor<${x.size / max(dim, 1)}x${dim}x${x.element}> {tf.aliasing_output = 1 : i32})
      -> (tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>, tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %count = stablehlo.constant dense<${dim + 0.0}> : tensor<${x.size / max(dim, 1)}xf32>
    %eps = stablehlo.constant dense<${eps}> : tensor<${x.size / max(dim, 1)}xf32>
    %added = stablehlo.add %x, %residual : tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>
    %wide = stablehlo.convert %added : (tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>) -> tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %scale = stablehlo.convert %weight : (tensor<${weight.type}>) -> tensor<${dim}xf32>
    %squares = stablehlo.multiply %wide, %wide : tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %total = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<${x.size / max(dim, 1)}x${dim}xf32>, tensor<f32>) -> tensor<${x.size / max(dim, 1)}xf32>
    %mean = stablehlo.divide %total, %count : tensor<${x.size / max(dim, 1)}xf32>
    %safe = stablehlo.add %mean, %eps : tensor<${x.size / max(dim, 1)}xf32>
    %factor = stablehlo.rsqrt %safe : tensor<${x.size / max(dim, 1)}xf32>
    %factors = stablehlo.broadcast_in_dim %factor, dims = [0]
        : (tensor<${x.size / max(dim, 1)}xf32>) -> tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %scales = stablehlo.broadcast_in_dim %scale, dims = [1]
        : (tensor<${dim}xf32>) -> tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %normed = stablehlo.multiply %wide, %factors : tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %result = stablehlo.multiply %normed, %scales : tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %out = stablehlo.convert %result : (tensor<${x.size / max(dim, 1)}x${dim}xf32>) -> tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>
    return %added, %out : tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>, tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>
  }
}
