public import MFADomain

extension AuditTrail.Violation {
  /// The fault for people.
  public var text: String {
    switch self {
    case .changed(let sequence): "entry \(sequence) was changed"
    case .broken(let sequence): "entry \(sequence) does not follow the previous entry"
    case .cutOff(let last, let expected): "the history ends with entry \(last), but had \(expected) entries"
    case .olderKey(let sequence): "entry \(sequence) has no key, or an older key than the previous entry"
    case .unknownKey(let sequence, let key): "entry \(sequence) uses the key \(key), which is not in the database"
    case .keyWithoutEntries(let key): "no entry uses the newest key, \(key): entries were removed from the end"
    case .noKey: "the database has no key for its history"
    }
  }

  /// What may help; `nil` where nothing does.
  public var hint: String? {
    switch self {
    case .olderKey: "an older version, or a server that ran during keys reseal, may have written it"
    case .noKey: "mfa-backend run creates the key at its first start; if it ran before, the key was removed"
    case .changed, .broken, .cutOff, .unknownKey, .keyWithoutEntries: nil
    }
  }
}
