internal import AttestGate
internal import Wire

/// Why the gate issues no token, apart from the reasons that it has for every admission.
enum TokenRefusal: Error, Sendable, Hashable {
  case malformedForm(TokenRequest.ParseError)
  /// The configuration does not name this audience.
  case unknownAudience(String)
  /// The configuration does not name this client of an authorization server.
  case unknownClient(String)
  /// The device's app is none of the client's.
  case foreignApp(clientID: String)
  case proof(DPoPRejection)
  /// Enforcement is off: no client has an identity.
  case verifiesNothing
}

extension TokenRefusal {
  /// The answer and the log line that follow from this refusal.
  var report: RefusalReport {
    switch self {
    case .malformedForm(let fault): RefusalReport(.malformedForm, fault.step, text: fault.text)
    // The value is the client's, so the log gets a bounded part of it.
    case .unknownAudience(let audience):
      // By scalars: a character can have any number of them.
      RefusalReport(.audienceRefused, "token_audience", detail: String(audience.unicodeScalars.prefix(200)))
    case .unknownClient(let id):
      RefusalReport(
        .audienceRefused, "token_client", text: "The gate issues no attestations for this client_id",
        detail: String(id.unicodeScalars.prefix(200)))
    case .foreignApp(let id):
      RefusalReport(
        .audienceRefused, "token_client_app", text: "This app gets no attestations for this client_id", detail: id,
        followsVerification: true)
    case .proof(let rejection): rejection.report
    case .verifiesNothing: RefusalReport(.tokensUnavailable, "token_enforcement_off")
    }
  }
}

extension TokenRequest.ParseError {
  fileprivate var step: String {
    switch self {
    case .notAForm: "form_type"
    case .tooLong: "form_size"
    case .malformed: "form_encoding"
    case .repeatedMember, .missingAudience: "form_member"
    }
  }

  /// A text other than that of the code.
  fileprivate var text: String? {
    switch self {
    case .notAForm: nil
    case .tooLong: "The body may have at most \(TokenRequest.longest) bytes"
    case .malformed: "A value in the body is not encoded as a form in UTF-8"
    case .repeatedMember: "The body has a member twice"
    case .missingAudience: "audience is missing, or client_id for a client attestation"
    }
  }
}

extension DPoPRejection {
  fileprivate var report: RefusalReport {
    switch self {
    case .missing: malformed("dpop_missing", "DPoP is missing")
    case .repeated: malformed("dpop_repeated", "DPoP was sent more than once")
    case .tooLong: malformed("dpop_size", "DPoP may have at most \(DPoPProof.longest) bytes")
    case .notAToken: malformed("dpop_form", "DPoP must be three parts in base64url")
    case .malformedHeader: malformed("dpop_header", "The header of DPoP must be a JSON object with each member once")
    case .unexpectedType: malformed("dpop_type", "typ of DPoP must be dpop+jwt")
    case .unexpectedAlgorithm: malformed("dpop_algorithm", "alg of DPoP must be ES256")
    case .unknownExtension: malformed("dpop_extension", "DPoP must not have crit")
    case .malformedKey: malformed("dpop_key", "jwk of DPoP must be a public key on P-256")
    case .privateKey: malformed("dpop_private_key", "jwk of DPoP must not have the private part d")
    case .malformedClaims:
      malformed("dpop_claims", "The claims of DPoP must be a JSON object with each member once")
    case .missingClaim(let name): malformed("dpop_claim", "\(name) of DPoP is missing", detail: name)
    case .malformedSignature: malformed("dpop_signature_size", "The signature of DPoP must have 64 bytes")
    case .methodMismatch: refused("dpop_method", "htm of DPoP must be POST")
    case .uriMismatch: refused("dpop_uri", "htu of DPoP must be the URL of this request")
    case .nonceMismatch: refused("dpop_nonce", "nonce of DPoP must be X-App-Assert-Nonce")
    case .notFresh(let seconds):
      refused("dpop_time", "iat of DPoP must be within 5 minutes of now", detail: "\(seconds) seconds before now")
    case .invalidSignature:
      refused("dpop_signature", "DPoP is not signed by the key in its jwk", followsVerification: true)
    }
  }

  private func malformed(_ step: String, _ text: String, detail: String? = nil) -> RefusalReport {
    RefusalReport(.dpopMalformed, step, text: text, detail: detail)
  }

  private func refused(
    _ step: String, _ text: String, detail: String? = nil, followsVerification: Bool = false
  ) -> RefusalReport {
    RefusalReport(.dpopRefused, step, text: text, detail: detail, followsVerification: followsVerification)
  }
}
