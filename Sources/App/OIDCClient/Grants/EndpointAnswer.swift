internal import Wire

/// An answer of an endpoint, with what the request had that no message may repeat.
struct EndpointAnswer: Sendable {
  let response: HTTPResponse
  /// The secrets that were sent. Some providers put them into the text of an error.
  var secrets: [String]
  /// What the provider demands and this client cannot give; `nil` if there is no such demand.
  var unmetDemand: String?

  init(response: HTTPResponse, secrets: [String]) {
    self.response = response
    self.secrets = secrets
  }

  /// The parts of a JWT, of which a text may repeat one alone.
  static func parts(of token: String) -> [String] {
    token.utf8.split(separator: UInt8(ascii: ".")).map { String(decoding: $0, as: UTF8.self) }
  }

  /// The error that this answer is, without a text that repeats a secret.
  func error(of name: String) -> OIDCError {
    let error = response.error(of: name, withholding: secrets)
    guard let unmetDemand, case .refused(let refusal) = error else { return error }
    return .refused(ProviderRefusal(error: refusal.error, explanation: unmetDemand, retryAfter: refusal.retryAfter))
  }
}

extension HTTPResponse {
  /// The error in the body (RFC 6749, section 5.2); `nil` if there is none.
  var refusal: ProviderRefusal? {
    struct Document: Decodable {
      let error: Member<String>
      let explanation: Member<String>

      init(from decoder: any Decoder) throws {
        let members = try ProviderMembers(from: decoder)
        error = members.text("error")
        explanation = members.text("error_description")
      }
    }
    guard let document = try? ProviderJSON.decode(Document.self, from: body), let error = document.error.value
    else { return nil }
    return ProviderRefusal(received: error, explanation: document.explanation.value, retryAfter: retryAfter)
  }

  /// The error that this answer is, without a text that repeats one of `secrets`. With a status of the server's own
  /// failure, or of its rate limit, an error in the body says nothing more. Only a device grant is slowed down by one.
  func error(of name: String, withholding secrets: [String]) -> OIDCError {
    if status == 200 || (400..<500).contains(status), let refusal, status != 429 || refusal.error == "slow_down" {
      return .refused(refusal.withholding(secrets))
    }
    return .status(status, of: name, retryAfter: retryAfter)
  }
}
