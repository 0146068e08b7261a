public import Foundation

/// A store that carries small values among the devices of one user, as `NSUbiquitousKeyValueStore` does.
///
/// The last writer of a value wins. It is a meeting place: each device keeps its own copy of what matters.
public protocol UbiquitousStore: Sendable {
  /// The value of `name`, as far as it has arrived; `nil` if there is none.
  ///
  /// - Throws: `.unavailable`, `.symbolicLink`.
  func data(forKey name: String) throws(UbiquitousStoreError) -> Data?
  /// Replaces the value of `name`. It reaches other devices later.
  ///
  /// - Throws: A limit that would be exceeded, `.unavailable` or `.symbolicLink`. The value then is what it was.
  func set(_ value: Data, forKey name: String) throws(UbiquitousStoreError)
  /// Removes the value of `name`.
  ///
  /// - Throws: `.unavailable`.
  func removeValue(forKey name: String) throws(UbiquitousStoreError)
  /// Asks for an exchange with the other devices soon. Returns whether the store is there.
  @discardableResult func synchronize() -> Bool
  /// A value for each time when other devices changed the store, until the task is cancelled.
  func externalChanges() -> AsyncStream<Void>
  /// What other devices wrote under `name` at the same time as the value that won, where the store keeps that, and what
  /// only looks like it.
  ///
  /// - Throws: `.unavailable`.
  func conflictingVersions(ofKey name: String) throws(UbiquitousStoreError) -> [ConflictingVersion]
  /// Removes `version`, unless it has changed since it was read.
  ///
  /// - Throws: `.unavailable`.
  func resolve(_ version: ConflictingVersion) throws(UbiquitousStoreError)
}

/// What another device wrote at the same time.
public struct ConflictingVersion: Sendable, Hashable {
  /// Where it is, for the store and for messages.
  public let place: String
  /// Its value; the reason why it was not read, if it is to be named and left.
  public let value: Result<Data, VaultError>

  /// Names a version.
  public init(place: String, value: Data) { self.init(place: place, .success(value)) }

  /// Names a version that was not read.
  public init(place: String, fault: VaultError) { self.init(place: place, .failure(fault)) }

  private init(place: String, _ value: Result<Data, VaultError>) {
    self.place = place
    self.value = value
  }
}

extension UbiquitousStore {
  public func conflictingVersions(ofKey name: String) throws(UbiquitousStoreError) -> [ConflictingVersion] { [] }
  public func resolve(_ version: ConflictingVersion) throws(UbiquitousStoreError) {}
}

/// Why a store does not take a value. The old value is still there.
public enum UbiquitousStoreError: Error, Sendable, Hashable {
  /// A name has at most 64 bytes of UTF-8, and at least one.
  case name(bytes: Int)
  /// There are at most 1,024 values.
  case count
  /// Names and values have at most 1,048,576 bytes together.
  case size(bytes: Int)
  /// The file of a value, at this path, is a symbolic link. It is neither followed nor replaced.
  case symbolicLink(String)
  /// The store cannot be reached; the reason.
  case unavailable(String)
}

extension UbiquitousStoreError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .name(let bytes): "a name has 1 to \(UbiquitousValues.longestName) bytes, not \(bytes)"
    case .count: "the store has at most \(UbiquitousValues.most) values"
    case .size(let bytes): "the store would have \(bytes) bytes; it has at most \(UbiquitousValues.largest)"
    case .symbolicLink(let path):
      "\(path) is a symbolic link, which is not followed: put the file itself there, or use the folder that has it"
    case .unavailable(let reason): "the store cannot be used: \(reason)"
    }
  }
}

/// The values of a store within Apple's limits. A change that would exceed one is refused and changes nothing.
public struct UbiquitousValues: Sendable, Hashable {
  /// The bytes of a name, at most.
  public static let longestName = 64
  /// The number of values, at most.
  public static let most = 1024
  /// The bytes of all names and values together, at most. One value alone may have them all.
  public static let largest = 1_048_576

  private var values: [String: Data] = [:]

  /// Creates an empty set of values.
  public init() {}

  /// The value of `name`; `nil` if there is none.
  public subscript(name: String) -> Data? { values[name] }

  /// The bytes of all names and values.
  public var size: Int { values.reduce(0) { $0 + $1.key.utf8.count + $1.value.count } }

  /// Replaces the value of `name`.
  ///
  /// - Throws: `.name`, `.count` or `.size`.
  public mutating func set(_ value: Data, forKey name: String) throws(UbiquitousStoreError) {
    guard (1...Self.longestName).contains(name.utf8.count) else { throw .name(bytes: name.utf8.count) }
    guard values[name] != nil || values.count < Self.most else { throw .count }
    let replaced = values[name].map { $0.count + name.utf8.count } ?? 0
    let bytes = size - replaced + name.utf8.count + value.count
    guard bytes <= Self.largest else { throw .size(bytes: bytes) }
    values[name] = value
  }

  /// Removes the value of `name`.
  public mutating func removeValue(forKey name: String) { values[name] = nil }
}
