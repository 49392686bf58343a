"""Running a host and looking: hooks, statistics, captured calls, measured facts."""
