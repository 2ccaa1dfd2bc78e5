//! Elementary functions whose answers are the same on every platform.
//!
//! The standard library may hand these to the system's mathematics library, whose last digit differs between systems;
//! results that are compared bit for bit must not depend on it.

/// Natural logarithm.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// Logarithm to base 2.
pub fn log2(x: f64) -> f64 {
    libm::log2(x)
}

/// e to the power `x`.
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// `x` to the power `y`.
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// Square root.
pub fn sqrt(x: f64) -> f64 {
    libm::sqrt(x)
}

/// The largest whole number not above `x`.
pub fn floor(x: f64) -> f64 {
    libm::floor(x)
}

/// The nearest whole number, halves away from zero.
pub fn round(x: f64) -> f64 {
    libm::round(x)
}

/// The smallest whole number not below `x`.
pub fn ceil(x: f64) -> f64 {
    libm::ceil(x)
}

/// ln(1 + `x`), exact also where `x` is tiny.
pub fn ln_1p(x: f64) -> f64 {
    libm::log1p(x)
}

/// e to the power `x`, less 1, exact also where `x` is tiny.
pub fn exp_m1(x: f64) -> f64 {
    libm::expm1(x)
}
