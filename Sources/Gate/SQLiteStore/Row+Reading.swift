internal import GRDB

/// A column whose value violates the schema.
struct MalformedColumn: Error {
  let name: String
}

// GRDB's subscripts crash on a value of an unexpected type, which a damaged file may contain.
extension Row {
  /// Reads `column` and converts it with `make`. NULL, another type and a `nil` from `make` are malformed.
  func read<Stored: DatabaseValueConvertible, Value>(
    _ column: String, _ make: (Stored) -> Value?
  ) throws(MalformedColumn) -> Value {
    guard let stored = Stored.fromDatabaseValue(self[column]), let value = make(stored) else {
      throw MalformedColumn(name: column)
    }
    return value
  }

  /// Reads `column`, where NULL gives `nil`. A damaged value is never read as an absent one.
  func readIfPresent<Stored: DatabaseValueConvertible, Value>(
    _ column: String, _ make: (Stored) -> Value?
  ) throws(MalformedColumn) -> Value? {
    (self[column] as DatabaseValue).isNull ? nil : try read(column, make)
  }
}
