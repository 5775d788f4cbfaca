//! The star view on differential dataflow, one worker, in three plans:
//!
//!   joins    binary joins, each dimension arranged once, each intermediate arranged: `join_core` as in differential's own examples
//!   delta    a delta query: a path of half joins for each input, none of which keeps an intermediate, after differential-dogs3's delta_query2
//!   pruned   of the delta query the fact table's path alone, as one would write who knows that dimension rows come before their fact rows and never
//!            change; it need not keep fact rows
//!
//! Sum and count ride in the difference and `count_total_core` reports them, which differential's documentation prefers to `reduce` wherever
//! times are totally ordered. Its examples use mimalloc, and so does this.

use std::cell::RefCell;
use std::rc::Rc;

use differential_dataflow::AsCollection;
use differential_dataflow::VecCollection;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::operators::count::CountTotal;
use differential_dataflow::trace::implementations::ValSpine;
use differential_dogs3::operators::half_join;
use mimalloc::MiMalloc;
use stream::{DIMENSIONS, Part, Stream, Times, View};
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::vec::Map;
use timely::progress::Antichain;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

type Time = u32;
type Four = [i64; DIMENSIONS];
type Fact = (Four, i64);
type DimensionRow = (i64, i64);
/// A fact row on its way through the joins: the attributes found so far, its keys, its amount.
type Partial = (Four, Four, i64);
type Dimension<'s> = Arranged<'s, TraceAgent<ValSpine<i64, i64, Time, i64>>>;

fn with((mut attributes, keys, amount): Partial, dimension: usize, attribute: i64) -> Partial {
    attributes[dimension] = attribute;
    (attributes, keys, amount)
}

/// The joined rows of the binary joins: d0, d1, d2, d3 in turn.
fn binary_joins<'s>(facts: VecCollection<'s, Time, Fact, i64>, dimensions: &[Dimension<'s>]) -> VecCollection<'s, Time, Partial, i64> {
    let mut rows = facts.map(|(keys, amount)| ([0; DIMENSIONS], keys, amount));
    for (d, dimension) in dimensions.iter().enumerate() {
        rows = rows
            .map(move |row| (row.1[d], row))
            .arrange_by_key()
            .join_core(dimension.clone(), move |_, &row, &attribute| Some(with(row, d, attribute)));
    }
    rows
}

/// A row and the time it was driven by, which decides what it sees.
type Driven<'s> = VecCollection<'s, Time, (Partial, Time), i64>;

/// One step of a path. A row sees a dimension's changes of its own time if `same_time`, else the earlier ones.
fn look_up<'s>(rows: Driven<'s>, dimension: &Dimension<'s>, d: usize, same_time: bool) -> Driven<'s> {
    let keyed = rows.inner.map(move |((row, driven), time, weight)| ((row.1[d], row, driven), time, weight)).as_collection();
    let found = move |_: &i64, &row: &Partial, &attribute: &i64| with(row, d, attribute);
    if same_time {
        half_join(keyed, dimension.clone(), compacted_to, |t1, t2| t1.le(t2), found)
    } else {
        half_join(keyed, dimension.clone(), compacted_to, |t1, t2| t1.lt(t2), found)
    }
}

/// Times up to here may become one another: what tells before from after must not.
fn compacted_to(time: &Time, frontier: &mut Antichain<Time>) {
    frontier.insert(time.saturating_sub(1));
}

/// The fact table comes first in the order of inputs: its changes see those of every dimension at their own time.
fn fact_path<'s>(facts: VecCollection<'s, Time, Fact, i64>, dimensions: &[Dimension<'s>]) -> Driven<'s> {
    let mut rows =
        facts.inner.map(|((keys, amount), time, weight)| ((([0; DIMENSIONS], keys, amount), time), time, weight)).as_collection();
    for (d, dimension) in dimensions.iter().enumerate() {
        rows = look_up(rows, dimension, d, true);
    }
    rows
}

/// Changes of dimension `d` find the earlier fact rows under their key, then the other dimensions.
fn dimension_path<'s>(
    d: usize,
    changes: VecCollection<'s, Time, DimensionRow, i64>,
    facts: VecCollection<'s, Time, Fact, i64>,
    dimensions: &[Dimension<'s>],
) -> Driven<'s> {
    let facts_by_key = facts.map(move |(keys, amount)| (keys[d], (keys, amount))).arrange_by_key();
    let driving = changes.inner.map(|((key, attribute), time, weight)| ((key, attribute, time), time, weight)).as_collection();
    let mut rows = half_join(
        driving,
        facts_by_key,
        compacted_to,
        |t1, t2| t1.lt(t2),
        move |_, &attribute, &(keys, amount)| with(([0; DIMENSIONS], keys, amount), d, attribute),
    );
    for (other, dimension) in dimensions.iter().enumerate().filter(|&(other, _)| other != d) {
        rows = look_up(rows, dimension, other, other > d);
    }
    rows
}

fn joined<'s>(
    plan: &str,
    facts: VecCollection<'s, Time, Fact, i64>,
    dimensions: &[VecCollection<'s, Time, DimensionRow, i64>],
) -> VecCollection<'s, Time, Partial, i64> {
    let arranged: Vec<Dimension<'s>> = dimensions.iter().map(|d| d.clone().arrange_by_key()).collect();
    match plan {
        "joins" => return binary_joins(facts, &arranged),
        "delta" | "pruned" => {}
        _ => panic!("the plan is joins, delta or pruned"),
    }
    let mut rows = fact_path(facts.clone(), &arranged);
    if plan == "delta" {
        for (d, changes) in dimensions.iter().enumerate() {
            rows = rows.concat(dimension_path(d, changes.clone(), facts.clone(), &arranged));
        }
    }
    rows.inner.map(|((row, time), _, weight)| (row, time, weight)).as_collection()
}

struct Inputs {
    facts: InputSession<Time, Fact, i64>,
    dimensions: Vec<InputSession<Time, DimensionRow, i64>>,
}

impl Inputs {
    fn update(&mut self, part: &Part) {
        let columns = &part.columns;
        for row in 0..columns[0].len() {
            if part.table == DIMENSIONS {
                let keys = [columns[0][row], columns[1][row], columns[2][row], columns[3][row]];
                self.facts.update((keys, columns[4][row]), part.weight);
            } else {
                self.dimensions[part.table].update((columns[0][row], columns[1][row]), part.weight);
            }
        }
    }

    fn advance_to(&mut self, time: Time) {
        self.facts.advance_to(time);
        self.facts.flush();
        for dimension in &mut self.dimensions {
            dimension.advance_to(time);
            dimension.flush();
        }
    }
}

type Changes = Rc<RefCell<Vec<((i64, (i64, i64)), i64)>>>;

fn main() {
    let (directory, view_path, plan) = stream::arguments();
    timely::execute_directly(move |worker| {
        let mut stream = Stream::open(&directory);
        let attributes = stream.attributes;
        let mut probe = Handle::new();
        let changes = Changes::default();
        let told = changes.clone();
        let mut inputs = worker.dataflow::<Time, _, _>(|scope| {
            let (facts_input, facts) = scope.new_collection();
            let (dimension_inputs, dimensions): (Vec<_>, Vec<_>) = (0..DIMENSIONS).map(|_| scope.new_collection()).unzip();
            joined(&plan, facts, &dimensions)
                .inner
                .map(move |((found, _, amount), time, weight)| (Stream::group(&attributes, &found), time, (amount * weight, weight)))
                .as_collection()
                .count_total_core::<i64>()
                .inspect(move |&(row, _, weight)| told.borrow_mut().push((row, weight)))
                .probe_with(&mut probe);
            Inputs { facts: facts_input, dimensions: dimension_inputs }
        });
        let (mut times, mut view, mut time) = (Times::default(), View::default(), 0);
        while let Some(push) = stream.next() {
            time += 1;
            times.measure(push.timed, || {
                push.parts.iter().for_each(|part| inputs.update(part));
                inputs.advance_to(time);
                worker.step_while(|| probe.less_than(&time));
            });
            for ((group, (total, count)), weight) in changes.borrow_mut().drain(..) {
                view.add(group, total, count, weight);
            }
        }
        times.print(&stream, &format!("\"program\": \"differential-dataflow {plan}\", \"allocator\": \"mimalloc\""));
        view.write(&view_path, &attributes);
    });
}
