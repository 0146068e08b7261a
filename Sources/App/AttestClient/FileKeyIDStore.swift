#if !canImport(Darwin)
  internal import ByteCoding
  internal import Foundation

  /// A record in a file of mode 0600, replaced in one step.
  public struct FileKeyIDStore: KeyIDStore {
    private let path: String

    /// The store at `path`, whose folder exists.
    public init(path: String) { self.path = path }

    /// Reads the record. A file that does not exist is an empty record.
    public func load() throws(KeyStoreError) -> KeyRecord {
      let bytes: [UInt8]
      do throws(PrivateFile.AccessError) {
        bytes = try PrivateFile.read(path)
      } catch  where error.isAbsence {
        return KeyRecord()
      } catch {
        throw .unreadable("\(error)")
      }
      guard let content = try? JSONDecoder().decode(Content.self, from: Data(bytes)) else {
        throw .malformed("\(path) is not a key record")
      }
      return try content.record(path: path)
    }

    /// Replaces the file at once: a reader finds the old record or the new one.
    public func save(_ record: KeyRecord) throws(KeyStoreError) {
      do {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let content = Content(keyId: record.keyID, renewedAt: record.renewedAt?.description)
        try PrivateFile.write([UInt8](encoder.encode(content)) + [UInt8(ascii: "\n")], to: path)
      } catch {
        throw .unwritable("\(error)")
      }
    }

    private struct Content: Codable {
      let keyId: String?
      let renewedAt: String?

      func record(path: String) throws(KeyStoreError) -> KeyRecord {
        guard let renewedAt else { return KeyRecord(keyID: keyId) }
        guard let time = Timestamp(rfc3339: renewedAt) else {
          throw .malformed("renewedAt in \(path) is not a time")
        }
        return KeyRecord(keyID: keyId, renewedAt: time)
      }
    }
  }
#endif
