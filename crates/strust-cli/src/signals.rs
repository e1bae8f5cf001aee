//! Requests to stop: Ctrl-C, and on Unix also `SIGTERM` and `SIGHUP`.

use crate::{CommandFailure, CommandResult};

/// Calls `act` in a thread of its own at each request.
pub fn on_stop(act: impl FnMut() + Send + 'static) -> CommandResult {
    watch(act).map_err(|e| CommandFailure::Failed(format!("cannot handle Ctrl-C: {e}")))
}

#[cfg(unix)]
fn watch(mut act: impl FnMut() + Send + 'static) -> std::io::Result<()> {
    use signal_hook::{
        consts::{SIGHUP, SIGINT, SIGTERM},
        iterator::Signals,
    };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || signals.forever().for_each(|_| act()));
    Ok(())
}

#[cfg(not(unix))]
fn watch(mut act: impl FnMut() + Send + 'static) -> std::io::Result<()> {
    use signal_hook::{
        consts::{SIGINT, SIGTERM},
        flag::register,
    };
    use std::sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    };
    let asked = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        register(signal, Arc::clone(&asked))?;
    }
    // Without Unix signals there is nothing to wait for.
    std::thread::spawn(move || {
        loop {
            if asked.swap(false, Ordering::Relaxed) {
                act();
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    });
    Ok(())
}
