internal import CommandSupport
internal import AttestClient
internal import ByteCoding
internal import Foundation
internal import SimulatedPhone

/// The phone of a simulated device: settings and keys in a file of mode 0600 in the device's folder.
struct PhoneFile: Sendable {
  private let path: String

  init(of device: String, in store: DeviceStore) { path = store.folder(device) + "/phone.json" }

  /// Reads the phone; without a file, a new one with Face ID. Each change is on disk when it has happened.
  func open() throws(Failure) -> SimulatedPhone {
    let path = path
    let damaged = Failure(.badData, "\(path) is not a phone", hint: "remove the file for a new phone without keys")
    let saved: SavedPhone
    let bytes: [UInt8]?
    do throws(PrivateFile.AccessError) {
      bytes = try PrivateFile.read(path)
    } catch  where error.isAbsence {
      bytes = nil
    } catch {
      throw Failure(.noInput, "\(error)")
    }
    if let bytes {
      guard let phone = try? JSONDecoder().decode(SavedPhone.self, from: Data(bytes)) else { throw damaged }
      saved = phone
    } else {
      saved = SavedPhone(settings: .faceID)
    }
    do {
      return try SimulatedPhone(saved) { phone in
        try PrivateFile.write([UInt8](JSONText.encoding(phone).utf8) + [UInt8(ascii: "\n")], to: path)
      }
    } catch {
      throw damaged
    }
  }
}
