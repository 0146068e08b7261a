internal import AttestClient
internal import Foundation
internal import Locking

/// Where the app keeps its record.
public protocol MFAStorageService: Sendable {
  /// Returns the record. The first call makes one, with a new device id, and saves it.
  func load() throws(StorageError) -> MFARecord
  /// Replaces the record. It is durable when this returns.
  func save(_ record: MFARecord) throws(StorageError)
}

/// Why the record cannot be read or written, as a text for people.
public struct StorageError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The reason, with the place.
  public let description: String

  /// Creates an error, for other implementations of `MFAStorageService`.
  public init(_ description: String) { self.description = description }
}

/// A record that is lost when the process exits.
public final class MemoryStorageService: MFAStorageService {
  private let record: LockedValue<MFARecord>

  /// Creates a storage with the record of a device that is not enrolled.
  public init(deviceID: String) { record = LockedValue(MFARecord(deviceID: deviceID)) }

  /// Returns the record.
  public func load() -> MFARecord { record.withLock(\.self) }

  /// Replaces the record.
  public func save(_ record: MFARecord) { self.record.withLock { $0 = record } }
}

#if !canImport(Darwin)
  /// A record in a file of mode 0600, replaced in one step.
  public struct FileStorageService: MFAStorageService {
    private let path: String

    /// The storage at `path`, whose folder exists.
    public init(path: String) { self.path = path }

    /// Reads the record; without a file, makes one with a new device id.
    public func load() throws(StorageError) -> MFARecord {
      let bytes: [UInt8]
      do throws(PrivateFile.AccessError) {
        bytes = try PrivateFile.read(path)
      } catch  where error.isAbsence {
        let record = MFARecord(deviceID: UUID().uuidString.lowercased())
        try save(record)
        return record
      } catch {
        throw StorageError("\(error)")
      }
      guard let record = try? JSONDecoder().decode(MFARecord.self, from: Data(bytes)) else {
        throw StorageError("\(path) is not the record of a device")
      }
      return record
    }

    /// Replaces the file: a reader finds the old record or the new one.
    public func save(_ record: MFARecord) throws(StorageError) {
      do {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        try PrivateFile.write([UInt8](encoder.encode(record)) + [UInt8(ascii: "\n")], to: path)
      } catch {
        throw StorageError("\(error)")
      }
    }
  }
#else
  /// A record in `UserDefaults`.
  public struct DefaultsStorageService: MFAStorageService {
    private static let key = "mfa.record"

    /// Uses the standard defaults of the app.
    public init() {}

    /// Reads the record; without one, makes it with a new device id.
    public func load() throws(StorageError) -> MFARecord {
      guard let data = UserDefaults.standard.data(forKey: Self.key) else {
        let record = MFARecord(deviceID: UUID().uuidString.lowercased())
        try save(record)
        return record
      }
      do { return try JSONDecoder().decode(MFARecord.self, from: data) } catch { throw StorageError("\(error)") }
    }

    /// Replaces the record.
    public func save(_ record: MFARecord) throws(StorageError) {
      do {
        UserDefaults.standard.set(try JSONEncoder().encode(record), forKey: Self.key)
      } catch {
        throw StorageError("\(error)")
      }
    }
  }
#endif
