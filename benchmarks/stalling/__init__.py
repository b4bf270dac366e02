"""How long others wait: attacks, the nodes that are attacked, and a bystander in a process of its own."""
