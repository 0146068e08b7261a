internal import HTTPExchange

/// What a provider has asked for in its answers to one request. Each kind of demand is met once, so that a request is sent
/// at most four times.
struct ProviderDemands {
  /// A nonce for the DPoP proof (RFC 9449, section 8).
  private(set) var nonce: String?
  /// A challenge for the proof of an attestation.
  private(set) var challenge: String?
  /// An attestation that is newer.
  private(set) var needsRenewal = false

  private var met: Set<String> = []

  /// The longest value that is repeated to the provider, in bytes.
  private static let longest = 1024

  /// What the answer of the challenge endpoint gave.
  init(challenge: String? = nil, nonce: String? = nil) {
    self.challenge = Self.usable(challenge)
    self.nonce = Self.usable(nonce)
  }

  /// Notes what `answer` asks for.
  ///
  /// - Returns: Whether the request is worth sending again.
  mutating func note(_ answer: HTTPResponse, hasDPoP: Bool, isAttested: Bool) -> Bool {
    guard answer.status != 200, let error = answer.refusal?.error, !met.contains(error) else { return false }
    switch error {
    case "use_dpop_nonce" where hasDPoP:
      guard let nonce = Self.usable(answer.value(of: "DPoP-Nonce")) else { return false }
      self.nonce = nonce
    case "use_attestation_challenge" where isAttested:
      guard let challenge = Self.usable(answer.value(of: "OAuth-Client-Attestation-Challenge")) else { return false }
      self.challenge = challenge
    case "use_fresh_attestation" where isAttested: needsRenewal = true
    default: return false
    }
    met.insert(error)
    // The nonce of any answer is the newest one (RFC 9449, section 8.2).
    if hasDPoP, let nonce = Self.usable(answer.value(of: "DPoP-Nonce")) { self.nonce = nonce }
    return true
  }

  private static func usable(_ text: String?) -> String? {
    text.flatMap { (1...longest).contains($0.utf8.count) ? $0 : nil }
  }
}
