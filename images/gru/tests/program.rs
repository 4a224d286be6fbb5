//! The program as people run it.

paceline_harness::workload_tests!("gru", env!("CARGO_BIN_EXE_gru"));
