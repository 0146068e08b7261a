import Foundation
import MFAClient
import MFAWire
import Testing

@Suite("The app's record")
struct StorageTests {
  private func withFolder(_ body: (String) throws -> Void) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try body(folder + "/record.json")
  }

  @Test("A-109 the first record has a new device id, which stays; the file belongs to its owner")
  func first() throws {
    try withFolder { path in
      let first = try FileStorageService(path: path).load()
      #expect(UUID(uuidString: first.deviceID) != nil && !first.isEnrolled)
      #expect(try FileStorageService(path: path).load() == first)
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
    }
  }

  @Test("A-109 a record is read as it was saved")
  func saved() throws {
    try withFolder { path in
      var record = try FileStorageService(path: path).load()
      let pair = KeyPair(
        tag: .passcode(of: "com.example.app"), protection: .devicePasscode, isHardwareBacked: true, publicKey: [4])
      (record.username, record.method, record.key) = ("ada", .secureEnclave, KeyReference(pair))
      record.phoneNumber = "+1234567890"
      record.pendingChange = .enroll(username: "ada", phoneNumber: nil, key: KeyReference(pair))
      try FileStorageService(path: path).save(record)
      #expect(try FileStorageService(path: path).load() == record)
      #expect(record.authMethod == .passcode)
    }
  }

  @Test("B-069 the record has no field for a secret")
  func fields() throws {
    var record = MFARecord(deviceID: "d")
    let pair = KeyPair(tag: .passcode(of: "a"), protection: .devicePasscode, isHardwareBacked: true, publicKey: [4])
    (record.username, record.method, record.key) = ("ada", .secureEnclave, KeyReference(pair))
    (record.phoneNumber, record.pendingChange) = ("+1", .replaceKey(KeyReference(pair)))
    let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(record)) as? [String: Any]
    #expect(
      Set(try #require(object).keys) == ["deviceID", "username", "method", "key", "phoneNumber", "pendingChange"])
  }

  @Test("A session is read as it was saved, belongs to its owner, and is removed at the end")
  func session() throws {
    try withFolder { path in
      let storage = FileSecretStorage<MFASession>(path: path)
      #expect(storage.load() == nil)
      let tokens = TokenResponse(token: "t.t.t", message: "", refreshToken: "r", expiresIn: 900, scope: "full")
      let session = MFASession(tokens, of: "ada")
      try storage.save(session)
      #expect(storage.load() == session)
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      try storage.save(nil)
      try storage.save(nil)
      #expect(storage.load() == nil && !FileManager.default.fileExists(atPath: path))
      try Data("{".utf8).write(to: URL(fileURLWithPath: path))
      #expect(storage.load() == nil)
    }
  }

  @Test("A file that is not a record is reported and kept", arguments: ["", "{}", "[", #"{"deviceID":7}"#])
  func malformed(_ text: String) throws {
    try withFolder { path in
      try Data(text.utf8).write(to: URL(fileURLWithPath: path))
      chmod(path, 0o600)
      #expect(throws: StorageError.self) { try FileStorageService(path: path).load() }
      #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(text.utf8))
    }
  }
}
