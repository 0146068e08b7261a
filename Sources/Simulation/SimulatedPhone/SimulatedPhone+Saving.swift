internal import Cryptography
internal import MFAClient

/// A phone as a file keeps it. It contains private keys, so only programs of this package can make one.
package struct SavedPhone: Sendable, Codable {
  struct Key: Sendable, Codable {
    let tag: KeyTag
    let protection: KeyProtection
    let isHardwareBacked: Bool
    /// PKCS #8 in PEM. A secret.
    let privateKeyPEM: String
    let enrolment: Int
  }

  struct Credential: Sendable, Codable {
    let id: String
    let party: String
    /// PKCS #8 in PEM. A secret.
    let privateKeyPEM: String
    let count: UInt32
  }

  package var settings: PhoneSettings
  let keys: [Key]
  /// Absent in files of earlier versions.
  let credentials: [Credential]?
  let enrolments: Int
  let failures: Int

  /// A phone without keys.
  package init(settings: PhoneSettings) {
    self.settings = settings
    (keys, credentials, enrolments, failures) = ([], nil, 0, 0)
  }

  init(_ state: SimulatedPhone.State) throws(CryptographyError) {
    settings = state.settings
    enrolments = state.enrolments
    failures = state.failures
    var keys: [Key] = []
    for (tag, key) in state.keys.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
      keys.append(
        Key(
          tag: tag, protection: key.pair.protection, isHardwareBacked: key.pair.isHardwareBacked,
          privateKeyPEM: try key.privateKey.pkcs8PEM, enrolment: key.enrolment))
    }
    self.keys = keys
    var credentials: [Credential] = []
    for credential in state.credentials {
      credentials.append(
        Credential(
          id: credential.id, party: credential.party, privateKeyPEM: try credential.privateKey.pkcs8PEM,
          count: credential.count))
    }
    self.credentials = credentials
  }

  func state() throws(CryptographyError) -> SimulatedPhone.State {
    var state = SimulatedPhone.State(settings: settings)
    (state.enrolments, state.failures) = (enrolments, failures)
    for key in keys {
      let privateKey = try P256PrivateKey(pkcs8PEM: key.privateKeyPEM)
      let pair = KeyPair(
        tag: key.tag, protection: key.protection, isHardwareBacked: key.isHardwareBacked,
        publicKey: privateKey.publicKey.x963)
      state.keys[key.tag] = StoredKey(pair: pair, privateKey: privateKey, enrolment: key.enrolment)
    }
    for credential in credentials ?? [] {
      state.credentials.append(
        SecurityCredential(
          id: credential.id, party: credential.party,
          privateKey: try P256PrivateKey(pkcs8PEM: credential.privateKeyPEM), count: credential.count))
    }
    return state
  }
}
