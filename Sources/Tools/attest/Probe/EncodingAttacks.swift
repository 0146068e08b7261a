internal import ByteCoding
internal import Commands

/// A form of base64 other than the standard one. The gate reads the same bytes in each of them.
enum Base64Form: String, Sendable, CaseIterable {
  case unpadded = "base64 without padding"
  case urlSafe = "base64url"
  case paddedURLSafe = "base64url with padding"
  /// Lines of 76 digits, as the default encoder of Android writes them.
  case lines = "base64 in lines"

  /// Whether a header field can have it.
  var fitsField: Bool { self != .lines }

  func text(_ bytes: [UInt8]) -> String {
    let standard = Base64.encode(bytes)
    switch self {
    case .unpadded: return String(standard.prefix { $0 != "=" })
    case .urlSafe: return Base64URL.encode(bytes)
    case .paddedURLSafe: return Base64URL.encode(bytes) + standard.drop { $0 != "=" }
    case .lines:
      let lines = stride(from: 0, to: standard.utf8.count, by: 76).map { standard.dropFirst($0).prefix(76) }
      return lines.joined(separator: "\n") + "\n"
    }
  }

  /// `bytes` with digits of both alphabets in one text, which has no single meaning; `nil` if the text has fewer than
  /// two digits in which the alphabets differ.
  static func mixed(_ bytes: [UInt8]) -> String? {
    let standard = Base64.encode(bytes)
    guard let first = standard.firstIndex(where: isSpecial),
      standard[standard.index(after: first)...].contains(where: isSpecial)
    else { return nil }
    var mixed = standard
    mixed.replaceSubrange(first...first, with: standard[first] == "+" ? "-" : "_")
    return mixed
  }

  private static func isSpecial(_ digit: Character) -> Bool { digit == "+" || digit == "/" }
}

// Attempts to pass what the gate has seen as something new, because its text differs and its bytes do not.
extension Attack {
  /// Proofs in other forms of base64.
  static let encodedProofs: [Attack] =
    Base64Form.allCases.filter(\.fitsField).map { form in
      Attack(
        .credentials, "a proof that was used, in \(form.rawValue)", [401], code: "nonce_used", needsDevice: true
      ) { prober throws(Failure) in
        let nonce = try await prober.challenge()
        let proof = try prober.device.proof(over: nonce)
        _ = try await prober.upgrade(prober.device.lines(proof, nonce: nonce))
        return try await prober.upgrade(prober.device.lines(proof, nonce: nonce, form.text))
      }
    } + [
      Attack(
        .credentials, "a proof in both alphabets of base64", [400], code: "malformed_header", needsDevice: true
      ) { prober throws(Failure) in
        let nonce = try await prober.challenge()
        var proof = try prober.device.proof(over: nonce)
        // Four of five signatures have two such digits.
        while Base64Form.mixed(proof) == nil { proof = try prober.device.proof(over: nonce) }
        return try await prober.upgrade(
          prober.device.lines(proof, nonce: nonce) { bytes in
            bytes == proof ? Base64Form.mixed(bytes) ?? "" : Base64.encode(bytes)
          })
      },
      Attack(.head, "a proof in lines", [400], needsDevice: true) { prober throws(Failure) in
        let nonce = try await prober.challenge()
        let proof = try prober.device.proof(over: nonce)
        return try await prober.upgrade(prober.device.lines(proof, nonce: nonce, Base64Form.lines.text))
      },
    ]

  /// Registrations of App Attest in other forms of base64.
  static let encodedAttestations: [Attack] =
    Base64Form.allCases.map { form in
      Attack(
        .registration, "a key that is registered, in \(form.rawValue)", [409], code: "key_exists", needsDevice: true
      ) { prober throws(Failure) in
        let nonce = try await prober.challenge()
        let attestation = try prober.iPhone.attestation(over: nonce, by: prober.authority)
        return try await prober.register(prober.iPhone, attestation: attestation, nonce: nonce, form.text)
      }
    } + [
      Attack(
        .registration, "an attestation in both alphabets of base64", [400], code: "malformed_value", needsDevice: true
      ) { prober throws(Failure) in
        let (nonce, device) = (try await prober.challenge(), try prober.unregisteredDevice())
        let attestation = try device.attestation(over: nonce, by: prober.authority)
        return try await prober.register(device, attestation: attestation, nonce: nonce) { bytes in
          bytes == attestation ? Base64Form.mixed(bytes) ?? "" : Base64.encode(bytes)
        }
      }
    ]

  /// Registrations of Android in other forms of base64.
  static let encodedChains: [Attack] =
    Base64Form.allCases.map { form in
      Attack(
        .registration, "a key of Android that is registered, in \(form.rawValue)", [409], code: "key_exists",
        needsDevice: true
      ) { prober throws(Failure) in
        let nonce = try await prober.challenge()
        return try await prober.register(chain: prober.android.chain(over: nonce), nonce: nonce, form.text)
      }
    } + [
      Attack(
        .registration, "a chain in both alphabets of base64", [400], code: "malformed_value", needsDevice: true
      ) { prober throws(Failure) in
        let nonce = try await prober.challenge()
        return try await prober.register(chain: prober.unregisteredAndroid().chain(over: nonce), nonce: nonce) {
          Base64Form.mixed($0) ?? ""
        }
      }
    ]
}
