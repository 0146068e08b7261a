internal import ByteCoding
internal import Crypto
internal import Foundation

/// Seals values that must not be readable in the database, and hashes values that must not be guessable from it.
public struct Vault: Sendable {
  /// A data key or a sealed value cannot be opened.
  public struct Unopenable: Error, Sendable {
    public let reason: String

    public init(reason: String) { self.reason = reason }
  }

  private let fieldKeys: [UInt32: SymmetricKey]
  private let currentField: UInt32
  private let codeKey: SymmetricKey
  private let refreshKey: SymmetricKey
  private let entropy: Entropy
  /// The 32-byte secrets of the keys for access tokens, with the numbers of their data keys.
  public let tokenSecrets: [(number: UInt32, secret: [UInt8])]
  public let historyKeys: HistoryKeys
  /// The number of the first entry under the newest key of the history, if opening the vault has made that key.
  public internal(set) var historyBegan: Int64?

  /// - Parameter keys: at least one for each purpose, unsealed, oldest first.
  init(keys: [(key: DataKey, secret: [UInt8])], entropy: Entropy) throws(Unopenable) {
    func all(_ purpose: DataKey.Purpose) -> [(number: UInt32, secret: [UInt8])] {
      keys.filter { $0.key.purpose == purpose }.map { ($0.key.number, $0.secret) }.sorted { $0.number < $1.number }
    }
    guard let field = all(.fields).last, let code = all(.codes).first, let refresh = all(.refresh).first,
      let history = HistoryKeys(all(.history))
    else {
      throw Unopenable(reason: "a data key is missing")
    }
    fieldKeys = Dictionary(
      all(.fields).map { ($0.number, SymmetricKey(data: $0.secret)) }, uniquingKeysWith: { first, _ in first })
    currentField = field.number
    codeKey = SymmetricKey(data: code.secret)
    refreshKey = SymmetricKey(data: refresh.secret)
    tokenSecrets = all(.tokens)
    historyKeys = history
    self.entropy = entropy
  }

  /// Encrypts `text` for one place. It can be opened for the same `place` only, so that rows cannot be swapped.
  public func seal(_ text: String, for place: String) throws -> Sealed { try seal(Array(text.utf8), for: place) }

  /// Encrypts `bytes` for one place.
  public func seal(_ bytes: [UInt8], for place: String) throws -> Sealed {
    guard let key = fieldKeys[currentField] else { throw Unopenable(reason: "no data key \(currentField)") }
    let nonce = try AES.GCM.Nonce(data: entropy.bytes(12))
    let box = try AES.GCM.seal(bytes, using: key, nonce: nonce, authenticating: Array(place.utf8))
    let number = withUnsafeBytes(of: currentField.bigEndian) { Array($0) }
    return Sealed(bytes: number + Array(nonce) + Array(box.ciphertext) + Array(box.tag))
  }

  /// Decrypts a value that was sealed for `place`.
  ///
  /// - Throws: `Unopenable` for a short value and an unknown data key; an error of the cipher for a changed value and
  ///   for another place.
  public func open(_ sealed: Sealed, for place: String) throws -> [UInt8] {
    guard sealed.bytes.count >= 4 + 12 + 16 else { throw Unopenable(reason: "a sealed value is too short") }
    let number = sealed.bytes.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    guard let key = fieldKeys[number] else { throw Unopenable(reason: "no data key \(number)") }
    let box = try AES.GCM.SealedBox(combined: sealed.bytes.dropFirst(4))
    return Array(try AES.GCM.open(box, using: key, authenticating: Array(place.utf8)))
  }

  /// Decrypts a text that was sealed for `place`.
  public func openText(_ sealed: Sealed, for place: String) throws -> String {
    String(decoding: try open(sealed, for: place), as: UTF8.self)
  }

  /// Whether a value is sealed under the newest data key.
  public func isCurrent(_ sealed: Sealed) -> Bool {
    sealed.bytes.prefix(4).reduce(UInt32(0)) { $0 << 8 | UInt32($1) } == currentField
  }

  /// A keyed hash of texts, 32 bytes. Each text is hashed with its length, so that texts cannot be shifted.
  public func hash(_ texts: String..., as use: String) -> [UInt8] { Self.mac([use] + texts, with: codeKey) }

  /// The MAC of a refresh token, 32 bytes.
  func refreshMAC(session: String, generation: Int) -> [UInt8] {
    Self.mac([session, String(generation)], with: refreshKey)
  }

  private static func mac(_ texts: [String], with key: SymmetricKey) -> [UInt8] {
    var mac = HMAC<SHA256>(key: key)
    for text in texts {
      mac.update(data: Array("\(text.utf8.count):".utf8))
      mac.update(data: Array(text.utf8))
    }
    return Array(mac.finalize())
  }
}
