//! The star view on dbsp, one worker thread. A chain of `join_index`, after the binary joins of dbsp's benches/star_join.rs (its star join wants one key
//! for all inputs, which a star does not have), then `aggregate_linear` as in the tutorial, for sum and count are linear. Tables are Z-sets without
//! a primary key: an upsert would cost dbsp a lookup. Its benches use the mimalloc that it ships, and so does this.

use dbsp::circuit::CircuitConfig;
use dbsp::mimalloc::MiMalloc;
use dbsp::typed_batch::{IndexedZSetReader, SpineSnapshot};
use dbsp::utils::{Tup2, Tup3, Tup4, Tup5};
use dbsp::{IndexedZSetHandle, OrdIndexedZSet, OutputHandle, RootCircuit, Runtime, ZSetHandle};
use stream::{DIMENSIONS, Part, Stream, Times, View};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

type Fact = Tup5<i64, i64, i64, i64, i64>;
type Dimension = IndexedZSetHandle<i64, i64>;
type Output = OutputHandle<SpineSnapshot<OrdIndexedZSet<i64, Tup2<i64, i64>>>>;

/// Each join carries on what later ones need: the keys that are left, the group so far, the amount.
fn build(circuit: &mut RootCircuit, attributes: [i64; DIMENSIONS]) -> (ZSetHandle<Fact>, Vec<Dimension>, Output) {
    let (facts, facts_handle) = circuit.add_input_zset::<Fact>();
    let (streams, handles): (Vec<_>, Vec<_>) = (0..DIMENSIONS).map(|_| circuit.add_input_indexed_zset::<i64, i64>()).unzip();
    let output = facts
        .map_index(|&Tup5(k0, k1, k2, k3, amount)| (k0, Tup4(k1, k2, k3, amount)))
        .join_index(&streams[0], |_, &Tup4(k1, k2, k3, amount), &a| Some((k1, Tup4(k2, k3, a, amount))))
        .join_index(&streams[1], move |_, &Tup4(k2, k3, group, amount), &a| Some((k2, Tup3(k3, group * attributes[1] + a, amount))))
        .join_index(&streams[2], move |_, &Tup3(k3, group, amount), &a| Some((k3, Tup2(group * attributes[2] + a, amount))))
        .join_index(&streams[3], move |_, &Tup2(group, amount), &a| Some((group * attributes[3] + a, amount)))
        .aggregate_linear(|&amount| Tup2(amount, 1))
        .accumulate_output();
    (facts_handle, handles, output)
}

/// The rows of a push as the handles take them, made outside the clock.
#[derive(Default)]
struct Rows {
    facts: Vec<Tup2<Fact, i64>>,
    dimensions: [Vec<Tup2<i64, Tup2<i64, i64>>>; DIMENSIONS],
}

fn rows_of(parts: &[Part]) -> Rows {
    let mut rows = Rows::default();
    for Part { table, weight, columns } in parts {
        for row in 0..columns[0].len() {
            if *table == DIMENSIONS {
                let fact = Tup5(columns[0][row], columns[1][row], columns[2][row], columns[3][row], columns[4][row]);
                rows.facts.push(Tup2(fact, *weight));
            } else {
                rows.dimensions[*table].push(Tup2(columns[0][row], Tup2(columns[1][row], *weight)));
            }
        }
    }
    rows
}

fn main() {
    let (directory, view_path, _) = stream::arguments();
    let mut stream = Stream::open(&directory);
    let attributes = stream.attributes;
    let (mut circuit, (facts, dimensions, output)) =
        Runtime::init_circuit(CircuitConfig::with_workers(1), move |circuit| Ok(build(circuit, attributes))).expect("a circuit");
    let (mut times, mut view) = (Times::default(), View::default());
    while let Some(push) = stream.next() {
        let mut rows = rows_of(&push.parts);
        times.measure(push.timed, || {
            facts.append(&mut rows.facts);
            for (handle, rows) in dimensions.iter().zip(&mut rows.dimensions) {
                handle.append(rows);
            }
            circuit.transaction().expect("a transaction");
        });
        for (group, Tup2(total, count), weight) in output.concat().consolidate().iter() {
            view.add(group, total, count, weight);
        }
    }
    times.print(&stream, "\"program\": \"dbsp\", \"allocator\": \"mimalloc\"");
    view.write(&view_path, &attributes);
    circuit.kill().expect("an end");
}
