//! The guide, carried out: every command block of its pages is run in the order in
//! which an administrator would, by a shell, on a cluster with the real Helm and kubectl.
//!
//! What a page shows below a command is what the command has to say. A block that
//! cannot run here says why. No other way of doing the same is tried. The runbooks'
//! commands are tried on the way, while there is something to look at.

mod ground;
mod page;
mod runbooks;
mod shown;

use ground::Ground;
use page::{Page, pages};

/// The pages build on one another, as the guide tells them.
const ORDER: [&str; 8] = [
    "installing",
    "values",
    "tenants",
    "monitoring",
    "high-availability",
    "upgrading",
    "troubleshooting",
    "uninstalling",
];

/// Pages that need a container engine or a registry from the first line to the last.
const NOTHING_TO_RUN: [&str; 1] = ["images"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_the_guide_does_what_the_guide_says() {
    let pages = pages().unwrap();
    each_page_has_its_place(&pages);

    let ground = Ground::new().await.unwrap();
    let mut wrong = Vec::new();
    let (mut ran, mut left_out) = (0, 0);
    for name in ORDER {
        let page = pages.iter().find(|page| page.name == name).unwrap();
        let started = std::time::Instant::now();
        let (mut here, mut not_here) = (0, 0);
        for block in &page.blocks {
            if block.not_run.is_some() {
                ground.stand_in_for(block).await.unwrap();
                not_here += 1;
                continue;
            }
            for command in &block.commands {
                if let Err(error) = ground.carry_out(command).await {
                    wrong.push(format!("docs/guide/{name}.md:{}: {error:#}", command.line));
                }
                here += 1;
            }
        }
        println!(
            "{name}: {here} commands ran in {:.0} s, {not_here} blocks cannot run here",
            started.elapsed().as_secs_f64()
        );
        ran += here;
        left_out += not_here;
        // What comes after counts on what came before.
        assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
        if name == "troubleshooting" {
            let looked = runbooks::look(&ground).await.unwrap();
            println!("the runbooks: {looked} commands look at what exists");
        }
    }
    println!("the guide: {ran} commands ran, {left_out} blocks cannot run here");
    assert!(ran >= 60, "only {ran} commands were found in the guide");
}

/// A new page is either carried out or named as one that cannot be.
fn each_page_has_its_place(pages: &[Page]) {
    for page in pages {
        let name = page.name.as_str();
        let told = ORDER.contains(&name);
        let quiet = NOTHING_TO_RUN.contains(&name);
        assert!(
            told != quiet,
            "{name} has no place in the order of the guide"
        );
        assert!(told || page.blocks.is_empty(), "{name} has commands to run");
    }
}
