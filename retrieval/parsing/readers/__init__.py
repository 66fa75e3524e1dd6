"""One file a format. Each declares a FORMAT; whatever stands here is found and used."""
