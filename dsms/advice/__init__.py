"""For people who choose a policy: why a decision falls as it does, what suits a plan, and pictures of both."""
