"""The command line. Only light imports here: heavy libraries load when a command needs them."""
