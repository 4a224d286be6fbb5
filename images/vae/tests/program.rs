//! The program as people run it.

paceline_harness::workload_tests!("vae", env!("CARGO_BIN_EXE_vae"), data);
