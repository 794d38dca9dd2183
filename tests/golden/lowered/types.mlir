module @types {
  func.func public @main(%arg0: tensor<2xbf16>, %arg1: tensor<2xf16>, %arg2: tensor<2xf32>, %arg3: tensor<2xf64>, %arg4: tensor<2xi8>, %arg5: tensor<2xi16>, %arg6: tensor<2xi32>, %arg7: tensor<2xi64>, %arg8: tensor<2xui8>, %arg9: tensor<2xui32>, %arg10: tensor<2xi1>, %arg11: tensor<2xf8E5M2>, %arg12: tensor<2xf8E4M3FN>, %arg13: tensor<complex<f32>>) -> tensor<i8> {
    %0 = stablehlo.constant dense<5> : tensor<i8>
    %1 = stablehlo.constant dense<-7> : tensor<i16>
    %2 = stablehlo.constant dense<1.500000e+00> : tensor<f64>
    %3 = stablehlo.constant dense<2.500000e+00> : tensor<bf16>
    %4 = stablehlo.constant dense<200> : tensor<ui8>
    %5 = stablehlo.negate %arg3 : tensor<2xf64>
    %6 = stablehlo.negate %arg0 : tensor<2xbf16>
    %7 = stablehlo.negate %arg1 : tensor<2xf16>
    %8 = stablehlo.negate %arg2 : tensor<2xf32>
    %9 = stablehlo.negate %arg4 : tensor<2xi8>
    %10 = stablehlo.not %arg10 : tensor<2xi1>
    %11 = stablehlo.not %arg8 : tensor<2xui8>
    %12 = stablehlo.negate %arg11 : tensor<2xf8E5M2>
    %13 = stablehlo.negate %arg12 : tensor<2xf8E4M3FN>
    %14 = stablehlo.negate %arg5 : tensor<2xi16>
    %15 = stablehlo.negate %arg6 : tensor<2xi32>
    %16 = stablehlo.negate %arg7 : tensor<2xi64>
    %17 = stablehlo.not %arg9 : tensor<2xui32>
    %18 = stablehlo.negate %arg13 : tensor<complex<f32>>
    return %0 : tensor<i8>
  }
}
