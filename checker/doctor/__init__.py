"""What `kata doctor` looks at: the machine and its software, never a learner's file. Imports torch in children only."""
