/// The name of a header field, as a literal in the source. A search for it needs no reference counting, unlike a search
/// for a `String`.
public struct FieldName: Sendable, ExpressibleByStringLiteral {
  @usableFromInline let text: StaticString

  @inlinable
  public init(stringLiteral text: StaticString) { self.text = text }

  @inlinable
  var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount) }
}
