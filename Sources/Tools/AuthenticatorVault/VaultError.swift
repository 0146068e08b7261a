/// Why a vault cannot be read or changed. No case has a secret.
public enum VaultError: Error, Sendable, Hashable {
  /// The vault has no such entry.
  case notFound
  /// The counter of an entry is at its end.
  case counterExhausted
  /// A member of the vault's JSON is missing or not possible.
  case malformed(String)
  /// The vault was written by a later version of the program.
  case unknownVersion(Int)
  /// The file was damaged: it is not what was written.
  case damaged
  /// The authentication tag does not match: the bytes were changed, or sealed with a key that this is not.
  case notAuthentic
  /// The passphrase opens no slot.
  case wrongPassphrase
  /// The vault was sealed with another key.
  case otherKey
  /// There is no key for the vault.
  case keyMissing
  /// A passphrase has at least one character.
  case emptyPassphrase
  /// The file is longer than 64 MiB.
  case tooLarge
  /// The slots of the file ask for more work than a passphrase may cost.
  case tooCostly
  /// The key derivation of a passphrase needs so many MiB of memory, and the system does not give them.
  case memory(needed: Int)
  /// The file only looks like a copy of the vault: its name is none that a known synchronizer gives.
  case otherName
  /// The file cannot be read; the reason.
  case unreadable(String)
}

extension VaultError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notFound: "no such entry"
    case .counterExhausted: "the counter of the entry is at its end"
    case .malformed(let member): "the vault is malformed: \(member)"
    case .unknownVersion(let version): "the vault has version \(version), which this program does not know"
    case .damaged: "the vault is damaged: a part of it was changed or cut off"
    case .notAuthentic: "the vault is not authentic: it was changed without its key"
    case .wrongPassphrase: "wrong passphrase"
    case .otherKey: "the vault was sealed with another key"
    case .keyMissing: "the key of the vault is missing"
    case .emptyPassphrase: "the passphrase is empty"
    case .tooLarge: "the vault is longer than 64 MiB"
    case .tooCostly:
      "the slots of the vault ask for more work than is done: at most \(VaultFile.mostSlots) are read, with costs of "
        + "at most \(VaultFile.largestCost) together"
    case .memory(let needed):
      "the key derivation of the passphrase needs \(needed) MiB of memory, and the system does not give them"
    case .otherName: "its name is not that of a conflict copy of a known synchronizer"
    case .unreadable(let reason): "it cannot be read: \(reason)"
    }
  }
}
