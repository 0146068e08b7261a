internal import CLibSecret

/// A session with the Secret Service, in which secrets travel encrypted.
final class ServiceSession {
  private let service: UnsafeMutablePointer<CLibSecret.SecretService>
  private let limit: TimeLimit

  static let name = "org.freedesktop.secrets"

  /// Opens a session, which starts the service if the bus can.
  init(within limit: TimeLimit) throws(SecretServiceError) {
    let bus = try SessionBus(within: limit)
    guard try bus.offers(Self.name, within: limit) else {
      throw .unavailable("no service on the session bus, such as GNOME Keyring")
    }
    let service = try limit.withPointer { cancellable throws(SecretServiceError) in
      try GLibCall.check {
        secret_service_open_sync(secret_service_get_type(), nil, SECRET_SERVICE_OPEN_SESSION, cancellable, $0)
      }
    }
    guard let service else { throw .unavailable("the service opens no session") }
    self.service = service
    self.limit = limit
  }

  deinit { g_object_unref(service) }

  /// The items whose attributes include `attributes`: unlocked ones first.
  func search(
    _ attributes: AttributeTable, all: Bool, mayPrompt: Bool
  ) throws(SecretServiceError) -> SecretItems {
    defer { withExtendedLifetime(self) {} }
    var flags = SECRET_SEARCH_LOAD_SECRETS.rawValue
    if all { flags |= SECRET_SEARCH_ALL.rawValue }
    if mayPrompt { flags |= SECRET_SEARCH_UNLOCK.rawValue }
    let list = try attributes.withPointer { table throws(SecretServiceError) in
      try limit.withPointer { cancellable throws(SecretServiceError) in
        try GLibCall.check {
          secret_service_search_sync(service, nil, table, SecretSearchFlags(rawValue: flags), cancellable, $0)
        }
      }
    }
    return SecretItems(owning: list, of: self)
  }

  /// Whether the collection for new items is locked; `nil` if there is none.
  func isDefaultLocked() throws(SecretServiceError) -> Bool? {
    defer { withExtendedLifetime(self) {} }
    let collection = try limit.withPointer { cancellable throws(SecretServiceError) in
      try GLibCall.check {
        secret_collection_for_alias_sync(service, SECRET_COLLECTION_DEFAULT, SECRET_COLLECTION_NONE, cancellable, $0)
      }
    }
    guard let collection else { return nil }
    defer { g_object_unref(collection) }
    return secret_collection_get_locked(collection) != 0
  }

  /// Stores `secret` in the collection for new items, in place of an item with the same attributes.
  func store(
    _ secret: SecretBytes, label: String, for attributes: AttributeTable
  ) throws(SecretServiceError) {
    defer { withExtendedLifetime(self) {} }
    let isDone = try attributes.withPointer { table throws(SecretServiceError) in
      try secret.withPointer { value throws(SecretServiceError) in
        try limit.withPointer { cancellable throws(SecretServiceError) in
          try GLibCall.check {
            secret_service_store_sync(service, nil, table, SECRET_COLLECTION_DEFAULT, label, value, cancellable, $0)
          }
        }
      }
    }
    guard isDone != 0 else { throw .dismissed }
  }
}
