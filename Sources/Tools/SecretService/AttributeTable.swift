internal import CLibSecret

/// The attributes of an item, as a hash table of GLib.
final class AttributeTable {
  private let table: OpaquePointer

  /// - Throws: `invalid` without attributes, which would match each secret of the user, and for texts with a NUL.
  init(_ attributes: [String: String]) throws(SecretServiceError) {
    guard !attributes.isEmpty else { throw .invalid("no attributes") }
    for (name, value) in attributes where name.isEmpty || name.utf8.contains(0) || value.utf8.contains(0) {
      throw .invalid("an attribute without a name, or with a NUL")
    }
    table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free)
    for (name, value) in attributes { g_hash_table_insert(table, g_strdup(name), g_strdup(value)) }
  }

  deinit { g_hash_table_unref(table) }

  /// Lends the table to `body`.
  func withPointer<R>(_ body: (OpaquePointer) throws(SecretServiceError) -> R) throws(SecretServiceError) -> R {
    defer { withExtendedLifetime(self) {} }
    return try body(table)
  }
}
