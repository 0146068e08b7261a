public import ByteCoding
public import Foundation

/// A token for a service that the gate does not relay to, bound to a key of the client.
public struct AccessToken: Sendable, Hashable {
  /// The token, a secret. Send it as `Authorization: DPoP TOKEN`, with a proof of its key for each request.
  public let text: String
  /// How long the token is valid after its issue.
  public let lifetime: Duration

  /// Creates a token, for tests of an app.
  public init(text: String, lifetime: Duration) {
    self.text = text
    self.lifetime = lifetime
  }

  /// The two header fields for one request with this token.
  ///
  /// - Parameters:
  ///   - nonce: The value that the service asked for, if any.
  ///   - key: The key for which the token was issued.
  public func fields(
    for method: String, _ url: URL, nonce: String? = nil, key: some DPoPKey, at now: Timestamp = .now()
  ) throws(KeyServiceError) -> [HTTPField] {
    let proof = try DPoPProof.make(method, url, nonce: nonce, accessToken: text, key: key, at: now)
    return [HTTPField("Authorization", "DPoP \(text)"), HTTPField(DPoPProof.headerName, proof)]
  }
}

extension AttestSession {
  /// Asks the gate for an access token.
  ///
  /// Registers first if necessary, and repeats a refused request as `open` does. Keep the token and use it until its
  /// lifetime ends: each one costs an admission. A gate without tokens answers 404, which throws `.assertionFailed`.
  ///
  /// - Parameters:
  ///   - audience: The service, as the operator of the gate names it.
  ///   - key: The key to which the token is bound.
  /// - Throws: `.assertionFailed` or `.keyRevoked` if the gate refuses; `.keyService` if `key` cannot sign.
  public func accessToken(for audience: String, boundTo key: some DPoPKey) async throws(AttestError) -> AccessToken {
    let answer = try await bought(with: "audience=\(Self.escaped(audience))", boundTo: key, as: TokenAnswer.self) {
      $0.token_type == "DPoP"
    }
    return AccessToken(text: answer.access_token, lifetime: Self.lifetime(answer.expires_in))
  }

  /// Asks the gate for a client attestation, with which the app authenticates to an authorization server.
  ///
  /// Registers first if necessary, and repeats a refused request as `open` does. Keep the attestation and use it until
  /// its lifetime ends. A gate without attestations answers 404, which throws `.assertionFailed`.
  ///
  /// - Parameters:
  ///   - clientID: The app's identifier at the authorization server, as the operator of the gate has configured it.
  ///   - key: The key that the attestation names, for the proofs of later requests.
  /// - Throws: `.assertionFailed` or `.keyRevoked` if the gate refuses; `.keyService` if `key` cannot sign.
  public func clientAttestation(
    for clientID: String, boundTo key: some DPoPKey
  ) async throws(AttestError) -> ClientAttestation {
    let answer = try await bought(
      with: "client_id=\(Self.escaped(clientID))", boundTo: key, as: AttestationAnswer.self)
    return ClientAttestation(text: answer.client_attestation, lifetime: Self.lifetime(answer.expires_in))
  }

  /// Sends `form` with an assertion and a proof of `key` over the same nonce, and returns the answer.
  private func bought<Answer: Decodable & Sendable>(
    with form: String, boundTo key: some DPoPKey, as type: Answer.Type,
    where isRight: @escaping @Sendable (Answer) -> Bool = { _ in true }
  ) async throws(AttestError) -> Answer {
    let (gate, http, now) = (gate, http, now)
    let result = try await open { headers throws(UpgradeError) -> Result<Answer, KeyServiceError> in
      let proof: String
      do throws(KeyServiceError) {
        proof = try DPoPProof.make("POST", gate.token, nonce: headers.nonce, key: key, at: now())
      } catch {
        return .failure(error)
      }
      let fields = [
        HTTPField("Content-Type", "application/x-www-form-urlencoded"), HTTPField(DPoPProof.headerName, proof),
      ]
      let request = HTTPRequest(
        method: .post, url: gate.token, headers: fields + headers.fields, body: Array(form.utf8))
      let response: HTTPResponse
      do throws(TransportError) { response = try await http.send(request) } catch { throw .transport(error) }
      guard response.status == 200 else { throw .refused(GateRefusal(response)) }
      guard let answer = try? JSONDecoder().decode(type, from: Data(response.body)), isRight(answer) else {
        throw .transport(.malformed("the answer has no token"))
      }
      return .success(answer)
    }
    do throws(KeyServiceError) { return try result.get() } catch { throw .keyService(error) }
  }

  /// The longest lifetime that is believed, in seconds: a day.
  private static let longestLifetime = 86_400

  private static func lifetime(_ seconds: Int) -> Duration { .seconds(min(max(seconds, 0), longestLifetime)) }

  private struct TokenAnswer: Decodable, Sendable {
    let access_token: String
    let token_type: String
    let expires_in: Int
  }

  private struct AttestationAnswer: Decodable, Sendable {
    let client_attestation: String
    let expires_in: Int
  }

  /// Escapes all bytes but the unreserved ones (RFC 3986 section 2.3).
  private static func escaped(_ text: String) -> String {
    text.utf8.reduce(into: "") { result, byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
        UInt8(ascii: "~"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default: result += "%" + Hex.encode([byte]).uppercased()
      }
    }
  }
}
