"""`binlane demo`: the whole product on a real server of its own, every claim checked on the spot."""
