//! The command `narrows-agent top`: shows the flows of a running agent, updated twice a second.

mod screen;
mod view;

use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ratatui::crossterm::event::{self, Event, KeyEventKind};

use crate::status::Snapshot;
use crate::status::client::Client;
use view::View;

/// Shows snapshots until the user quits or the agent ends.
///
/// # Errors
/// If there is no terminal.
pub fn run(client: Client) -> io::Result<()> {
    let (sender, snapshots) = mpsc::channel();
    thread::spawn(move || {
        // This thread ends when the agent ends or the user quits.
        for snapshot in client.map_while(Result::ok) {
            if sender.send(snapshot).is_err() {
                break;
            }
        }
    });
    let mut terminal = ratatui::try_init()?;
    let ended = watch(&mut terminal, &snapshots);
    ratatui::restore();
    ended
}

fn watch(terminal: &mut ratatui::DefaultTerminal, snapshots: &mpsc::Receiver<Snapshot>) -> io::Result<()> {
    let mut view = View::default();
    let mut latest = Snapshot::default();
    loop {
        loop {
            match snapshots.try_recv() {
                Ok(snapshot) => latest = snapshot,
                Err(mpsc::TryRecvError::Empty) => break,
                Err(mpsc::TryRecvError::Disconnected) => return Ok(()),
            }
        }
        view.fit(latest.flows.len());
        terminal.draw(|frame| screen::draw(frame, &latest, &view))?;
        if event::poll(Duration::from_millis(100))?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
            && view.press(key)
        {
            return Ok(());
        }
    }
}
