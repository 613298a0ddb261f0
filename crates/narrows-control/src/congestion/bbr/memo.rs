//! The latest answer to a question, for as long as the question stays the same.
//!
//! The estimates of the path stand still from ACK to ACK, and what follows from them by divisions with them.

use core::cell::Cell;

/// A question and its answer.
#[derive(Clone, Debug)]
pub struct Memo<Q: Copy, A: Copy>(Cell<Option<(Q, A)>>);

impl<Q: Copy, A: Copy> Default for Memo<Q, A> {
    fn default() -> Self {
        Memo(Cell::new(None))
    }
}

impl<Q: Copy + PartialEq, A: Copy> Memo<Q, A> {
    /// The answer, found anew if something else was asked before.
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
    fn an_answer_is_found_once_until_something_else_is_asked() {
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
