//! Caches the latest result of a function while its argument stays the same.
//!
//! The estimates of the path rarely change between ACKs, so the divisions that depend on them can
//! be cached.

use core::cell::Cell;

/// An argument and its result.
#[derive(Clone, Debug)]
pub struct Memo<Q: Copy, A: Copy>(Cell<Option<(Q, A)>>);

impl<Q: Copy, A: Copy> Default for Memo<Q, A> {
    fn default() -> Self {
        Memo(Cell::new(None))
    }
}

impl<Q: Copy + PartialEq, A: Copy> Memo<Q, A> {
    /// Returns the result for `question`. The result is computed again if `question` has changed.
    #[inline]
    pub fn get(&self, question: Q, find: impl FnOnce() -> A) -> A {
        if let Some((known, answer)) = self.0.get()
            && known == question
        {
            return answer;
        }
        let answer = find();
        self.0.set(Some((question, answer)));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_computed_once_until_the_argument_changes() {
        let (memo, found) = (Memo::default(), Cell::new(0));
        let square = |n: u32| {
            memo.get(n, || {
                found.set(found.get() + 1);
                n * n
            })
        };
        assert_eq!([3, 3, 4, 4, 3].map(square), [9, 9, 16, 16, 9]);
        assert_eq!(found.get(), 3);
    }
}
