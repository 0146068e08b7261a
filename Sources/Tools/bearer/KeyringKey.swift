internal import Locking
internal import OIDCClient
internal import SecretService

/// The key as an item of the desktop's keyring, which is unlocked with the user's session.
///
/// The keyring is read once: `bearer exec` reads the store every two seconds, also while the keyring is locked, and each
/// read would ask for it to be unlocked.
struct KeyringKey: TokenKeySource {
  /// The folder of the tokens, from the root on.
  let folder: String
  /// The name that earlier versions gave the item, if it is another one: the folder as the user wrote it.
  var earlierFolder: String?
  /// Reads the item with these attributes, and may ask the user to unlock the keyring.
  var secret: @Sendable (_ attributes: [String: String]) throws(SecretServiceError) -> [UInt8]? = {
    (attributes) throws(SecretServiceError) in try DesktopKeyring(mayPrompt: true).secret(for: attributes)
  }
  /// The key that was read. Its memory is overwritten when it is released.
  private let known = LockedValue<TokenKey?>(nil)
  let place = "the keyring of the desktop (Secret Service)"

  private func attributes(of folder: String) -> [String: String] {
    ["application": "sallyport bearer", "store": folder]
  }

  var isAvailable: Bool { (try? DesktopKeyring().checkAvailability()) != nil }

  func key() throws(TokenStoreError) -> TokenKey? {
    if let key = known.withLock({ $0 }) { return key }
    var bytes: [UInt8]?
    do throws(SecretServiceError) {
      bytes = try secret(attributes(of: folder))
      if bytes == nil, let earlierFolder { bytes = try secret(attributes(of: earlierFolder)) }
    } catch {
      throw .file(place, reason: "\(error)")
    }
    guard let bytes else { return nil }
    guard let key = TokenKey(bytes: bytes) else { throw .damaged(place) }
    known.withLock { $0 = key }
    return key
  }

  func forget() { known.withLock { $0 = nil } }

  func make() throws(TokenStoreError) -> TokenKey {
    do throws(SecretServiceError) {
      try DesktopKeyring(mayPrompt: true).store(
        TokenKey().bytes, label: "Tokens of bearer", for: attributes(of: folder))
    } catch {
      throw .file(place, reason: "\(error)")
    }
    guard let key = try key() else { throw .keyMissing(place) }
    return key
  }
}
