//! Samples that are queued on the device.

use crate::cuda;
use tch::{Device, Kind, Tensor};

/// Rows of numbers on the device, one per step. The index of the next row is also on the device, so that taking a row
/// is the same operation each time.
#[derive(Debug)]
pub(crate) struct SampleQueue {
    rows: Tensor,
    next: Tensor,
}

impl SampleQueue {
    /// Room for `rows` rows of `width` numbers.
    pub fn new(rows: usize, width: usize, device: Device) -> Self {
        let rows = Tensor::zeros([rows as i64, width as i64], (Kind::Int64, device));
        Self { rows, next: Tensor::zeros([1], (Kind::Int64, device)) }
    }
    /// Copies rows to the device, in one copy. The first of them is the next row.
    pub fn fill(&self, numbers: &[i64]) {
        let rows = upload(numbers, self.rows.device()).view([-1, self.rows.size()[1]]);
        self.rows.narrow(0, 0, rows.size()[0]).copy_(&rows);
        let _ = self.next.shallow_clone().zero_();
    }
    /// Takes the next row.
    pub fn take(&self) -> Tensor {
        let row = self.rows.index_select(0, &self.next).squeeze_dim(0);
        let _ = self.next.shallow_clone().g_add_scalar_(1);
        row
    }
}

/// Copies numbers to a device. A GPU copies them from pinned memory, and the host does not wait.
pub(crate) fn upload(numbers: &[i64], device: Device) -> Tensor {
    let here = Tensor::from_slice(numbers);
    match device {
        Device::Cuda(_) => cuda::pinned(&here).to_device_(device, Kind::Int64, true, false),
        _ => here.to_device(device),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_taken_in_their_order() {
        let queue = SampleQueue::new(2, 3, Device::Cpu);
        queue.fill(&[1, 2, 3, 4, 5, 6]);
        let taken = [queue.take(), queue.take()].map(|row| Vec::<i64>::try_from(row).unwrap());
        assert_eq!(taken, [[1, 2, 3], [4, 5, 6]]);
    }
}
