internal import ArgumentParser

/// The parent of the commands that manage the store.
struct StoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Migrates, checks, backs up and restores the store, and rotates the challenge keys.",
    discussion: """
      Example: a backup while the gate runs, and a test restore

        sallyport store backup /var/backups/monday.db
        sallyport store restore /var/backups/monday.db --store sqlite:///tmp/t.db
      """,
    subcommands: [
      StoreMigrateCommand.self, StoreCheckCommand.self, StoreBackupCommand.self, StoreRestoreCommand.self,
      StoreRotateCommand.self,
    ])
}
