internal import CLibSecret

/// The items that a search found, as a list of GLib with references to objects of libsecret.
final class SecretItems {
  private let list: UnsafeMutablePointer<GList>?
  /// An item has only a weak reference to its service, and a call without the service never returns.
  private let session: ServiceSession

  /// Takes over the list and its references.
  init(owning list: UnsafeMutablePointer<GList>?, of session: ServiceSession) {
    self.list = list
    self.session = session
  }

  deinit { g_list_free_full(list) { g_object_unref($0) } }

  private var items: [UnsafeMutablePointer<SecretItem>] {
    var items: [UnsafeMutablePointer<SecretItem>] = []
    var node = list
    while let current = node {
      if let data = current.pointee.data { items.append(data.assumingMemoryBound(to: SecretItem.self)) }
      node = current.pointee.next
    }
    return items
  }

  var isEmpty: Bool { list == nil }

  /// Whether the collection of an item is locked.
  var areLocked: Bool {
    defer { withExtendedLifetime(self) {} }
    return items.contains { secret_item_get_locked($0) != 0 }
  }

  /// The secret of the first item; `nil` if it was not loaded.
  var first: SecretBytes? {
    defer { withExtendedLifetime(self) {} }
    return items.first.flatMap { secret_item_get_secret($0) }.map { SecretBytes(owning: $0) }
  }

  /// Deletes each item.
  func delete(within limit: TimeLimit) throws(SecretServiceError) {
    defer { withExtendedLifetime(self) {} }
    for item in items {
      let isDone = try limit.withPointer { cancellable throws(SecretServiceError) in
        try GLibCall.check { secret_item_delete_sync(item, cancellable, $0) }
      }
      guard isDone != 0 else { throw .dismissed }
    }
  }
}
