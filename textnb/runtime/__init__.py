"""What runs beside the work: threads, interrupts."""
