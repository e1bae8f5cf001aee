//! exp and tanh by plain arithmetic. The compiler turns a loop over them into SIMD code, and every machine gives the
//! same bits.

use std::f64::consts::LOG2_E;

/// Below this, exp is 0 here. Its value would be near 2⁻¹⁰²², the smallest normal number.
const LOWEST: f64 = -708.0;

/// (2ᵏ, eʳ − 1) with y = k·ln 2 + r and |r| ≤ ½ ln 2, for `LOWEST` ≤ y ≤ 0.
#[inline(always)]
fn parts(y: f64) -> (f64, f64) {
    // Adding 1.5·2⁵² rounds to a whole number and stores it in the lowest bits.
    const ROUND: f64 = 6_755_399_441_055_744.0;
    // ln 2 in two pieces; k times the first one is exact.
    const LN2_HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
    const LN2_LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);
    // 1/j! for j from 13 down to 1; the next term is below 2⁻⁵⁶ of the sum.
    const TAYLOR: [f64; 13] = {
        let (mut table, mut term, mut j) = ([1.0; 13], 1.0, 1);
        while j <= 13 {
            term /= j as f64;
            table[13 - j] = term;
            j += 1;
        }
        table
    };
    let shifted = y * LOG2_E + ROUND;
    let k = shifted - ROUND;
    let r = (y - k * LN2_HIGH) - k * LN2_LOW;
    let mut sum = TAYLOR[0];
    for factor in &TAYLOR[1..] {
        sum = sum * r + factor;
    }
    (f64::from_bits((shifted.to_bits().wrapping_add(1023)) << 52), sum * r)
}

/// eʸ for y ≤ 0, with an error of about one rounding error; 0 below −708; NaN for NaN.
#[must_use]
#[inline(always)]
pub fn exp_of_negative(y: f64) -> f64 {
    let (power, rest) = parts(if y < LOWEST { LOWEST } else { y });
    if y < LOWEST { 0.0 } else { power + power * rest }
}

/// tanh x, with a relative error of a few rounding errors, even for small x; NaN for NaN.
#[must_use]
#[inline(always)]
pub fn tanh(x: f64) -> f64 {
    // tanh |x| = −m/(2 + m) with m = e^(−2|x|) − 1; beyond 20 it rounds to 1.
    let y = -2.0 * x.abs();
    let (power, rest) = parts(if y < -40.0 { -40.0 } else { y });
    let m = power * rest + (power - 1.0);
    (-m / (2.0 + m)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(found: f64, expected: f64, errors: f64) -> bool {
        (found - expected).abs() <= errors * f64::EPSILON * expected.abs()
    }

    proptest! {
        #[test]
        fn exp_and_tanh_agree_with_the_standard_library(x in -700.0..0.0, exponent in -300.0..1.5) {
            prop_assert!(near(exp_of_negative(x), x.exp(), 1.5));
            let x = 10_f64.powf(exponent);
            prop_assert!(near(tanh(x), x.tanh(), 3.0), "{x}: {} {}", tanh(x), x.tanh());
            prop_assert_eq!(tanh(-x).to_bits(), (-tanh(x)).to_bits());
        }
    }

    #[test]
    fn the_ends_of_the_range_are_exact_and_nan_stays_nan() {
        assert_eq!(exp_of_negative(0.0).to_bits(), 1.0_f64.to_bits());
        assert_eq!(exp_of_negative(-0.0).to_bits(), 1.0_f64.to_bits());
        for y in [-709.0, -1e300, f64::NEG_INFINITY] {
            assert_eq!(exp_of_negative(y).to_bits(), 0);
        }
        for (x, expected) in [(0.0, 0.0), (-0.0, -0.0), (19.5, 1.0), (1e300, 1.0), (f64::NEG_INFINITY, -1.0_f64)] {
            assert_eq!(tanh(x).to_bits(), expected.to_bits(), "tanh {x}");
        }
        assert!(exp_of_negative(f64::NAN).is_nan() && tanh(f64::NAN).is_nan());
    }
}
