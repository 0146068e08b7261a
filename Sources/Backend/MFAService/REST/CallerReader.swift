public import ByteCoding
internal import HTTPTypes
public import MFADomain
public import Logging

/// Reads and verifies the caller from the header fields of a request.
public struct CallerReader: Sendable {
  private let gate: GateIdentityVerifier
  private let tokens: AccessTokens
  private let clock: WallClock
  private let entropy: Entropy
  private let patience: Duration
  private let logger: Logger

  /// Creates the reader.
  ///
  /// - Parameter patience: the time limit for the store in requests without effects.
  public init(
    gate: GateIdentityVerifier, tokens: AccessTokens, clock: WallClock, entropy: Entropy,
    patience: Duration = OperationRegistry.patience, logger: Logger
  ) {
    self.gate = gate
    self.tokens = tokens
    self.clock = clock
    self.entropy = entropy
    self.patience = patience
    self.logger = logger
  }

  /// As `GateIdentityVerifier.agreesWithGate`.
  var agreesWithGate: Bool { gate.agreesWithGate }

  /// The request id of the gate if it is printable ASCII of at most 128 bytes, otherwise a new one.
  func requestID(of headers: HTTPFields) -> String {
    if let given = headers[.requestID], (1...128).contains(given.utf8.count),
      given.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
    {
      return given
    }
    return Hex.encode(entropy.bytes(16))
  }

  /// Verifies the gate's identity and the access token.
  ///
  /// - Returns: The caller, and the identity as the first write of the request records it.
  /// - Throws: `OperationInputError.notAttested` unless there is exactly one valid identity; `MFAStoreError` if the
  ///   store or the gate's keys are unavailable.
  func caller(
    of headers: HTTPFields, requestID: String, opening request: RequestLine, effect: GateIdentityVerifier.Effect
  ) async throws -> (Caller, UnspentIdentity?) {
    let assertions = headers[values: .attestAssertion]
    guard assertions.count == 1, let assertion = assertions.first else { throw OperationInputError.notAttested }
    do {
      let accepted = try await gate.identity(in: assertion, of: request, effect: effect, patience: patience)
      let caller = Caller(
        identity: accepted.identity, session: await proof(in: headers[.authorization]), requestID: requestID,
        // Of bytes: one character may have any number of them.
        userAgent: String(decoding: (headers[.userAgent] ?? "").utf8.prefix(256), as: UTF8.self),
        languages: Languages(acceptLanguage: headers[.acceptLanguage] ?? ""))
      return (caller, accepted.unspent)
    } catch let error as GateIdentityVerifier.Rejection {
      logger.notice("identity refused", metadata: ["request_id": "\(requestID)", "reason": "\(error.reason)"])
      throw OperationInputError.notAttested
    }
  }

  /// The session of the access token. An invalid token counts as absent.
  private func proof(in authorization: String?) async -> SessionProof? {
    // RFC 9110, section 11.1: the scheme is in any case.
    let scheme = "bearer ".utf8
    guard let authorization, authorization.utf8.count > scheme.count,
      zip(authorization.utf8, scheme).allSatisfy({ $0 == $1 || $0 | 0x20 == $1 })
    else { return nil }
    let token = authorization.utf8.dropFirst(scheme.count).drop { $0 == 0x20 }
    return await tokens.proof(in: String(Substring(token)), at: clock.now())
  }
}
