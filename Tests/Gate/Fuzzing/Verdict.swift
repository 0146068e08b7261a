import ByteCoding
import CBOR
import Cryptography

@testable import AndroidKeyAttestation

/// The decoders' verdicts in words, for comparison with other implementations; see `scripts/fuzz differential`.
///
/// A line is `cbor HEX`, `chain SECONDS ROOT LEAF INTERMEDIATE…` or `android SECONDS ROOT LEAF ISSUER…`, each certificate
/// in hex. The answer begins with `accepted` or `refused`.
enum Verdict {
  static func answer(to line: String) -> String {
    // A reason may quote a name in a certificate, which may contain line breaks.
    String(verdict(on: line).filter { !$0.isNewline })
  }

  private static func verdict(on line: String) -> String {
    let words = line.split(separator: " ").map(String.init)
    let bytes = words.dropFirst().compactMap { Hex.decode($0) }
    switch words.first {
    case "cbor" where words.count <= 2: return cbor(bytes.first ?? [])
    case "chain" where words.count >= 4, "android" where words.count >= 4:
      guard let seconds = Int64(words[1]) else { return "error: not an instant" }
      let certificates = words.dropFirst(2).compactMap { Hex.decode($0) }
      guard certificates.count == words.count - 2 else { return "error: not hex" }
      if words[0] == "android" {
        return android(root: certificates[0], chain: Array(certificates[1...]), at: Timestamp(seconds: seconds))
      }
      return chain(root: certificates[0], leaf: certificates[1], certificates[2...], at: Timestamp(seconds: seconds))
    default: return "error: unknown verdict"
    }
  }

  private static func cbor(_ bytes: [UInt8]) -> String {
    do throws(CBORError) {
      return "accepted " + text(try CBORValue(decoding: bytes))
    } catch {
      return "refused \(error)"
    }
  }

  /// A notation that distinguishes all values that the decoder distinguishes.
  private static func text(_ value: CBORValue) -> String {
    switch value {
    case .unsigned(let number): "u\(number)"
    case .negative(let number): "n\(number)"
    case .bytes(let bytes): "b" + Hex.encode(bytes)
    case .text(let text): "t" + Hex.encode(Array(text.utf8))
    case .array(let values): "[" + values.map(text).joined(separator: ",") + "]"
    case .map(let map): "{" + map.pairs.map { text($0.key) + ":" + text($0.value) }.joined(separator: ",") + "}"
    case .tagged(let tag, let value): "T\(tag)(\(text(value)))"
    case .float(let number): "f" + Hex.encode(withUnsafeBytes(of: number.bitPattern.bigEndian, Array.init))
    case .boolean(let isTrue): isTrue ? "true" : "false"
    case .null: "null"
    case .undefined: "undefined"
    }
  }

  private static func chain(
    root: [UInt8], leaf: [UInt8], _ intermediates: ArraySlice<[UInt8]>, at instant: Timestamp
  ) -> String {
    do {
      let validator = ChainValidator(roots: [try Certificate(der: root)])
      let leaf = try Certificate(der: leaf)
      let chain = try validator.validate(
        leaf: leaf, intermediates: try intermediates.map { try Certificate(der: $0) }, at: instant)
      let fields = [
        "\(chain.count)", Hex.encode(leaf.serialNumber), "\(leaf.notBefore.seconds)", "\(leaf.notAfter.seconds)",
        Hex.encode(leaf.subjectPublicKeyInfo), leaf.p256PublicKey.map { Hex.encode($0) } ?? "-",
      ]
      return "accepted " + fields.joined(separator: " ")
    } catch {
      return "refused \(error)"
    }
  }

  /// The rules about certificates that a chain of an Android device breaks, sorted. What the leaf says is not compared.
  private static func android(root: [UInt8], chain: [[UInt8]], at instant: Timestamp) -> String {
    do {
      let root = try IssuerKey(spki: Certificate(der: root).subjectPublicKeyInfo)
      let verifier = AndroidAttestationVerifier(policy: AndroidAppPolicy(package: "", signers: []), roots: [root])
      let claim = AndroidClaim(
        chain: try AndroidCertificateChain(chain).ending(at: [root]), challenge: [], statusList: nil, instant: instant)
      let steps: [AndroidAttestationStep] = [
        .nameChaining, .signatures, .root, .authorities, .validity, .attestationExtension,
      ]
      let codes = steps.flatMap { verifier.check($0, of: claim) ?? [] }.map(\.code).sorted()
      return codes.isEmpty ? "accepted" : "refused " + codes.joined(separator: ",")
    } catch {
      return "refused \(error)"
    }
  }
}
