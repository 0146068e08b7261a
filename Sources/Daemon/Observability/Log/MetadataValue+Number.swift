public import Logging

extension Logger.MetadataValue {
  /// A count, a duration, a port or the id of a process. `JSONLineHandler` writes it as a JSON number.
  ///
  /// String interpolation (`"\(count)"`) would make a string of it, which log tools can neither sort nor add.
  public static func number(_ value: some BinaryInteger & CustomStringConvertible & Sendable) -> Self {
    .stringConvertible(value)
  }
}
