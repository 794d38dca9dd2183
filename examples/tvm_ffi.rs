// Calls hone through tvm-ffi's C interface, without a crate (docs/ffi.md):
//   rustc -O tvm_ffi.rs -L $TVM_FFI/lib -L FOLDER-OF-LIBHONE_FFI -C link-arg=-Wl,-rpath,$TVM_FFI/lib,-rpath,FOLDER-OF-LIBHONE_FFI
use std::ffi::{c_char, c_void};

// tvm-ffi's values, DLPack's tensors, errors: as far as this program needs them.
#[repr(C)]
#[derive(Clone, Copy)]
struct Any {
    kind: i32,
    size: u32,
    value: u64,
}

#[repr(C)]
struct Tensor {
    data: *mut f32,
    device: [i32; 2],
    rank: i32,
    dtype: [u8; 4],
    shape: *const i64,
    strides: *const i64,
    offset: u64,
}

#[repr(C)]
struct Text {
    data: *const u8,
    size: usize,
}

#[repr(C)]
struct Error {
    header: [u64; 3],
    kind: Text,
    message: Text,
}

const NONE: Any = Any { kind: 0, size: 0, value: 0 };

#[link(name = "tvm_ffi")]
extern "C" {
    fn TVMFFIErrorMoveFromRaised(out: *mut *mut Error);
    fn TVMFFIObjectDecRef(object: *mut c_void) -> i32;
    fn TVMFFIFunctionCall(function: *mut c_void, arguments: *const Any, count: i32, result: *mut Any) -> i32;
}

#[link(name = "hone_ffi")]
extern "C" {
    fn __tvm_ffi_hone_run(own: *mut c_void, arguments: *const Any, count: i32, result: *mut Any) -> i32;
    fn __tvm_ffi_hone_bind(own: *mut c_void, arguments: *const Any, count: i32, result: *mut Any) -> i32;
}

// The words of this thread's last error.
unsafe fn words() -> String {
    let mut error = std::ptr::null_mut();
    TVMFFIErrorMoveFromRaised(&mut error);
    let text = |text: &Text| String::from_utf8_lossy(std::slice::from_raw_parts(text.data, text.size)).into_owned();
    let all = format!("{}: {}", text(&(*error).kind), text(&(*error).message));
    TVMFFIObjectDecRef(error as *mut c_void);
    all
}

fn tensor(data: &mut [f32], shape: &'static [i64]) -> Tensor {
    let (device, dtype) = ([1, 0], [2, 32, 1, 0]); // the host, f32
    Tensor { data: data.as_mut_ptr(), device, rank: shape.len() as i32, dtype, shape: shape.as_ptr(), strides: std::ptr::null(), offset: 0 }
}

fn of(tensor: &Tensor) -> Any {
    Any { kind: 7, size: 0, value: tensor as *const Tensor as u64 }
}

fn main() {
    let (mut x, mut weight, mut y) = ([3f32; 1024], [2f32; 256], [0f32; 1024]);
    let (x, weight, result) = (tensor(&mut x, &[4, 256]), tensor(&mut weight, &[256]), tensor(&mut y, &[4, 256]));
    let name = Any { kind: 8, size: 0, value: b"rms_norm\0".as_ptr() as *const c_char as u64 };
    let right = [name, of(&x), of(&weight), of(&result)];
    let wrong = [name, of(&x), of(&x), of(&result)];
    let (own, mut plan, mut none) = (std::ptr::null_mut(), NONE, NONE);
    unsafe {
        assert_eq!(__tvm_ffi_hone_bind(own, right.as_ptr(), 4, &mut plan), 0);
        for _ in 0..100_000 {
            assert_eq!(TVMFFIFunctionCall(plan.value as *mut c_void, right[1..].as_ptr(), 3, &mut none), 0);
        }
        println!("y[0] is {:.3}", *result.data);
        TVMFFIObjectDecRef(plan.value as *mut c_void);
        if __tvm_ffi_hone_run(own, wrong.as_ptr(), 4, &mut none) != 0 {
            println!("{}", words());
        }
    }
}
