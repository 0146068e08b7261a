/// An order of keys that an index of the store has.
///
/// There is none by the last use: an index of it would be written in every admission.
public enum KeyOrder: String, Sendable, Hashable, CaseIterable {
  /// By the key id, which is that of pages without another order.
  case id
  /// By the text of the `KeyHash`.
  case hash = "key"
  /// By the text of the `KeyHash`, descending.
  case hashDescending = "-key"
}
