"""What the softspike command does, one module for each kind of job. Imported only when it is asked for."""
