internal import GRDB

/// A column whose value is not what the schema says.
struct MalformedColumn: Error {
  let name: String
}

// GRDB's own subscripts end the process when a value has another type than expected, as it may in a damaged file.
extension Row {
  /// What `make` makes of the value of `column`; NULL, another type and what `make` refuses are malformed.
  func read<Stored: DatabaseValueConvertible, Value>(
    _ column: String, _ make: (Stored) -> Value?
  ) throws(MalformedColumn) -> Value {
    guard let stored = Stored.fromDatabaseValue(self[column]), let value = make(stored) else {
      throw MalformedColumn(name: column)
    }
    return value
  }

  /// As `read`, but NULL is `nil`. A damaged value never passes for an absent one.
  func readIfPresent<Stored: DatabaseValueConvertible, Value>(
    _ column: String, _ make: (Stored) -> Value?
  ) throws(MalformedColumn) -> Value? {
    (self[column] as DatabaseValue).isNull ? nil : try read(column, make)
  }
}
