#if canImport(Darwin)
  public import Foundation

  /// `NSUbiquitousKeyValueStore`, with its limits checked before a write: it would ignore a write beyond them.
  ///
  /// Needs the entitlement `com.apple.developer.ubiquity-kvstore-identifier` with the value
  /// `$(TeamIdentifierPrefix)$(CFBundleIdentifier)`.
  public final class AppleUbiquitousStore: UbiquitousStore, @unchecked Sendable {
    // NSUbiquitousKeyValueStore may be used from any thread.
    private let store = NSUbiquitousKeyValueStore.default

    /// Uses the store of the app.
    public init() {}

    public func data(forKey name: String) throws(UbiquitousStoreError) -> Data? { store.data(forKey: name) }

    public func set(_ value: Data, forKey name: String) throws(UbiquitousStoreError) {
      var values = UbiquitousValues()
      for (name, present) in store.dictionaryRepresentation {
        if let data = present as? Data { try values.set(data, forKey: name) }
      }
      try values.set(value, forKey: name)
      store.set(value, forKey: name)
    }

    public func removeValue(forKey name: String) throws(UbiquitousStoreError) { store.removeObject(forKey: name) }

    @discardableResult public func synchronize() -> Bool { store.synchronize() }

    public func externalChanges() -> AsyncStream<Void> {
      AsyncStream { continuation in
        // There is one such store in a process, so its notifications need no filter.
        let name = NSUbiquitousKeyValueStore.didChangeExternallyNotification
        let task = Task {
          for await _ in NotificationCenter.default.notifications(named: name) { continuation.yield() }
        }
        continuation.onTermination = { _ in task.cancel() }
      }
    }
  }
#endif
