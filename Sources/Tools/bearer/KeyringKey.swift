internal import OIDCClient
internal import SecretService

/// The key as an item of the desktop's keyring, which is unlocked with the user's session.
struct KeyringKey: TokenKeySource {
  let folder: String
  let place = "the keyring of the desktop (Secret Service)"
  private var attributes: [String: String] { ["application": "sallyport bearer", "store": folder] }

  var isAvailable: Bool { (try? DesktopKeyring().checkAvailability()) != nil }

  func key() throws(TokenStoreError) -> TokenKey? {
    let bytes: [UInt8]?
    do throws(SecretServiceError) { bytes = try DesktopKeyring(mayPrompt: true).secret(for: attributes) } catch {
      throw .file(place, reason: "\(error)")
    }
    guard let bytes else { return nil }
    guard let key = TokenKey(bytes: bytes) else { throw .damaged(place) }
    return key
  }

  func make() throws(TokenStoreError) -> TokenKey {
    do throws(SecretServiceError) {
      try DesktopKeyring(mayPrompt: true).store(TokenKey().bytes, label: "Tokens of bearer", for: attributes)
    } catch {
      throw .file(place, reason: "\(error)")
    }
    guard let key = try key() else { throw .keyMissing(place) }
    return key
  }
}
