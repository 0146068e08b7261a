internal import Wire

/// What a provider has asked for in its answers to one request. Each kind of demand is met once, so that a request is sent
/// at most four times.
struct ProviderDemands: Sendable {
  /// A nonce for the DPoP proof (RFC 9449, section 8).
  private(set) var nonce: String?
  /// A challenge for the proof of an attestation.
  private(set) var challenge: String?
  /// Why the last demand was not met, for people; `nil` if it was, or there was none.
  private(set) var unmet: String?

  private var needsRenewal = false
  private var met: Set<String> = []

  /// What messages call the endpoint that gives challenges.
  static let challengeEndpoint = "the challenge endpoint"
  /// The longest value that is repeated to the provider, in bytes.
  private static let longest = 1024
  static let nonceField = "DPoP-Nonce"
  private static let challengeField = "OAuth-Client-Attestation-Challenge"

  /// Creates a value without demands.
  init() {}

  /// What the answer of the challenge endpoint gives.
  ///
  /// - Throws: `.malformed` if it gives no challenge, or a longer one than this client repeats.
  init(challenges answer: HTTPResponse) throws(OIDCError) {
    struct Document: Decodable {
      let challenge: Member<String>

      init(from decoder: any Decoder) throws {
        challenge = try ProviderMembers(from: decoder).text("attestation_challenge", isSecret: true)
      }
    }
    let name = Self.challengeEndpoint
    let document: Document
    do { document = try ProviderJSON.decode(Document.self, unambiguously: answer.body) } catch is ProviderJSON.Ambiguous
    {
      throw .malformed("\(name) answers with a member twice")
    } catch {
      throw .malformed("\(name) answers with no JSON object")
    }
    let challenge = try document.challenge.required(in: name)
    guard Self.isUsable(challenge) else { throw .malformed("\(name): attestation_challenge is \(Self.tooLong)") }
    self.challenge = challenge
    guard let nonce = answer.value(of: Self.nonceField), !nonce.isEmpty else { return }
    guard Self.isUsable(nonce) else { throw .malformed("\(name): \(Self.nonceField) is \(Self.tooLong)") }
    self.nonce = nonce
  }

  /// Notes what `answer` asks for. If that cannot be met, `unmet` says why, and the refusal stands: the provider has not
  /// looked at the grant.
  ///
  /// - Returns: Whether the request is worth sending again.
  mutating func note(_ answer: HTTPResponse, hasDPoP: Bool, isAttested: Bool) -> Bool {
    unmet = nil
    guard answer.status != 200, let error = answer.refusal?.error else { return false }
    let isKnown =
      switch error {
      case "use_dpop_nonce": hasDPoP
      case "use_attestation_challenge", "use_fresh_attestation": isAttested
      default: false
      }
    guard isKnown else { return false }
    guard met.insert(error).inserted else {
      unmet = "the provider asks for it again after it was given"
      return false
    }
    switch error {
    case "use_dpop_nonce":
      guard let nonce = value(of: Self.nonceField, in: answer) else { return false }
      self.nonce = nonce
    case "use_attestation_challenge":
      guard let challenge = value(of: Self.challengeField, in: answer) else { return false }
      self.challenge = challenge
    default: needsRenewal = true
    }
    // The nonce of any answer is the newest one (RFC 9449, section 8.2), and so is the challenge: a provider may accept
    // each of them once, and the next request would come with one that was used.
    if hasDPoP, let nonce = answer.value(of: Self.nonceField), Self.isUsable(nonce) { self.nonce = nonce }
    if isAttested, let challenge = answer.value(of: Self.challengeField), Self.isUsable(challenge) {
      self.challenge = challenge
    }
    return true
  }

  /// Whether the provider has asked for a newer attestation since the last call.
  mutating func takeRenewal() -> Bool {
    defer { needsRenewal = false }
    return needsRenewal
  }

  private mutating func value(of name: String, in answer: HTTPResponse) -> String? {
    guard let value = answer.value(of: name), !value.isEmpty else {
      unmet = "the answer has no field \(name)"
      return nil
    }
    guard Self.isUsable(value) else {
      unmet = "the field \(name) is \(Self.tooLong)"
      return nil
    }
    return value
  }

  /// Why a value is not repeated, as the end of a sentence.
  static let tooLong = "longer than \(longest) bytes"

  /// Whether a value is repeated to the provider.
  static func isUsable(_ text: String) -> Bool { (1...longest).contains(text.utf8.count) }
}
