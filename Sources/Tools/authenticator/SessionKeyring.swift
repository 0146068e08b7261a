internal import AuthenticatorVault
internal import CKeyutils
internal import Foundation
internal import Glibc

/// The key of a vault in the kernel's memory, for the processes of this login session (keyrings(7)).
///
/// A key there is never swapped out nor written to a core file, and the kernel removes it when its time is over.
enum SessionKeyring {
  /// Why the kernel keeps no key: errno(3).
  struct Unavailable: Error {
    let number: Int32
  }

  /// Keeps `key` for `duration`.
  static func keep(_ key: VaultKey, for duration: Duration) throws(Unavailable) {
    let seconds = UInt32(clamping: max(1, duration.components.seconds))
    let serial = key.bytes.withUnsafeBytes { bytes in
      add_key("user", name(key.id), bytes.baseAddress, bytes.count, keyring)
    }
    guard serial >= 0 else { throw Unavailable(number: errno) }
    guard keyctl_set_timeout(serial, seconds) == 0 else {
      let number = errno
      _ = keyctl_unlink(serial, keyring)
      throw Unavailable(number: number)
    }
    // A session that is not one's own yet would lose the key with this process.
    guard find(key.id) != nil else { throw Unavailable(number: ENOKEY) }
  }

  /// The key with this name, if it is kept.
  static func key(_ id: String) -> VaultKey? {
    guard let serial = find(id) else { return nil }
    var bytes = [UInt8](repeating: 0, count: VaultKey.length)
    let count = bytes.withUnsafeMutableBytes { buffer in
      keyctl_read(serial, buffer.baseAddress, buffer.count)
    }
    guard count == VaultKey.length, let key = VaultKey(bytes: bytes), key.id == id else { return nil }
    return key
  }

  /// Removes the key with this name. Returns whether there was one.
  static func forget(_ id: String) -> Bool {
    guard let serial = find(id) else { return false }
    return keyctl_revoke(serial) == 0
  }

  private static func name(_ id: String) -> String { "sallyport-authenticator:\(id)" }

  private static func find(_ id: String) -> key_serial_t? {
    let serial = keyctl_search(keyring, "user", name(id), 0)
    return serial >= 0 ? key_serial_t(serial) : nil
  }

  /// The session keyring; without one, that of all sessions of the user: the kernel would otherwise make one that ends
  /// with this process.
  private static let keyring: key_serial_t = {
    let session = keyctl_get_keyring_ID(shim_SESSION_KEYRING, 0)
    guard session >= 0 else { return shim_USER_SESSION_KEYRING }
    var buffer = [CChar](repeating: 0, count: 256)
    let length = keyctl_describe(session, &buffer, buffer.count)
    let description =
      length > 0 ? String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) : ""
    return description.contains(";_uid_ses.") || description.isEmpty ? shim_USER_SESSION_KEYRING : shim_SESSION_KEYRING
  }()
}
