import Foundation
import MFAClient
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
