from softspike.cli import app

app()
