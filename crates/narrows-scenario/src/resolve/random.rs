//! Random numbers for the patterns of flows. They equal the numbers of Python's `random.Random(text).random()`, so that
//! a scenario keeps its pairs of hosts.

use sha2::{Digest, Sha512};

const LENGTH: usize = 624;
const MIDDLE: usize = 397;

/// The Mersenne Twister MT19937 (Matsumoto and Nishimura 1998), seeded with a text.
pub(super) struct Random {
    state: [u32; LENGTH],
    used: usize,
}

impl Random {
    /// Seeds the generator. The seed is the number whose bytes are the text and the SHA-512 of the text.
    pub(super) fn new(text: &str) -> Self {
        let mut bytes = text.as_bytes().to_vec();
        bytes.extend(Sha512::digest(text.as_bytes()));
        // The words of the number, the least significant word first.
        let mut key: Vec<u32> = bytes
            .rchunks(4)
            .map(|word| word.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte)))
            .collect();
        while key.len() > 1 && key.last() == Some(&0) {
            key.pop();
        }
        Random { state: by_array(&key), used: LENGTH }
    }

    /// Returns the next number, from 0 to below 1, with 53 random bits.
    pub(super) fn next(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// Returns a random number below `count`.
    pub(super) fn below(&mut self, count: usize) -> usize {
        (self.next() * count as f64) as usize
    }

    fn word(&mut self) -> u32 {
        if self.used >= LENGTH {
            self.refill();
            self.used = 0;
        }
        let mut word = self.state[self.used];
        self.used += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    fn refill(&mut self) {
        for i in 0..LENGTH {
            let joined = self.state[i] & 0x8000_0000 | self.state[(i + 1) % LENGTH] & 0x7fff_ffff;
            let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[i] = self.state[(i + MIDDLE) % LENGTH] ^ joined >> 1 ^ twist;
        }
    }
}

/// Returns the initial state for a key of several words, as in the authors' `init_by_array`.
fn by_array(key: &[u32]) -> [u32; LENGTH] {
    let mut state = [0u32; LENGTH];
    state[0] = 19_650_218;
    for i in 1..LENGTH {
        let before = state[i - 1] ^ state[i - 1] >> 30;
        state[i] = before.wrapping_mul(1_812_433_253).wrapping_add(i as u32);
    }
    let (mut i, mut j) = (1, 0);
    for _ in 0..LENGTH.max(key.len()) {
        let before = state[i - 1] ^ state[i - 1] >> 30;
        state[i] = (state[i] ^ before.wrapping_mul(1_664_525))
            .wrapping_add(key.get(j).copied().unwrap_or(0))
            .wrapping_add(j as u32);
        i += 1;
        j += 1;
        if i >= LENGTH {
            state[0] = state[LENGTH - 1];
            i = 1;
        }
        if j >= key.len() {
            j = 0;
        }
    }
    for _ in 1..LENGTH {
        let before = state[i - 1] ^ state[i - 1] >> 30;
        state[i] = (state[i] ^ before.wrapping_mul(1_566_083_941)).wrapping_sub(i as u32);
        i += 1;
        if i >= LENGTH {
            state[0] = state[LENGTH - 1];
            i = 1;
        }
    }
    state[0] = 0x8000_0000;
    state
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_numbers_are_those_of_python() {
        // python3 -c "import random; r = random.Random('1/0'); print([r.random() for _ in range(3)])"
        let mut random = Random::new("1/0");
        let numbers = [random.next(), random.next(), random.next()];
        assert_eq!(numbers, PYTHON);
    }

    const PYTHON: [f64; 3] = [0.9064717269000477, 0.3812832754115595, 0.4394428961257655];
}
