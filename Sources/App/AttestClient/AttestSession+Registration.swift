internal import ByteCoding
internal import Foundation
internal import Wire

/// The state of an unfinished registration.
enum UnfinishedRegistration: Sendable, Hashable {
  /// The key exists, and could not be attested yet.
  case generated(keyID: String)
  /// The key is attested, which works once: these bytes are all that can register it.
  case attested(RegistrationMessage)
}

/// The body of `POST /attest/register`, kept as it was sent.
struct RegistrationMessage: Sendable, Hashable {
  let keyID: String
  let body: [UInt8]
}

extension AttestSession {
  /// Returns the identifier of the registered key, and registers one first if there is none.
  @discardableResult
  func registeredKeyID() async throws(AttestError) -> String {
    if let keyID = try record().keyID { return keyID }
    guard keys.isSupported else { throw .keyService(.featureUnsupported) }
    return try await register()
  }

  /// Replaces the refused key by a new one.
  ///
  /// The time is saved before the new key is made, so even after a failure the next renewal is an hour away.
  func renewKey() async throws(AttestError) {
    var record = try record()
    let now = now()
    if let last = record.renewedAt, last <= now, now.since(last) < Self.renewalInterval {
      throw .renewedTooRecently(until: last.advanced(by: Self.renewalInterval))
    }
    record.renewedAt = now
    record.keyID = nil
    try save(record)
    unfinished = nil
    _ = try await register()
  }

  /// Goes on with an unfinished registration, or begins one. A nonce that the gate did not take costs the key, since a
  /// key is attested once: one more key is made, with a fresh challenge.
  private func register() async throws(AttestError) -> String {
    var mayRetry = true
    while true {
      let message = try await attestedMessage()
      do throws(AttestError) {
        return try await submit(message)
      } catch .registrationFailed(let refusal) where refusal.code?.definition.advice == .freshChallenge && mayRetry {
        mayRetry = false
      }
    }
  }

  /// A registration that is ready to be sent: the unfinished one, or a new one.
  private func attestedMessage() async throws(AttestError) -> RegistrationMessage {
    switch unfinished {
    case .attested(let message): return message
    case .generated(let keyID): return try await attest(keyID, over: fetchChallenge())
    case nil:
      // The challenge is fetched first: a key stays in the device forever, also if the app exits before it reaches
      // the gate.
      let challenge = try await fetchChallenge()
      let keyID: String
      do throws(KeyServiceError) { keyID = try await keys.generateKey() } catch { throw .keyService(error) }
      unfinished = .generated(keyID: keyID)
      return try await attest(keyID, over: challenge)
    }
  }

  private func attest(_ keyID: String, over challenge: Challenge) async throws(AttestError) -> RegistrationMessage {
    do throws(KeyServiceError) {
      let message = RegistrationMessage(keyID: keyID, body: try await keys.registration(of: keyID, over: challenge))
      unfinished = .attested(message)
      return message
    } catch {
      if error != .serverUnavailable { unfinished = nil }
      throw .keyService(error)
    }
  }

  /// Sends `message`, a second time if the first answer was lost, and saves the key identifier after 200.
  private func submit(_ message: RegistrationMessage) async throws(AttestError) -> String {
    let request = HTTPRequest(
      method: .post, url: gate.register, headers: [HTTPField("Content-Type", "application/json")], body: message.body)
    var response: HTTPResponse
    do throws(AttestError) {
      response = try await answer(to: request)
    } catch .transport(.lost) {
      response = try await answer(to: request)
    }
    guard response.status == 200 else {
      // After other statuses, and a refusal that says to try again, the gate may not have decided. Only a decision ends
      // this registration.
      let refusal = GateRefusal(response)
      if (400..<500).contains(response.status), refusal.advice != .retryLater { unfinished = nil }
      throw refusal.code == .keyRevoked ? .keyRevoked(refusal) : .registrationFailed(refusal)
    }
    var record = try record()
    record.keyID = message.keyID
    try save(record)
    unfinished = nil
    return message.keyID
  }
}
