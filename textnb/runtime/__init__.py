"""What the work runs on: threads, memory, forks, interrupts, warnings, HTML for notebooks."""
