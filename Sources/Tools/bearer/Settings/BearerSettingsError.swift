internal import ByteCoding

/// One fault in the settings.
public struct BearerSettingsError: Sendable, Hashable, CustomStringConvertible {
  /// The name of the file.
  public let file: String
  /// The line, from 1; `nil` if the fault is about the whole file.
  public let line: Int?
  /// The column, from 1, in Unicode scalars; `nil` if the fault is about the whole file.
  public let column: Int?
  /// The key, such as `providers.work.issuer`; `nil` if the fault is not about one key.
  public let key: String?
  /// What is wrong with the value, without place and key. Contains no secret.
  public let reason: String

  /// Creates a fault.
  public init(file: String, line: Int? = nil, column: Int? = nil, key: String? = nil, reason: String) {
    self.file = file
    self.line = line
    self.column = column
    self.key = key
    self.reason = reason
  }

  /// The fault as `file:line:col: key: reason`, on one line, without control characters.
  public var description: String {
    let place = ([file] + [line, column].compactMap { $0.map(String.init) }).joined(separator: ":")
    return TerminalText.printable([place, key, reason].compactMap(\.self).joined(separator: ": "))
  }
}

/// All faults in the settings; never empty.
public struct BearerSettingsErrors: Error, Sendable, Hashable, CustomStringConvertible {
  /// The faults, in the order of the file.
  public let faults: [BearerSettingsError]

  /// Creates the error.
  public init(_ faults: [BearerSettingsError]) { self.faults = faults }

  /// One line for each fault.
  public var description: String { faults.map(\.description).joined(separator: "\n") }
}
