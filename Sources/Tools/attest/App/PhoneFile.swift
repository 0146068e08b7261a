internal import AttestClient
internal import ByteCoding
internal import Commands
internal import Foundation
internal import SimulatedPhone

/// The phone of a simulated device: settings and keys in a file of mode 0600 in the device's folder.
struct PhoneFile: Sendable {
  private let path: String
  private let platform: Platform

  init(of device: Device, in store: DeviceStore) {
    path = store.folder(device.name) + "/phone.json"
    platform = device.platform
  }

  /// Reads the phone; without a file, a new one with Face ID, or with a fingerprint sensor if it is one with Android. Each change is on disk when it has happened.
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
      saved = SavedPhone(settings: platform == .ios ? .faceID : .fingerprint)
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
