"""`softspike bench`: this library beside its peers, in one run on one machine."""
