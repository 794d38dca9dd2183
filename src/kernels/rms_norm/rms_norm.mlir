// RMS norm over the last axis, in f32. y is given as memory that the result may lie in.
module @rms_norm {
  func.func public @main(%x: tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>, %weight: tensor<${weight.type}>,
      %y: tensor<${x.size / max(dim, 1)}x${dim}x${y.element}> {tf.aliasing_output = 0 : i32})
      -> tensor<${x.size / max(dim, 1)}x${dim}x${y.element}> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %count = stablehlo.constant dense<${dim + 0.0}> : tensor<${x.size / max(dim, 1)}xf32>
    %eps = stablehlo.constant dense<${eps}> : tensor<${x.size / max(dim, 1)}xf32>
    %wide = stablehlo.convert %x : (tensor<${x.size / max(dim, 1)}x${dim}x${x.element}>) -> tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %scale = stablehlo.convert %weight : (tensor<${weight.type}>) -> tensor<${dim}xf32>
    %squares = stablehlo.multiply %wide, %wide : tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %sum = stablehlo.reduce(%squares init: %zero) applies stablehlo.add across dimensions = [1]
        : (tensor<${x.size / max(dim, 1)}x${dim}xf32>, tensor<f32>) -> tensor<${x.size / max(dim, 1)}xf32>
    %mean = stablehlo.divide %sum, %count : tensor<${x.size / max(dim, 1)}xf32>
    %safe = stablehlo.add %mean, %eps : tensor<${x.size / max(dim, 1)}xf32>
    %factor = stablehlo.rsqrt %safe : tensor<${x.size / max(dim, 1)}xf32>
    %factors = stablehlo.broadcast_in_dim %factor, dims = [0]
        : (tensor<${x.size / max(dim, 1)}xf32>) -> tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %scales = stablehlo.broadcast_in_dim %scale, dims = [1]
        : (tensor<${dim}xf32>) -> tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %normed = stablehlo.multiply %wide, %factors : tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %result = stablehlo.multiply %normed, %scales : tensor<${x.size / max(dim, 1)}x${dim}xf32>
    %out = stablehlo.convert %result : (tensor<${x.size / max(dim, 1)}x${dim}xf32>) -> tensor<${x.size / max(dim, 1)}x${dim}x${y.element}>
    return %out : tensor<${x.size / max(dim, 1)}x${dim}x${y.element}>
  }
}
