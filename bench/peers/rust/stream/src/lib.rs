//! The batches of a star as `ivm bench dump` writes them (bench/star/star_stream.h has the format), read a push at a time and outside the clock,
//! and what a program that carried them through prints and writes.

use std::collections::BTreeMap;
use std::fs::{File, read_to_string};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

pub const DIMENSIONS: usize = 4;

pub struct Part {
    /// A dimension's number; `DIMENSIONS` is the fact table.
    pub table: usize,
    pub weight: i64,
    /// Key and attribute; of the fact table four keys and the amount.
    pub columns: Vec<Vec<i64>>,
}

pub struct Push {
    pub timed: bool,
    pub parts: Vec<Part>,
}

pub struct Stream {
    pub attributes: [i64; DIMENSIONS],
    unit: String,
    units: u64,
    pushes: Vec<String>,
    next: usize,
    cells: BufReader<File>,
}

impl Stream {
    pub fn open(directory: &str) -> Stream {
        let text = read_to_string(Path::new(directory).join("star.txt")).expect("star.txt");
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("ivm star 1"));
        let mut stream = Stream {
            attributes: [0; DIMENSIONS],
            unit: String::new(),
            units: 0,
            pushes: Vec::new(),
            next: 0,
            cells: BufReader::new(File::open(Path::new(directory).join("star.bin")).expect("star.bin")),
        };
        for line in lines {
            match line.split_once(' ') {
                Some(("attributes", rest)) => {
                    let numbers: Vec<i64> = rest.split(' ').map(|n| n.parse().expect("a number")).collect();
                    stream.attributes = numbers.try_into().expect("four dimensions");
                }
                Some(("unit", rest)) => {
                    let (unit, units) = rest.split_once(' ').expect("a unit and its number");
                    stream.unit = unit.to_string();
                    stream.units = units.parse().expect("a number");
                }
                Some(("push", rest)) => stream.pushes.push(rest.to_string()),
                _ => panic!("star.txt: {line}"),
            }
        }
        stream
    }

    /// The number of a group, by which programs group instead of by four attributes; `View` takes it apart.
    pub fn group(attributes: &[i64; DIMENSIONS], of: &[i64; DIMENSIONS]) -> i64 {
        (0..DIMENSIONS).fold(0, |group, d| group * attributes[d] + of[d])
    }

    fn column(&mut self, rows: usize) -> Vec<i64> {
        let mut bytes = vec![0; rows * 8];
        self.cells.read_exact(&mut bytes).expect("star.bin ends early");
        bytes.chunks_exact(8).map(|cell| i64::from_le_bytes(cell.try_into().unwrap())).collect()
    }
}

impl Iterator for Stream {
    type Item = Push;

    fn next(&mut self) -> Option<Push> {
        let line = self.pushes.get(self.next)?.clone();
        self.next += 1;
        let words: Vec<&str> = line.split(' ').collect();
        let mut parts = Vec::new();
        for part in words[1..].chunks_exact(3) {
            let table = if part[0] == "f" { DIMENSIONS } else { part[0][1..].parse().expect("a dimension") };
            let rows = part[2].parse().expect("a number of rows");
            let columns = if table == DIMENSIONS { DIMENSIONS + 1 } else { 2 };
            parts.push(Part {
                table,
                weight: if part[1] == "+" { 1 } else { -1 },
                columns: (0..columns).map(|_| self.column(rows)).collect(),
            });
        }
        Some(Push { timed: words[0] == "timed", parts })
    }
}

/// Processor time of all threads, which tells more than the clock where others use the machine too.
fn processor_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[derive(Default)]
pub struct Times {
    timed: Vec<u128>,
    timed_processor: u128,
    before: u128,
}

impl Times {
    /// Carries one push through and adds up what that took.
    pub fn measure(&mut self, timed: bool, push: impl FnOnce()) {
        let start_processor = processor_time();
        let start = Instant::now();
        push();
        let spent = start.elapsed().as_nanos();
        if timed {
            self.timed_processor += (processor_time() - start_processor).as_nanos();
            self.timed.push(spent);
        } else {
            self.before += spent;
        }
    }

    /// Prints them as one JSON line; `about` is members without braces.
    pub fn print(mut self, stream: &Stream, about: &str) {
        self.timed.sort_unstable();
        let pushes = self.timed.len();
        let (total, p50, p99) = (self.timed.iter().sum::<u128>(), self.timed[pushes / 2], self.timed[(pushes * 99 / 100).min(pushes - 1)]);
        println!(
            "{{\"timed_ns\": {total}, \"timed_cpu_ns\": {}, \"pushes\": {pushes}, \"p50_ns\": {p50}, \"p99_ns\": {p99}, \"before_ns\": {}, \"unit\": \"{}\", \"units\": {}, {about}}}",
            self.timed_processor, self.before, stream.unit, stream.units
        );
    }
}

/// What a program's output says the view holds: the changes that it brought, added up outside the clock.
#[derive(Default)]
pub struct View {
    rows: BTreeMap<(i64, i64, i64), i64>,
}

impl View {
    pub fn add(&mut self, group: i64, total: i64, count: i64, weight: i64) {
        let row = (group, total, count);
        let sum = self.rows.entry(row).or_insert(0);
        *sum += weight;
        if *sum == 0 {
            self.rows.remove(&row);
        }
    }

    pub fn write(&self, path: &str, attributes: &[i64; DIMENSIONS]) {
        let mut file = BufWriter::new(File::create(path).expect("the view's file"));
        for (&(group, total, count), &weight) in &self.rows {
            assert_eq!(weight, 1, "a group has one row");
            let mut cells = [0, 0, 0, 0, total, count];
            let mut rest = group;
            for d in (0..DIMENSIONS).rev() {
                cells[d] = rest % attributes[d];
                rest /= attributes[d];
            }
            for cell in cells {
                file.write_all(&cell.to_le_bytes()).expect("the view's file");
            }
        }
        file.flush().expect("the view's file");
    }
}

/// The command line of each program: DIRECTORY VIEW [PLAN].
pub fn arguments() -> (String, String, String) {
    let mut all = std::env::args().skip(1);
    let (directory, view) = (all.next().expect("a directory"), all.next().expect("a file for the view"));
    (directory, view, all.next().unwrap_or_default())
}
