internal import AuthenticatorVault
internal import Commands
internal import VaultFormats

extension Failure {
  /// What became of the vault at `path`.
  init(_ error: VaultError, at path: String) {
    switch error {
    case .damaged, .notAuthentic, .malformed:
      self.init(
        .badData, "\(path): \(error)",
        hint: "nothing was written; `authenticator check` says which of the last ten versions can be opened")
    case .unknownVersion: self.init(.badData, "\(path): \(error)", hint: "use the later version of this program")
    case .tooLarge, .tooCostly, .otherName, .unreadable: self.init(.badData, "\(path): \(error)")
    case .memory:
      self.init(
        .unavailable, "\(path): \(error)",
        hint: "close other programs, or raise the limit of this process (ulimit -v); nothing was written")
    case .wrongPassphrase: self.init(.refused, "\(path): \(error)", hint: "nothing was written; try again")
    case .otherKey:
      self.init(
        .badData, "\(path): \(error)",
        hint: "`authenticator sync FOLDER --join` brings the entries of this vault into the other one")
    case .keyMissing: self.init(.noInput, "\(path): \(error)")
    case .notFound: self.init(.noInput, "\(error)", hint: "`authenticator list` shows the entries")
    case .counterExhausted, .emptyPassphrase: self.init(.usage, "\(error)")
    }
  }

  init(_ error: UbiquitousStoreError) {
    switch error {
    case .symbolicLink: self.init(.badData, "\(error)")
    case .name, .count, .size, .unavailable: self.init(.unavailable, "\(error)")
    }
  }

  init(_ error: EntryLink.Fault, at place: String) { self.init(.badData, "\(place): \(error.reason)") }
}
