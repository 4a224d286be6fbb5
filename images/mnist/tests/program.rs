//! The program as people run it.

paceline_harness::workload_tests!("mnist", env!("CARGO_BIN_EXE_mnist"), data);
