internal import ArgumentParser

/// The store as a whole, for operators.
struct StoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Migrates, checks, backs up and restores the store, and replaces the keys of nonces.",
    discussion: """
      Example: a backup while the gate works, and what it is worth

        sallyport store backup /var/backups/sallyport-monday.db -c /etc/sallyport/sallyport.yaml
        sallyport store restore /var/backups/sallyport-monday.db --store sqlite:///tmp/trial.db
      """,
    subcommands: [
      StoreMigrateCommand.self, StoreCheckCommand.self, StoreBackupCommand.self, StoreRestoreCommand.self,
      StoreRotateCommand.self,
    ])
}
