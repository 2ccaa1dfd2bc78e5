//! How sure a number is that comes from several runs: its 95 % confidence interval.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Half of the interval of the mean of these values, which are taken to be normal (Student 1908); `None` of fewer than two.
pub fn of_mean(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(quantile(values.len())? * (squares / (n - 1.0) / n).sqrt())
}

/// Half of the interval of a number that was made of several runs, from what comes out if one after the other is left out: the
/// jackknife (Tukey 1958). Of a mean it is [`of_mean`]. `None` of fewer than two runs.
pub fn by_leaving_out(left_out: &[f64]) -> Option<f64> {
    let n = left_out.len() as f64;
    let mean = left_out.iter().sum::<f64>() / n;
    let squares: f64 = left_out.iter().map(|value| (value - mean).powi(2)).sum();
    Some(quantile(left_out.len())? * (squares * (n - 1.0) / n).sqrt()).filter(|half| half.is_finite())
}

/// The 97.5th percentile of Student's t with one degree of freedom fewer than there are values.
fn quantile(values: usize) -> Option<f64> {
    let freedom = values.checked_sub(1).filter(|freedom| *freedom > 0)?;
    Some(StudentsT::new(0.0, 1.0, freedom as f64).ok()?.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_mean_is_that_of_the_tables() {
        // t(0.975, 9) = 2.262; the values' deviation is 3.02765.
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        let half = of_mean(&values).expect("ten values");
        assert!((half - 2.262_157 * 3.027_650 / 10f64.sqrt()).abs() < 1e-4, "{half}");
        assert_eq!((of_mean(&[1.0]), of_mean(&[3.0, 3.0])), (None, Some(0.0)));
    }

    #[test]
    fn leaving_out_one_after_the_other_gives_the_same_for_a_mean() {
        let values = [3.0, 1.0, 4.0, 1.5, 9.0];
        let without = |i: usize| (values.iter().sum::<f64>() - values[i]) / 4.0;
        let half = by_leaving_out(&(0..5).map(without).collect::<Vec<_>>()).expect("five values");
        assert!((half - of_mean(&values).expect("five values")).abs() < 1e-12);
        assert_eq!(by_leaving_out(&[1.0]), None);
    }
}
